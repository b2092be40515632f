"""What is kept of contracts that were read: the same contract, never an old one, and nothing from a stranger."""

import errno
import os
import pickle
import time
from pathlib import Path

import pytest

from databox_contracts.errors import ContractError
from databox_contracts.formats import kept, load_contract
from databox_contracts.formats.kept import load_kept

CASES = Path(__file__).parents[1] / "cases"
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
EXAMPLES = Path(__file__).parents[2] / "contracts"

MINIMAL = """\
apiVersion: v3.1.0
kind: DataContract
id: a
version: 1.0.0
schema:
  - name: t
    properties:
      - {name: a, logicalType: integer, logicalTypeOptions: {minimum: 0, maximum: 0}, nonsense: 1}
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv(kept.FOLDER_VARIABLE, str(folder))
    return folder


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(MINIMAL)
    return path


def files(cache):
    return sorted(path for path in cache.rglob("*") if path.is_file())


@pytest.fixture
def unread(monkeypatch):
    """From here on no text is read as a contract."""

    def forbid():
        def read(text, source):
            raise AssertionError(f"{source} is read again")

        monkeypatch.setattr(kept, "contract_of", read)
        monkeypatch.setattr(kept, "load_contract", read)

    return forbid


def contracts():
    for path in sorted((*CASES.rglob("*.y*ml"), *CORPUS.rglob("*.y*ml"), *EXAMPLES.rglob("*.yaml"))):
        try:
            yield path, load_contract(path)
        except ContractError:
            continue


def test_it_is_the_contract_that_the_file_says_in_every_dialect(cache, unread):
    expected = list(contracts())
    assert {contract.dialect for _, contract in expected} == {"odcs", "datacontract", "sections", "soda"}
    assert any(contract.findings for _, contract in expected)
    assert [load_kept(path) for path, _ in expected] == [contract for _, contract in expected]
    assert len(files(cache)) == len(expected)
    unread()
    for path, contract in expected:
        found = load_kept(path)
        assert found == contract
        assert repr(found) == repr(contract)
        assert (found.findings, found.source) == (contract.findings, str(path))


def test_another_text_and_another_name_are_read(cache, path, tmp_path):
    first = load_kept(path)
    path.write_text(MINIMAL.replace("id: a", "id: b"))
    other = tmp_path / "b.yaml"
    other.write_text(MINIMAL)
    assert (load_kept(path).id, load_kept(other).source, first.id) == ("b", str(other), "a")
    assert {finding.source for finding in load_kept(other).findings} == {str(other)}
    path.write_text(MINIMAL)
    assert load_kept(path) == first


def test_a_name_may_be_any_that_a_file_has(cache, tmp_path, unread):
    path = tmp_path / os.fsdecode(b"caf\xe9 \n.yaml")
    path.write_text(MINIMAL)
    contract = load_kept(path)
    unread()
    assert load_kept(path) == contract
    assert contract.source == str(path)


def test_other_code_reads_for_itself(cache, path, tmp_path, monkeypatch):
    package = tmp_path / "package"
    package.mkdir()
    module = package / "__init__.py"
    module.write_text("")
    monkeypatch.setattr(kept.databox_contracts, "__file__", str(module))
    names = {kept._code()}
    module.write_text("# changed")
    names.add(kept._code())
    (package / "more.py").write_text("")
    names.add(kept._code())
    monkeypatch.setattr(kept, "version", lambda library: "0")
    names.add(kept._code())
    assert len(names) == 4


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", pickle.dumps({"id": "a"}), pickle.dumps(load_contract(MINIMAL))[:-40]]
)
def test_what_is_damaged_is_replaced(cache, path, unread, content):
    contract = load_kept(path)
    [place] = files(cache)
    place.write_bytes(content)
    assert load_kept(path) == contract
    unread()
    assert load_kept(path) == contract
    assert files(cache) == [place]


class Spy:
    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return Path.touch, (self.trace,)


@pytest.mark.parametrize("where", ["", "*"])
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_nothing_is_taken_from_where_others_write(cache, path, tmp_path, mode, where):
    load_kept(path)
    [place] = files(cache)
    trace = tmp_path / "trace"
    place.write_bytes(pickle.dumps(Spy(trace)))
    open_to_all = next(cache.glob(where)) if where else cache
    open_to_all.chmod(mode)
    kept._folder.cache_clear()
    assert load_kept(path) == load_contract(path)
    assert not trace.exists()
    open_to_all.chmod(0o700)
    kept._folder.cache_clear()
    load_kept(path)
    # So the trace tells.
    assert trace.exists()


def test_nothing_is_taken_from_behind_a_link(cache, path, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    cache.symlink_to(elsewhere)
    assert load_kept(path) == load_contract(path)
    assert files(elsewhere) == []


def test_with_no_folder_to_keep_it_in_it_is_read(path, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for named in ("", str(tmp_path / "file"), str(tmp_path / "file" / "below")):
        monkeypatch.setattr(kept.os, "environ", {kept.FOLDER_VARIABLE: named})
        assert load_kept(path) == load_contract(path)
    assert (tmp_path / "file").read_text() == ""


def test_what_cannot_be_kept_leaves_nothing_behind(cache, path, monkeypatch):
    def full(source, target):
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(kept.os, "replace", full)
    assert load_kept(path) == load_contract(path)
    assert files(cache) == []
    monkeypatch.setattr(kept.pickle, "dumps", lambda *_: pickle.Pickler(None))
    assert load_kept(path) == load_contract(path)
    assert files(cache) == []


@pytest.mark.parametrize("content", [MINIMAL.replace("id: a", "id: []"), "a: [", "", None])
def test_what_is_no_contract_says_so_each_time(cache, path, content):
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    with pytest.raises(ContractError) as expected:
        load_contract(path)
    for _ in range(2):
        with pytest.raises(ContractError) as found:
            load_kept(path)
        assert (str(found.value), found.value.findings) == (str(expected.value), expected.value.findings)
    assert files(cache) == []


def test_the_users_cache_is_where_it_is_by_default(path, tmp_path, monkeypatch):
    monkeypatch.setattr(kept.os, "environ", {"XDG_CACHE_HOME": str(tmp_path / "xdg")})
    kept._folder.cache_clear()
    load_kept(path)
    [place] = files(tmp_path / "xdg")
    assert place.parents[1] == tmp_path / "xdg" / "databox_contracts"
    assert place.parent.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(kept.os, "environ", {"XDG_CACHE_HOME": "relative"})
    monkeypatch.setattr(kept.Path, "home", lambda: tmp_path / "home")
    kept._folder.cache_clear()
    load_kept(path)
    assert len(files(tmp_path / "home" / ".cache" / "databox_contracts")) == 1
    kept._folder.cache_clear()


def test_what_other_code_has_kept_goes_in_time(cache, path, tmp_path):
    ages = {"old": kept.UNUSED_DAYS + 1, "newer": kept.UNUSED_DAYS - 1}
    elsewhere = tmp_path / "elsewhere"
    cache.mkdir(mode=0o700)
    for folder, days in ages.items():
        for root in (cache, elsewhere):
            (root / folder).mkdir(parents=True, mode=0o700)
            (root / folder / "kept").write_text("")
            then = time.time() - days * 86_400
            os.utime(root / folder, (then, then))
    (cache / "link").symlink_to(elsewhere / "old")
    load_kept(path)
    left = {found.name for found in cache.iterdir()}
    assert left == {"newer", "link", kept._code()}
    assert len(files(elsewhere)) == 2

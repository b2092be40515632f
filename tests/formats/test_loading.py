"""From a path, a folder or a text to contracts, or to one clear sentence."""

import os
import threading
from pathlib import Path

import pytest

import databox_contracts as dbc
from databox_contracts.errors import ContractError, Level
from databox_contracts.formats import FORMATS, contract_files, detect, examine, load_contract, load_contracts

CASES = Path(__file__).parents[1] / "cases" / "odcs"
CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "odcs"

MINIMAL = """\
apiVersion: v3.1.0
kind: DataContract
id: {id}
version: {version}
schema:
  - name: t
    properties:
      - name: a
        logicalType: string
"""


def minimal(id: str = "a", version: str = "1.0.0") -> str:
    return MINIMAL.format(id=id, version=version)


def refusal(source: str | Path) -> str:
    with pytest.raises(ContractError) as caught:
        load_contract(source)
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    return str(caught.value)


def test_a_path_a_path_string_and_a_text_give_the_same(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(minimal())
    contracts = [load_contract(path), load_contract(str(path)), load_contract(minimal())]
    assert [contract.datasets[0].fields[0].name for contract in contracts] == ["a", "a", "a"]
    assert [contract.source for contract in contracts] == [str(path), str(path), "<text>"]


def test_the_package_exports_it():
    assert dbc.load_contract is load_contract
    assert dbc.load_contracts is load_contracts


def test_a_byte_order_mark_and_foreign_line_ends_do_not_matter(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + minimal().replace("\n", "\r\n").encode())
    assert load_contract(path).id == "a"
    assert load_contract("\ufeff" + minimal()).id == "a"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the document is empty"),
        (b"# nothing\n", "the document is empty"),
        (b"id: \xff\n", "the file is not UTF-8 (line 1)"),
        (b"id: a\nname: \xc3\x28\n", "the file is not UTF-8 (line 2)"),
        (b"- a\n", "a contract is a mapping, not a list"),
        (b"text\n", "a contract is a mapping, not the text 'text'"),
        (b"a: 1\n", "this is no contract of a known form"),
        (b"dataContractSpecification: 1.1.0\nid: a\n", "the contract has no 'info'"),
        (b"a: [\n", "2:1: not valid YAML"),
    ],
)
def test_an_unusable_file_gives_one_sentence(tmp_path, content, message):
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    text = refusal(path)
    assert text.startswith(f"{path}:")
    assert message in text


def test_a_missing_file_a_folder_and_a_huge_file(tmp_path):
    assert "there is no such file" in refusal(tmp_path / "no.yaml")
    assert "there is no such file" in refusal("id: a")
    assert "this is a folder" in refusal(tmp_path)
    assert "cannot be read" in refusal("a\0b")
    assert "cannot be read" in refusal("x" * 5000)
    huge = tmp_path / "huge.yaml"
    with huge.open("wb") as file:
        file.truncate(50 << 20)
    assert "52,428,800 bytes" in refusal(huge)
    assert "the document is empty" in refusal("")


@pytest.mark.parametrize("text", [minimal(), minimal() + "# " + "x" * (200 << 10) + "\n"])
def test_a_pipe_which_has_no_size(tmp_path, text):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(text,))
    writer.start()
    assert load_contract(pipe).id == "a"
    writer.join()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(minimal())
    path.chmod(0)
    assert "cannot be read" in refusal(path)


def test_an_error_lists_every_finding_the_first_error_first():
    text = minimal() + "        requird: true\n        unique: 3\n      - name: b\n        physicalType: nonsense\n"
    with pytest.raises(ContractError) as caught:
        load_contract(text)
    error = caught.value
    assert [finding.level for finding in error.findings] == [Level.ERROR, Level.ERROR, Level.WARNING]
    assert (error.contract, error.field, error.source) == ("a", "a", "<text>")
    assert error.position == error.findings[0].position
    assert str(error).startswith("<text>:11:17: 'unique' must be true or false, not the number 3 (and 1 more error)")


def test_a_contract_keeps_its_warnings_and_notes():
    contract = load_contract(minimal(version="2.1") + "slaDefaultElement: t.a\n")
    assert [str(finding.level) for finding in contract.findings] == ["warning", "note"]


def test_examine_gives_what_can_be_shown_of_a_faulty_contract():
    contract, findings = examine(minimal() + "        unique: 3\n")
    assert contract is not None
    assert contract.datasets[0].fields[0].name == "a"
    assert [finding.level for finding in findings] == [Level.ERROR]
    assert contract.findings == ()


def test_detect_names_the_dialect():
    assert [format_.name for format_ in FORMATS] == ["odcs", "datacontract", "sections", "soda"]
    assert detect({"kind": "DataContract"}) is FORMATS[0]
    assert detect({"apiVersion": "v3.0.2"}) is FORMATS[0]
    assert detect({"schema": []}) is FORMATS[0]
    assert detect({}) is None
    assert detect({"dataContractSpecification": "1.1.0", "models": {}}) is FORMATS[1]


# --- folders ----------------------------------------------------------------------------------------------------------


def write(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_folder_is_read_recursively_in_order_without_what_is_hidden(tmp_path):
    for name, id in (("b.yaml", "b"), ("a/z.yml", "az"), ("a/B.YAML", "aB"), ("c/d/e.yaml", "e")):
        write(tmp_path, name, minimal(id))
    for name in (".hidden.yaml", ".git/x.yaml", "a/notes.txt", "a/.x/y.yml"):
        write(tmp_path, name, "not a contract: [")
    assert [contract.id for contract in load_contracts(tmp_path)] == ["aB", "az", "b", "e"]
    assert load_contracts(str(tmp_path / "c"))[0].id == "e"


def test_an_empty_folder_has_no_contracts(tmp_path):
    assert load_contracts(tmp_path) == []


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ContractError, match="there is no such folder"):
        load_contracts(tmp_path / "no")


def test_links_in_a_circle_end(tmp_path):
    write(tmp_path, "a/a.yaml", minimal())
    (tmp_path / "a" / "back").symlink_to(tmp_path)
    assert [path.name for path in contract_files(tmp_path)] == ["a.yaml"]


def test_the_same_id_and_version_twice_names_both_files(tmp_path):
    first, second = write(tmp_path, "a.yaml", minimal()), write(tmp_path, "b.yaml", minimal())
    with pytest.raises(ContractError) as caught:
        load_contracts(tmp_path)
    assert str(first) in str(caught.value)
    assert str(second) in str(caught.value)
    write(tmp_path, "b.yaml", minimal(version="2.0.0"))
    assert [contract.version for contract in load_contracts(tmp_path)] == ["1.0.0", "2.0.0"]


# --- documents of others, and documents of nobody ---------------------------------------------------------------------


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside the project")
@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.yaml")), ids=lambda path: path.name)
def test_the_documents_of_the_standard_load(path):
    contract, findings = examine(path)
    assert contract is not None
    assert [str(finding) for finding in findings if finding.level is Level.ERROR] == []
    assert not [finding for finding in findings if "unknown key" in finding.message]
    assert all(finding.position is not None for finding in findings)

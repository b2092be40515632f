"""Many contract files at once: the same findings, however many processes look for them."""

import gc
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from databox_contracts.formats import many
from databox_contracts.formats.many import examine_files

CASES = Path(__file__).parents[1] / "cases"
FILES = sorted(CASES.glob("*/*.y*ml"))


@pytest.fixture
def several(monkeypatch):
    monkeypatch.setattr(many, "_MANY", 2)
    monkeypatch.setattr(many, "_CHUNK", 3)
    monkeypatch.setattr(many, "_processors", lambda: 2)


def test_one_process_sees_every_file_in_its_order():
    examined = examine_files(FILES)
    assert [one.path for one in examined] == FILES
    assert sum(one.identity is None for one in examined) == 0
    assert any(one.patterns for one in examined)
    assert gc.isenabled()
    assert examine_files([]) == []


def test_several_processes_see_the_same(several, tmp_path):
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [\n")
    files = [*FILES, broken, tmp_path / "nowhere.yaml"]
    examined = examine_files(files)
    assert examined == [many._examined(file) for file in files]
    assert [one.identity for one in examined[-2:]] == [None, None]


@pytest.mark.parametrize("error", [BrokenProcessPool, OSError])
def test_where_no_process_can_be_started_one_does(several, monkeypatch, error):
    def refuse(*arguments: object, **more: object) -> None:
        raise error("no room")

    monkeypatch.setattr(many, "ProcessPoolExecutor", refuse)
    assert [one.path for one in examine_files(FILES)] == FILES

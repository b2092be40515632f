"""Files of contracts read ahead: the same contracts, each read once, and never more than twice what is asked for."""

import os

import pytest

from databox_contracts.dagster.read_ahead import FEW, ReadAhead
from databox_contracts.errors import ContractError
from databox_contracts.formats import load_contract

CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: {id}
version: 1.0.0
schema:
  - name: t
    properties:
      - {{name: a, logicalType: integer}}
"""


class Folder:
    def __init__(self, root, count):
        self.root = root
        self.read = []
        self.ahead = ReadAhead(self.load)
        root.mkdir(exist_ok=True)
        for number in range(count):
            self.path(number).write_text(CONTRACT.format(id=f"c{number}"))

    def path(self, number):
        return self.root / f"{number:03}.yaml"

    def load(self, path):
        self.read.append(path.name)
        return load_contract(path)

    def ask(self, number):
        facts = self.path(number).stat()
        return self.ahead.contract(self.path(number), facts.st_mtime_ns, facts.st_size)


@pytest.mark.parametrize("order", [range(100), range(99, -1, -1), [*range(50, 100), *range(50)], range(0, 100, 3)])
def test_each_is_the_contract_of_its_file_and_read_once(tmp_path, order):
    folder = Folder(tmp_path, 100)
    for asked, number in enumerate(order, start=1):
        assert folder.ask(number) == load_contract(folder.path(number))
        assert len(folder.read) <= 2 * asked
    assert len(folder.read) == len(set(folder.read))


def test_of_a_few_nothing_else_is_read(tmp_path):
    folder, other = Folder(tmp_path / "a", 50), Folder(tmp_path / "b", 50)
    other.ahead = folder.ahead
    for number in range(FEW - 1):
        folder.ask(number)
        other.ask(number)
    assert len(folder.read) == 2 * (FEW - 1)
    folder.ask(FEW)
    # The next ones, and of this folder alone.
    assert folder.read[-FEW - 1 :] == [f"{number:03}.yaml" for number in range(FEW, 2 * FEW + 1)]


def test_what_is_no_contract_is_told_to_whoever_asks_for_it(tmp_path):
    folder = Folder(tmp_path, 20)
    folder.path(9).write_text("id: [")
    (tmp_path / ".010.yaml").write_text("id: [")
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "gone.yaml").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.yaml")
    for number in range(FEW):
        folder.ask(number)
    assert "009.yaml" in folder.read
    assert set(folder.read) <= {f"{number:03}.yaml" for number in range(20)}
    for _ in range(2):
        with pytest.raises(ContractError, match=r"009\.yaml"):
            folder.ask(9)
    assert [folder.ask(number).id for number in (8, 10, 19)] == ["c8", "c10", "c19"]


def test_a_file_that_has_changed_since_is_read_again(tmp_path):
    folder = Folder(tmp_path, 20)
    for number in range(FEW):
        folder.ask(number)
    assert "008.yaml" in folder.read
    folder.path(8).write_text(CONTRACT.format(id="changed"))
    assert folder.ask(8).id == "changed"


def test_a_folder_that_is_gone_is_nothing_to_read_ahead(tmp_path):
    folder = Folder(tmp_path / "a", FEW)
    asked = [folder.path(number) for number in range(FEW)]
    contract = load_contract(asked[0])
    ahead = ReadAhead(lambda path: contract)
    for path in asked:
        path.unlink()
    folder.root.rmdir()
    assert [ahead.contract(path, 0, 0) for path in asked] == [contract] * FEW

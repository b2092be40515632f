"""Keeping baselines, and since when a drift is seen; the same of both stores."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from databox_contracts.baselines import BaselineStore, DirectoryBaselineStore
from databox_contracts.drift import DriftKey, Sighting
from databox_contracts.errors import BaselineError
from databox_contracts.profiles import Baseline, FieldProfile
from databox_contracts.testing import MemoryBaselineStore

FIELDS = (
    FieldProfile(
        field="n", type="double", rows=3, quantiles={"0": 0.1, "1": 1e300}, edges=(0.1,), high=1.0, bins=(0, 3, 0)
    ),
    FieldProfile(field="s", type="string", rows=3, nulls=1, distinct=2, values={'""': 1, '"ü"': 1}),
    FieldProfile(field="empty", type="string", rows=0, values={}),
    FieldProfile(field="m", type="string", rows=3, distinct=3, masked=True),
)


def baseline(at: str = "2026-03-01T00:00:00+00:00", contract: str = "urn:a:b", dataset: str = "t") -> Baseline:
    return Baseline(
        contract=contract, contract_version="1.0.0", dataset=dataset, taken_at=at, rows=3, how="all", fields=FIELDS
    )


@pytest.fixture(params=["directory", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BaselineStore:
    made: dict[str, Callable[[], BaselineStore]] = {
        "directory": lambda: DirectoryBaselineStore(tmp_path / "deep" / "store"),
        "memory": MemoryBaselineStore,
    }
    return made[request.param]()


def test_a_baseline_comes_back_as_it_was() -> None:
    assert Baseline.from_json(baseline().to_json()) == baseline()
    assert Baseline.from_json(baseline().to_json()).id == baseline().id
    assert baseline("2026-03-02T00:00:00+00:00").id != baseline().id


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1}', '{"format": 1, "fields": [1]}'])
def test_what_is_no_baseline_is_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(BaselineError, match=r"[Aa]ccept"):
        Baseline.from_json(text)


def test_a_baseline_learns_of_fields_and_forgets_values_and_stays_the_same_one() -> None:
    one = baseline()
    grown = one.knowing([FieldProfile(field="new", type="int", rows=1), FieldProfile(field="n", type="int", rows=1)])
    assert [field.field for field in grown.fields] == ["n", "s", "empty", "m", "new"]
    assert grown.field("n") == FIELDS[0]
    hidden = one.masking(["s", "m", "unknown"])
    assert hidden.field("s") == FieldProfile(field="s", type="string", rows=3, nulls=1, distinct=2, masked=True)
    assert hidden.masking(["s"]) is hidden
    assert one.id == grown.id == hidden.id


def test_the_first_baseline_stays_until_it_is_replaced(store: BaselineStore) -> None:
    first, second, third = (baseline(f"2026-03-0{day}T00:00:00+00:00") for day in (1, 2, 3))
    assert store.get("urn:a:b", "t") is None
    assert store.put(first, replacing=None) == first
    assert store.put(second, replacing=None) == first
    assert store.put(second, replacing=first) == second
    assert store.put(third, replacing=first) == second
    assert store.get("urn:a:b", "t") == second
    assert store.get("urn:a:b", "other") is None


def test_since_when_and_how_often(store: BaselineStore) -> None:
    lost = DriftKey(kind="new_value", field="s", value='"lost"')
    rule = DriftKey(kind="rule", field="s", rule="t.s.enum")
    known = lambda at, *keys: store.see("b1", "urn:a:b", "t", keys, at=at)  # noqa: E731
    assert known("2026-03-01", lost) == {lost.text: Sighting(first_seen="2026-03-01", last_seen="2026-03-01", times=1)}
    assert known("2026-03-03", lost, rule)[lost.text].times == 2
    # The same sampling again, and an older one, do not count.
    assert known("2026-03-03", lost)[lost.text].times == 2
    assert known("2026-03-02", lost)[lost.text].times == 2
    assert known("2026-03-04", rule) == {rule.text: Sighting(first_seen="2026-03-03", last_seen="2026-03-04", times=2)}
    assert store.see("b2", "urn:a:b", "t", [lost], at="2026-04-01")[lost.text].first_seen == "2026-04-01"
    # Masked from now on: the value goes, what is known of the field stays.
    store.forget_values("urn:a:b", "t", ["s"])
    nameless = DriftKey(kind="new_value", field="s")
    assert known("2026-03-05", nameless)[nameless.text] == Sighting(
        first_seen="2026-03-01", last_seen="2026-03-05", times=3
    )
    assert known("2026-03-05", rule)[rule.text].times == 3


def test_no_two_names_share_a_directory_and_none_leads_elsewhere(tmp_path: Path) -> None:
    store = DirectoryBaselineStore(tmp_path / "store")
    names = ["", ".", "..", "a/b", "a%2Fb", "A", "a", "x" * 300, "x" * 301, "%", ".%2E", "\0", "ü b"]
    for name in names:
        store.put(baseline(contract=name, dataset=name), replacing=None)
    assert [found.contract for name in names if (found := store.get(name, name))] == names
    assert {path.parts[len(tmp_path.parts)] for path in tmp_path.rglob("*.json")} == {"store"}


def test_a_damaged_file_is_named_and_can_be_replaced(tmp_path: Path) -> None:
    store = DirectoryBaselineStore(tmp_path)
    store.put(baseline(), replacing=None)
    (file,) = tmp_path.rglob("baseline.json")
    file.write_text("{")
    with pytest.raises(BaselineError, match=r"baseline\.json: not a baseline"):
        store.get("urn:a:b", "t")
    assert store.put(baseline(), replacing=None) == baseline() == store.get("urn:a:b", "t")
    (tmp_path / "file").write_text("")
    with pytest.raises(BaselineError, match="cannot use"):
        DirectoryBaselineStore(tmp_path / "file").put(baseline(), replacing=None)


COUNT = """
import sys
from databox_contracts.baselines import DirectoryBaselineStore
from databox_contracts.drift import DriftKey
store = DirectoryBaselineStore(sys.argv[1])
for at in range(40):
    store.see("b", "c", "t", [DriftKey(kind="rule", field=f"{sys.argv[2]}-{at}")], at="2026")
"""


def test_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", COUNT, str(tmp_path)]
    running = [subprocess.Popen([*command, str(number)]) for number in range(3)]
    assert [one.wait(timeout=120) for one in running] == [0, 0, 0]
    (file,) = tmp_path.rglob("seen-b.json")
    assert file.read_text().count("first_seen") == 120

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from databox_contracts.cli import main
from databox_contracts.formats import load_contract
from databox_contracts.spark import TablePlace, publish, read_published
from databox_contracts.spark.quarantine_batches import open_batches
from databox_contracts.spark.versions import MANIFEST, PUBLISHED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: shop
name: shop
version: {version}
status: active
schema:
  - name: orders
    properties:
      - {{name: id, logicalType: integer, physicalType: int, primaryKey: true, required: true}}
      - name: state
        logicalType: string
        quality: [{{metric: invalidValues, arguments: {{validValues: [{values}]}}, mustBe: 0}}]
      - {{name: at, logicalType: timestamp, physicalType: timestamp}}
      - {{name: mail, logicalType: string, classification: restricted}}
"""
ROWS = [
    (1, "paid", datetime(2024, 1, 1, 12, tzinfo=UTC), "ann@x.org"),
    (2, "void", datetime(2024, 1, 2, 12, tzinfo=UTC), "bob@x.org"),
    (3, "lost", None, "cy@x.org"),
    (4, "void", None, None),
]
COLUMNS = "id int, state string, at timestamp, mail string"


@pytest.fixture(autouse=True)
def one_session(spark: SparkSession) -> SparkSession:
    """The command takes the session that runs, so that not every test starts a Java process."""
    return spark


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.yaml"
    path.write_text(CONTRACT.format(version="1.0.0", values="paid"))
    return path


@pytest.fixture
def new(tmp_path: Path) -> Path:
    path = tmp_path / "new.yaml"
    path.write_text(CONTRACT.format(version="1.1.0", values="paid, void"))
    return path


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path, old: Path) -> TablePlace:
    place = TablePlace(tmp_path / "tables", "shop/orders")
    rows = spark.createDataFrame(ROWS, COLUMNS).coalesce(1)
    publish(rows, load_contract(old), place=place, on_violation="quarantine", run_id="r1")
    return place


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    code = main(["quarantine", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_held_rows_are_listed_shown_and_released(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], place: TablePlace, old: Path, new: Path
) -> None:
    at = (place.root, place.name)
    [batch] = open_batches(place)
    rule = "orders.state.invalid_count"
    # The list: counts alone.
    code, out, err = run(capsys, "list", *at)
    assert (code, err) == (0, "")
    assert out == (
        f"{batch.name}  3 rows, run r1, shop 1.0.0\n           3  {rule}\nshop/orders: 3 rows held in 1 batch.\n"
    )
    code, out, _ = run(capsys, "list", *at, "--format", "json")
    listed = json.loads(out)
    assert (code, listed["rows"], listed["batches"][0]["reasons"]) == (0, 3, {rule: 3})
    assert listed["batches"][0]["run_id"] == "r1"
    # Without a contract nobody knows what to hide, so nothing is shown.
    code, out, _ = run(capsys, "show", *at)
    assert code == 0
    assert out == f"           3  {rule}\nshop/orders: 3 rows held in 1 batch. Values are shown with --contract FILE.\n"
    assert json.loads(run(capsys, "show", *at, "--format", "json")[1])["rows"] is None
    code, out, err = run(capsys, "show", *at, "--contract", old, "--rows", 2, "--format", "json")
    assert (code, err) == (0, "")
    assert "@" not in out
    shown = json.loads(out)
    assert shown["reasons"] == {rule: 3}
    assert [row["values"] for row in shown["rows"]] == [
        {"id": 2, "state": "void", "at": "2024-01-02T12:00:00+00:00"},
        {"id": 3, "state": "lost", "at": None},
    ]
    assert shown["rows"][0]["not_shown"] == ["mail"]
    code, out, _ = run(capsys, "show", *at, "--contract", old, "--batch", f"batch={batch.name}")
    assert code == 0
    assert f'{batch.name}  {rule}\n    {{"id": 2, "state": "void", "at": "2024-01-02T12:00:00+00:00"}}' in out
    assert "not shown: mail" in out
    assert "@" not in out
    # One row stays held.
    code, out, err = run(capsys, "replay", *at, "--contract", new)
    assert (code, err) == (1, "")
    assert out == (
        f"{batch.name}  3 rows: 2 released, 1 held\n           1  {rule}\n"
        f"shop/orders by shop 1.1.0: 2 of 3 rows released, 1 held. Version {place.current_version()},"
        " which has 3 rows now.\n"
    )
    rows = read_published(spark, place).select("id", "mail").orderBy("id").collect()
    assert [tuple(row) for row in rows] == [(1, "ann@x.org"), (2, "bob@x.org"), (4, None)]
    # Nothing more is released; then the last row is, and then there is none.
    code, out, _ = run(capsys, "replay", *at, "--contract", new, "--format", "json")
    done = json.loads(out)
    assert (code, done["rows"], done["rows_released"], done["rows_held"]) == (1, 1, 0, 1)
    new.write_text(CONTRACT.format(version="1.2.0", values="paid, void, lost"))
    code, out, _ = run(capsys, "replay", *at, "--contract", new, "--format", "json")
    done = json.loads(out)
    assert (code, done["rows_released"], done["rows_held"], done["table_rows"]) == (0, 1, 0, 4)
    assert done["batches"][0]["batch"] == batch.name
    assert "@" not in out
    code, out, _ = run(capsys, "replay", *at, "--contract", new)
    assert code == 0
    assert out.startswith("shop/orders by shop 1.2.0: 0 of 0 rows released, 0 held.")
    assert run(capsys, "list", *at) == (0, "shop/orders: no rows are held.\n", "")
    assert run(capsys, "show", *at, "--contract", new) == (0, "shop/orders: no rows are held.\n", "")


def test_copies_are_listed_and_not_replayed(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], place: TablePlace, new: Path
) -> None:
    copies = place.quarantine / "batch=drift-1"
    copies.mkdir()
    facts = {"copied_from_table": True, "contract": "shop", "dataset": "orders", "contract_version": "1.0.0"}
    (copies / MANIFEST).write_text(json.dumps({**facts, "run_id": "drift-1"}))
    (copies / PUBLISHED).touch()
    at = (place.root, place.name)
    assert (
        "drift-1  0 rows, run drift-1, shop 1.0.0 (its rows are copies, the table has them already)"
        in (run(capsys, "list", *at)[1])
    )
    code, out, err = run(capsys, "replay", *at, "--contract", new, "--batch", "drift-1")
    assert (code, out) == (2, "")
    assert "batch drift-1 cannot be replayed: its rows are copies" in err


def test_rows_of_a_table_with_undeclared_columns_are_released_under_its_modes(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], tmp_path: Path, old: Path, new: Path
) -> None:
    place = TablePlace(tmp_path / "wide", "orders")
    rows = spark.createDataFrame([(*row, "e") for row in ROWS], f"{COLUMNS}, extra string").coalesce(1)
    publish(rows, load_contract(old), place=place, on_violation="quarantine", schema_modes="evolve")
    asked = ("replay", place.root, place.name, "--contract", new)
    code, out, _ = run(capsys, *asked)
    assert code == 1
    assert "Nothing was released" in out
    code, out, err = run(capsys, *asked, "--schema-modes", "columns=discard_value")
    assert (code, out) == (2, "")
    assert "the schema modes would change held rows, and not those that are in the table. Name the modes" in err
    code, out, err = run(capsys, *asked, "--schema-modes", "columns=evolve", "--format", "json")
    done = json.loads(out)
    assert (code, err, done["rows_released"], done["rows_held"], done["table_rows"]) == (1, "", 2, 1, 3)


def test_what_could_not_run_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, place: TablePlace, old: Path, new: Path
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(old.read_text().replace("id: shop", "id: books"))
    at = (place.root, place.name)
    cases: list[tuple[tuple[Any, ...], str]] = [
        (("list", tmp_path, "gone"), "nothing was published there yet. Check root and name."),
        (("list", tmp_path / "nowhere", "gone"), "nothing was published there yet"),
        (("list", tmp_path, "../x"), "'..' is no name for a table"),
        (("list", "s3://bucket", "t"), "the root is a URL"),
        (("show", *at, "--batch", "v0"), "no rows are held in a batch 'v0'"),
        (("show", *at, "--contract", "gone.yaml"), "gone.yaml"),
        (("show", *at, "--contract", other), "and the contract given is books, dataset orders"),
        (("replay", *at, "--contract", other), "was held under shop, dataset orders, and the contract given is books"),
        (("replay", *at, "--contract", new, "--dataset", "nope"), "has no dataset 'nope'"),
        (("replay", *at, "--contract", new, "--batch", "v0"), "no rows are held in a batch 'v0'"),
        (("replay", *at, "--contract", new, "--reference", "x"), "--reference 'x' is not NAME=PATH"),
        (("replay", *at, "--contract", new, "--schema-modes", "x"), "--schema-modes is 'x'. Use one of evolve"),
        (("replay", tmp_path, "gone", "--contract", new), "nothing was published there yet"),
    ]
    for arguments, expected in cases:
        code, out, err = run(capsys, *arguments)
        assert (code, out) == (2, ""), arguments
        assert expected in err
        assert "Traceback" not in err
        assert err.count("\n") == 1
    [batch] = open_batches(place)
    next(batch.path.glob("*.parquet")).write_bytes(b"damaged")
    code, _, err = run(capsys, "list", *at)
    assert code == 2
    assert "a file in it is damaged" in err
    for arguments in (("list",), ("replay", *at), ("show", *at, "--rows", "-1"), ("show", *at, "--rows", "x")):
        with pytest.raises(SystemExit) as error:
            run(capsys, *arguments)
        assert error.value.code == 2


def test_a_registry_is_told_what_is_held_and_what_is_not_any_more(
    place: TablePlace, new: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = tmp_path / "registry.sqlite"

    def known(*arguments: str) -> list[dict[str, Any]]:
        assert main(["registry", "batches", *arguments, "--registry", str(registry), "--format", "json"]) == 0
        found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["batches"]
        return found

    assert known() == []
    told = run(capsys, "register", place.root, place.name, "--registry", registry)
    assert told == (0, "shop/orders: 1 batch is held.\n", "")
    (batch,) = known("shop")
    assert batch["rows"] == 3
    assert batch["reasons"] == {"orders.state.invalid_count": 3}
    assert (batch["contract"], batch["version"], batch["dataset"], batch["run_id"]) == ("shop", "1.0.0", "orders", "r1")
    assert (batch["place"], batch["outcome"]) == (str(place), None)
    assert "@x.org" not in json.dumps(batch)
    assert known("other") == []
    # Told twice, it is one batch.
    assert run(capsys, "register", place.root, place.name, "--registry", registry, "--format", "json")[0] == 0
    assert known() == [batch]
    run(capsys, "replay", place.root, place.name, "--contract", new, "--registry", registry)
    (rest,) = known()
    assert (rest["batch"], rest["version"], rest["rows"]) == (batch["batch"], "1.1.0", 1)
    generous = tmp_path / "generous.yaml"
    generous.write_text(CONTRACT.format(version="1.2.0", values="paid, void, lost"))
    run(capsys, "replay", place.root, place.name, "--contract", generous, "--registry", registry)
    assert known() == []
    (ended,) = known("--closed")
    assert (ended["batch"], ended["outcome"]) == (batch["batch"], "released")
    assert ended["closed_at"] >= ended["held_at"]


def test_a_registry_hears_of_batches_that_somebody_removed(
    place: TablePlace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = tmp_path / "registry.sqlite"
    run(capsys, "register", place.root, place.name, "--registry", registry)
    (batch,) = open_batches(place)
    shutil.rmtree(batch.path)
    told = run(capsys, "register", place.root, place.name, "--registry", registry)
    assert told == (0, "shop/orders: 0 batches are held, 1 not any more.\n", "")
    assert main(["registry", "batches", "--registry", str(registry)]) == 0
    assert capsys.readouterr().out == "no rows are held.\n"
    assert main(["registry", "batches", "--closed", "--registry", str(registry)]) == 0
    said = capsys.readouterr().out
    assert "3 rows of shop 1.0.0, run r1, removed 20" in said
    assert "       3  orders.state.invalid_count" in said


def test_a_service_keeps_no_batches(place: TablePlace, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "register", place.root, place.name, "--registry", "http://127.0.0.1:9")
    assert code == 2
    assert "a service keeps no batches" in err

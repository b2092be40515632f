"""The registry's own schema: from version 1 on, by one of many processes, and never backwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, text

from databox_contracts.errors import RegistryError, RegistryTooNewError
from databox_contracts.model import Consumer
from databox_contracts.notifications import State
from databox_contracts.registry.addresses import read_address
from databox_contracts.registry.database import Database, utc_now
from databox_contracts.registry.migrations import STEPS, Step, migrate, schema_version
from databox_contracts.registry.schema import METADATA
from databox_contracts.registry.store import Registry
from databox_contracts.testing import build_contract, build_field

# A registry of version 1, as it was in use: literal rows, so that no later code has a part in them.
VERSION_1 = (
    "INSERT INTO databox_contracts (id) VALUES ('urn:a:b')",
    """INSERT INTO databox_versions VALUES ('urn:a:b', '1.0.0', '1', 'Title', 'deprecated', 'd1', 'apiVersion: v3.1.0
kind: DataContract
id: urn:a:b
version: "1"
status: active
', '2025-01-01T00:00:00.000000+00:00', 'ci', 'p1', NULL, '2025-06-01')""",
    """INSERT INTO databox_consumers VALUES ('urn:a:b', 'quant', 'registry', '{"name": "quant", "versions": "^1"}',
        '2025-01-02T00:00:00.000000+00:00', 'q')""",
    """INSERT INTO databox_approvals VALUES ('a1', 'urn:a:b', 'quant', 'ann', '2025-01-03T00:00:00.000000+00:00',
        NULL, '2.0.0', NULL, '')""",
    "INSERT INTO databox_positions VALUES ('runs', '{\"at\": 1}', '2025-01-03T00:00:00.000000+00:00')",
    """INSERT INTO databox_audit (id, at, who, action, subject, details)
        VALUES ('e1', '2025-01-03T00:00:00.000000+00:00', 'ci', 'publish', 'urn:a:b', '{}')""",
)


@pytest.fixture
def database(database_url: str) -> Any:
    opened = Database(read_address(database_url))
    yield opened
    opened.close()


def run(database: Database, *statements: str) -> None:
    def work(connection: Any) -> None:
        for statement in statements:
            connection.exec_driver_sql(statement)

    database.write(work)


def test_a_registry_of_version_1_is_brought_to_today_with_its_data(database: Database, database_url: str) -> None:
    assert migrate(database, utc_now, steps=STEPS[:1]) == 1
    run(database, *VERSION_1)
    with Registry.open(database_url) as registry:
        (version,) = registry.versions("urn:a:b")
        assert (version.version, version.title, str(version.status), str(version.sunset)) == (
            "1",
            "Title",
            "deprecated",
            "2025-06-01",
        )
        assert version.contract().id == "urn:a:b"
        assert [one.consumer for one in registry.consumers()] == [Consumer(name="quant", versions="^1")]
        assert [(one.approver, one.version) for one in registry.approvals()] == [("ann", "2.0.0")]
        assert registry.position("runs") == {"at": 1}
        assert [one.who for one in registry.audit()] == ["ci"]
        # And it is in use again.
        registry.publish(build_contract(build_field("a", "int"), id="urn:a:b", version="2", status="active"), by="ci")
        assert [one.version for one in registry.versions("urn:a:b")] == ["1", "2"]
        assert [one.action for one in registry.audit()] == ["publish", "publish"]
        assert registry.outbox.counts()[State.WAITING] == 0


@pytest.mark.parametrize("start", range(len(STEPS)))
def test_from_every_version_it_is_the_same_schema_as_the_tables_say(database: Database, start: int) -> None:
    if start:
        migrate(database, utc_now, steps=STEPS[:start])
    assert migrate(database, utc_now) == len(STEPS)
    assert migrate(database, utc_now) == len(STEPS)
    made = inspect(database.engine)
    assert sorted(made.get_table_names()) == sorted(METADATA.tables)
    for name, table in METADATA.tables.items():
        columns = {one["name"]: bool(one["nullable"]) for one in made.get_columns(name)}
        # SQLite lets a text in a primary key be null unless it is told otherwise, and calls it so.
        keys = {column.name for column in table.primary_key}
        expected = {column.name: bool(column.nullable) for column in table.columns}
        assert {key: null for key, null in columns.items() if key not in keys} == {
            key: null for key, null in expected.items() if key not in keys
        }
        assert list(columns) == list(expected)
        assert made.get_pk_constraint(name)["constrained_columns"] == [column.name for column in table.primary_key]
        indexes = {one["name"]: one["column_names"] for one in made.get_indexes(name) if not one["unique"]}
        assert indexes == {one.name: [column.name for column in one.columns] for one in table.indexes}
        uniques = {tuple(one["column_names"]) for one in made.get_unique_constraints(name)}
        assert uniques == {(column.name,) for column in table.columns if column.unique}
        foreign = {(one["constrained_columns"][0], one["referred_table"]) for one in made.get_foreign_keys(name)}
        assert foreign == {(one.parent.name, one.column.table.name) for one in table.foreign_keys}


def test_a_later_schema_is_refused(database: Database, database_url: str) -> None:
    migrate(database, utc_now)
    run(database, "INSERT INTO databox_schema_versions VALUES (99, '2030-01-01T00:00:00.000000+00:00')")
    with pytest.raises(RegistryTooNewError, match=r"is of schema version 99, and this package knows versions up to 5"):
        Registry.open(database_url)


def test_a_step_that_fails_leaves_the_version_before_it(database: Database) -> None:
    migrate(database, utc_now, steps=STEPS[:2])
    broken = Step("broken", ("CREATE TABLE databox_new (id {text})", "SELECT nonsense FROM nowhere"))
    with pytest.raises(RegistryError, match="cannot be used"):
        migrate(database, utc_now, steps=[*STEPS, broken])
    assert database.read(schema_version) == 2
    assert "databox_new" not in inspect(database.engine).get_table_names()
    assert migrate(database, utc_now) == len(STEPS)


@pytest.mark.parametrize("start", [0, 1])
def test_eight_processes_at_once_make_one_schema(database: Database, forked: Any, start: int) -> None:
    if start:
        migrate(database, utc_now, steps=STEPS[:start])
        run(database, *VERSION_1)
    said = forked("with Registry.open(url) as registry: say(found=len(registry.contracts()))", 8)
    assert said == [{"found": start}] * 8
    steps = database.read(
        lambda connection: connection.execute(text("SELECT version FROM databox_schema_versions")).all()
    )
    assert sorted(row.version for row in steps) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("content", [b"no database at all, but a text " * 100, b"SQLite format 3\0" + b"x" * 2000])
def test_a_file_that_is_no_registry_is_left_alone(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "notes.txt"
    file.write_bytes(content)
    with pytest.raises(RegistryError, match=r"the registry .*notes\.txt cannot be used: file is not a database"):
        Registry.open(file)
    assert file.read_bytes() == content


def test_a_directory_and_a_path_that_cannot_be_made_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "file" / "below"):
        with pytest.raises(RegistryError, match="cannot be used"):
            Registry.open(place)

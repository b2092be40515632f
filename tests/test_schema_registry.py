"""The process-wide registry of schemas."""

import pytest

import databox_contracts as dbc
from databox_contracts.schema_registry import SchemaRegistry, SchemaVersion


@pytest.fixture(autouse=True)
def _isolated():
    with SchemaRegistry.isolated():
        yield


def version(name: str = "a", number: str = "1.0.0", **fields: type) -> SchemaVersion:
    return SchemaVersion(name, number, fields)


def test_an_unknown_name_has_neither_a_latest_version_nor_a_history():
    assert SchemaRegistry.get_latest("a") is None
    assert SchemaRegistry.get_history("a") == []
    assert SchemaRegistry.list_schemas() == []


def test_the_version_added_last_is_the_latest():
    first, second = version(number="1.0.0"), version(number="2.0.0")
    SchemaRegistry.register(first)
    SchemaRegistry.register(second)
    assert SchemaRegistry.get_latest("a") is second
    assert SchemaRegistry.get_history("a") == [first, second]


def test_the_same_version_again_takes_its_own_place():
    again = version(number="1.0.0", x=int)
    for one in (version(number="1.0.0"), version(number="2.0.0"), again):
        SchemaRegistry.register(one)
    assert [found.version for found in SchemaRegistry.get_history("a")] == ["1.0.0", "2.0.0"]
    assert SchemaRegistry.get_history("a")[0] is again


def test_a_history_is_a_copy():
    SchemaRegistry.register(version())
    SchemaRegistry.get_history("a").clear()
    assert len(SchemaRegistry.get_history("a")) == 1


def test_an_isolated_registry_is_empty_and_the_former_one_comes_back():
    SchemaRegistry.register(version("outside"))
    with SchemaRegistry.isolated():
        assert SchemaRegistry.list_schemas() == []
        SchemaRegistry.register(version("inside"))
    assert SchemaRegistry.list_schemas() == ["outside"]
    with pytest.raises(RuntimeError), SchemaRegistry.isolated():
        raise RuntimeError
    assert SchemaRegistry.list_schemas() == ["outside"]


def test_clearing_forgets_everything():
    SchemaRegistry.register(version())
    SchemaRegistry.clear()
    assert SchemaRegistry.list_schemas() == []


def test_the_package_exports_it():
    assert dbc.SchemaRegistry is SchemaRegistry
    assert dbc.SchemaVersion("a", "1.0.0", {"x": int}).fields == {"x": int}

"""Where a registry is, and that its password is nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from databox_contracts.errors import RegistryError
from databox_contracts.registry.addresses import default_location, read_address
from databox_contracts.registry.opening import open_registry
from databox_contracts.registry.store import Registry


@pytest.mark.parametrize(
    ("location", "shown", "password"),
    [
        ("postgresql://ann:hunter2@db:5433/reg", "postgresql://ann:***@db:5433/reg", "hunter2"),
        ("postgres://ann@db/reg", "postgresql://ann@db/reg", None),
        ("postgresql+psycopg://${WHO}:${PW}@db/reg", "postgresql://${WHO}:***@db/reg", "p@ss/wörd%"),
        ("postgresql://db/reg?password=hunter2&sslmode=require", "postgresql://db/reg?sslmode=require", None),
    ],
)
def test_a_database_by_its_url(location: str, shown: str, password: str | None) -> None:
    address = read_address(location, {"WHO": "ann", "PW": "p@ss/wörd%"})
    assert (address.shown, address.url.password, address.url.drivername) == (shown, password, "postgresql+psycopg")
    assert "hunter2" not in repr(address)


def test_a_file_by_its_path(tmp_path: Path) -> None:
    for location in (str(tmp_path / "a b.db"), f"sqlite:///{tmp_path / 'a b.db'}"):
        assert read_address(location).file == tmp_path / "a b.db"


@pytest.mark.parametrize(
    "location",
    ["", " ", "a\0b", "mysql://ann:hunter2@db/reg", "sqlite://", "sqlite:///:memory:", "://hunter2", "postgresql://ann:hunter2@db:port/x",
     "postgresql://ann:${NOT_SET}@db/reg"],
)  # fmt: skip
def test_what_is_no_place_is_refused_without_showing_it(location: str) -> None:
    with pytest.raises(RegistryError) as error:
        read_address(location, {})
    assert "hunter2" not in str(error.value)
    assert error.value.hint


def test_the_registry_where_none_is_named() -> None:
    assert default_location({"DATABOX_REGISTRY": "x.db", "DAGSTER_HOME": "/home"}) == "x.db"
    assert default_location({"DATABOX_REGISTRY": "", "DAGSTER_HOME": "/home"}) == "/home/databox_registry.db"
    with pytest.raises(RegistryError, match="set DATABOX_REGISTRY or DAGSTER_HOME"):
        default_location({})


def test_the_default_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABOX_REGISTRY", str(tmp_path / "deep" / "r.db"))
    registry = open_registry()
    assert isinstance(registry, Registry)
    assert registry.location == str(tmp_path / "deep" / "r.db")
    registry.close()


def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    with pytest.raises(RegistryError, match=r"postgresql://ann:\*\*\*@127\.0\.0\.1:1/reg does not answer") as error:
        Registry.open("postgresql://ann:hunter2@127.0.0.1:1/reg", patience=0.1)
    assert "hunter2" not in str(error.value)
    assert error.value.__cause__ is None

"""Nothing the standard has is accepted and then ignored: each entry is in the contract, or a finding is about it."""

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from databox_contracts.errors import Finding
from databox_contracts.formats import read
from databox_contracts.formats.canonical import canonical
from databox_contracts.formats.emitting import to_yaml

CASES = Path(__file__).parents[1] / "cases" / "odcs"
EVERY = yaml.safe_load((CASES / "every.odcs.yaml").read_text())
README = (Path(__file__).parents[2] / "README.md").read_text()

STANDARD = json.loads(files("open_data_contract_standard").joinpath("schema.json").read_text())


def names_of_the_standard() -> list[str]:
    """Every entry's name, but those of the many kinds of servers, which are carried as they are."""
    found: dict[str, None] = {}

    def collect(node: Any) -> None:
        if isinstance(node, list):
            for item in node:
                collect(item)
        elif isinstance(node, dict):
            for name, value in node.get("properties", {}).items() if isinstance(node.get("properties"), dict) else ():
                found.setdefault(name)
                collect(value)
            for name, value in node.items():
                if name not in ("properties", "examples", "default", "enum", "ServerSource"):
                    collect(value)

    collect({name: value for name, value in STANDARD.items() if name != "$defs"})
    collect({name: value for name, value in STANDARD["$defs"].items() if name != "ServerSource"})
    return list(found)


def names_in(data: Any) -> Iterator[str]:
    if isinstance(data, dict):
        for name, value in data.items():
            yield name
            yield from names_in(value)
    elif isinstance(data, list):
        for item in data:
            yield from names_in(item)


def places(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every entry of every mapping, however deep."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield (*path, name)
            yield from places(value, (*path, name))
    elif isinstance(data, list):
        for at, item in enumerate(data):
            yield from places(item, (*path, at))


# What is taken for granted where it is not said, and another value of it.
OTHERWISE = {
    "slaProperties.0.element": "branches.id",
    "schema.0.properties.0.primaryKeyPosition": "first",
    "schema.1.logicalType": "array",
    "schema.1.relationships.0.type": "likeness",
    "schema.1.quality.7.type": "text",
    "schema.1.properties.0.primaryKeyPosition": "second",
    "schema.1.properties.0.partitionKeyPosition": 2,
    "schema.1.properties.1.quality.0.type": "text",
    "schema.1.properties.2.relationships.0.type": "likeness",
    "schema.1.properties.6.logicalType": "object",
    "schema.1.properties.6.items.logicalType": "string",
    "schema.1.properties.7.logicalType": "string",
    "schema.1.properties.8.logicalType": "string",
}


def changed(path: tuple[str | int, ...]) -> dict[str, Any]:
    """The document without that entry, or with another value where leaving it out says the same."""
    data = deepcopy(EVERY)
    inside: Any = data
    for step in path[:-1]:
        inside = inside[step]
    other = OTHERWISE.get(".".join(map(str, path)))
    if other is None:
        del inside[path[-1]]
    else:
        inside[path[-1]] = other
    return data


def seen(data: dict[str, Any]) -> tuple[object, list[tuple[object, ...]]]:
    """All that is known of a document once it is read: the contract and what is said about it, without lines."""
    contract, findings = read(to_yaml(data))

    def said(finding: Finding) -> tuple[object, ...]:
        return finding.level, finding.message, finding.field

    return (canonical(contract) if contract is not None else None, [said(finding) for finding in findings])


ALL = seen(EVERY)


def test_the_document_has_every_entry_of_the_standard():
    assert sorted(set(names_of_the_standard()) - set(names_in(EVERY))) == []


def test_the_document_is_one_of_the_standard():
    contract, findings = read((CASES / "every.odcs.yaml").read_text())
    assert contract is not None
    assert [str(finding) for finding in findings if finding.level == "error"] == []


@pytest.mark.parametrize("path", list(places(EVERY)), ids=lambda path: ".".join(map(str, path)))
def test_an_entry_that_is_changed_makes_a_difference(path):
    assert seen(changed(path)) != ALL


def test_the_readme_tells_of_every_entry():
    table = README[README.index("<!-- entries of the standard -->") : README.index("<!-- end of the entries -->")]
    told = set(re.findall(r"`([A-Za-z]+)`", table))
    assert sorted(set(names_of_the_standard()) - told) == []

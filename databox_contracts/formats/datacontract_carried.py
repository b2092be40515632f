"""Blocks of a Data Contract Specification that a contract carries as they were written, while they still say the same.

`quality` of 0.9.3 and `servicelevels` are told once for the whole document. They are written again as they were where
the contract has every rule that they mean, and left out where it has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

import yaml

from databox_contracts.formats.datacontract_levels import read_service_levels
from databox_contracts.formats.datacontract_sodacl import read_quality_block
from databox_contracts.formats.datacontract_types import DOCUMENT
from databox_contracts.formats.emitting import plain
from databox_contracts.formats.positions import Document
from databox_contracts.formats.reading import Report, Section
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.rules import Rule

_Datasets: TypeAlias = tuple[Dataset, ...]

LEVELS: Final = ("servicelevels", "serviceLevels")
"""The name of the service levels, and how 0.9.3 spells it here and there."""


def carried_by(element: Contract | Dataset | Field | Rule) -> Mapping[str, Any]:
    """What the element carries of the specification; nothing where a custom property of that name is another thing."""
    found = element.custom.get(DOCUMENT)
    return found if isinstance(found, Mapping) else {}


def take_blocks(carried: Mapping[str, Any], datasets: _Datasets) -> tuple[dict[str, Any], _Datasets]:
    """The blocks that may be written as they are carried, and the datasets without the rules that these say."""
    kept: dict[str, Any] = {}
    if isinstance(carried.get("quality"), Mapping):
        rest = _without(datasets, _meant_by_quality(carried["quality"], datasets))
        if rest is not None:
            kept["quality"], datasets = carried["quality"], rest
    for key in LEVELS:
        if not isinstance(carried.get(key), Mapping):
            continue
        kept[key] = {}
        for name, level in carried[key].items():
            rest = _without(datasets, _meant_by_level(name, level, datasets))
            if rest is not None:
                kept[key][name], datasets = level, rest
    return kept, datasets


def _meant_by_quality(block: Any, datasets: _Datasets) -> _Datasets:
    bare = tuple(dataset.model_copy(update={"rules": (), "fields": _bare(dataset.fields)}) for dataset in datasets)
    return read_quality_block(_section({"quality": block}), bare)


def _meant_by_level(name: str, level: Any, datasets: _Datasets) -> _Datasets:
    # Which field a level is about may depend on which are required.
    alone = tuple(dataset.model_copy(update={"rules": ()}) for dataset in datasets)
    found = read_service_levels(_section({name: level}), alone)
    return tuple(dataset.model_copy(update={"fields": _bare(dataset.fields)}) for dataset in found)


def _bare(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(field.model_copy(update={"rules": (), "fields": _bare(field.fields)}) for field in fields)


def _of_levels(key: str, block: Any, datasets: _Datasets) -> _Datasets:
    # Which field a level is about may depend on which are required.
    bare = tuple(dataset.model_copy(update={"rules": ()}) for dataset in datasets)
    levels = _section({key: block}).section(key)
    found = read_service_levels(levels, bare) if levels is not None else bare
    return tuple(dataset.model_copy(update={"fields": _bare(dataset.fields)}) for dataset in found)


# --- taking away what a block says ------------------------------------------------------------------------------------


def _without(datasets: _Datasets, said: _Datasets) -> _Datasets | None:
    """The datasets without those rules; None where one of these is not there."""
    found = []
    for dataset, other in zip(datasets, said, strict=True):
        rest, fields = _rest(dataset.rules, other.rules), _fields_without(dataset.fields, other.fields)
        if rest is None or fields is None:
            return None
        found.append(dataset.model_copy(update={"rules": rest, "fields": fields}))
    return tuple(found)


def _fields_without(fields: tuple[Field, ...], said: tuple[Field, ...]) -> tuple[Field, ...] | None:
    found = []
    for field, other in zip(fields, said, strict=True):
        rest, inner = _rest(field.rules, other.rules), _fields_without(field.fields, other.fields)
        if rest is None or inner is None:
            return None
        found.append(field.model_copy(update={"rules": rest, "fields": inner}))
    return tuple(found)


def _rest(held: tuple[Rule, ...], said: tuple[Rule, ...]) -> tuple[Rule, ...] | None:
    # Of equal rules the last are the block's: it is read after what the fields say themselves.
    left = list(reversed(held))
    for rule in reversed(said):
        wanted = replace(rule, position=None)
        at = next((at for at, one in enumerate(left) if replace(one, position=None) == wanted), None)
        if at is None:
            return None
        del left[at]
    return tuple(reversed(left))


# --- plain data as a document to be read ------------------------------------------------------------------------------


def _section(data: Mapping[str, Any]) -> Section:
    document = Document(_node(plain(data)), "<carried>")
    return Section(Report(document), (), document.data)


_START: Final = yaml.Mark("", 0, 0, 0, None, 0)
_TAG: Final = "tag:yaml.org,2002:"


def _node(value: Any) -> yaml.Node:
    """What composing the YAML text of the value would give, without the text."""
    match value:
        case dict():
            entries = [(_node(key), _node(inner)) for key, inner in value.items()]
            return yaml.MappingNode(f"{_TAG}map", entries, _START, _START)
        case list():
            return yaml.SequenceNode(f"{_TAG}seq", [_node(item) for item in value], _START, _START)
        case str():
            return yaml.ScalarNode(f"{_TAG}str", value, _START, _START, style='"')
        case None:
            return yaml.ScalarNode(f"{_TAG}null", "null", _START, _START)
        case bool():
            return yaml.ScalarNode(f"{_TAG}bool", str(value).lower(), _START, _START)
        case int():
            return yaml.ScalarNode(f"{_TAG}int", str(value), _START, _START)
        case _:
            return yaml.ScalarNode(f"{_TAG}float", str(value), _START, _START)

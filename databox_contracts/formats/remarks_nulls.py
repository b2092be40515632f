"""Remarks about nulls: fields that are required here and nullable there, and `required` as a shortcut."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from databox_contracts.errors import Finding, Level, Position
from databox_contracts.formats.outline import Outline
from databox_contracts.model import Dataset, Field
from databox_contracts.rules import (
    MissingCount,
    NullCount,
    Operator,
    PrimaryKey,
    Required,
    RequiredWhen,
    Rule,
    Threshold,
)

_NULLABLE: Final = ("nullable", "isNullable", "is_nullable")

# So few fields may well all be needed.
_MANY_FIELDS: Final = 10

_MAY_LACK: Final = re.compile(
    r"\bnull (?:for|if|when|until|before|unless|where)\b|\b(?:may|can|might|could) be (?:null|missing|absent|empty)\b"
    r"|\bnullable\b|\boptional\b|\bif (?:any|available|known|present|applicable)\b"
    r"|\b(?:when|where) (?:available|known)\b",
    re.IGNORECASE,
)


def contradicted_requirements(outline: Outline) -> Iterator[Finding]:
    """A warning for a required field of which something else in the contract says that it may be null."""
    keys = _key_fields(outline)
    for dataset, name, field in outline.fields:
        place = _required_at(field)
        is_key = (dataset.name, name) in keys
        if place is None and not is_key:
            continue
        word = "required" if place is not None else "part of the primary key"
        for rule in field.rules:
            reason = _allows_null(rule) if type(rule) in _OF_NULLS else None
            if reason is not None:
                message = f"{name!r} is {word}, and {reason}"
                position = rule.position or field.position
                yield outline.finding(Level.WARNING, message, "keep one of the two", position, name)
        said = _nullable_by(field.custom) if field.custom else None
        if said is not None:
            message = f"{name!r} is {word}, and {said!r} says that it may be null"
            yield outline.finding(Level.WARNING, message, "keep one of the two", place or field.position, name)


def _key_fields(outline: Outline) -> set[tuple[str, str]]:
    return {
        (placed.dataset.name, name)
        for placed in outline.rules
        if isinstance(placed.rule, PrimaryKey)
        for name in placed.rule.fields
    }


def _required_at(field: Field) -> Position | None:
    """Where it says that the field is required; None where it is not."""
    for rule in field.rules:
        if type(rule) is Required:
            return rule.position or field.position or Position(1, 1)
    return None


_OF_NULLS: Final = (RequiredWhen, NullCount, MissingCount)


def _allows_null(rule: Rule) -> str | None:
    match rule:
        case RequiredWhen():
            return "a rule requires it only under a condition"
        case NullCount() if _allows_some(rule.threshold):
            return f"a rule allows nulls ({rule.threshold})"
        case MissingCount() if None in rule.missing_values and _allows_some(rule.threshold):
            return f"a rule allows missing values ({rule.threshold})"
        case _:
            return None


def _allows_some(threshold: Threshold) -> bool:
    """Whether any number but zero is within the threshold, so that there is something to allow."""
    match threshold.operator:
        case Operator.MUST_BE | Operator.LESS_OR_EQUAL | Operator.LESS_THAN:
            return threshold.value > 0 and not threshold.allows_none
        case Operator.BETWEEN:
            return threshold.high is not None and threshold.high > 0
        case _:
            # More than so many nulls is a promise of its own, and a strange one.
            return True


def _nullable_by(custom: Mapping[str, Any]) -> str | None:
    """The word by which the field's further entries, of whichever dialect, say that it may be null."""
    blocks = [custom]
    for name, block in custom.items():
        if name.startswith("$") and isinstance(block, Mapping):
            config = block.get("config")
            blocks += [block, config] if isinstance(config, Mapping) else [block]
    return next((key for block in blocks for key in _NULLABLE if block.get(key) is True), None)


# --- required as a shortcut -------------------------------------------------------------------------------------------

_WAY_OUT: Final = "a row that lacks it stops the table: leave `required` out, or write a `required_when` rule"


def required_as_a_shortcut(outline: Outline) -> Iterator[Finding]:
    """A note where `required` may only mean that a field matters: it has a default, its description names exceptions,
    or all fields of a large dataset are required.
    """
    for _, name, field in outline.fields:
        place = _required_at(field)
        if place is None:
            continue
        if field.default is not None:
            message = f"{name!r} is required and has a default, so rows may lack it"
            yield outline.finding(Level.NOTE, message, _WAY_OUT, place, name)
        elif field.description and (exception := _MAY_LACK.search(field.description)) is not None:
            message = f"{name!r} is required, and its description says {exception[0]!r}"
            yield outline.finding(Level.NOTE, message, _WAY_OUT, place, name)
    for dataset in outline.contract.datasets:
        if _all_required(dataset):
            message = f"all {len(dataset.fields)} fields of {dataset.name!r} are required"
            hint = "keep it for keys and for what no row can lack; each of them stops the table one day"
            yield outline.finding(Level.NOTE, message, hint, dataset.position)


def _all_required(dataset: Dataset) -> bool:
    if len(dataset.fields) < _MANY_FIELDS:
        return False
    keys = {name for rule in dataset.rules if isinstance(rule, PrimaryKey) for name in rule.fields}
    return all(field.required or field.name in keys for field in dataset.fields)

"""The standard's own JSON Schema: a last look at a document, for what the reader has not reported itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, Final, TypeAlias

from databox_contracts.errors import Level
from databox_contracts.formats.positions import DataPath
from databox_contracts.formats.reading import Report, described, nearest, unknown_key_hint

_MOST: Final = 50

# Where the reader knows more than the schema can say; its conditions are true of a property without a logicalType.
_OF_THE_READER: Final = ("schema",)

# Below these the reader looks at nothing, so the schema speaks for them wherever they are.
_DOCUMENTATION: Final = (
    "authoritativeDefinitions",
    "synonyms",
    "context",
    "roles",
    "support",
    "price",
    "slaProperties",
)


def check_against_standard(report: Report) -> None:
    """Adds a warning for each thing that the standard does not allow and that has not been reported yet."""
    reported = 0
    for error in _validator().iter_errors(report.document.data):
        for place, message, hint in _findings(report, error):
            if place in report.places:
                continue
            reported += 1
            if reported > _MOST:
                return
            at_key = place != tuple(error.instance_path)
            document = report.document
            position = document.key_position(place) if at_key else document.position(place)
            report.add(Level.WARNING, place, message, hint, field=None, position=position)


@cache
def server_entries(server_type: str) -> tuple[str, ...]:
    """The entries that the standard has for a server of that type; an unknown type is a custom one."""
    server = _schema()["$defs"]["Server"]
    own = {case["if"]["properties"]["type"]["const"]: case["then"]["$ref"] for case in server["allOf"]}
    definition = own.get(server_type, own["custom"]).rpartition("/")[2]
    return (*server["properties"], *_schema()["$defs"]["ServerSource"][definition]["properties"])


def _is_read(path: DataPath) -> bool:
    return path[:1] == _OF_THE_READER and not any(step in _DOCUMENTATION for step in path)


def _is_reported(report: Report, path: DataPath) -> bool:
    """Whether this value, one that holds it, or one in it has a finding."""
    above = any(path[:length] in report.places for length in range(1, len(path) + 1))
    return above or any(place[: len(path)] == path for place in report.places if path)


_KINDS: Final = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "nothing",
    "number": "a number",
    "object": "a mapping",
    "string": "text",
}

_Found: TypeAlias = tuple[DataPath, str, str | None]


def _findings(report: Report, error: Any) -> Iterator[_Found]:
    """What an error says, place by place; nothing where the reader has spoken."""
    path: DataPath = tuple(error.instance_path)
    kind = error.kind
    if _is_read(path):
        return
    if kind.name in ("additionalProperties", "unevaluatedProperties"):
        asked = report.asked.get(path, set())
        known = _known_keys(error)
        for key in kind.unexpected:
            if key not in asked:
                yield (*path, key), f"the unknown key {key!r} is ignored", unknown_key_hint(key, known)
    elif _is_reported(report, path):
        return
    elif kind.name in ("anyOf", "oneOf") and (branch := _meant(error)) is not None:
        for inner in branch:
            yield from _findings(report, inner)
    else:
        yield (path, *_said(kind, _label(path), error))


def _meant(error: Any) -> Any:
    """Of alternatives, the one whose kind of value the document has; None where no one is the one."""
    fitting = [
        branch
        for branch in getattr(error.kind, "context", ())
        if not any(inner.kind.name == "type" and inner.instance_path == error.instance_path for inner in branch)
    ]
    return fitting[0] if len(fitting) == 1 else None


def _label(path: DataPath) -> str:
    names = [step for step in path if isinstance(step, str)]
    if not names:
        return "the contract"
    return f"{names[-1]!r}" if isinstance(path[-1], str) else f"an item of {names[-1]!r}"


def _said(kind: Any, label: str, error: Any) -> tuple[str, str | None]:
    """Message and hint."""
    match kind.name:
        case "required":
            return f"{label} has no {kind.property!r}", "the standard wants it"
        case "type":
            wanted = " or ".join(_KINDS.get(name, name) for name in kind.types)
            return f"{label} must be {wanted}, not {described(error.instance)}", "the standard wants it so"
        case "enum":
            options = [str(option) for option in kind.options]
            near = nearest(str(error.instance), options)
            hint = f"did you mean {near!r}?" if near else f"the standard has {', '.join(options)}"
            return f"{label} may not be {described(error.instance)}", hint
        case "pattern":
            return f"{label} may not be {described(error.instance)}", f"the standard wants {kind.pattern}"
        case "anyOf" | "oneOf":
            return f"{label} is not of a form that the standard has", None
        case _:
            return f"{label}: {error.message[:200]}", "the standard wants it so"


def _known_keys(error: Any) -> list[str]:
    """The keys that the schema has where `error` found another."""
    node: Any = _schema()
    for step in error.schema_path[:-1]:
        node = node.get(step) if isinstance(node, dict) else None
    return list(node.get("properties", {})) if isinstance(node, dict) else []


@cache
def _schema() -> Any:
    return json.loads(files("open_data_contract_standard").joinpath("schema.json").read_text(encoding="utf-8"))


@cache
def _validator() -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(_schema())

"""A contract that was inferred, as a document of the standard in which every guess is marked by a comment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import yaml

from databox_contracts.formats.emitting import to_yaml
from databox_contracts.formats.odcs_writer import document
from databox_contracts.inferred import PERSONAL, REMARK, TYPE, Guess, Inferred
from databox_contracts.model import Contract

Path: TypeAlias = tuple[str | int, ...]

_LONGEST_LINE: Final = 120

# Where the standard says what is guessed, from the entry of its field or dataset on.
_ENTRIES: Final[Mapping[str, Path]] = {
    TYPE: ("logicalType",),
    "required": ("required",),
    "unique": ("unique",),
    "primary_key": ("primaryKey",),
    "enum": ("enum",),
    **{
        kind: ("logicalTypeOptions", option)
        for kind, option in (
            ("format", "format"),
            ("minimum", "minimum"),
            ("maximum", "maximum"),
            ("min_length", "minLength"),
            ("max_length", "maxLength"),
        )
    },
}

# Where it is one of a list, which one: the list, and what the entry says.
_LISTED: Final[Mapping[str, tuple[str, str, str]]] = {
    PERSONAL: ("customProperties", "property", "pii"),
    "row_count": ("quality", "metric", "rowCount"),
}


def dump_inferred(inferred: Inferred) -> str:
    """The contract as YAML of the standard; each guess is a comment at the entry, or above what it is about.

    Read again, it is the same contract as `dump_contract` writes. The same input always gives the same text.
    """
    data = document(inferred.contract)
    text = to_yaml(data)
    lines = text.splitlines()
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    above: dict[int, list[str]] = {}
    behind: dict[int, str] = {}
    for guess in inferred.guesses:
        place = _place(guess, inferred.contract, data)
        first, last = _lines(root, place)
        comment = f"# guess: {_one_line(guess.reason)}"
        at_entry = guess.about != REMARK and first == last and first not in behind
        if at_entry and len(lines[first]) + 2 + len(comment) <= _LONGEST_LINE:
            behind[first] = comment
        else:
            above.setdefault(first, []).append(comment)
    return "".join(f"{line}\n" for line in _commented(lines, above, behind))


def _commented(lines: Sequence[str], above: Mapping[int, Sequence[str]], behind: Mapping[int, str]) -> Iterator[str]:
    for at, line in enumerate(lines):
        indent = line[: len(line) - len(line.lstrip(" "))]
        yield from (f"{indent}{comment}" for comment in above.get(at, ()))
        yield f"{line}  {behind[at]}" if at in behind else line


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


# --- where a guess is in the document ---------------------------------------------------------------------------------


def _place(guess: Guess, contract: Contract, data: Mapping[str, Any]) -> Path:
    """The path of the entry that says what is guessed; of its field or dataset, where none does."""
    at = next(at for at, dataset in enumerate(contract.datasets) if dataset.name == guess.dataset)
    path: Path = ("schema", at)
    entry: Any = data["schema"][at]
    for step in guess.field:
        steps = _step(entry, step)
        path += steps
        for key in steps:
            entry = entry[key]
    if guess.about == "freshness" and "slaProperties" in data:
        return ("slaProperties", 0)
    if guess.about in _LISTED:
        name, key, value = _LISTED[guess.about]
        found = [n for n, one in enumerate(entry.get(name, ())) if one.get(key) == value]
        return (*path, name, found[0]) if found else path
    wanted = _ENTRIES.get(guess.about, ())
    return (*path, *wanted) if _has(entry, wanted) else path


def _step(entry: Mapping[str, Any], name: str) -> Path:
    match name, entry:
        case "item", {"items": _}:
            return ("items",)
        case "key" | "value", {"map": _}:
            return ("map", name)
    return ("properties", next(at for at, one in enumerate(entry["properties"]) if one.get("name") == name))


def _has(entry: Any, path: Path) -> bool:
    for key in path:
        if key not in entry:
            return False
        entry = entry[key]
    return True


def _lines(node: yaml.Node | None, path: Path) -> tuple[int, int]:
    """The line of an entry's key and the last one of its scalar, which is the same for what holds more."""
    assert node is not None
    first = node.start_mark.line
    for step in path:
        if isinstance(node, yaml.MappingNode):
            key, node = next((key, value) for key, value in node.value if key.value == step)
            first = key.start_mark.line
        else:
            node = node.value[step]
            first = node.start_mark.line
    is_scalar = isinstance(node, yaml.ScalarNode)
    return first, node.end_mark.line if is_scalar else first

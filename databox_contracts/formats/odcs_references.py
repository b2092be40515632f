"""`relationships`: references between properties, by name (`receivers.id`) or by id (`schema/.../properties/...`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from databox_contracts.formats.odcs_custom import DOCUMENT
from databox_contracts.formats.odcs_options import unenforced
from databox_contracts.formats.reading import Section, described
from databox_contracts.rules import ForeignKey, Rule, Severity

_TYPE: Final = "foreignKey"
_NOTATION: Final = ("from", "to")


@dataclass(frozen=True)
class Target:
    """What a reference names: a dataset (None: not said) and the dotted path of a property in it.

    `known` says that the contract itself has both.
    """

    dataset: str | None
    path: str
    known: bool


class References:
    """What the references in one contract may name; made from the `schema` of the document as it is written."""

    def __init__(self, schema: Any) -> None:
        self.datasets = {name: entry for entry in _mappings(schema) if (name := _name(entry)) is not None}
        self._by_id = {entry["id"]: name for name, entry in self.datasets.items() if isinstance(entry.get("id"), str)}

    def resolve(self, written: str) -> Target | None:
        """What the reference names; None for one by ids that are not here, since ids do not say names."""
        document, anchor, inside = written.rpartition("#")
        if "/" in inside:
            return None if document else self._by_ids(inside)
        if anchor:
            name, _, path = inside.rpartition(".")
            return Target(f"{document}#{name}", path, known=False) if name else None
        return self._by_names(inside)

    def _by_names(self, written: str) -> Target:
        for name in sorted(self.datasets, key=len, reverse=True):
            if written.startswith(f"{name}."):
                path = written[len(name) + 1 :]
                return Target(name, path, known=self.has(name, path))
        name, _, path = written.rpartition(".")
        return Target(name or None, path, known=False)

    def has(self, dataset: str, path: str) -> bool:
        """Whether the dataset declares that property; one that declares none at all may have any."""
        level = _mappings(self.datasets[dataset].get("properties"))
        return not level or _has(level, path)

    def _by_ids(self, written: str) -> Target | None:
        steps = written.strip("/").split("/")
        name = self._by_id.get(steps[1]) if len(steps) >= 4 and len(steps) % 2 == 0 else None
        if name is None or steps[0] != "schema" or set(steps[2::2]) != {"properties"}:
            return None
        level: Sequence[Mapping[str, Any]] = _mappings(self.datasets[name].get("properties"))
        names: list[str] = []
        for step in steps[3::2]:
            found = next((entry for entry in level if entry.get("id") == step), None)
            name_of_step = _name(found) if found is not None else None
            if found is None or name_of_step is None:
                return None
            names.append(name_of_step)
            level = _mappings(found.get("properties"))
        return Target(name, ".".join(names), known=True)


def _name(entry: Mapping[str, Any]) -> str | None:
    """The name of an element; a number is read as the text that it is."""
    name = entry.get("name")
    return str(name) if isinstance(name, str | int | float) and not isinstance(name, bool) else None


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _has(level: Sequence[Mapping[str, Any]], path: str) -> bool:
    for entry in level:
        name = _name(entry) or ""
        if name == path or (
            path.startswith(f"{name}.") and _has(_mappings(entry.get("properties")), path[len(name) + 1 :])
        ):
            return True
    return False


def read_relationships(section: Section, references: References, dataset: str | None) -> Iterator[Rule]:
    """The foreign keys of a property, or of the dataset of that name, in order."""
    for entry in section.sections("relationships"):
        yield from _relationship(entry, references, dataset)


def _relationship(entry: Section, references: References, dataset: str | None) -> Iterator[Rule]:
    kind = entry.text("type") or _TYPE
    to, own = _ends(entry, "to"), _ends(entry, "from")
    custom = {DOCUMENT: {"relationship": entry.data}}
    documentation = entry.carried("id", "description", "customProperties")
    entry.close()
    if not _is_sound(entry, dataset):
        return
    if kind != _TYPE:
        yield unenforced(entry, f"a relationship of the type {kind!r}", "type", custom=custom)
        return
    targets = [references.resolve(written) for written in to]
    sources = [references.resolve(written) for written in own]
    if None in targets or None in sources:
        reason = "a relationship to an id that this contract does not have, and other documents' ids say no name"
        yield unenforced(entry, reason, "to" if None in targets else "from", custom=custom)
        return
    tables = {target.dataset for target in targets if target is not None}
    if None in tables:
        entry.error("a relationship to a property of no table", "write `to: table.column`", "to")
        return
    if len(tables) != 1:
        entry.error("the parts of a key are in several datasets", "write a relationship for each", "to")
        return
    _check_known(entry, "to", to, targets, references)
    extra = {**documentation, **_by_id(entry)}
    yield ForeignKey(
        fields=tuple(_own_path(entry, source, dataset, references) for source in sources if source is not None),
        to=next(target.dataset or "" for target in targets if target is not None),
        to_fields=tuple(target.path for target in targets if target is not None),
        position=entry.position,
        custom={DOCUMENT: extra} if extra else {},
    )


def _ends(entry: Section, key: str) -> list[str]:
    """The references of one end, one for each part of the key."""
    value = entry.raw(key)
    return list(entry.texts(key)) if isinstance(value, list) else [value] if isinstance(value, str) and value else []


def _is_sound(entry: Section, dataset: str | None) -> bool:
    to, own = entry.raw("to"), entry.raw("from")
    if dataset is None and own is not None:
        entry.error("the relationship of a property has no 'from': it is the property", "remove it", "from")
        return False
    for key, value in (("to", to), ("from", own)):
        if key == "from" and dataset is None:
            continue
        if value is None or value in ("", []):
            entry.error(
                f"a relationship has no {key!r}", f"write `{key}: table.column`", *((key,) if key in entry else ())
            )
            return False
        if not isinstance(value, str | list):
            entry.error(f"{key!r} must be a reference, not {described(value)}", f"write `{key}: table.column`", key)
            return False
    parts = 1 if isinstance(to, str) else len(to)
    own_parts = 1 if dataset is None or isinstance(own, str) else len(own)
    if parts != own_parts:
        entry.error(
            f"a relationship from {own_parts} to {parts} properties",
            "name as many in `from` as in `to`, in order",
            "to",
        )
    return parts == own_parts


def _check_known(
    entry: Section, key: str, written: Sequence[str], targets: Sequence[Target | None], references: References
) -> None:
    for text, target in zip(written, targets, strict=True):
        if target is None or target.known:
            continue
        if target.dataset in references.datasets:
            message = f"{text!r} names no property of {target.dataset!r}"
            entry.warning(message, "correct the name; no table has such a column", key)
        elif "#" not in text:
            entry.warning(
                f"{text!r} names no dataset of this contract",
                "correct the name, or name the other contract: `contract.dataset.column`",
                key,
            )


def _own_path(entry: Section, source: Target, dataset: str | None, references: References) -> str:
    if source.dataset not in (None, dataset):
        entry.error(
            f"the relationship is of {dataset!r} and is from {source.dataset!r}",
            f"move it to {source.dataset!r}",
            "from",
        )
    elif dataset is not None and dataset in references.datasets and not references.has(dataset, source.path):
        entry.warning(f"{source.path!r} is no property of {dataset!r}", "correct the name", "from")
    return source.path


def _by_id(entry: Section) -> dict[str, Any]:
    """The ends that are written by id, which outlives a rename and is kept."""
    return {
        key: value
        for key in _NOTATION
        if (value := entry.data.get(key)) is not None and any("/" in str(part) for part in _parts(value))
    }


def _parts(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


# --- the way back -----------------------------------------------------------------------------------------------------


def relationship_of(rule: ForeignKey, dataset: str, references: References) -> dict[str, Any] | None:
    """The entry of `relationships` that is read as the foreign key, of a property where it names no fields of its own.

    Ids are kept where they still name what the rule names. None where the standard's references cannot say it.
    """
    facts = (rule.name, rule.severity, rule.dimension, rule.description)
    if facts != (None, Severity.ERROR, None, "") or any(key != DOCUMENT for key in rule.custom):
        return None
    carried = rule.custom.get(DOCUMENT, {})
    entry: dict[str, Any] = {"id": carried["id"]} if "id" in carried else {}
    entry["type"] = _TYPE
    if len(rule.to_fields) != max(len(rule.fields), 1):
        return None
    for key, table, paths in (("from", dataset, rule.fields), ("to", rule.to, rule.to_fields)):
        targets = [(table, path) for path in paths]
        names = [f"{table}.{path}" for path in paths]
        for written in (_parts(carried.get(key, [])), names):
            if _named(written, references) == targets:
                entry[key] = written[0] if len(written) == 1 else written
                break
        else:
            return None
    if not entry["from"]:
        del entry["from"]
    return entry | {key: carried[key] for key in ("description", "customProperties") if key in carried}


def _named(written: Sequence[Any], references: References) -> list[tuple[str | None, str]]:
    found = [references.resolve(str(part)) for part in written]
    return [(target.dataset, target.path) for target in found if target is not None]

"""What a target cannot say of a contract: every rule and every statement it has no word for, grouped in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field as attribute
from typing import Any, Final, TypeAlias

from databox_contracts.export.targets import Target
from databox_contracts.model import Contract, Dataset, Enforcement, Field, Governance, Team
from databox_contracts.rules import PrimaryKey, Rule, Severity

# --- where a promise stands -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """A dataset as a whole (`field` is None), or one of its fields at any depth.

    `name` is dotted as in the ids of checks (`items.sku`), `depth` 0 for a column, `part` is `item`, `key` or `value`
    of what is one. `required` is true for a part of the primary key too, `masked` where no value may be shown. `inside`
    are the places of the field's parts, those that only its type's spelling declares (`array<int>`) included.
    """

    dataset: Dataset
    field: Field | None
    name: str
    depth: int = 0
    part: str | None = None
    required: bool = False
    masked: bool = False
    inside: tuple[Place, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that stand here."""
        return self.field.rules if self.field is not None else self.dataset.rules

    @property
    def fields(self) -> tuple[Place, ...]:
        """The places of an object's fields."""
        return tuple(place for place in self.inside if place.part is None)

    def holds(self, part: str) -> Place | None:
        """The place of the `item`, `key` or `value`, None where the contract says nothing of it."""
        return next((place for place in self.inside if place.part == part), None)


def places(target: Target) -> Iterator[Place]:
    """Every dataset of the target and every field in it, in declaration order, a field before its parts.

    The dataset itself comes after its fields, as its rules do in a plan.
    """
    for dataset in target.datasets:
        yield from field_places(target.contract, dataset)
        yield Place(dataset, None, dataset.name)


def field_places(contract: Contract, dataset: Dataset) -> Iterator[Place]:
    """The fields of one dataset at any depth, each before its parts."""
    for column in columns(contract, dataset):
        yield from _all(column)


def _all(place: Place) -> Iterator[Place]:
    yield place
    for part in place.inside:
        yield from _all(part)


def columns(contract: Contract, dataset: Dataset) -> tuple[Place, ...]:
    """The columns of one dataset in order, each with what is inside."""
    key = _key_fields(dataset)
    pii_class = contract.governance.pii_class

    def placed(field: Field, name: str, depth: int, part: str | None, *, hidden: bool) -> Place:
        field = field.completed()
        hides = hidden or field.conceals(pii_class)
        # The fields of an array's objects read as the array's own: `items.sku`.
        around = name.removesuffix(".item") if part == "item" else name
        inside = [placed(inner, f"{around}.{inner.name}", depth + 1, None, hidden=hides) for inner in field.fields]
        for hop, held in (("item", field.item), ("key", field.key), ("value", field.value)):
            if held is not None:
                inside.append(placed(held, f"{name}.{hop}", depth + 1, hop, hidden=hides))
        # What an object shows, its parts show.
        masked = hides or any(inner.masked for inner in inside)
        required = _binds(field) or name in key
        return Place(dataset, field, name, depth, part, required, masked, tuple(inside))

    return tuple(placed(field, field.name, 0, None, hidden=False) for field in dataset.fields)


def _key_fields(dataset: Dataset) -> tuple[str, ...]:
    # A key of which only a warning comes does not forbid null.
    key = (rule for rule in dataset.rules if isinstance(rule, PrimaryKey) and rule.severity is Severity.ERROR)
    return tuple(name for rule in key for name in rule.fields)


def _binds(field: Field) -> bool:
    return any(rule.kind == "required" and rule.severity is Severity.ERROR for rule in field.rules)


# --- what a target has words for --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Words:
    """What a target can say; everything else is lost.

    `title` is what sentences call it. `rules` are kinds of rules, `beside` what it says of every rule (`severity`,
    `name`, `description`, `dimension`, `custom`), `field`, `dataset` and `contract` are attributes of the model.
    `reasons` gives, by kind of rule or attribute, why something is lost, where "TITLE has no ..." would not explain it.
    """

    title: str
    rules: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    field: tuple[str, ...] = ()
    dataset: tuple[str, ...] = ()
    contract: tuple[str, ...] = ()
    reasons: Mapping[str, str] = attribute(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Loss:
    """One thing that is lost: what, at which place, and why. Those that share what and why become one sentence."""

    what: str
    place: Place
    reason: str


Judge: TypeAlias = Callable[[Rule, Place], str | None]
"""Why the target cannot say the rule there; None where it says it."""

Reader: TypeAlias = Callable[[str, Place], str | None]
"""Why the target cannot say that attribute, one of its words, of the field or dataset there; None where it says it."""


def losses(
    target: Target,
    words: Words,
    *,
    judge: Judge | None = None,
    attributes: Reader | None = None,
    more: Iterable[Loss] = (),
) -> tuple[str, ...]:
    """One sentence for each kind of thing that the target cannot say, in the order in which the contract says them.

    First what is `more` (of a target's own knowledge: types, names), then rules by kind with their fields, what is said
    of fields and datasets, and in a sentence each the parts of the contract. Without `judge` a rule is said where its
    kind is among `words.rules`, and it is an error or the target has severities; `attributes` is asked only for those
    among the words. No values of data are in a sentence.
    """
    asked = judge or (lambda rule, place: unsaid(rule, words))
    found = [*more, *_rules(target, words, asked), *_elements(target, words, attributes or (lambda name, place: None))]
    grouped: dict[tuple[str, str], list[str]] = {}
    for loss in found:
        name = loss.place.name
        if loss.place.field is not None and len(target.datasets) > 1:
            name = f"{loss.place.dataset.name}.{name}"
        names = grouped.setdefault((loss.what, loss.reason), [])
        if name not in names:
            names.append(name)
    sentences = [f"{what} of {', '.join(names)}: {reason}" for (what, reason), names in grouped.items()]
    return tuple(_one_line(sentence) for sentence in (*sentences, *_parts_of_contract(target.contract, words)))


def unsaid(rule: Rule, words: Words) -> str | None:
    """Why a target with those words cannot say a rule, by its kind and severity; None where it can."""
    if rule.kind not in words.rules:
        return words.reasons.get(rule.kind) or f"{words.title} has no {_CONCEPTS[rule.kind]}"
    if rule.severity is not Severity.ERROR and "severity" not in words.beside:
        return f"{words.title} has no severities, and this is {_SEVERITIES[rule.severity]}"
    return None


_SEVERITIES: Final = {Severity.WARNING: "only a warning", Severity.INFO: "only an information"}

_CONCEPTS: Final[dict[str, str]] = {
    "required": "required fields",
    "enum": "lists of allowed values",
    "pattern": "regular expressions",
    "format": "formats of texts",
    "minimum": "bounds",
    "maximum": "bounds",
    "exclusive_minimum": "bounds",
    "exclusive_maximum": "bounds",
    "multiple_of": "divisors",
    "min_length": "bounds of a length",
    "max_length": "bounds of a length",
    "min_items": "bounds of a number of items",
    "max_items": "bounds of a number of items",
    "unique_items": "unique items",
    "null_count": "limits of a number of rows",
    "missing_count": "limits of a number of rows",
    "invalid_count": "limits of a number of rows",
    "row_count": "limits of a number of rows",
    "unique": "unique keys",
    "primary_key": "primary keys",
    "duplicate_count": "limits of a number of rows",
    "expression": "conditions on rows",
    "required_when": "conditions on rows",
    "completeness": "service levels",
    "statistic": "statistics of columns",
    "freshness": "service levels",
    "latency": "service levels",
    "retention": "service levels",
    "foreign_key": "references to other tables",
    "query": "queries",
    "not_enforced": "place for what is only written down",
}
"""What a target lacks that cannot say a kind of rule."""


def _rules(target: Target, words: Words, judge: Judge) -> Iterator[Loss]:
    for place in places(target):
        for rule in place.rules:
            # Of a key that names fields, those are what a reader looks for.
            names = ", ".join(getattr(rule, "fields", ()))
            where = place
            if names and place.field is None:
                several = len(target.datasets) > 1
                where = Place(place.dataset, None, f"{place.dataset.name} ({names})" if several else f"({names})")
            reason = judge(rule, place)
            if reason is not None:
                named = f" ({rule.name or getattr(rule, 'reason', '')})" if rule.kind in _NAMED else ""
                yield Loss(f"`{rule.kind}`{named}", where, reason)
            else:
                yield from (
                    Loss(f"the {_BESIDE[name]} of `{rule.kind}`", where, f"{words.title} has no place for it")
                    for name in _BESIDE
                    if name not in words.beside and getattr(rule, name)
                )


# One of these is not like the next of its kind: its own name tells which.
_NAMED: Final = ("not_enforced",)
_BESIDE: Final[dict[str, str]] = {
    "name": "name",
    "description": "description",
    "dimension": "dimension",
    "custom": "further entries",
}

# --- fields and datasets ----------------------------------------------------------------------------------------------

_OF_FIELD: Final[dict[str, str]] = {
    "column_name": "the logical name",
    "description": "the description",
    "semantics": "the semantics",
    "business_name": "the business name",
    "pii": "the mark for personal data",
    "classification": "the classification",
    "tags": "the tags",
    "partition_position": "the place in the partitioning",
    "deprecated": "the deprecation",
    "examples": "the examples",
    "default": "the default",
    "sources": "the sources",
    "custom": "the custom properties",
}
_OF_DATASET: Final[dict[str, str]] = {
    "physical_name": "the logical name",
    "modes": "the schema modes",
    "description": "the description",
    "business_name": "the business name",
    "tags": "the tags",
    "custom": "the custom properties",
}

# How a document spells a type; what it means is the type's, which every target says in its own way.
_SPELLING: Final = ("logicalType", "physicalType", "logicalTypeOptions")


def _elements(target: Target, words: Words, attributes: Reader) -> Iterator[Loss]:
    for place in places(target):
        element: Dataset | Field = place.field or place.dataset
        known, phrases = (words.field, _OF_FIELD) if place.field is not None else (words.dataset, _OF_DATASET)
        for name, phrase in phrases.items():
            if not _is_said(name, getattr(element, name), type(element).model_fields[name].default):
                continue
            reason: str | None = words.reasons.get(name) or f"{words.title} has no place for it"
            if name in known:
                reason = attributes(name, place)
            keys = f" {_custom_names(element.custom)}" if name == "custom" else ""
            if reason is not None and (name != "custom" or keys.strip()):
                yield Loss(f"{phrase}{keys}", place, reason)


def _is_said(name: str, value: Any, default: Any) -> bool:
    # False and 0 are values (`pii: false` says something), and an empty text is a default like any other.
    if name == "default":
        return value is not None
    return value is not None and value not in ("", (), {}) and (value != default or type(value) is not type(default))


def _custom_names(custom: Mapping[str, Any]) -> str:
    """The names of what is carried: `a, b`, and of a dialect's own entries `$odcs: c`."""
    plain = [name for name in custom if not name.startswith("$")]
    carried = []
    for name, value in custom.items():
        if name.startswith("$"):
            inner = [str(key) for key in value if key not in _SPELLING] if isinstance(value, Mapping) else []
            if inner or not isinstance(value, Mapping):
                carried.append(f"{name}: {', '.join(inner)}" if inner else name)
    return "; ".join([*([", ".join(plain)] if plain else []), *carried])


# --- the contract -----------------------------------------------------------------------------------------------------


def _names(things: Iterable[Any]) -> str:
    return ", ".join(str(getattr(thing, "name", thing)) for thing in things)


_OF_CONTRACT: Final[dict[str, Callable[[Contract], str | None]]] = {
    "id": lambda contract: f"the id {contract.id}",
    "version": lambda contract: f"the version {contract.version}",
    "name": lambda contract: f"the name {contract.name}" if contract.name else None,
    "status": lambda contract: f"the status {contract.status}",
    "description": lambda contract: "the description of the contract" if contract.description else None,
    "domain": lambda contract: f"the domain {contract.domain}" if contract.domain else None,
    "tags": lambda contract: f"the tags {_names(contract.tags)}" if contract.tags else None,
    "team": lambda contract: f"the team {contract.team.name or ''}".rstrip() if contract.team != Team() else None,
    "owner": lambda contract: f"the owner {contract.owner}" if contract.owner else None,
    "servers": lambda contract: f"the servers {_names(contract.servers)}" if contract.servers else None,
    "consumers": lambda contract: f"the consumers {_names(contract.consumers)}" if contract.consumers else None,
    "evolution": lambda contract: "how the contract may change (evolution)" if contract.evolution is not None else None,
    "enforcement": lambda contract: "the grace period" if contract.enforcement != Enforcement() else None,
    "governance": lambda contract: "the governance" if contract.governance != Governance() else None,
    "notice_period": lambda contract: f"the notice period {contract.notice_period}" if contract.notice_period else None,
    "custom": lambda contract: (
        f"the custom properties {_custom_names(contract.custom)}" if _custom_names(contract.custom) else None
    ),
}

# One sentence for what identifies the contract, one for each of the rest.
_IDENTITY: Final = ("id", "version", "name", "status", "domain", "tags")


def _parts_of_contract(contract: Contract, words: Words) -> Iterator[str]:
    said = {name: phrase(contract) for name, phrase in _OF_CONTRACT.items() if name not in words.contract}
    identity = [text for name in _IDENTITY if (text := said.get(name)) is not None]
    if identity:
        yield f"{', '.join(identity)}: {words.reasons.get('identity') or f'{words.title} has no place for it'}"
    for name, text in said.items():
        if name not in _IDENTITY and text is not None:
            yield f"{text}: {words.reasons.get(name) or f'{words.title} has no place for it'}"


def _one_line(sentence: str) -> str:
    # Names are texts of the contract, which may hold anything.
    return " ".join("".join(char if char.isprintable() else " " for char in sentence).split())

"""Rules back into the standard's words: options, flags, `quality`; what has no word becomes a rule of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field as attribute
from decimal import Decimal
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.formats.odcs_custom import DOCUMENT
from databox_contracts.formats.odcs_options import ALLOWED, FORMATS
from databox_contracts.formats.odcs_references import References, relationship_of
from databox_contracts.formats.odcs_rules import ENGINE, mapping_of, threshold_entries
from databox_contracts.formats.odcs_sql import why_not_a_number
from databox_contracts.formats.odcs_values import TEMPORAL, parse_moment
from databox_contracts.rules import Rule, Severity


@dataclass
class Written:
    """What the rules of one element become, gathered rule by rule."""

    flags: dict[str, Any] = attribute(default_factory=dict)
    options: dict[str, Any] = attribute(default_factory=dict)
    enum: list[dict[str, Any]] = attribute(default_factory=list)
    quality: list[dict[str, Any]] = attribute(default_factory=list)
    relationships: list[dict[str, Any]] = attribute(default_factory=list)


def write_rules(
    found: Iterable[Rule], logical: str | None, dataset: str, references: References, *, of_property: bool
) -> Written:
    """The entries of a property of that logical type, or of the dataset of that name.

    Service levels and the primary key are the caller's to leave out: they are written elsewhere.
    """
    written = Written()
    # A rule goes after those of its kind, whose ids are numbered in order: what is in `quality` is read last.
    last: set[type[Rule]] = set()
    for rule in found:
        if isinstance(rule, rules.NotEnforced) and _write_carried(rule, written):
            continue
        if isinstance(rule, rules.ForeignKey) and of_property != bool(rule.fields) and type(rule) not in last:
            relationship = relationship_of(rule, dataset, references)
            if relationship is not None:
                written.relationships.append(relationship)
                continue
        if of_property and is_plain(rule) and type(rule) not in last and _write_plain(rule, logical, written):
            continue
        last.add(type(rule))
        written.quality.append(quality_entry(rule, of_property=of_property))
    return written


def is_plain(rule: Rule) -> bool:
    """Whether the rule says nothing beside its promise, as an option or a flag cannot."""
    known = {key for key, value in rule.custom.items() if value and not (key == DOCUMENT and set(value) == {"enum"})}
    facts = (rule.name, rule.severity, rule.dimension, rule.description)
    return facts == (None, Severity.ERROR, None, "") and not known


def _write_carried(rule: Rule, written: Written) -> bool:
    """Writes what the standard said of a promise that is not evaluated; whether there is any such thing."""
    carried = rule.custom.get(DOCUMENT, {})
    if "quality" in carried:
        written.quality.append(dict(carried["quality"]))
    elif "relationship" in carried:
        written.relationships.append(dict(carried["relationship"]))
    elif "logicalTypeOptions" in carried:
        written.options |= carried["logicalTypeOptions"]
    return bool(carried)


# --- options and flags ------------------------------------------------------------------------------------------------

_FLAGS: Final[dict[type[Rule], str]] = {rules.Required: "required", rules.Unique: "unique"}

_OPTIONS: Final[dict[type[Rule], tuple[str, Callable[[Any], Any]]]] = {
    rules.MinLength: ("minLength", lambda rule: rule.length),
    rules.MaxLength: ("maxLength", lambda rule: rule.length),
    rules.Pattern: ("pattern", lambda rule: rule.pattern),
    rules.Format: ("format", lambda rule: rule.format),
    rules.Minimum: ("minimum", lambda rule: rule.limit),
    rules.Maximum: ("maximum", lambda rule: rule.limit),
    rules.ExclusiveMinimum: ("exclusiveMinimum", lambda rule: rule.limit),
    rules.ExclusiveMaximum: ("exclusiveMaximum", lambda rule: rule.limit),
    rules.MultipleOf: ("multipleOf", lambda rule: rule.divisor),
    rules.MinItems: ("minItems", lambda rule: rule.count),
    rules.MaxItems: ("maxItems", lambda rule: rule.count),
    rules.UniqueItems: ("uniqueItems", lambda rule: True),
}


def _write_plain(rule: Rule, logical: str | None, written: Written) -> bool:
    """Writes a rule that an option or a flag can say; whether one can."""
    flag = _FLAGS.get(type(rule))
    if flag is not None and not getattr(rule, "fields", ()) and flag not in written.flags:
        written.flags[flag] = True
        return True
    if isinstance(rule, rules.Enum):
        return _write_enum(rule, logical, written)
    name, value = _OPTIONS.get(type(rule), (None, None))
    if name is None or value is None or name in written.options:
        return False
    if logical is not None and name not in ALLOWED[logical]:
        return False
    if not _fits(name, value(rule), logical):
        return False
    written.options[name] = value(rule)
    return True


def _fits(name: str, value: Any, logical: str | None) -> bool:
    """Whether the option of that name would be read as the same rule."""
    if name == "format":
        return logical not in TEMPORAL and value in FORMATS
    if isinstance(value, str) and name != "pattern":
        return logical in TEMPORAL and _is_moment(value, logical or "")
    return name == "pattern" or (logical not in TEMPORAL and not (isinstance(value, bool) and name != "uniqueItems"))


def _is_moment(written: str, logical: str) -> bool:
    try:
        parse_moment(written, logical)
    except ValueError:
        return False
    return True


def _write_enum(rule: rules.Enum, logical: str | None, written: Written) -> bool:
    if written.enum or not rule.values or not all(fits(value, logical) for value in rule.values):
        return False
    beside = rule.custom.get(DOCUMENT, {}).get("enum", [])
    same_length = beside if len(beside) == len(rule.values) else [{} for _ in rule.values]
    written.enum = [{"value": value, **known} for value, known in zip(rule.values, same_length, strict=True)]
    return True


def fits(value: Any, logical: str | None) -> bool:
    """Whether a listed value would be read as it is for a property of that logical type."""
    match logical:
        case _ if value is None:
            return True
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int | float | Decimal) and not isinstance(value, bool) and value == int(value)
        case "number":
            return isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        case "date" | "timestamp" | "time":
            return isinstance(value, str) and _is_moment(value, logical)
        case None:
            return not isinstance(value, Decimal)
        case _:
            return False


# --- quality ----------------------------------------------------------------------------------------------------------


def quality_entry(rule: Rule, *, of_property: bool) -> dict[str, Any]:
    """The entry of `quality` for any rule: of the library or in SQL where that says it, else a rule of ours."""
    carried = dict(rule.custom.get(DOCUMENT, {}))
    entry: dict[str, Any] = {}
    stable_id = carried.pop("id", None)
    if stable_id is not None:
        entry["id"] = stable_id
    if rule.name is not None and rule.name != stable_id:
        entry["name"] = rule.name
    if rule.description:
        entry["description"] = rule.description
    entry |= _promise(rule, of_property)
    for key, plain in (("severity", Severity.ERROR), ("dimension", None)):
        said = carried.pop(key, None)
        value = getattr(rule, key)
        if value is not plain or said is not None:
            entry[key] = said if said is not None else str(value)
    foreign = [{"property": key, "value": value} for key, value in rule.custom.items() if key != DOCUMENT]
    properties = [*carried.pop("customProperties", []), *foreign]
    if carried.pop("unit", None) is not None and "query" in entry:
        entry["unit"] = rule.custom[DOCUMENT]["unit"]
    entry |= {key: value for key, value in carried.items() if key in _BESIDE}
    return entry | ({"customProperties": properties} if properties else {})


_BESIDE: Final = (
    "businessImpact",
    "method",
    "tags",
    "authoritativeDefinitions",
    "schedule",
    "scheduler",
    "scheduleCronExpression",
)


def _promise(rule: Rule, of_property: bool) -> dict[str, Any]:
    reads = _LIBRARY.get(type(rule))
    found = reads(rule, of_property) if reads is not None else None
    return {"type": "custom", "engine": ENGINE, "implementation": mapping_of(rule)} if found is None else found


def _null_values(rule: Any, of_property: bool) -> dict[str, Any] | None:
    return {"metric": "nullValues", **threshold_entries(rule.threshold)} if of_property else None


def _missing_values(rule: Any, of_property: bool) -> dict[str, Any] | None:
    if not of_property or not rule.missing_values:
        return None
    values = {"missingValues": rule.missing_values}
    return {"metric": "missingValues", "arguments": values, **threshold_entries(rule.threshold)}


def _invalid_values(rule: Any, of_property: bool) -> dict[str, Any] | None:
    if not of_property or rule.valid_values == () or (rule.valid_values is None and rule.pattern is None):
        return None
    given = {"validValues": rule.valid_values, "pattern": rule.pattern}
    arguments = {key: value for key, value in given.items() if value is not None}
    return {"metric": "invalidValues", "arguments": arguments, **threshold_entries(rule.threshold)}


def _duplicate_values(rule: Any, of_property: bool) -> dict[str, Any] | None:
    if of_property == bool(rule.fields):
        return None
    arguments = {"arguments": {"properties": rule.fields}} if rule.fields else {}
    return {"metric": "duplicateValues", **arguments, **threshold_entries(rule.threshold)}


def _row_count(rule: Any, of_property: bool) -> dict[str, Any] | None:
    if of_property or rule.threshold.unit is not rules.Unit.ROWS:
        return None
    return {"metric": "rowCount", **threshold_entries(rule.threshold)}


def _query(rule: Any, of_property: bool) -> dict[str, Any] | None:
    if rule.threshold.unit is not rules.Unit.ROWS or why_not_a_number(rule.sql) is not None:
        return None
    return {"type": "sql", "query": rule.sql, **threshold_entries(rule.threshold)}


_LIBRARY: Final[Mapping[type[Rule], Callable[[Any, bool], dict[str, Any] | None]]] = {
    rules.NullCount: _null_values,
    rules.MissingCount: _missing_values,
    rules.InvalidCount: _invalid_values,
    rules.DuplicateCount: _duplicate_values,
    rules.RowCount: _row_count,
    rules.Query: _query,
}

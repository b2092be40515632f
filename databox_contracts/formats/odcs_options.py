"""`logicalTypeOptions` and `enum`: what a value of a property may be."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.errors import Position
from databox_contracts.formats.odcs_custom import DOCUMENT
from databox_contracts.formats.odcs_values import TEMPORAL, comparable, read_limit, read_values
from databox_contracts.formats.reading import Section, described
from databox_contracts.patterns import PatternError, to_java
from databox_contracts.rules import NotEnforced, Rule

_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_MOMENTS: Final = (*_BOUNDS, "format", "timezone", "defaultTimezone")
_NUMBERS: Final = (*_BOUNDS, "multipleOf", "format")

ALLOWED: Final[dict[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "date": (*_BOUNDS, "format"),
    "timestamp": _MOMENTS,
    "time": _MOMENTS,
    "integer": _NUMBERS,
    "number": _NUMBERS,
    "array": ("minItems", "maxItems", "uniqueItems"),
    "object": ("required", "minProperties", "maxProperties"),
    "vector": ("dimensions", "elementType", "distanceMetric", "embeddingModel", "embeddingModelVersion", "normalized"),
    "boolean": (),
    "map": (),
}
"""The options of each logical type, as the standard has them."""

OPTION_NAMES: Final = tuple(dict.fromkeys(name for names in ALLOWED.values() for name in names))

FORMATS: Final = ("uuid", "email", "uri", "hostname", "ipv4", "ipv6", "date", "date-time", "time", "byte")
"""The formats of text that are rules; another one is only carried and must not read as enforced."""

# Said, and no promise about the data.
_DESCRIPTIVE: Final = ("defaultTimezone", "distanceMetric", "embeddingModel", "embeddingModelVersion")


def read_options(section: Section, logical: str | None) -> list[Rule]:
    """The rules of `logicalTypeOptions`; what narrows the type (`format: i64`, `timezone`) is read with the type."""
    found: list[Rule] = []
    for key in section.data:
        if key not in OPTION_NAMES:
            continue
        section.raw(key)
        if logical is not None and key not in ALLOWED[logical]:
            allowed = ", ".join(ALLOWED[logical]) or "no options"
            section.error(f"{key!r} is no option of the logical type {logical}", f"it has {allowed}", key)
        elif (reader := _READERS.get(key)) is not None:
            found.extend(reader(section, key, logical))
    _check_ranges(section, found, logical)
    section.close({"enum": "write it beside logicalTypeOptions: `enum: [{value: ...}]`"})
    return found


def read_enum(section: Section, logical: str | None) -> Iterator[Rule]:
    """The rule of a property's `enum`."""
    if section.raw("enum") is None:
        return
    entries = section.listed("enum")
    if not entries:
        if isinstance(section.data["enum"], list):
            section.error("'enum' allows no value at all", "list the allowed values, or leave it out", "enum")
        return
    places: list[tuple[str | int, ...]] = []
    beside: list[dict[str, Any]] = [{} for _ in entries]
    for at, entry in enumerate(entries):
        if not isinstance(entry, dict):
            section.warning("an item of 'enum' must be a mapping", "write `- value: ...`", "enum", at)
            places.append(("enum", at))
        elif "value" not in entry:
            section.error("an item of 'enum' has no 'value'", "write `- value: ...`", "enum", at)
        else:
            item = Section(section.report, (*section.path, "enum", at), entry, section.field)
            item.raw("value")
            beside[at] = item.carried(
                "label", "id", "description", "customProperties", "authoritativeDefinitions", "tags"
            )
            item.close()
            places.append(("enum", at, "value"))
    values = read_values(section, places, logical)
    seen: set[tuple[type, object]] = set()
    for value in values:
        if (type(value), value) in seen:
            section.warning(f"{described(value)} is listed twice", "remove one", "enum")
        seen.add((type(value), value))
    if values:
        custom = {DOCUMENT: {"enum": beside}} if any(beside) else {}
        yield rules.Enum(values=values, position=section.at("enum"), custom=custom)


# --- one reader for each option ---------------------------------------------------------------------------------------


def _length(make: Callable[..., Rule], name: str) -> Callable[[Section, str, str | None], Iterator[Rule]]:
    def read(section: Section, key: str, logical: str | None) -> Iterator[Rule]:
        count = section.count(key)
        if count is not None:
            yield make(**{name: count}, position=section.at(key))

    return read


def _bound(make: Callable[..., Rule]) -> Callable[[Section, str, str | None], Iterator[Rule]]:
    def read(section: Section, key: str, logical: str | None) -> Iterator[Rule]:
        # The first version of the standard had exclusiveMinimum as a flag on minimum.
        if section.raw(f"exclusiveM{key[1:]}") is True:
            return
        limit = read_limit(section, key, logical)
        if limit is not None:
            yield make(limit=limit, position=section.at(key))

    return read


def _exclusive_bound(make: Callable[..., Rule]) -> Callable[[Section, str, str | None], Iterator[Rule]]:
    def read(section: Section, key: str, logical: str | None) -> Iterator[Rule]:
        bound = f"m{key.removeprefix('exclusiveM')}"
        flag = section.raw(key)
        if flag is False:
            return
        if flag is True and section.raw(bound) is None:
            section.error(f"{key!r} is true without a {bound!r}", f"write the limit itself: `{key}: ...`", key)
            return
        limit = read_limit(section, bound if flag is True else key, logical)
        if limit is not None:
            yield make(limit=limit, position=section.at(key))

    return read


def _multiple_of(section: Section, key: str, logical: str | None) -> Iterator[Rule]:
    divisor = section.number(key)
    if divisor is None:
        return
    if divisor <= 0:
        section.error(f"'multipleOf' must be greater than 0, not {described(section.data[key])}", "correct it", key)
        return
    yield rules.MultipleOf(divisor=divisor, position=section.at(key))


def _pattern(section: Section, key: str, logical: str | None) -> Iterator[Rule]:
    pattern = section.text(key)
    if pattern is not None and check_pattern(section, pattern, key):
        yield rules.Pattern(pattern=pattern, position=section.at(key))


def _unique_items(section: Section, key: str, logical: str | None) -> Iterator[Rule]:
    if section.flag(key):
        yield rules.UniqueItems(position=section.at(key))


def _format(section: Section, key: str, logical: str | None) -> Iterator[Rule]:
    if logical in ("integer", "number"):
        return
    written = section.text(key)
    if written is None:
        return
    if logical in TEMPORAL:
        section.note(f"the format {written!r} of a {logical} is not enforced", None, key)
    elif written.lower() in FORMATS:
        yield rules.Format(format=written.lower(), position=section.at(key))
    else:
        yield unenforced_option(section, f"the format {written!r}, which this version does not judge", key)


def _noted(section: Section, key: str, logical: str | None) -> Iterator[Rule]:
    section.note(f"{key!r} is not enforced", None, key)
    return iter(())


def _promised(section: Section, key: str, logical: str | None) -> Iterator[Rule]:
    yield unenforced_option(section, f"{key!r} of {'an' if logical == 'object' else 'a'} {logical} is not checked", key)


_Reader = Callable[[Section, str, "str | None"], Iterator[Rule]]

_READERS: Final[dict[str, _Reader]] = {
    "minLength": _length(rules.MinLength, "length"),
    "maxLength": _length(rules.MaxLength, "length"),
    "pattern": _pattern,
    "format": _format,
    "minimum": _bound(rules.Minimum),
    "maximum": _bound(rules.Maximum),
    "exclusiveMinimum": _exclusive_bound(rules.ExclusiveMinimum),
    "exclusiveMaximum": _exclusive_bound(rules.ExclusiveMaximum),
    "multipleOf": _multiple_of,
    "defaultTimezone": _noted,
    "minItems": _length(rules.MinItems, "count"),
    "maxItems": _length(rules.MaxItems, "count"),
    "uniqueItems": _unique_items,
    "minProperties": _promised,
    "maxProperties": _promised,
    "dimensions": _promised,
    "elementType": _promised,
    "normalized": _promised,
    "distanceMetric": _noted,
    "embeddingModel": _noted,
    "embeddingModelVersion": _noted,
}


def unenforced(section: Section, reason: str, *steps: str | int, **facts: Any) -> NotEnforced:
    """A rule that verdicts show as skipped, and the warning that says so in the document."""
    section.warning(f"not enforced: {reason}", "it is shown as skipped in every verdict", *steps)
    return NotEnforced(reason=reason, position=section.at(*steps), **facts)


def unenforced_option(section: Section, reason: str, key: str) -> NotEnforced:
    """As `unenforced`, for an option, which is carried with the rule."""
    return unenforced(section, reason, key, custom={DOCUMENT: {"logicalTypeOptions": {key: section.data[key]}}})


def descriptive_options(options: Mapping[str, Any], logical: str | None) -> dict[str, Any]:
    """The options that are neither a rule nor a part of the type."""
    return {
        key: value
        for key, value in options.items()
        if value is not None and (key in _DESCRIPTIVE or (key == "format" and logical in TEMPORAL))
    }


# --- what contradicts itself ------------------------------------------------------------------------------------------


_OPPOSITES: Final = (
    ("min_length", "max_length", "length", True),
    ("min_items", "max_items", "count", True),
    ("minimum", "maximum", "limit", True),
    ("minimum", "exclusive_maximum", "limit", False),
    ("exclusive_minimum", "maximum", "limit", False),
    ("exclusive_minimum", "exclusive_maximum", "limit", False),
)


def _check_ranges(section: Section, found: list[Rule], logical: str | None) -> None:
    by_kind: dict[str, Any] = {rule.kind: rule for rule in found}
    for low, high, fact, both_inclusive in _OPPOSITES:
        if low not in by_kind or high not in by_kind:
            continue
        least: Any = comparable(getattr(by_kind[low], fact), logical)
        most: Any = comparable(getattr(by_kind[high], fact), logical)
        if least > most or (least == most and not both_inclusive):
            _contradiction(section, by_kind[low].position, by_kind[high].position)


def _contradiction(section: Section, low: Position | None, high: Position | None) -> None:
    named = {section.at(key): key for key in section.data}
    keys = [named[place] for place in (low, high) if place in named]
    section.error(f"{' and '.join(map(repr, keys))} leave no value", "correct one of them", *keys[-1:])


# What Python's compiler says about mistakes that ECMA-262 has in common with it.
_CERTAIN: Final = (
    "nothing to repeat",
    "multiple repeat",
    "min repeat greater than max repeat",
    "missing ), unterminated subpattern",
    "unbalanced parenthesis",
    "unterminated character set",
)
_ECMA_ONLY: Final = re.compile(r"\\(?:u\{[0-9A-Fa-f]+\}|u[0-9A-Fa-f]{4}|[pP]\{[^}]*\}|c[A-Za-z]|k<\w+>|.)", re.DOTALL)


def pattern_mistake(pattern: str) -> str | None:
    """Why it is no regular expression of ECMA-262, to follow its name; None where it is one."""
    try:
        to_java(pattern)
    except PatternError as error:
        return error.reason
    return _mistake(pattern)


def check_pattern(section: Section, pattern: str, *steps: str | int) -> bool:
    """Whether it is a regular expression of ECMA-262; an error if not."""
    reason = pattern_mistake(pattern)
    if reason is not None:
        section.error(
            f"the pattern {pattern[:60]!r} {reason}", "write it in the syntax of ECMA-262, as JSON Schema does", *steps
        )
    return reason is None


@lru_cache(maxsize=1024)
def _mistake(pattern: str) -> str | None:
    simplified = _ECMA_ONLY.sub("x", pattern.replace("(?<=", "(?:").replace("(?<!", "(?:"))
    simplified = re.sub(r"\(\?<\w+>", "(", simplified).replace("[^]", "x").replace("[]", "x")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(simplified)
    except re.error as error:
        return f"is not valid: {error.msg}" if error.msg in _CERTAIN else None
    except (RecursionError, OverflowError):
        return "is too complicated"
    return None

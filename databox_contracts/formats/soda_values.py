"""Which values of a column Soda calls missing or invalid, as rules of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.errors import Level
from databox_contracts.formats.odcs_options import check_pattern
from databox_contracts.formats.odcs_values import TEMPORAL, parse_moment, read_limit, read_values
from databox_contracts.formats.reading import Section
from databox_contracts.formats.soda_limits import Limits, allows_none, read_limits
from databox_contracts.formats.soda_sql import literal, quoted
from databox_contracts.formats.soda_subjects import MISSING_KEYS, VALIDITY_KEYS, Check, holder_of, needs_column
from databox_contracts.formats.sodacl_valid import FORMATS
from databox_contracts.rules import NO_ROWS, NotEnforced, Rule, Scalar

# Formats by name, in the first generation. The others were regular expressions of the warehouse's connector.
NAMED_FORMATS: Final = {
    "uuid": "uuid",
    "email": "email",
    "ipv4 address": "ipv4",
    "ipv6 address": "ipv6",
    "date iso 8601": "date",
}
"""What is evaluated by its name, by the name that Soda has for it."""

NAMED_EXPRESSIONS: Final = {name: FORMATS[name] for name in ("uuid", "email", "ipv4 address")}
"""Those of them that the second generation, which has expressions only, says by one of ours."""

PLAIN_NAME: Final = "pattern"
"""What an expression is called of which no more is said: the second generation wants a name for each."""

_NAMED_PATTERNS: Final = {
    "integer": r"^[-+]?[0-9]+$",
    "positive integer": r"^\+?[0-9]+$",
    "negative integer": r"^-[0-9]+$",
}


def _missing_values(check: Check) -> tuple[Scalar, ...]:
    holder = holder_of(check, MISSING_KEYS)
    listed = holder.listed("missing_values")
    places = [("missing_values", at) for at in range(len(listed))]
    return read_values(holder, places, check.subject.kind, unfit=Level.WARNING)


def read_missing(check: Check) -> Iterator[Rule]:
    """`missing`: null, and what else stands for nothing. Where none may be, that is `required`."""
    if not needs_column(check):
        return
    values = _missing_values(check)
    pattern = _regex(holder_of(check, MISSING_KEYS), "missing_format", "missing_regex", "missing_regex_sql")
    check.subject.missing = values
    limits = check.limits()
    if limits.unsayable is not None:
        yield check.unenforced(limits.unsayable)
        return
    held = allows_none(limits)
    if pattern is not None and (held is None or values):
        check.subject.lossy = True
        yield check.unenforced("missing values that a pattern describes, counted")
    elif values:
        for each in limits.held:
            yield rules.MissingCount(missing_values=(None, *values), threshold=each.threshold, **check.sql(each))
    elif held is not None:
        yield rules.Required(**check.sql(held))
        if pattern is not None:
            check.subject.lossy = True
            yield rules.Pattern(pattern=_unlike(pattern), **check.sql(held))
    else:
        for each in limits.held:
            yield rules.NullCount(threshold=each.threshold, **check.sql(each))


def _unlike(pattern: str) -> str:
    """The expression that finds something only where `pattern` finds nothing."""
    return rf"^(?![\s\S]*(?:{pattern}))"


def _regex(holder: Section, format_key: str, *keys: str) -> str | None:
    """A regular expression under one of its names; what is wrong with it has been reported."""
    if isinstance(holder.raw(format_key), dict):
        section = holder.section(format_key)
        assert section is not None
        pattern = section.needed("regex", "a format")
        section.carried("name")
        section.close()
        return pattern if pattern is not None and check_pattern(section, pattern, "regex") else None
    for key in keys:
        pattern = holder.text(key)
        if pattern is not None:
            return pattern if check_pattern(holder, pattern, key) else None
    return None


def read_invalid(check: Check) -> Iterator[Rule]:
    """`invalid`: a rule for each row where no value may be invalid, else a count of those that are."""
    if not needs_column(check):
        return
    holder = holder_of(check, VALIDITY_KEYS)
    own_missing = _missing_values(check)
    given = [key for key in VALIDITY_KEYS if holder.raw(key) is not None]
    limits = check.limits()
    if not given:
        check.section.error("the check does not say what is valid", "write `valid_values: [...]` or a `valid_format`")
        return
    if limits.unsayable is not None:
        yield check.unenforced(limits.unsayable)
        return
    found = list(_validity(check, holder, given))
    missing = own_missing or check.subject.missing
    forbidden = any(isinstance(rule, rules.MissingCount) and rule.threshold.allows_none for rule in check.subject.rules)
    held = allows_none(limits)
    if any(isinstance(rule, NotEnforced) for rule in found):
        yield from found
    elif held is not None and (not missing or forbidden or all(isinstance(rule, rules.Enum) for rule in found)):
        check.subject.lossy |= bool(missing)
        for rule in found:
            yield _with_missing(rule, missing) if isinstance(rule, rules.Enum) else rule
    elif not missing and _countable(found):
        valid = next((rule.values for rule in found if isinstance(rule, rules.Enum)), None)
        pattern = next((rule.pattern for rule in found if isinstance(rule, rules.Pattern)), None)
        for each in limits.held:
            yield rules.InvalidCount(valid_values=valid, pattern=pattern, threshold=each.threshold, **check.sql(each))
    elif limits.held:
        yield check.unenforced(f"a count of invalid values by {' and '.join(given)}")


def _with_missing(rule: rules.Enum, missing: tuple[Scalar, ...]) -> rules.Enum:
    """A missing value is not an invalid one."""
    values = (*rule.values, *(value for value in missing if value not in rule.values))
    facts = {name: getattr(rule, name) for name in ("name", "severity", "position")}
    return rules.Enum(values=values, **facts)


def _countable(found: list[Rule]) -> bool:
    kinds = [type(rule) for rule in found]
    return bool(found) and all(kinds.count(kind) == 1 and kind in (rules.Enum, rules.Pattern) for kind in kinds)


def _validity(check: Check, holder: Section, given: list[str]) -> Iterator[Rule]:
    """A rule for each thing that makes a value valid."""
    held = allows_none(Limits(read_limits(check.section, NO_ROWS, check.unit).held))
    facts = check.sql(held) if held is not None else check.facts
    for key in given:
        yield from _VALIDITY[key](check, holder, key, {**facts, "position": holder.at(key)})


def _values(check: Check, holder: Section, key: str) -> tuple[Scalar, ...]:
    listed = holder.listed(key)
    if not listed and isinstance(holder.data[key], list):
        holder.error(f"{key!r} lists no value", "list values, or leave it out", key)
    return read_values(holder, [(key, at) for at in range(len(listed))], check.subject.kind)


def _valid_values(check: Check, holder: Section, key: str, facts: dict[str, Any]) -> Iterator[Rule]:
    values = _values(check, holder, key)
    if values:
        yield rules.Enum(values=values, **facts)


def _invalid_values(check: Check, holder: Section, key: str, facts: dict[str, Any]) -> Iterator[Rule]:
    values = _values(check, holder, key)
    if values:
        listed = ", ".join(literal(value) for value in values if value is not None)
        yield rules.Expression(sql=f"{quoted(check.subject.column or '')} NOT IN ({listed})", **facts)


def _format(check: Check, holder: Section, key: str, facts: dict[str, Any]) -> Iterator[Rule]:
    wrong = key.startswith("invalid")
    if isinstance(holder.data[key], dict) or not key.endswith("_format"):
        pattern = _regex(holder, key, key)
        name = holder.data[key].get("name", PLAIN_NAME) if isinstance(holder.data[key], dict) else PLAIN_NAME
        if pattern is not None and not wrong and isinstance(name, str) and NAMED_EXPRESSIONS.get(name) == pattern:
            yield rules.Format(format=NAMED_FORMATS[name], **facts)
        elif pattern is not None:
            yield rules.Pattern(pattern=_unlike(pattern) if wrong else pattern, **facts)
            check.subject.lossy |= wrong or name != PLAIN_NAME
        return
    written = holder.text(key)
    if written is None:
        return
    name = " ".join(written.lower().replace("_", " ").split())
    if name in NAMED_FORMATS and not wrong:
        yield rules.Format(format=NAMED_FORMATS[name], **facts)
    elif name in _NAMED_PATTERNS:
        pattern = _NAMED_PATTERNS[name]
        yield rules.Pattern(pattern=_unlike(pattern) if wrong else pattern, **facts)
        check.subject.lossy = True
    else:
        yield check.unenforced(f"the format {written!r}, which is Soda's own")


def _bound(make: Callable[..., Rule]) -> Callable[[Check, Section, str, dict[str, Any]], Iterator[Rule]]:
    def read(check: Check, holder: Section, key: str, facts: dict[str, Any]) -> Iterator[Rule]:
        kind = check.subject.kind
        if kind is None and isinstance(holder.data[key], str):
            kind = _moment_kind(holder.data[key])
        limit = read_limit(holder, key, kind)
        if limit is not None:
            yield make(limit=limit, **facts)

    return read


def _moment_kind(written: str) -> str | None:
    for kind in TEMPORAL:
        try:
            parse_moment(written, kind)
        except ValueError:
            continue
        return kind
    return None


def _length(*makes: Callable[..., Rule]) -> Callable[[Check, Section, str, dict[str, Any]], Iterator[Rule]]:
    def read(check: Check, holder: Section, key: str, facts: dict[str, Any]) -> Iterator[Rule]:
        length = holder.count(key)
        if length is not None:
            yield from (make(length=length, **facts) for make in makes)

    return read


def _reference(check: Check, holder: Section, key: str, facts: dict[str, Any]) -> Iterator[Rule]:
    section = holder.section(key)
    if section is None:
        return
    dataset, column = section.needed("dataset", "a reference"), section.needed("column", "a reference")
    section.close()
    if dataset is not None and column is not None:
        # A Soda contract's one dataset is named like the last part of the contract's own name.
        to = f"{dataset}.{dataset.rsplit('/', 1)[-1]}"
        yield rules.ForeignKey(fields=(check.subject.column or "",), to=to, to_fields=(column,), **facts)


_Validity = Callable[[Check, Section, str, "dict[str, Any]"], Iterator[Rule]]

_VALIDITY: Final[dict[str, _Validity]] = {
    "valid_values": _valid_values,
    **dict.fromkeys(("valid_format", "valid_regex", "valid_regex_sql"), _format),
    **dict.fromkeys(("invalid_format", "invalid_regex", "invalid_regex_sql"), _format),
    "valid_min": _bound(rules.Minimum),
    "valid_max": _bound(rules.Maximum),
    "valid_length": _length(rules.MinLength, rules.MaxLength),
    "valid_min_length": _length(rules.MinLength),
    "valid_max_length": _length(rules.MaxLength),
    **dict.fromkeys(("valid_reference_data", "valid_values_reference_data", "valid_values_column"), _reference),
    "invalid_values": _invalid_values,
}

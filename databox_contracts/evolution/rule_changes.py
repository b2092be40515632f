"""What changed among the rules of a field or of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field as attribute
from typing import Any, Final, TypeAlias

from databox_contracts import rules
from databox_contracts.evolution.changes import ChangeType, Difference
from databox_contracts.evolution.strength import Strength, compare_rules, own_facts, subject_of
from databox_contracts.rules import Enum, Required, Rule

Make: TypeAlias = Callable[..., Difference]
"""Makes a difference at the place that is being compared."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Kinds of rules that change in the same words."""

    added: ChangeType
    removed: ChangeType
    tightened: ChangeType
    relaxed: ChangeType
    kinds: tuple[type[Rule], ...] = attribute(default=())


_GROUPS: Final = (
    _Group(
        ChangeType.KEY_CHANGED,
        ChangeType.KEY_CHANGED,
        ChangeType.KEY_CHANGED,
        ChangeType.KEY_CHANGED,
        (rules.Unique, rules.PrimaryKey, rules.ForeignKey),
    ),
    _Group(
        ChangeType.NULLABILITY_TIGHTENED,
        ChangeType.NULLABILITY_RELAXED,
        ChangeType.NULLABILITY_TIGHTENED,
        ChangeType.NULLABILITY_RELAXED,
        (Required,),
    ),
    _Group(
        ChangeType.GUARANTEE_TIGHTENED,
        ChangeType.GUARANTEE_LOOSENED,
        ChangeType.GUARANTEE_TIGHTENED,
        ChangeType.GUARANTEE_LOOSENED,
        (rules.Freshness, rules.Latency, rules.Retention, rules.Completeness),
    ),
    _Group(
        ChangeType.CONSTRAINT_ADDED,
        ChangeType.CONSTRAINT_REMOVED,
        ChangeType.CONSTRAINT_TIGHTENED,
        ChangeType.CONSTRAINT_RELAXED,
        (
            Enum,
            rules.Pattern,
            rules.Format,
            rules.Minimum,
            rules.Maximum,
            rules.ExclusiveMinimum,
            rules.ExclusiveMaximum,
            rules.MultipleOf,
            rules.MinLength,
            rules.MaxLength,
            rules.MinItems,
            rules.MaxItems,
            rules.UniqueItems,
        ),
    ),
)
_QUALITY: Final = _Group(
    ChangeType.RULE_ADDED, ChangeType.RULE_REMOVED, ChangeType.RULE_TIGHTENED, ChangeType.RULE_RELAXED
)
"""All other kinds."""

# A bound that includes its limit, and the one that does not, are one promise.
_EXCLUSIVE: Final[dict[type[Rule], type[Rule]]] = {
    rules.Minimum: rules.ExclusiveMinimum,
    rules.Maximum: rules.ExclusiveMaximum,
}


def rule_differences(old: Sequence[Rule], new: Sequence[Rule], make: Make, *, masked: bool) -> Iterator[Difference]:
    """The changes in the order of the old rules, then the added ones in theirs.

    Rules belong together by kind and name, then by kind and what they are about, then as the only ones of their kind
    that are left. `masked` leaves out values that the rules list.
    """
    left = list(new)
    for rule in old:
        partner = _partner(rule, old, left)
        if partner is not None:
            left.remove(partner)
        yield from _changed(rule, partner, make, masked)
    for rule in left:
        yield from _added(rule, make, masked)


def described(rule: Rule, *, masked: bool = False) -> Any:
    """What the rule asks for, in a word or a plain value; None where there is nothing more to say than its kind."""
    facts = {name: _plain(value) for name, value in own_facts(rule).items() if value not in (None, ())}
    if masked:
        facts = {name: value for name, value in facts.items() if name not in _LISTED}
    if len(facts) == 1:
        return next(iter(facts.values()))
    return facts or None


_LISTED: Final = ("values", "valid_values", "missing_values")


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


def _partner(rule: Rule, old: Sequence[Rule], new: Sequence[Rule]) -> Rule | None:
    of_kind = [other for other in new if type(other) is type(rule)]
    equal = [other for other in of_kind if own_facts(other) == own_facts(rule)]
    if equal:
        return next((other for other in equal if other.severity is rule.severity), equal[0])
    if rule.name is not None:
        named = next((other for other in of_kind if other.name == rule.name), None)
        if named is not None:
            return named
    alike = [other for other in of_kind if subject_of(other) == subject_of(rule)]
    if alike:
        return alike[0]
    if _group(rule) is _QUALITY or sum(type(other) is type(rule) for other in old) > 1 or len(of_kind) != 1:
        twin = _twin(rule)
        candidates = [other for other in new if type(other) is twin] if not of_kind else []
        return candidates[0] if len(candidates) == 1 else None
    return of_kind[0]


def _twin(rule: Rule) -> type[Rule] | None:
    for inclusive, exclusive in _EXCLUSIVE.items():
        if type(rule) is inclusive:
            return exclusive
        if type(rule) is exclusive:
            return inclusive
    return None


def _group(rule: Rule) -> _Group:
    return next((group for group in _GROUPS if isinstance(rule, group.kinds)), _QUALITY)


def _changed(rule: Rule, partner: Rule | None, make: Make, masked: bool) -> Iterator[Difference]:
    group = _group(rule)
    if partner is None:
        yield make(group.removed, subject=rule.kind, old=described(rule, masked=masked))
        return
    if isinstance(rule, Enum) and isinstance(partner, Enum):
        yield from _enum_changes(rule, partner, make, masked)
        return
    strength = _compared(rule, partner)
    if strength is Strength.SAME:
        if _beside(rule) != _beside(partner):
            yield make(ChangeType.DOCUMENTATION_CHANGED, subject=f"{rule.kind} rule")
        return
    # What cannot be compared may ask for more.
    kind = group.relaxed if strength is Strength.LOOSER else group.tightened
    yield make(
        kind, subject=rule.kind, old=_with_severity(rule, partner, masked), new=_with_severity(partner, rule, masked)
    )


def _beside(rule: Rule) -> tuple[Any, ...]:
    return rule.name, rule.dimension, rule.description.strip(), dict(rule.custom)


def _compared(rule: Rule, partner: Rule) -> Strength:
    if type(rule) is type(partner):
        return compare_rules(rule, partner)
    # A bound and its exclusive twin: the limit decides, and where it is the same, whether it belongs to the range.
    to_exclusive = type(partner) in _EXCLUSIVE.values()
    as_before = type(rule)(limit=partner.limit, severity=partner.severity)  # type: ignore[attr-defined, call-arg]
    strength = compare_rules(rule, as_before)
    if strength is Strength.SAME:
        return Strength.TIGHTER if to_exclusive else Strength.LOOSER
    return strength


def _with_severity(rule: Rule, other: Rule, masked: bool) -> Any:
    shown = described(rule, masked=masked)
    if rule.severity is other.severity:
        return shown
    return f"{shown}, {rule.severity}" if shown is not None else str(rule.severity)


def _enum_changes(old: Enum, new: Enum, make: Make, masked: bool) -> Iterator[Difference]:
    removed = [value for value in old.values if not _holds(new, value)]
    added = [value for value in new.values if not _holds(old, value)]
    if removed:
        yield make(ChangeType.ENUM_VALUES_REMOVED, subject="enum", old=_listed(removed, masked))
    if added:
        yield make(ChangeType.ENUM_VALUES_ADDED, subject="enum", new=_listed(added, masked))
    if old.severity is not new.severity:
        stricter = compare_rules(Enum(values=(), severity=old.severity), Enum(values=(), severity=new.severity))
        kind = ChangeType.CONSTRAINT_TIGHTENED if stricter is Strength.TIGHTER else ChangeType.CONSTRAINT_RELAXED
        yield make(kind, subject="enum", old=str(old.severity), new=str(new.severity))


def _holds(enum: Enum, value: Any) -> bool:
    # To Python, 1 and True are equal.
    return any(value == other and isinstance(value, bool) == isinstance(other, bool) for other in enum.values)


def _listed(values: Iterable[Any], masked: bool) -> Any:
    listed = [_plain(value) for value in values]
    return f"{len(listed)} values" if masked else listed


def _added(rule: Rule, make: Make, masked: bool) -> Iterator[Difference]:
    yield make(_group(rule).added, subject=rule.kind, new=described(rule, masked=masked))

"""What a change means, in words: what happened, whom it hurts, and the way that would not."""

from __future__ import annotations

from typing import Any, Final

from databox_contracts.evolution.changes import ChangeType, Difference, Variant

_LONGEST: Final = 80

_MESSAGES: Final[dict[ChangeType, str]] = {
    ChangeType.DATASET_ADDED: "A new dataset; nobody depends on it yet.",
    ChangeType.DATASET_REMOVED: "The dataset is gone; whoever reads it finds nothing.",
    ChangeType.DATASET_RENAMED: "'{old}' -> '{new}'. Whoever reads the old name finds nothing.",
    ChangeType.FIELD_ADDED: "Consumers unaffected (additive change).",
    ChangeType.FIELD_REMOVED: "The field is gone; consumers that read it fail or get nothing.",
    ChangeType.FIELD_RENAMED: "'{old}' -> '{new}'. Update all consumers.",
    ChangeType.FIELD_REORDERED: "Fields stand in another order; nothing depends on it.",
    ChangeType.TYPE_CHANGED: "{old} -> {new}: {reason}.",
    ChangeType.NULLABILITY_TIGHTENED: "Nulls are no longer allowed; producers that write them are refused.",
    ChangeType.NULLABILITY_RELAXED: "Nulls are allowed now.",
    ChangeType.ENUM_VALUES_ADDED: "New values: {new}.",
    ChangeType.ENUM_VALUES_REMOVED: "No longer allowed: {old}.",
    ChangeType.CONSTRAINT_ADDED: "A new constraint, {subject}{new_amount}; producers that do not keep it are refused.",
    ChangeType.CONSTRAINT_REMOVED: "The constraint {subject}{old_amount} is gone.",
    ChangeType.CONSTRAINT_TIGHTENED: "{subject}: {old} -> {new}; producers that keep only the old one are refused.",
    ChangeType.CONSTRAINT_RELAXED: "{subject}: {old} -> {new}; less is promised.",
    ChangeType.KEY_CHANGED: "The key {subject} changed: {old} -> {new}.",
    ChangeType.RULE_ADDED: "A new check, {subject}{new_amount}.",
    ChangeType.RULE_REMOVED: "The check {subject}{old_amount} is gone.",
    ChangeType.RULE_TIGHTENED: "The check {subject} asks for more: {old} -> {new}.",
    ChangeType.RULE_RELAXED: "The check {subject} asks for less: {old} -> {new}.",
    ChangeType.GUARANTEE_TIGHTENED: "The guarantee {subject} is stricter: {old} -> {new}.",
    ChangeType.GUARANTEE_LOOSENED: "The guarantee {subject} is weaker: {old} -> {new}.",
    ChangeType.GOVERNANCE_CHANGED: "{subject}: {old} -> {new}.",
    ChangeType.OWNERSHIP_CHANGED: "{subject}: {old} -> {new}.",
    ChangeType.DOCUMENTATION_CHANGED: "Documentation: {subject}.",
    ChangeType.VERSION_NOT_BUMPED: "These changes need a {subject} version; it is {old} -> {new}.",
}

_REQUIRED_FIELD: Final = "A new required field; what producers wrote so far does not have it."
_ANNOUNCED: Final = (
    "The field is gone, as announced: it was deprecated. Consumers that still read it fail or get nothing."
)
_ANNOUNCED_WAY_OUT: Final = "remove it in a major version"
_GRACE: Final = "{subject}: {old} -> {new}; violations would be let through for longer."

_REASONS: Final = {
    Variant.WIDENED: "every old value is kept, but readers may have to make room",
    Variant.NARROWED: "values that were allowed no longer fit",
    Variant.OTHERWISE: "values of the one type are not values of the other",
    None: "the type is another one",
}

_WAYS_OUT: Final[dict[ChangeType, str]] = {
    ChangeType.DATASET_REMOVED: "keep it and mark it deprecated; remove it in the next major version",
    ChangeType.DATASET_RENAMED: "publish under both names; remove '{old}' in the next major version",
    ChangeType.FIELD_ADDED: "add it as optional, and require it in the next major version",
    ChangeType.FIELD_REMOVED: "keep it and mark it deprecated; remove it in the next major version",
    ChangeType.FIELD_RENAMED: "add '{new}' beside it, mark '{old}' deprecated, remove that in the next major version",
    ChangeType.TYPE_CHANGED: "add a field of the type {new} beside it, and remove this one in the next major version",
    ChangeType.NULLABILITY_TIGHTENED: "keep nulls allowed until the next major version; a warning can count them",
    ChangeType.NULLABILITY_RELAXED: "keep it required, or add an optional field beside it",
    ChangeType.ENUM_VALUES_ADDED: "announce the values first; readers of the old contract do not know them",
    ChangeType.ENUM_VALUES_REMOVED: "keep the values allowed until the next major version",
    ChangeType.CONSTRAINT_ADDED: "add it with severity warning, and make it an error in the next major version",
    ChangeType.CONSTRAINT_REMOVED: "keep it until the next major version",
    ChangeType.CONSTRAINT_TIGHTENED: "keep the old limit until the next major version; a warning can count the rest",
    ChangeType.CONSTRAINT_RELAXED: "keep the old limit until the next major version",
    ChangeType.KEY_CHANGED: "add a new key field beside it, and change the key in the next major version",
    ChangeType.GOVERNANCE_CHANGED: "let the date stand, and put the data right",
    ChangeType.VERSION_NOT_BUMPED: "write version: {bumped}",
}

_SURPRISES: Final = (
    ChangeType.NULLABILITY_RELAXED,
    ChangeType.ENUM_VALUES_ADDED,
    ChangeType.CONSTRAINT_REMOVED,
    ChangeType.CONSTRAINT_RELAXED,
    ChangeType.RULE_REMOVED,
    ChangeType.RULE_RELAXED,
    ChangeType.GUARANTEE_LOOSENED,
)
_SURPRISE: Final = " Readers that count on the old promise may be surprised."


def message(difference: Difference, variant: Variant | None = None) -> str:
    """One or two sentences; `variant` is how the policy sees the types of a type change."""
    template = _MESSAGES[difference.kind]
    if difference.kind is ChangeType.FIELD_ADDED and difference.variant is Variant.REQUIRED:
        template = _REQUIRED_FIELD
    if difference.announced:
        template = _ANNOUNCED
    if difference.variant is Variant.GRACE_EXTENDED:
        template = _GRACE
    text = template.format(
        old=shown(difference.old),
        new=shown(difference.new),
        subject=difference.subject.replace("_", " "),
        old_amount=_amount(difference.old),
        new_amount=_amount(difference.new),
        reason=_REASONS.get(variant, _REASONS[None]),
    )
    return text[0].upper() + text[1:] + (_SURPRISE if difference.kind in _SURPRISES else "")


def way_out(difference: Difference, bumped: str = "") -> str | None:
    """The variant of the change that breaks nobody; `bumped` is the version that the changes need."""
    template = _ANNOUNCED_WAY_OUT if difference.announced else _WAYS_OUT.get(difference.kind)
    if template is None:
        return None
    return template.format(old=shown(difference.old), new=shown(difference.new), bumped=bumped)


def shown(value: Any) -> str:
    """A value in one short line; what is not there, or must not be shown, is `none`."""
    if value is None:
        return "none"
    if isinstance(value, list):
        text = ", ".join(map(str, value)) or "none"
    elif isinstance(value, dict):
        text = ", ".join(f"{name} {shown(part)}" for name, part in value.items())
    else:
        text = str(value)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _amount(value: Any) -> str:
    return f" ({shown(value)})" if value is not None else ""

"""Which changes break whom: a literal table of policies, and the block by which a contract sets its own."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, TypeAlias

from databox_contracts.errors import DataboxError
from databox_contracts.evolution import changes
from databox_contracts.evolution.changes import Difference
from databox_contracts.evolution.widening import Widening, widens
from databox_contracts.model import Contract, Evolution
from databox_contracts.vocabulary import OWN_POLICY

C: TypeAlias = changes.ChangeType
V: TypeAlias = changes.Variant

Row: TypeAlias = tuple[C, V | None]
"""A kind of change, and the variant of it that the row is for; None is for every variant without a row of its own."""

_COLUMNS: Final = ("consumer", "strict", "widening", "backward", "forward")

# x breaks under that policy, . does not.
#
# consumer: what a reader of the old table would miss.    strict: the rules of data versioned like an API.
# widening: the gate of Soda contracts.    backward: can the new contract read old data?    forward: can the old one
# read new data?
_TABLE: Final[dict[Row, str]] = {
    #                                       c s w b f
    (C.DATASET_ADDED, None): "              . . . . .",
    (C.DATASET_REMOVED, None): "            x x x x x",
    (C.DATASET_RENAMED, None): "            x x x x x",
    (C.FIELD_ADDED, V.OPTIONAL): "          . . . . .",
    (C.FIELD_ADDED, V.REQUIRED): "          . x . x .",
    (C.FIELD_REMOVED, V.OPTIONAL): "        x x x . .",
    (C.FIELD_REMOVED, V.REQUIRED): "        x x x . x",
    (C.FIELD_RENAMED, None): "              x x x x x",
    (C.FIELD_REORDERED, None): "            . . . . .",
    (C.TYPE_CHANGED, V.WIDENED): "          x x . . x",
    (C.TYPE_CHANGED, V.NARROWED): "         x x x x .",
    (C.TYPE_CHANGED, V.OTHERWISE): "        x x x x x",
    (C.NULLABILITY_TIGHTENED, None): "      . x . x .",
    (C.NULLABILITY_RELAXED, None): "        . . . . x",
    (C.ENUM_VALUES_ADDED, None): "          . . . . x",
    (C.ENUM_VALUES_REMOVED, None): "        . x . x .",
    (C.CONSTRAINT_ADDED, None): "           . x . x .",
    (C.CONSTRAINT_REMOVED, None): "         . . . . x",
    (C.CONSTRAINT_TIGHTENED, None): "       . x . x .",
    (C.CONSTRAINT_RELAXED, None): "         . . . . x",
    (C.KEY_CHANGED, None): "                . x . x x",
    (C.RULE_ADDED, None): "                 . . . . .",
    (C.RULE_REMOVED, None): "               . . . . .",
    (C.RULE_TIGHTENED, None): "             . . . . .",
    (C.RULE_RELAXED, None): "               . . . . .",
    (C.GUARANTEE_TIGHTENED, None): "        . . . . .",
    (C.GUARANTEE_LOOSENED, None): "         . . . . .",
    (C.GOVERNANCE_CHANGED, None): "         . . . . .",
    (C.GOVERNANCE_CHANGED, V.GRACE_EXTENDED): "x x x x x",
    (C.OWNERSHIP_CHANGED, None): "          . . . . .",
    (C.DOCUMENTATION_CHANGED, None): "      . . . . .",
}


@dataclass(frozen=True)
class Policy:
    """A named way of judging changes.

    `breaking` are the rows that break. `widening` is the table of type changes that keep every value. With `transitive`
    a version is held against every earlier one, not the last one alone. `splits_renames` judges a rename as the removal
    and the addition that it is, and gives the rename as a hint.
    """

    name: str
    breaking: frozenset[Row]
    widening: Widening
    transitive: bool = False
    splits_renames: bool = False

    def breaks(self, difference: Difference) -> bool:
        """Whether such a change breaks somebody."""
        if row_of(difference, self.widening) not in self.breaking:
            return False
        if difference.kind is C.FIELD_RENAMED and self.splits_renames:
            return any(self.breaks(part) for part in split(difference))
        return True


def row_of(difference: Difference, widening: Widening) -> Row:
    """The row of the table that a change is judged by; `widening` tells which type changes keep every value."""
    variant = difference.variant
    if difference.kind is C.TYPE_CHANGED:
        variant = variant_of_types(difference, widening)
    row = (difference.kind, variant)
    if row in _TABLE:
        return row
    for_all = (difference.kind, None)
    if for_all not in _TABLE:
        raise LookupError(f"no policy has a row for {difference.kind} ({variant})")
    return for_all


def variant_of_types(difference: Difference, widening: Widening) -> V:
    """Whether a type change keeps every value, or would the other way round, or neither."""
    old, new = difference.types or (None, None)
    if widens(old, new, widening):
        return V.WIDENED
    return V.NARROWED if widens(new, old, widening) else V.OTHERWISE


def split(renamed: Difference) -> tuple[Difference, Difference]:
    """The removal and the addition that a rename of a field amounts to."""
    needs = [V.REQUIRED if needed else V.OPTIONAL for needed in (renamed.old_required, renamed.new_required)]
    outside = (renamed.field or "").rpartition(".")[0]
    added = f"{outside}.{renamed.new}" if outside else str(renamed.new)
    return (
        Difference(C.FIELD_REMOVED, renamed.dataset, renamed.field, variant=needs[0], announced=renamed.announced),
        Difference(C.FIELD_ADDED, renamed.dataset, added, variant=needs[1]),
    )


def _column(*names: str) -> frozenset[Row]:
    """The rows that break in any of those columns."""
    places = [_COLUMNS.index(name) for name in names]
    return frozenset(row for row, marks in _TABLE.items() if any(marks.split()[at] == "x" for at in places))


POLICIES: Final[dict[str, Policy]] = {
    policy.name: policy
    for policy in (
        Policy("consumer", _column("consumer"), Widening.NONE),
        Policy("strict", _column("strict"), Widening.NUMERIC),
        Policy("widening", _column("widening"), Widening.SODA),
        Policy("backward", _column("backward"), Widening.REGISTRY, splits_renames=True),
        Policy("forward", _column("forward"), Widening.REGISTRY, splits_renames=True),
        Policy("full", _column("backward", "forward"), Widening.REGISTRY, splits_renames=True),
        Policy("backward_transitive", _column("backward"), Widening.REGISTRY, transitive=True, splits_renames=True),
        Policy("forward_transitive", _column("forward"), Widening.REGISTRY, transitive=True, splits_renames=True),
        Policy("full_transitive", _column("backward", "forward"), Widening.REGISTRY, True, splits_renames=True),
        Policy("none", frozenset(), Widening.NUMERIC),
    )
}
"""Every policy by its name."""


# --- the contract's own ----------------------------------------------------------------------------------------------

OWN_NAMES: Final[dict[str, tuple[Row, ...]]] = {
    "add_optional_field": ((C.FIELD_ADDED, V.OPTIONAL),),
    "add_required_field": ((C.FIELD_ADDED, V.REQUIRED),),
    "remove_field": ((C.FIELD_REMOVED, V.OPTIONAL), (C.FIELD_REMOVED, V.REQUIRED)),
    "rename_field": ((C.FIELD_RENAMED, None),),
    "widen_numeric_type": ((C.TYPE_CHANGED, V.WIDENED),),
    "change_field_type": ((C.TYPE_CHANGED, V.NARROWED), (C.TYPE_CHANGED, V.OTHERWISE)),
    "widen_enum_values": ((C.ENUM_VALUES_ADDED, None),),
    "narrow_enum_values": ((C.ENUM_VALUES_REMOVED, None),),
    "tighten_nullability": ((C.NULLABILITY_TIGHTENED, None),),
    "relax_nullability": ((C.NULLABILITY_RELAXED, None),),
    "add_constraint": ((C.CONSTRAINT_ADDED, None),),
    "remove_constraint": ((C.CONSTRAINT_REMOVED, None),),
    "tighten_constraint": ((C.CONSTRAINT_TIGHTENED, None),),
    "relax_constraint": ((C.CONSTRAINT_RELAXED, None),),
    "change_key": ((C.KEY_CHANGED, None),),
    "add_dataset": ((C.DATASET_ADDED, None),),
    "remove_dataset": ((C.DATASET_REMOVED, None),),
    "rename_dataset": ((C.DATASET_RENAMED, None),),
}
"""The names of changes in a contract's `evolution` block; whatever is in no list of it is not allowed."""

OWN_ALLOWED: Final = ("add_optional_field", "widen_enum_values", "widen_numeric_type")
"""What that policy allows where the block does not say."""

# The order of fields and everything outside the schema is not for an evolution block to forbid.
_ALWAYS_ALLOWED: Final = frozenset(
    row
    for row in _TABLE
    if row[0]
    in (
        C.FIELD_REORDERED,
        C.RULE_ADDED,
        C.RULE_REMOVED,
        C.RULE_TIGHTENED,
        C.RULE_RELAXED,
        C.GUARANTEE_TIGHTENED,
        C.GUARANTEE_LOOSENED,
        C.OWNERSHIP_CHANGED,
        C.DOCUMENTATION_CHANGED,
    )
    or row == (C.GOVERNANCE_CHANGED, None)
)


def own_name(row: Row) -> str | None:
    """What an `evolution` block calls a change of that row, or None."""
    return next((name for name, rows in OWN_NAMES.items() if row in rows), None)


def find_policy(name: str) -> Policy:
    """The policy of that name. Raises `DataboxError`, which lists the names there are."""
    policy = POLICIES.get(name.strip().lower())
    if policy is None:
        near = get_close_matches(name, POLICIES, n=1)
        meant = f"did you mean {near[0]!r}? Use" if near else "use"
        raise DataboxError(f"there is no policy {name!r}", hint=f"{meant} one of: {', '.join(POLICIES)}")
    return policy


def policy_of(contract: Contract) -> Policy:
    """The policy that the contract itself sets, else the usual one of its dialect.

    An `evolution` block that names one of `POLICIES` and lists nothing is that policy. Raises `DataboxError` for a
    policy nobody knows and for a list with a name nobody knows.
    """
    evolution = contract.evolution
    if evolution is None or (evolution.policy is None and not evolution.allowed and not evolution.disallowed):
        if contract.dialect == "sections":
            return _own(contract, Evolution(policy=OWN_POLICY))
        return POLICIES["widening" if contract.dialect == "soda" else "strict"]
    if evolution.policy is not None and evolution.policy != OWN_POLICY:
        policy = find_policy(evolution.policy)
        if not evolution.allowed and not evolution.disallowed:
            return policy
        allowed, disallowed = _rows(contract, evolution.allowed), _rows(contract, evolution.disallowed)
        breaking = (policy.breaking - allowed) | disallowed
        return Policy(policy.name, breaking, policy.widening, policy.transitive, policy.splits_renames)
    return _own(contract, evolution)


def _own(contract: Contract, evolution: Evolution) -> Policy:
    names = evolution.allowed or (OWN_ALLOWED if evolution.policy == OWN_POLICY else ())
    allowed = _rows(contract, names) | _ALWAYS_ALLOWED
    breaking = (frozenset(_TABLE) - allowed) | _rows(contract, evolution.disallowed)
    return Policy(evolution.policy or "evolution", breaking, Widening.NUMERIC, splits_renames=True)


def _rows(contract: Contract, names: tuple[str, ...]) -> frozenset[Row]:
    found: set[Row] = set()
    for name in names:
        if name not in OWN_NAMES:
            near = get_close_matches(name, OWN_NAMES, n=1)
            meant = f"did you mean {near[0]!r}? Use" if near else "use"
            raise DataboxError(
                f"the evolution of {contract.title!r} lists {name!r}, which is no change",
                hint=f"{meant}: {', '.join(OWN_NAMES)}",
            )
        found.update(OWN_NAMES[name])
    return frozenset(found)


_READERS: Final = _column("consumer", "forward")
_WRITERS: Final = _column("backward") | {
    (C.FIELD_REMOVED, V.OPTIONAL),
    (C.FIELD_REMOVED, V.REQUIRED),
    (C.FIELD_RENAMED, None),
}


def breaks_readers(difference: Difference) -> bool:
    """Whether a reader of the old table fails or silently gets something else, whatever the policy says of it."""
    return row_of(difference, Widening.NUMERIC) in _READERS


def breaks_writers(difference: Difference) -> bool:
    """Whether a writer that kept the old contract may violate the new one, whatever the policy says of it."""
    return row_of(difference, Widening.NUMERIC) in _WRITERS

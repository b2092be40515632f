"""From two contracts to a report: compare, judge under a policy, look at the version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from databox_contracts.errors import DataboxError
from databox_contracts.evolution import explain
from databox_contracts.evolution.changes import ChangeType, Difference, Variant
from databox_contracts.evolution.comparison import compare
from databox_contracts.evolution.dual_emit import dual_emits
from databox_contracts.evolution.policies import (
    POLICIES,
    Policy,
    breaks_readers,
    breaks_writers,
    find_policy,
    own_name,
    policy_of,
    row_of,
    split,
    variant_of_types,
)
from databox_contracts.evolution.report import FieldChange, MigrationReport, required_bump
from databox_contracts.evolution.table_formats import TableFormat, gate_of
from databox_contracts.evolution.widening import Widening
from databox_contracts.model import Contract
from databox_contracts.versions import Bump, Version

NO_VERSION: Final = "0.0.0"
"""The version of a contract whose dialect has none, and which says none."""


def diff(
    old: Contract,
    new: Contract,
    policy: str | Policy | None = None,
    *,
    history: Sequence[Contract] = (),
    table_format: TableFormat | None = None,
) -> MigrationReport:
    """What changed from one version of a contract to the next, and whom it breaks.

    Without a `policy` (its name, or one of your own) the old contract's applies, or that of its dialect, so that a
    change cannot loosen its own judge. A transitive policy holds the new contract against the earlier ones in
    `history` as well. `table_format` asks what that format says of the changes, too. Raises `DataboxError` for an
    unknown policy.
    """
    if not isinstance(old, Contract) or not isinstance(new, Contract):
        raise DataboxError(
            "only contracts can be compared", hint="load them first: diff(load_contract(a), load_contract(b))"
        )
    chosen = policy_of(old) if policy is None else find_policy(policy) if isinstance(policy, str) else policy
    differences = compare(old, new)
    changes = list(judge(differences, chosen))
    if chosen.transitive:
        known = {(change.change_type, change.dataset, change.field_name) for change in changes}
        for earlier in history:
            for change in judge(compare(earlier, new), chosen):
                if change.is_breaking and (change.change_type, change.dataset, change.field_name) not in known:
                    known.add((change.change_type, change.dataset, change.field_name))
                    changes.append(change)
    actual, found, remarks = _version(old, new, required_bump(changes))
    return MigrationReport(
        schema_name=new.id,
        old_version=old.version,
        new_version=new.version,
        changes=(*changes, *found),
        policy=chosen.name,
        actual_bump=actual,
        remarks=(*remarks, *dual_emits(old, new)),
        title=new.title,
        table_format=gate_of(differences, chosen, table_format) if table_format is not None else None,
    )


def judge(differences: Sequence[Difference], policy: Policy) -> Iterator[FieldChange]:
    """The changes in their order, each with the verdict of the policy.

    A policy that knows no renames sees each as a removal and an addition, and the rename as the hint.
    """
    for difference in differences:
        if difference.kind is ChangeType.FIELD_RENAMED and policy.splits_renames and policy.breaks(difference):
            hint = f"this looks like a rename of '{difference.old}' to '{difference.new}': "
            for part in split(difference):
                yield _judged(part, policy, hint=hint + (explain.way_out(difference) or ""))
        else:
            yield _judged(difference, policy)


def _judged(difference: Difference, policy: Policy, hint: str | None = None) -> FieldChange:
    is_type = difference.kind is ChangeType.TYPE_CHANGED
    # A policy under which every type change breaks still tells which of them keep every value.
    table = policy.widening if policy.widening is not Widening.NONE else Widening.NUMERIC
    variant = variant_of_types(difference, table) if is_type else None
    breaking = policy.breaks(difference)
    text = explain.message(difference, variant)
    name = own_name(row_of(difference, policy.widening)) if breaking and policy.name not in POLICIES else None
    return FieldChange(
        change_type=difference.kind,
        field_name=difference.field or difference.dataset or difference.subject,
        old_value=difference.old,
        new_value=difference.new,
        description=f"{name} violates {policy.name}. {text}" if name is not None else text,
        is_breaking=breaking,
        dataset=difference.dataset,
        widening=variant is Variant.WIDENED if is_type else None,
        breaks_readers=breaks_readers(difference),
        breaks_writers=breaks_writers(difference),
        hint=(hint or explain.way_out(difference)) if breaking else None,
    )


def _version(old: Contract, new: Contract, needed: Bump) -> tuple[Bump | None, list[FieldChange], list[str]]:
    """How far the version moved; the finding that it did not move far enough; and what else is to be said of it."""
    if old.version == new.version == NO_VERSION:
        return None, [], []
    before, after = Version.parse(old.version), Version.parse(new.version)
    if before is None or after is None:
        text = old.version if before is None else new.version
        return None, [], [f"the version {text!r} is not semantic, so nobody can tell whether it moved far enough"]
    actual = before.bump_to(after)
    if actual is None:
        return None, [], [f"the version went back, from {old.version} to {new.version}"]
    if actual < needed:
        difference = Difference(ChangeType.VERSION_NOT_BUMPED, old=old.version, new=new.version, subject=str(needed))
        found = FieldChange(
            change_type=difference.kind,
            field_name="version",
            old_value=old.version,
            new_value=new.version,
            description=explain.message(difference),
            is_breaking=needed is Bump.MAJOR,
            hint=explain.way_out(difference, str(before.bumped(needed))),
        )
        return actual, [found], []
    if actual > needed:
        return actual, [], [f"{new.version} is a {actual} version, and these changes need {_needed(needed)}"]
    return actual, [], []


def _needed(bump: Bump) -> str:
    return "none" if bump is Bump.NONE else f"a {bump} one only"

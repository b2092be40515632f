"""The gate: what a branch changes in its contracts, and whether it may be merged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field as attribute, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

from databox_contracts.approvals import Approval
from databox_contracts.errors import DataboxError, Finding
from databox_contracts.evolution.affected import names_the_field
from databox_contracts.evolution.changes import ChangeType, Difference
from databox_contracts.evolution.judging import diff, judge
from databox_contracts.evolution.policies import Policy, find_policy, policy_of
from databox_contracts.evolution.report import FieldChange, MigrationReport
from databox_contracts.evolution.sign_off import needs_sign_off, sign_offs
from databox_contracts.evolution.table_formats import FormatVerdict, TableFormat
from databox_contracts.gate.acknowledging import Acknowledgements, names_of, unused, without_ambiguous
from databox_contracts.gate.conditions import unmet
from databox_contracts.gate.git import Repository
from databox_contracts.gate.pairing import Pair, lineage, pairs
from databox_contracts.gate.readers import Reach, Reader, direct
from databox_contracts.gate.revisions import Parsed, Revision, parse
from databox_contracts.lifecycle import sunset_date
from databox_contracts.model import Consumer, Contract

MOST_GRACE: Final = timedelta(days=90)
"""The longest time for which breaks may be let through."""


@dataclass(frozen=True)
class GatedChange:
    """One change of a contract, and what became of it at the gate.

    `acknowledged` is where its break was accepted. `missing` are the consumers whose consent is still needed, `claimed`
    those whose consent a line of the pull request only claims. `warns` is true in a grace period. `readers` are all
    that the break reaches, the nearest first, those who read the data itself with their consent.
    """

    path: str
    contract: str
    change: FieldChange
    acknowledged: str | None = None
    missing: tuple[str, ...] = ()
    claimed: tuple[str, ...] = ()
    warns: bool = False
    readers: tuple[Reader, ...] = ()

    @property
    def blocks(self) -> bool:
        """Whether this change alone keeps the branch out."""
        return bool(self.change.is_breaking) and not self.warns and (self.acknowledged is None or bool(self.missing))

    @property
    def dataset(self) -> str:
        """The dataset it is about, else the contract."""
        return self.change.dataset or self.contract

    def to_dict(self) -> dict[str, Any]:
        """The row that `gate --format json` prints."""
        return {
            "dataset": self.dataset,
            "kind": str(self.change.change_type),
            "field": self.change.field_name,
            "detail": self.change.description,
            "contract": self.contract,
            "file": self.path,
            "hint": self.change.hint,
            "consumers": list(self.change.consumers),
            "acknowledged": self.acknowledged,
            "missing_approvals": list(self.missing),
            "readers": [reader.to_dict() for reader in self.readers],
            "warning": self.warns,
        }


@dataclass(frozen=True)
class GateReport:
    """What a gate found. `conditions` are what deliberate breaks still lack, `remarks` what else is to be said."""

    base: str
    head: str
    changes: tuple[GatedChange, ...]
    conditions: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    problems: tuple[Finding, ...] = ()

    @property
    def breaking(self) -> list[GatedChange]:
        """Breaks that nobody accepted, or that lack somebody's consent, and those that a grace period lets through."""
        return [one for one in self.changes if one.change.is_breaking and (one.blocks or one.warns)]

    @property
    def acknowledged(self) -> list[GatedChange]:
        """Breaks that were accepted."""
        return [one for one in self.changes if one.change.is_breaking and not one.blocks and not one.warns]

    @property
    def additive(self) -> list[GatedChange]:
        """Everything that breaks nobody."""
        return [one for one in self.changes if not one.change.is_breaking]

    @property
    def clean(self) -> bool:
        """Whether the branch may be merged."""
        return not self.problems and not self.conditions and not any(one.blocks for one in self.changes)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "clean": self.clean,
            "base": self.base,
            "head": self.head,
            "breaking": [one.to_dict() for one in self.breaking],
            "additive": [one.to_dict() for one in self.additive],
            "acknowledged": [one.to_dict() for one in self.acknowledged],
            "conditions": list(self.conditions),
            "remarks": list(self.remarks),
            "problems": [str(problem) for problem in self.problems],
        }


@dataclass(frozen=True)
class Terms:
    """Under which terms a branch is judged.

    `policy` takes the place of each contract's own. `consumers` are those that declared themselves elsewhere, by the
    id of the contract; `reach` tells who is affected beyond those who read the data themselves. What `table_format`
    cannot make of a table that is there has to be accepted like a break. Until `warn_until` breaks are shown and let
    through; it is at most 90 days after `today`.
    """

    today: date
    policy: str | None = None
    acknowledgements: Acknowledgements = attribute(default_factory=lambda: Acknowledgements({}))
    approvals: tuple[Approval, ...] = ()
    consumers: Mapping[str, Sequence[Consumer]] | None = None
    warn_until: date | None = None
    table_format: TableFormat | None = None
    reach: Reach | None = None

    def __post_init__(self) -> None:
        if self.policy is not None:
            find_policy(self.policy)
        if self.warn_until is not None and self.warn_until > self.today + MOST_GRACE:
            raise DataboxError(
                f"breaks cannot be let through until {self.warn_until}",
                hint=f"Choose {self.today + MOST_GRACE} or earlier: a grace period has at most {MOST_GRACE.days} days.",
            )


def gate(folder: Path, base: str, head: str | None, terms: Terms) -> GateReport:
    """What the contracts below a folder became from the base revision to the head, or to the files on disk.

    The base is where the two went apart, so that what others merged meanwhile is not laid to this branch. Policy,
    enforcement and grace come from the base. Raises `GitError` where a revision cannot be had.
    """
    return judge_revisions(*revisions(folder, base, head), terms)


def revisions(folder: Path, base: str, head: str | None) -> tuple[Revision, Revision]:
    """The folder where base and head went apart, and at the head, or on disk where that is None; errors as `gate`."""
    repository = Repository.around(folder if folder.is_dir() else _existing(folder))
    inside = folder_in(repository, folder)
    tip = repository.commit(head or "HEAD")
    start = repository.merge_base(repository.commit(base), tip)
    before = Revision.at(repository, start, inside, start[:12])
    after = Revision.at(repository, tip, inside, tip[:12]) if head is not None else Revision.on_disk(repository, inside)
    return before, after


def judge_revisions(before: Revision, after: Revision, terms: Terms) -> GateReport:
    """As `gate`, for two states of a folder."""
    texts = before.texts
    old = parse(before, [path for path, text in texts.items() if after.texts.get(path) != text])
    new = parse(after, [path for path, text in after.texts.items() if texts.get(path) != text])
    earlier = _unchanged_versions(before, after, new)
    return report(
        pairs(old, new, earlier), terms, labels=(before.label, after.label), problems=(*old.problems, *new.problems)
    )


def report(
    found: Iterable[Pair], terms: Terms, *, labels: tuple[str, str], problems: Sequence[Finding] = ()
) -> GateReport:
    """The gate's report on pairs of contracts."""
    changes: list[GatedChange] = []
    conditions: list[str] = []
    all_pairs = list(found)
    known = [contract for pair in all_pairs for contract in (pair.before, pair.after) if contract is not None]
    accepted_names, remarks = without_ambiguous(terms.acknowledgements, known)
    unknown = unused(accepted_names, [name for contract in known for name in names_of(contract)])
    remarks += [f"{token!r} accepts nothing: no contract that changed has it" for token in unknown]
    terms = replace(terms, acknowledgements=accepted_names)
    for pair in all_pairs:
        judged = _judged(pair, terms)
        gated = [_gated(pair, change, terms) for change in judged.changes]
        changes += gated
        if pair.moved_from is not None:
            remarks.append(f"{pair.moved_from} moved to {pair.path}")
        remarks += [f"{pair.path}: {remark}" for remark in judged.remarks]
        for verdict in judged.table_format.verdicts if judged.table_format is not None else ():
            stops = not verdict.allowed and not _is_let_through(pair, verdict, terms)
            (conditions if stops else remarks).append(f"{pair.path}: {verdict.told_apart}")
        if pair.before is not None and pair.after is not None and not _in_grace(pair.before, terms):
            lacking = list(unmet(pair.before, pair.after, judged, terms.today))
            accepted = terms.acknowledgements.source_of(pair.after, None)
            (remarks if accepted is not None else conditions).extend(lacking)
    return GateReport(*labels, tuple(changes), tuple(conditions), tuple(remarks), tuple(problems))


def _judged(pair: Pair, terms: Terms) -> MigrationReport:
    before, after = pair.before, pair.after
    if before is not None and after is not None:
        judged = diff(before, after, terms.policy, history=pair.history, table_format=terms.table_format)
        if before.id != after.id and pair.successor_of is None:
            renamed = Difference(ChangeType.DATASET_RENAMED, None, old=before.id, new=after.id, subject="id")
            judged = replace(judged, changes=(*judge([renamed], _policy(before, terms)), *judged.changes))
        return judged
    contract = before or after
    assert contract is not None
    kind = ChangeType.DATASET_REMOVED if before is not None else ChangeType.DATASET_ADDED
    names = {"old": contract.id} if before is not None else {"new": contract.id}
    differences = [Difference(kind, dataset.name, **names) for dataset in contract.datasets]  # type: ignore[arg-type]
    changes = tuple(judge(differences, _policy(contract, terms)))
    if before is not None and _has_ended(before, terms):
        changes = tuple(replace(change, is_breaking=False, hint=None) for change in changes)
    return MigrationReport(contract.id, contract.version, contract.version, changes, title=contract.title)


def _is_let_through(pair: Pair, verdict: FormatVerdict, terms: Terms) -> bool:
    """Whether a change that the table format refuses was accepted, so that the table is written again."""
    named = [contract for contract in (pair.before, pair.after) if contract is not None]
    accepted = any(terms.acknowledgements.source_of(contract, verdict.dataset) is not None for contract in named)
    return accepted or _in_grace(named[0], terms)


def _policy(contract: Contract, terms: Terms) -> Policy:
    return policy_of(contract) if terms.policy is None else find_policy(terms.policy)


def _has_ended(contract: Contract, terms: Terms) -> bool:
    """Whether nobody has a right to the contract any more: its sunset has come and its last consumer is gone."""
    sunset = sunset_date(contract)
    return sunset is not None and sunset <= terms.today and not _consumers(contract, None, terms)


def _gated(pair: Pair, change: FieldChange, terms: Terms) -> GatedChange:
    contract = pair.after or pair.before
    assert contract is not None
    ruling = pair.before or contract
    if not change.is_breaking:
        return GatedChange(pair.path, contract.id, change)
    signed = sign_offs(change, ruling, contract.version, _consumers(ruling, pair.after, terms), terms.approvals)
    needed = [one for one in signed if needs_sign_off(ruling) or names_the_field(change, one.consumer)]
    readers = tuple(direct(signed, ruling.version, contract.version))
    return GatedChange(
        path=pair.path,
        contract=ruling.id,
        change=replace(change, consumers=tuple(one.name for one in readers)),
        readers=(*readers, *_beyond(readers, change, ruling, terms)),
        acknowledged=terms.acknowledgements.source_of(ruling, change.dataset)
        or terms.acknowledgements.source_of(contract, change.dataset),
        missing=tuple(one.consumer.name for one in needed if one.approval is None),
        claimed=terms.acknowledgements.claimed_for(ruling, change.dataset),
        warns=_in_grace(ruling, terms),
    )


def _beyond(readers: Sequence[Reader], change: FieldChange, contract: Contract, terms: Terms) -> list[Reader]:
    """Whom the change reaches through others."""
    if terms.reach is None or change.change_type is ChangeType.VERSION_NOT_BUMPED:
        return []
    known = {reader.name for reader in readers}
    of_field = change.dataset is not None and change.field_name != change.dataset
    found = terms.reach(contract.id, change.dataset, change.field_name if of_field else None)
    return [reader for reader in found if reader.name not in known]


def _consumers(before: Contract, after: Contract | None, terms: Terms) -> list[Consumer]:
    """Who reads the contract, as far as anybody has said, each once by name.

    What the base says of a consumer counts, so that a branch cannot strike out whoever is in its way.
    """
    declared: dict[str, Consumer] = {}
    for consumer in (
        *before.consumers,
        *(terms.consumers or {}).get(before.id, ()),
        *(after.consumers if after is not None else ()),
    ):
        declared.setdefault(consumer.name, consumer)
    return list(declared.values())


def _in_grace(contract: Contract, terms: Terms) -> bool:
    until = terms.warn_until
    return (until is not None and terms.today < until) or contract.enforcement.only_warns(terms.today)


def _unchanged_versions(before: Revision, after: Revision, new: Parsed) -> Mapping[str, Contract]:
    """The contracts that did not change and of whose lineage a changed or new file is."""
    wanted = {found[0] for path in new.contracts if (found := lineage(path)) is not None}
    paths = [
        path
        for path, text in before.texts.items()
        if after.texts.get(path) == text and (found := lineage(path)) is not None and found[0] in wanted
    ]
    return parse(before, paths).contracts


def _existing(folder: Path) -> Path:
    """The nearest folder around one that is not there: all of its contracts may have been removed."""
    return next(place for place in folder.absolute().parents if place.is_dir())


def folder_in(repository: Repository, folder: Path) -> str:
    """The folder's path from the top of the repository, empty for the top itself."""
    place = folder.absolute()
    root = repository.root.resolve()
    resolved = place.resolve()
    if resolved != root and root not in resolved.parents:
        raise DataboxError(f"{str(folder)!r} is outside the repository {str(root)!r}", hint="Name a folder in it.")
    found = resolved.relative_to(root).as_posix()
    return "" if found == "." else found

"""Whether consumers may read what they declare: pins, fields, purposes, teams and closed lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

from databox_contracts.approvals import Approval
from databox_contracts.contact_secrets import contacts_of, refuse_secrets
from databox_contracts.declarations import Declaration
from databox_contracts.errors import ConsumersError, Level, RegistryError, VersionRangeError
from databox_contracts.evolution.affected import dataset_names
from databox_contracts.model import Consumer, Contract, Dataset
from databox_contracts.registry.consumers import Problem, ProblemKind, Reading, Resolved, resolve
from databox_contracts.registry.places import Places, field_in
from databox_contracts.version_ranges import VersionRange


def require_consumers(
    contracts: Iterable[Contract], declarations: Iterable[Declaration] = (), approvals: Sequence[Approval] = ()
) -> Resolved:
    """The consumers of the contracts, every one of which may read what it declares; `problems` are warnings.

    For the load of a code location and for a registration. Raises `ConsumersError`, which lists every problem.
    """
    resolved = check_consumers(contracts, declarations, approvals)
    errors = [problem for problem in resolved.problems if problem.level is Level.ERROR]
    if errors:
        raise ConsumersError(errors)
    return resolved


def check_consumers(
    contracts: Iterable[Contract], declarations: Iterable[Declaration] = (), approvals: Sequence[Approval] = ()
) -> Resolved:
    """As `resolve`, with every problem that there is: those of the declarations, then those of each consumer.

    A consumer reads the newest version that its pin allows; where none is, what it may read is asked of the newest.
    `approvals` are stored consents, among them those to further purposes.
    """
    places = Places(contracts)
    resolved = resolve(places, declarations)
    found: dict[tuple[ProblemKind, str], Problem] = {}
    for reading in resolved.readings:
        for one in reading.each():
            for problem in _problems(one, places, approvals):
                # What two declarations have in common is told once.
                found.setdefault((problem.kind, problem.message), _at_its_place(problem, reading))
    return Resolved(resolved.readings, (*resolved.problems, *found.values()))


_SAID_BY: Final = {ProblemKind.VERSION: "versions", ProblemKind.PURPOSE: "purpose", ProblemKind.TEAM: "owner"}


def _at_its_place(problem: Problem, reading: Reading) -> Problem:
    """The problem at the declaration that says what it is about."""
    key = _SAID_BY.get(problem.kind)
    if key is None:
        return problem
    saying = (one.place for one in reading.declarations if getattr(one.consumer, key) is not None)
    return replace(problem, place=next(saying, problem.place))


@dataclass(frozen=True)
class _Case:
    """A consumer, and the version of the contract that it reads."""

    reading: Reading
    contract: Contract
    approvals: Sequence[Approval]

    @property
    def consumer(self) -> Consumer:
        return self.reading.consumer

    @property
    def subject(self) -> str:
        return f"{self.consumer.name}, a consumer of {self.contract.id} {self.contract.version},"

    def problem(
        self, kind: ProblemKind, message: str, hint: str, *, field: str | None = None, level: Level = Level.ERROR
    ) -> Problem:
        contract = self.contract
        place = self.reading.place
        return Problem(kind, contract.id, self.consumer.name, message, hint, place, contract.version, field, level)


def _problems(reading: Reading, places: Places, approvals: Sequence[Approval]) -> Iterator[Problem]:
    pin = None
    versions = places.versions(reading.contract)
    newest = _Case(reading, versions[0], approvals)
    if reading.consumer.versions is not None:
        try:
            pin = VersionRange.parse(reading.consumer.versions)
        except VersionRangeError as error:
            message = f"{newest.subject} pins {reading.consumer.versions!r}, which is no range of versions"
            yield newest.problem(ProblemKind.VERSION, message, error.hint or "write it as ^2.1")
    suiting = places.suiting(reading.contract, pin)
    if suiting is None:
        there = ", ".join(one.version for one in versions)
        message = f"{reading.consumer.name} pins {pin} of {reading.contract}, and there is only {there}"
        hint = f"pin a range with {versions[0].version} in it, or bring back a version that {pin} allows"
        yield newest.problem(ProblemKind.VERSION, message, hint)
    case = _Case(reading, suiting or versions[0], approvals)
    for check in _CHECKS:
        yield from check(case)


def _datasets(case: _Case) -> Iterator[Problem]:
    for name in case.consumer.datasets:
        if not any(name in dataset_names(case.contract, dataset.name) for dataset in case.contract.datasets):
            known = [dataset.name for dataset in case.contract.datasets]
            message = f"{case.subject} reads {name!r}, which is no dataset of it"
            yield case.problem(ProblemKind.DATASET, message, _nearest(name, known))


def _fields(case: _Case) -> Iterator[Problem]:
    contract = case.contract
    read = [
        dataset
        for dataset in contract.datasets
        if not case.consumer.datasets
        or any(name in dataset_names(contract, dataset.name) for name in case.consumer.datasets)
    ]
    for name in case.consumer.fields:
        if read and not any(_promises(contract, dataset, name) for dataset in read):
            known = [field.name for dataset in read for field in dataset.fields]
            of = " or ".join(one.name for one in read)
            message = f"{case.subject} reads the field {name!r}, which is not promised by {of}"
            hint = f"{_nearest(name, known)}; otherwise ask {contract.owning_team or 'its owner'} to promise it"
            yield case.problem(ProblemKind.FIELD, message, hint, field=name)


def _promises(contract: Contract, dataset: Dataset, name: str) -> bool:
    names = dataset_names(contract, dataset.name)
    if name in names or field_in(dataset, name) is not None:
        return True
    return any(name.startswith(f"{one}.") and field_in(dataset, name[len(one) + 1 :]) is not None for one in names)


def _purpose(case: _Case) -> Iterator[Problem]:
    allowed = case.contract.governance.purposes
    consumer = case.consumer
    if not allowed or consumer.purpose in allowed:
        return
    if consumer.purpose is None or not consumer.purpose.strip():
        message = f"{case.subject} does not say what it uses the data for; allowed is {_or(allowed)}"
        yield case.problem(ProblemKind.PURPOSE, message, f"give it `purpose: {allowed[0]}`", level=Level.WARNING)
        return
    what = f"{case.subject} uses the data for {consumer.purpose!r}, and the contract allows {_or(allowed)}"
    if not (consumer.justification or "").strip():
        hint = "use it for that, or give the further purpose a `justification` and have it approved"
        yield case.problem(ProblemKind.PURPOSE, what, hint)
        return
    contract = case.contract
    given = (one.allows(contract.id, consumer.name, consumer.purpose, contract.version) for one in case.approvals)
    if not any(given):
        owner = contract.owning_team or "the owner of the contract"
        message = f"{what}; the further purpose is justified, and nobody has approved it"
        hint = (
            f"ask {owner} for the approval {{contract: {contract.id}, consumer: {consumer.name}, "
            f"purpose: {consumer.purpose}}}"
        )
        yield case.problem(ProblemKind.PURPOSE, message, hint)


def _team(case: _Case) -> Iterator[Problem]:
    readers = case.contract.governance.read
    team = case.consumer.owner or case.consumer.name
    if readers and team not in readers:
        said = f"is of the team {team!r}" if case.consumer.owner else "names no owner"
        message = f"{case.subject} {said}, and only {_and(readers)} may read it"
        hint = f"give it an `owner` that may read, or ask for {team!r} to be added to the contract's readers"
        yield case.problem(ProblemKind.TEAM, message, hint)


def _closed(case: _Case) -> Iterator[Problem]:
    names = [one.name for one in case.contract.consumers]
    if case.contract.governance.closed and case.consumer.name not in names:
        message = f"{case.subject} is not on its list of consumers, which is closed: {', '.join(names) or 'nobody'}"
        hint = f"ask {case.contract.owning_team or 'its owner'} to declare it in the contract"
        yield case.problem(ProblemKind.CLOSED, message, hint)


def _secrets(case: _Case) -> Iterator[Problem]:
    try:
        refuse_secrets(case.consumer.name, contacts_of(case.consumer))
    except RegistryError as error:
        yield case.problem(ProblemKind.SECRET, error.message, error.hint or "take it out")


_CHECKS: Final[tuple[Callable[[_Case], Iterator[Problem]], ...]] = (
    _datasets,
    _fields,
    _purpose,
    _team,
    _closed,
    _secrets,
)


def _nearest(name: str, known: Sequence[str]) -> str:
    found = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean {found[0]!r}?" if found else f"there is {', '.join(known[:10]) or 'none'}"


def _and(names: Iterable[str]) -> str:
    return " and ".join(names)


def _or(names: Iterable[str]) -> str:
    return " or ".join(repr(name) for name in names)

"""The sensor that tells consumers of broken promises and of runs that failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import dagster as dg

from databox_contracts.dagster.code_location import CodeLocation, look_around
from databox_contracts.dagster.registry_resources import ContractRegistryResource
from databox_contracts.dagster.run_outcomes import ENDED, Knowledge, RunOutcome
from databox_contracts.dagster.schema_diff_sensor import position_name

if TYPE_CHECKING:
    from databox_contracts.notifications import Notification
    from databox_contracts.registry.store import Registry

FAILURE_INTERVAL: Final = 30
"""Seconds between ticks: a run that failed is told of within a minute, and looking is one query."""

USUAL_RUNS: Final = 100
_OVERLAP: Final = timedelta(minutes=1)
"""So far back runs are looked for again: hosts' clocks differ, and databases show what is written in any order."""

_INSTANT: Final = timedelta(microseconds=1)
_BACK: Final = timedelta(days=1)

_VERSION: Final = 1
_NOWHERE: Final = CodeLocation(frozenset(), {}, {}, {}, "")


def build_contract_failure_sensor(
    *,
    name: str = "contract_failures",
    registry_resource_key: str = "registry",
    most_runs: int = USUAL_RUNS,
    minimum_interval_seconds: int = FAILURE_INTERVAL,
    default_status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.RUNNING,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> dg.SensorDefinition:
    """A sensor that tells consumers of violated rules of contracts, and of runs that did not make their tables.

    It reads the runs of the instance that succeeded, failed or were canceled, in the order in which they ended, at most
    `most_runs` a tick. Of each failed check of a contract those are told who read what a violated rule is about, in a
    version that was checked; where the asset let the violation through, as a warning. They are told, too, when the rule
    holds again, which closes tickets. Of a run that failed or was
    canceled those are told who read a contracted table of this code location which it was to make and did not, unless
    its rules were violated, of which they are told anyway, or Dagster retries the run. The messages enter the outbox,
    which `build_delivery_sensor` sends. Contracts and consumers are the registry's: nobody is told of a contract that
    is not there, and the tick says so.

    Where reading stands is kept in the registry, in the transaction that enqueues the messages: a tick that is killed
    or fails is repeated, no run is left out and no message enqueued twice. It begins with the runs that end after its
    first tick. Hosts' clocks have to agree to within a minute. The sensor is RUNNING from the start, since failures
    before somebody starts it would stay untold, and it writes to the registry alone. Two Dagster instances on one
    registry need sensors of different names.
    """

    @dg.sensor(
        name=name,
        description="Tells the consumers of contracts of violated rules, and of runs that did not make their tables.",
        minimum_interval_seconds=minimum_interval_seconds,
        default_status=default_status,
        required_resource_keys={registry_resource_key},
    )
    def tell(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        found = ContractRegistryResource.among(context.resources, registry_resource_key)
        with closing(found.open_database()) as registry:
            around = look_around(context.repository_def) if context.repository_def is not None else _NOWHERE
            reading = Reading(context.instance, registry, position_name(context, name), around, most_runs, clock)
            return dg.SkipReason(reading.go_on(context))

    return tell


@dataclass(frozen=True, slots=True)
class Place:
    """How far the runs were read: all that were updated until then, and which of the last ones these were, by id.

    `failing` are the rules that do not hold, with the time since when, as `RunOutcome` names them.
    """

    until: datetime
    seen: Mapping[str, datetime]
    failing: Mapping[str, datetime]

    def to_data(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "version": _VERSION,
            "until": self.until.isoformat(),
            "seen": {run: at.isoformat() for run, at in self.seen.items()},
            "failing": {rule: at.isoformat() for rule, at in self.failing.items()},
        }

    @classmethod
    def of_data(cls, data: Any) -> Place | None:
        """What `to_data` gave, None where there is nothing of the kind."""
        try:
            seen, failing = (
                {str(one): datetime.fromisoformat(at) for one, at in data[name].items()} for name in ("seen", "failing")
            )
            return cls(datetime.fromisoformat(data["until"]), seen, failing) if data["version"] == _VERSION else None
        except (TypeError, KeyError, ValueError, AttributeError):
            return None

    def after(self, records: Sequence[dg.RunRecord], failing: Mapping[str, datetime]) -> Place:
        """Once these were read as well, in the order of their times, and what fails then."""
        times = {record.dagster_run.run_id: record.update_timestamp for record in records}
        until = max((self.until, *times.values()))
        seen = {run: at for run, at in {**self.seen, **times}.items() if at >= until - _OVERLAP}
        return Place(until, seen, dict(failing))


@dataclass(frozen=True, slots=True)
class Reading:
    """One tick: the next runs, in parts that are each done as a whole or not at all."""

    instance: dg.DagsterInstance
    registry: Registry
    position: str
    around: CodeLocation
    most_runs: int
    clock: Callable[[], datetime]

    def go_on(self, context: dg.SensorEvaluationContext) -> str:
        """Read on, and say what was found."""
        kept = self.registry.position(self.position)
        place = Place.of_data(kept)
        if place is None and kept is None:
            began = Place(self.clock(), {}, {})
            ended = [one for one in self._ended(began, None) if one.update_timestamp <= began.until]
            began = began.after(ended, {})
            self.registry.advance(self.position, began.to_data(), replacing=None)
            return "runs that end from now on are told of"
        if place is None:
            context.log.warning("where reading stands cannot be understood; the runs of the last day are read again")
            place = Place(self.clock() - _BACK, {}, {})
        records = self._next(place)
        if not records:
            return "no run ended"
        knowledge = Knowledge(self.registry)
        read: list[dg.RunRecord] = []
        told: list[Notification] = []
        failing = dict(place.failing)
        try:
            for record in records:
                outcome = RunOutcome(record, self.instance, dict(failing))
                told += outcome.notifications(knowledge, self.around)
                read.append(record)
                failing = outcome.failing
        finally:
            # What was understood before an error need not be read again.
            moved = not read or self.registry.advance(
                self.position, place.after(read, failing).to_data(), notifications=told, replacing=kept
            )
        for contract in knowledge.unknown:
            context.log.warning(
                f"the registry has no contract {contract}, so nobody is told of what happened to it; publish it"
            )
        if not moved:
            return "another tick of this sensor was quicker; the next one looks again"
        runs = f"{len(read)} run{'' if len(read) == 1 else 's'} ended"
        return f"{runs}, {len(told)} message{'' if len(told) == 1 else 's'} for consumers"

    def _next(self, place: Place) -> list[dg.RunRecord]:
        # Those that were seen take up no room of those that were not.
        records = self._ended(place, self.most_runs + len(place.seen))
        return [record for record in records if record.dagster_run.run_id not in place.seen][: self.most_runs]

    def _ended(self, place: Place, limit: int | None) -> Sequence[dg.RunRecord]:
        since = place.until - _OVERLAP - _INSTANT
        return self.instance.get_run_records(
            filters=dg.RunsFilter(statuses=list(ENDED), updated_after=since),
            limit=limit,
            order_by="update_timestamp",
            ascending=True,
        )

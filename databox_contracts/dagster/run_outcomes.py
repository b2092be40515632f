"""What a finished run means for those who read the tables it was to make, as messages to them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import dagster as dg

from databox_contracts.dagster.code_location import CodeLocation, ContractedAsset
from databox_contracts.errors import UnknownContractError
from databox_contracts.model import Consumer, Contract
from databox_contracts.plan import Check, build_plan
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import Dimension, Severity

if TYPE_CHECKING:
    from databox_contracts.notifications import Notification
    from databox_contracts.registry.api import RegistryApi

ENDED: Final = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
_STATUSES: Final = {dg.DagsterRunStatus.FAILURE: "failed", dg.DagsterRunStatus.CANCELED: "canceled"}
_EVENTS: Final = frozenset(
    {
        dg.DagsterEventType.ASSET_CHECK_EVALUATION,
        dg.DagsterEventType.ASSET_MATERIALIZATION,
        dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
        dg.DagsterEventType.STEP_FAILURE,
    }
)
_PAGE: Final = 500
_WILL_RETRY: Final = "dagster/will_retry"
_PARTITION: Final = "dagster/partition"


@dataclass
class Knowledge:
    """Contracts and their consumers as the registry has them, each looked up once."""

    registry: RegistryApi
    unknown: list[str] = field(default_factory=list)
    _contracts: dict[tuple[str, str], Contract] = field(default_factory=dict)
    _consumers: dict[str, list[Consumer]] = field(default_factory=dict)

    def contract(self, contract_id: str, version: str) -> Contract:
        """That version; else the newest there is under that version's name; else one that promises nothing."""
        key = (contract_id, version)
        if key not in self._contracts:
            self._contracts[key] = self._found(contract_id, version)
        return self._contracts[key]

    def _found(self, contract_id: str, version: str) -> Contract:
        from databox_contracts.registry.texts import ordinal

        try:
            versions = self.registry.versions(contract_id)
        except UnknownContractError:
            self.unknown.append(contract_id)
            return Contract(id=contract_id, version=version)
        same = [one for one in versions if ordinal(one.version) == ordinal(version)]
        if same:
            return same[0].contract()
        return versions[-1].contract().model_copy(update={"version": version})

    def consumers(self, contract: Contract) -> list[Consumer]:
        """All that are registered with the contract, or that it declares."""
        from databox_contracts.declarations import Declaration
        from databox_contracts.registry.consumers import resolve

        if contract.id not in self._consumers:
            declared = [
                Declaration(contract.id, one.consumer, "the registry", str(one.origin))
                for one in self.registry.consumers(contract.id)
            ]
            self._consumers[contract.id] = resolve([contract], declared).of(contract.id)
        return self._consumers[contract.id]


@dataclass
class RunOutcome:
    """A run that ended, and its events as far as they are about tables.

    `failing` are the rules that did not hold before it, with the time since when; afterwards those that do not now.
    """

    record: dg.RunRecord
    instance: dg.DagsterInstance
    failing: dict[str, datetime] = field(default_factory=dict)

    def notifications(self, knowledge: Knowledge, around: CodeLocation) -> list[Notification]:
        """What the consumers are told: of each violated rule, or one that holds again, and of each table not made.

        A run that Dagster is about to retry is told of by its last attempt; a violated rule is told of at once.
        """
        found: list[Notification] = []
        for event in self._events[dg.DagsterEventType.ASSET_CHECK_EVALUATION]:
            evaluation = event.dagster_event.asset_check_evaluation_data  # type: ignore[union-attr]
            if not evaluation.passed or self.failing:
                found += self._of_check(evaluation, _moment(event.timestamp), knowledge)
        if self._status is not None and self.record.dagster_run.tags.get(_WILL_RETRY, "").lower() != "true":
            for asset, partition in self._unmade(around):
                found += self._of_run(asset, partition, knowledge)
        return found

    @cached_property
    def _events(self) -> Mapping[dg.DagsterEventType, list[dg.EventLogEntry]]:
        found: dict[dg.DagsterEventType, list[dg.EventLogEntry]] = {one: [] for one in _EVENTS}
        cursor: str | None = None
        while True:
            page = self.instance.get_records_for_run(
                self.record.dagster_run.run_id, cursor=cursor, of_type=set(_EVENTS), limit=_PAGE
            )
            for record in page.records:
                event = record.event_log_entry.dagster_event
                if event is not None:
                    found[event.event_type].append(record.event_log_entry)
            cursor = page.cursor
            if not page.has_more:
                return found

    @property
    def _status(self) -> str | None:
        return _STATUSES.get(self.record.dagster_run.status)

    # --- violated rules ---

    def _of_check(
        self, evaluation: dg.AssetCheckEvaluation, occurred_at: datetime, knowledge: Knowledge
    ) -> list[Notification]:
        from databox_contracts.notify.building_runs import from_verdict

        rows = _table(evaluation.metadata, "rules")
        contract_id, version = _text(evaluation.metadata, "contract_id"), _text(evaluation.metadata, "contract_version")
        if not contract_id or not rows:
            # Not a check of a contract's rules.
            return []
        contract = knowledge.contract(contract_id, version)
        lenient = evaluation.severity is dg.AssetCheckSeverity.WARN
        places = dict(_places(contract))
        partition = evaluation.partition or self.record.dagster_run.tags.get(_PARTITION)
        found: list[Notification] = []
        place = [contract_id, evaluation.asset_key.to_user_string(), partition]
        for row in rows:
            dataset, check = places.get(str(row["rule"]), (str(row["rule"]).split(".")[0], None))
            for let_through, since in self._turned(place, row, occurred_at, lenient=lenient):
                result = _result(row, check, lenient=let_through)
                found += from_verdict(
                    Verdict(contract_id, version, dataset, _count(evaluation.metadata, "rows_in"), (result,)),
                    knowledge.consumers(contract),
                    run_id=self.record.dagster_run.run_id,
                    occurred_at=occurred_at,
                    asset=evaluation.asset_key.to_user_string(),
                    partition=partition,
                    published=_truth(evaluation.metadata, "published"),
                    since={result.id: since},
                    resolved=[result.id],
                    contract=contract,
                    owner=contract.owning_team,
                )
        return found

    def _turned(
        self, place: Sequence[str | None], row: Mapping[str, Any], at: datetime, *, lenient: bool
    ) -> Iterator[tuple[bool, datetime]]:
        """Whether the rule is told of, and that as let through or not: since when it fails, or failed until now."""
        # Whoever was told of a warning only, or of an error only, is told the same way that it is over.
        names = {let_through: json.dumps([*place, row["rule"], let_through]) for let_through in (False, True)}
        if row.get("status") in (Status.FAILED, Status.NOT_EVALUATED):
            yield lenient, self.failing.setdefault(names[lenient], at)
        elif row.get("status") == Status.PASSED:
            for let_through, name in names.items():
                if name in self.failing:
                    yield let_through, self.failing.pop(name)

    # --- tables that were not made ---

    def _unmade(self, around: CodeLocation) -> Iterator[tuple[ContractedAsset, str | None]]:
        """The contracted assets that the run was to make and did not, but for those whose rules were violated."""
        made = {
            (one.asset_key, one.partition)
            for event in self._events[dg.DagsterEventType.ASSET_MATERIALIZATION]
            if (one := event.dagster_event.step_materialization_data.materialization)  # type: ignore[union-attr]
        }
        violated = {
            (one.asset_key, one.partition)
            for event in self._events[dg.DagsterEventType.ASSET_CHECK_EVALUATION]
            if not (one := event.dagster_event.asset_check_evaluation_data).passed  # type: ignore[union-attr]
            and one.severity is dg.AssetCheckSeverity.ERROR
            and _table(one.metadata, "rules")
        }
        planned = {
            (one.asset_key, one.partition or self.record.dagster_run.tags.get(_PARTITION))
            for event in self._events[dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED]
            if (one := event.dagster_event.asset_materialization_planned_data)  # type: ignore[union-attr]
        }
        # Dagster plans them in no particular order.
        for key, partition in sorted(planned, key=lambda one: (one[0].to_user_string(), one[1] or "")):
            asset = around.contracted.get(key)
            if asset is not None and not {(key, partition), (key, None)} & (made | violated):
                yield asset, partition

    def _of_run(self, asset: ContractedAsset, partition: str | None, knowledge: Knowledge) -> list[Notification]:
        from databox_contracts.notify.building_runs import from_run_failure

        contract = knowledge.contract(asset.contract, asset.version)
        run = self.record.dagster_run
        steps = [event.step_key for event in self._events[dg.DagsterEventType.STEP_FAILURE] if event.step_key]
        return from_run_failure(
            run.run_id,
            contract,
            knowledge.consumers(contract),
            occurred_at=_moment(self.record.end_time) if self.record.end_time else self.record.update_timestamp,
            asset=asset.key.to_user_string(),
            partition=partition,
            # The job of assets that were selected by hand has no name of its own.
            job=run.job_name if not run.job_name.startswith("__") else None,
            status=self._status or "failed",
            steps=list(dict.fromkeys(steps)),
            dataset=asset.dataset or None,
            owner=contract.owning_team,
        )


def _places(contract: Contract) -> Iterator[tuple[str, tuple[str, Check | None]]]:
    for dataset in contract.datasets:
        yield from ((check.id, (dataset.name, check)) for check in build_plan(contract, dataset).checks)


def _result(row: Mapping[str, Any], check: Check | None, *, lenient: bool) -> CheckResult:
    """A rule's result as the run recorded it; where the asset let the violation through, it is a warning."""
    severity = _member(Severity, row.get("severity"), Severity.ERROR)
    failed = row.get("failed_rows")
    return CheckResult(
        id=str(row["rule"]),
        rule=check.rule.kind if check is not None else "",
        field=row.get("field"),
        severity=Severity.WARNING if lenient and severity is Severity.ERROR else severity,
        dimension=check.dimension if check is not None else Dimension.CONFORMITY,
        status=Status(row["status"]),
        failed_count=failed if isinstance(failed, int) else None,
        message=str(row.get("message") or ""),
    )


def _member(kind: type[Severity], value: Any, otherwise: Severity) -> Severity:
    return next((one for one in kind if one == value), otherwise)


def _table(metadata: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    records = getattr(metadata.get(name), "records", None) or ()
    return [record.data for record in records if "rule" in record.data]


def _text(metadata: Mapping[str, Any], name: str) -> str:
    value = getattr(metadata.get(name), "value", None)
    return value if isinstance(value, str) else ""


def _count(metadata: Mapping[str, Any], name: str) -> int:
    value = getattr(metadata.get(name), "value", None)
    return value if isinstance(value, int) else 0


def _truth(metadata: Mapping[str, Any], name: str) -> bool | None:
    value = getattr(metadata.get(name), "value", None)
    return value if isinstance(value, bool) else None


def _moment(timestamp: float) -> datetime:
    return datetime.fromtimestamp(timestamp, UTC)

"""A verdict as Dagster shows it: check results, the metadata of a materialization, the failure of a run."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import dagster as dg

from databox_contracts.check_reports import MOST_NAMED, check_report, contract_facts, rule_records, sentence
from databox_contracts.dagster.lineage_metadata import lineage_metadata
from databox_contracts.dagster.progress import Scans
from databox_contracts.dagster.result_tables import discarded_table, partitions_table, rules_table
from databox_contracts.dagster.specs import CheckGroup
from databox_contracts.dagster.wording import contract_text
from databox_contracts.model import Contract, Dataset
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.schema_modes import ModesGiven

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from databox_contracts.spark import Publication
    from databox_contracts.spark.column_sources import Sources
    from databox_contracts.spark.modes import Counts
    from databox_contracts.spark.per_partition import PartitionOutcome
    from databox_contracts.spark.progress import OnProgress


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A verdict on a table with what became of the table.

    `publication` is None where a published table was only read; `readable_version` is then the one that was read, None
    for a table that is not ours, and `would_discard` says what the schema modes in force would have left out of it, if
    anything. `lenient` says that violations do not stop anything: they were let through or held. `outcomes` are those
    of each partition, where several were looked at, `scans` how often rows or columns were read to judge them;
    `sources` are the columns that were taken from others as they are.
    """

    contract: Contract
    verdict: Verdict
    seconds: float
    publication: Publication | None = None
    readable_version: str | None = None
    lenient: bool = False
    would_discard: Counts | None = None
    outcomes: tuple[PartitionOutcome, ...] = ()
    scans: int | None = None
    sources: Sources = field(default_factory=dict)

    @property
    def left_out(self) -> str:
        """Why nothing was published though nothing is violated; empty where something was, or something is."""
        publication = self.publication
        if publication is None or publication.published or not self.verdict.passed:
            return ""
        return f"{publication.rows_discarded} rows were discarded: the table is new, and its tables mode allows none"

    def results(self, key: dg.AssetKey, groups: Iterable[CheckGroup]) -> list[dg.AssetCheckResult]:
        """One per group, which passes when each of its rules was evaluated and holds, or is not ours to run."""
        by_id = {result.id: result for result in self.verdict.results}
        return [self._result(key, group.name, [by_id[check.id] for check in group.checks]) for group in groups]

    def stops(self, groups: Iterable[CheckGroup]) -> bool:
        """Whether a rule of these groups is violated, or could not be evaluated, and nothing lets it through."""
        ids = {check.id for group in groups for check in group.checks}
        return not self.lenient and any(result.stops for result in self.verdict.results if result.id in ids)

    def metadata(self) -> dict[str, Any]:
        """Contract, counts of rules and rows, and which version readers see."""
        return {
            **contract_facts(self.contract, self.verdict),
            **self._fate(),
            "duration_seconds": round(self.seconds, 3),
            **({"scans": self.scans} if self.scans is not None else {}),
        }

    def materialization(
        self, key: dg.AssetKey, dataset: Dataset, deps: Iterable[dg.AssetDep]
    ) -> dg.MaterializeResult[Any]:
        """The materialization of a published table; it says so where violations were let through or rows held.

        `deps` are what the asset reads.
        """
        publication = self.publication
        assert publication is not None
        return dg.MaterializeResult(
            asset_key=key,
            metadata={
                "dagster/row_count": publication.rows_published,
                "path": dg.MetadataValue.path(str(publication.place)),
                "contract_holds": self.verdict.passed,
                **self.metadata(),
                **lineage_metadata(dataset, deps, self.sources),
            },
        )

    def failure(self, key: dg.AssetKey) -> dg.Failure:
        """The failure of the step, in plain words. It is not retried: the same data breaks the same promise."""
        return dg.Failure(
            description=self._what_happened(key),
            metadata={
                **self.metadata(),
                "rules": rules_table(rule_records(self.verdict.results, self.verdict.row_count)),
                **self._by_partition(self.verdict.results),
            },
            allow_retries=False,
        )

    def _result(self, key: dg.AssetKey, name: str, results: Sequence[CheckResult]) -> dg.AssetCheckResult:
        report = check_report(name, results, rows=self.verdict.row_count, lenient=self.lenient)
        broken = any(result.status in (Status.FAILED, Status.NOT_EVALUATED) for result in results)
        return dg.AssetCheckResult(
            asset_key=key,
            check_name=name,
            passed=report.passed,
            severity=dg.AssetCheckSeverity.ERROR if report.stops or report.passed else dg.AssetCheckSeverity.WARN,
            description=report.description if broken else report.description + self._would_discard(),
            metadata={
                **self.metadata(),
                **report.counts,
                "rules": rules_table(report.rules),
                **self._by_partition(results),
            },
        )

    def _fate(self) -> dict[str, Any]:
        publication = self.publication
        if publication is None:
            looked_at = {"rows_in": self.verdict.row_count, **_readable(self.readable_version)}
            counts = self.would_discard
            if counts is None:
                return looked_at
            return {
                **looked_at,
                "rows_in": counts.rows_in,
                "rows_would_be_discarded": counts.rows_discarded,
                "elements_would_be_discarded": counts.elements_discarded,
                "values_would_be_discarded": counts.values_discarded,
                "would_be_discarded": discarded_table(counts.discarded),
            }
        facts: dict[str, Any] = {
            "published": publication.published,
            "on_violation": publication.on_violation,
            "rows_in": publication.rows_in,
            "rows_published": publication.rows_published,
            "rows_quarantined": publication.rows_quarantined,
            "rows_rejected": publication.rows_rejected,
            "rows_discarded": publication.rows_discarded,
            **_discarded(publication),
            **_readable(publication.version),
        }
        if publication.quarantine is not None:
            facts["quarantine"] = dg.MetadataValue.path(str(publication.quarantine))
        return facts

    def _by_partition(self, results: Sequence[CheckResult]) -> dict[str, Any]:
        return {"partitions": partitions_table(self.outcomes, {one.id for one in results})} if self.outcomes else {}

    def _would_discard(self) -> str:
        if self.would_discard is None:
            return ""
        named = list(dict.fromkeys(one.field for one in self.would_discard.discarded))
        more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
        return f"; the schema modes would discard something of {', '.join(named[:MOST_NAMED])}{more}"

    def _what_happened(self, key: dg.AssetKey) -> str:
        stopping = [result for result in self.verdict.results if result.stops]
        broken = f"{len(stopping)} of {len(self.verdict.results)} rules of contract {contract_text(self.contract)}"
        if self.publication is None:
            first = f"The published table {key.to_user_string()} breaks {broken}:"
            last = "It is still readable."
        else:
            version, rows = self.publication.version, self.publication.rows_in
            first = f"{key.to_user_string()} was not published, its {_rows_break(rows)} {broken}:"
            last = f"Version {version} stays readable." if version else "No version has been published yet."
        named = [f"- {sentence(result)}" for result in stopping[:MOST_NAMED]]
        more = [f"- and {len(stopping) - MOST_NAMED} more"] if len(stopping) > MOST_NAMED else []
        return "\n".join([first, *named, *more, last])


def evaluate_table(
    df: DataFrame,
    contract: Contract,
    dataset: str,
    *,
    samples: int,
    lenient: bool,
    readable_version: str | None = None,
    untyped: bool = False,
    references: Mapping[str, DataFrame] | None = None,
    progress: OnProgress | None = None,
    schema_modes: ModesGiven = None,
    ours: bool = False,
    partition_by: Sequence[str] = (),
    partitions: Sequence[Mapping[str, Any]] | None = None,
) -> Evaluation:
    """Verify a table that nothing is to be done with. Errors of Spark pass through.

    `ours` is a table that was published under this contract, and by this project. With `partition_by` keys and row
    counts are those of each partition; `partitions` are the ones to look at, None for all.
    """
    from databox_contracts.spark.per_partition import PartitionsOf
    from databox_contracts.spark.verification import verify_published

    started = time.monotonic()
    scans = Scans(progress)
    of = PartitionsOf(df, partition_by, partitions, dataset) if partition_by else None
    verdict, would_discard = verify_published(
        of.of(df) if of is not None else df,
        contract,
        dataset,
        samples=samples,
        untyped=untyped,
        references=references,
        progress=scans,
        schema_modes=schema_modes,
        ours=ours,
        judge=of.judge if of is not None else None,
    )
    return Evaluation(
        contract,
        verdict,
        time.monotonic() - started,
        readable_version=readable_version,
        lenient=lenient,
        would_discard=would_discard,
        outcomes=of.outcomes if of is not None else (),
        scans=scans.count,
    )


def only_warns(contract: Contract, on_violation: str) -> bool:
    """Whether a violation found in a table already published is a warning: by request, or in the grace period."""
    return on_violation == "warn" or contract.enforcement.only_warns(datetime.now(UTC).date())


def _discarded(publication: Publication) -> dict[str, Any]:
    """What schema modes left out of rows that stay, and all of it by field; nothing where there is nothing."""
    if not publication.discarded:
        return {}
    return {
        "elements_discarded": publication.elements_discarded,
        "values_discarded": publication.values_discarded,
        "discarded": discarded_table(publication.discarded),
    }


def _readable(version: str | None) -> dict[str, Any]:
    return {"readable_version": version} if version is not None else {}


def _rows_break(count: int) -> str:
    return "1 row breaks" if count == 1 else f"{count} rows break"

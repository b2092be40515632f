"""What became of one micro-batch, in memory and as the JSON that stays beside the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from databox_contracts.model import Mode
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import Dimension, Freshness, Severity
from databox_contracts.spark.modes import Discarded


@dataclass(frozen=True, slots=True)
class BatchReport:
    """The metrics of one micro-batch: `rows_in` is the sum of published, quarantined, discarded and rejected rows.

    `rows_late` are rows whose time is before the watermark; they are judged like all others and counted in the other
    numbers too. `rows_discarded` are those that a schema mode left out before the rules were judged;
    `elements_discarded` and `values_discarded` are of rows that stayed, and `discarded` is all of it by field.
    `version` is the table's version that has the rows, None where a function took them. `replayed` says that the batch
    was complete before a restart and nothing was done again. `rows_rejected` are all rows of a batch that stopped the
    stream.
    """

    batch: int
    verdict: Verdict
    on_violation: str
    rows_in: int
    rows_published: int = 0
    rows_quarantined: int = 0
    rows_discarded: int = 0
    rows_rejected: int = 0
    rows_late: int = 0
    version: str | None = None
    quarantine: Path | None = None
    replayed: bool = False
    elements_discarded: int = 0
    values_discarded: int = 0
    discarded: tuple[Discarded, ...] = ()

    @property
    def violations(self) -> dict[str, int | None]:
        """For each violated rule, in declaration order, how many rows break it; None where it is not about rows."""
        return {result.id: result.failed_count for result in self.verdict.violations}

    @property
    def lags(self) -> dict[str, float | None]:
        """For each freshness promise how many seconds the batch's newest row is behind the clock.

        None for a batch without a time, and where the field's values must not be shown.
        """
        return {one.id: one.observed for one in self.verdict.results if one.rule == Freshness.kind}

    @property
    def lag_seconds(self) -> float | None:
        """The greatest of the lags, None where none is known."""
        return max((lag for lag in self.lags.values() if lag is not None), default=None)

    def to_dict(self) -> dict[str, Any]:
        """All facts and the derived metrics, for JSON."""
        return {
            "batch": self.batch,
            "on_violation": self.on_violation,
            "rows_in": self.rows_in,
            "rows_published": self.rows_published,
            "rows_quarantined": self.rows_quarantined,
            "rows_discarded": self.rows_discarded,
            "rows_rejected": self.rows_rejected,
            "rows_late": self.rows_late,
            "violations": self.violations,
            "lags": self.lags,
            "version": self.version,
            "quarantine": str(self.quarantine) if self.quarantine is not None else None,
            "replayed": self.replayed,
            "elements_discarded": self.elements_discarded,
            "values_discarded": self.values_discarded,
            "discarded": [asdict(one) for one in self.discarded],
            "settings": dict(self.verdict.settings),
            "verdict": self.verdict.to_dict(),
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> BatchReport:
        """The report that `to_dict` made."""
        verdict = facts["verdict"]
        return cls(
            batch=facts["batch"],
            verdict=Verdict(
                contract=verdict["contract"],
                version=verdict["version"],
                dataset=verdict["dataset"],
                row_count=verdict["row_count"],
                results=tuple(_result(one) for one in verdict["results"]),
                settings=facts["settings"],
            ),
            on_violation=facts["on_violation"],
            rows_in=facts["rows_in"],
            rows_published=facts["rows_published"],
            rows_quarantined=facts["rows_quarantined"],
            rows_discarded=facts["rows_discarded"],
            rows_rejected=facts["rows_rejected"],
            rows_late=facts["rows_late"],
            version=facts["version"],
            quarantine=Path(facts["quarantine"]) if facts["quarantine"] is not None else None,
            replayed=facts["replayed"],
            # Reports of streams that began before there were schema modes have none of these.
            elements_discarded=facts.get("elements_discarded", 0),
            values_discarded=facts.get("values_discarded", 0),
            discarded=tuple(Discarded(**{**one, "mode": Mode(one["mode"])}) for one in facts.get("discarded", ())),
        )


def _result(facts: Mapping[str, Any]) -> CheckResult:
    enums = {
        "severity": Severity(facts["severity"]),
        "dimension": Dimension(facts["dimension"]),
        "status": Status(facts["status"]),
        "samples": tuple(facts["samples"]),
    }
    return CheckResult(**{**facts, **enums})

"""What a sampling found: data that left its contract or its own past, since when, how often and where."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from databox_contracts.errors import DriftError, SchemaDriftError
from databox_contracts.results import Verdict
from databox_contracts.rules import Severity

SCHEMA_KINDS: Final = ("schema_missing", "schema_type", "schema_undeclared")
KINDS: Final = (
    *SCHEMA_KINDS,
    "rule",
    "not_evaluated",
    "null_rate",
    "not_finite",
    "distinct",
    "new_value",
    "vanished_value",
    "distribution",
    "quantile",
)
"""What a finding can be about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftThresholds:
    """From where on a difference is drift.

    `psi_moderate` and `psi_major` are held against the population stability index beyond what chance gives for samples
    of these sizes; `psi_smoothing` is added to every bin. `null_rate` is a difference of shares, and has to be three
    standard errors too. `distinct` is a factor, `quantile` a part of the range from the 5th to the 95th percentile. A
    value has vanished when `vanished` rows of it were to be expected. Fields with more than `most_values` different
    values are not compared value by value. Quantiles and distinct values need `fewest` values on both sides.
    """

    psi_moderate: float = 0.1
    psi_major: float = 0.25
    psi_smoothing: float = 0.5
    null_rate: float = 0.05
    distinct: float = 2.0
    quantile: float = 0.5
    vanished: float = 10.0
    most_values: int = 100
    fewest: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """When a drift was first and last seen by a sampling, and in how many; times are ISO 8601 in UTC."""

    first_seen: str
    last_seen: str
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftKey:
    """What makes a drift the same in a later sampling; together with the baseline it is the key of its event."""

    kind: str
    field: str | None
    rule: str | None = None
    value: str | None = None

    @property
    def text(self) -> str:
        """The key as one JSON text."""
        return json.dumps([self.kind, self.field, self.rule, self.value], ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftFinding:
    """One drift. `value` is the value that is new or gone, as JSON text, None where there is none or it is masked.

    `count` is in rows of the sample (values, for items of arrays), `share` of all of them. `observed` and `expected`
    are numbers of the kind: shares, counts, quantiles; for a distribution the index and the threshold it exceeded.
    `place` is the partition or file where the sample shows it first, by name.
    """

    kind: str
    field: str | None
    severity: Severity
    message: str
    rule: str | None = None
    value: str | None = None
    count: int | None = None
    share: float | None = None
    observed: Any = None
    expected: Any = None
    place: str | None = None
    seen: Sighting | None = None

    @property
    def key(self) -> DriftKey:
        """What a later sampling recognises it by."""
        return DriftKey(kind=self.kind, field=self.field, rule=self.rule, value=self.value)

    @property
    def first_seen(self) -> str | None:
        """When a sampling first saw it."""
        return self.seen.first_seen if self.seen is not None else None

    def to_dict(self) -> dict[str, Any]:
        """As JSON; the value itself, not its text."""
        return {
            "kind": self.kind,
            "field": self.field,
            "severity": str(self.severity),
            "rule": self.rule,
            "value": json.loads(self.value) if self.value is not None else None,
            "count": self.count,
            "share": self.share,
            "observed": self.observed,
            "expected": self.expected,
            "place": self.place,
            "first_seen": self.first_seen,
            "last_seen": self.seen.last_seen if self.seen is not None else None,
            "times_seen": self.seen.times if self.seen is not None else None,
            "message": self.message,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """How the sample was taken: in words, its rows, the files it is from, and whether these are the newest ones.

    `file_bytes` and `file_rows` are what was opened for it, None where that is not known.
    """

    how: str
    rows: int
    files: tuple[str, ...] = ()
    newest: bool = False
    place: str | None = None
    file_bytes: int | None = None
    file_rows: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "how": self.how,
            "rows": self.rows,
            "files": list(self.files),
            "newest": self.newest,
            "place": self.place,
            "file_bytes": self.file_bytes,
            "file_rows": self.file_rows,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftReport:
    """The outcome of a sampling. `verdict` is that of the sampled rows; rules about a whole table are skipped in it.

    `baseline` is the id of the baseline that was compared with, None where there was none yet. `notes` say what was
    not compared and why. `quarantined` are the rows of the sample that were copied to `quarantine`.
    """

    contract: str
    version: str
    dataset: str
    as_of: str
    verdict: Verdict
    sampled: Sampled
    findings: tuple[DriftFinding, ...]
    baseline: str | None = None
    baseline_taken_at: str | None = None
    stored: bool = False
    notes: tuple[str, ...] = ()
    quarantine: str | None = None
    quarantined: int = 0

    @property
    def drifted(self) -> bool:
        """Whether anything was found, of any severity."""
        return bool(self.findings)

    @property
    def diverged(self) -> tuple[DriftFinding, ...]:
        """Where the table's schema is not the contract's."""
        return tuple(one for one in self.findings if one.kind in SCHEMA_KINDS)

    def of(self, kind: str, field: str | None = None) -> tuple[DriftFinding, ...]:
        """The findings of a kind, of one field where one is named, in order."""
        return tuple(one for one in self.findings if one.kind == kind and field in (None, one.field))

    def raise_for_drift(self, *, warnings: bool = False) -> None:
        """Raise what was found, else do nothing: `SchemaDriftError` where the schema is not the contract's, else
        `DriftError` for findings of severity error (with `warnings`, of any severity). Both carry the report.
        """
        if self.diverged:
            raise SchemaDriftError(self)
        if any(warnings or one.severity is Severity.ERROR for one in self.findings):
            raise DriftError(self)

    def summary(self) -> str:
        """One sentence: the dataset, the sample, and what drifted. It has no values."""
        name = f"{self.dataset} of {self.contract} {self.version}, {self.sampled.rows} rows sampled"
        if not self.findings:
            return f"{name}: no drift"
        shown = "; ".join(one.message for one in self.findings[:5])
        more = f"; and {len(self.findings) - 5} more" if len(self.findings) > 5 else ""
        return f"{name}: {len(self.findings)} findings: {shown}{more}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "contract": self.contract,
            "version": self.version,
            "dataset": self.dataset,
            "as_of": self.as_of,
            "drifted": self.drifted,
            "sampled": self.sampled.to_dict(),
            "baseline": self.baseline,
            "baseline_taken_at": self.baseline_taken_at,
            "baseline_stored": self.stored,
            "findings": [one.to_dict() for one in self.findings],
            "notes": list(self.notes),
            "quarantine": self.quarantine,
            "quarantined": self.quarantined,
            "verdict": self.verdict.to_dict(),
        }

    def to_json(self) -> str:
        """`to_dict` as JSON text; the same report gives the same text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, default=str)


def with_sightings(findings: tuple[DriftFinding, ...], seen: Mapping[str, Sighting]) -> tuple[DriftFinding, ...]:
    """The findings, each with when it was seen, by the text of its key."""
    return tuple(replace(one, seen=seen.get(one.key.text)) for one in findings)

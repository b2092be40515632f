"""What a verification found: one result per check, one verdict per dataset."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field as attribute
from enum import StrEnum
from typing import Any

from databox_contracts.rules import Dimension, Severity


class Status(StrEnum):
    """What became of a check. `NOT_EVALUATED` could not be run and fails the verdict; `SKIPPED` is not ours to run."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_EVALUATED = "not_evaluated"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The evaluation of one rule.

    `failed_count` is in rows (surplus rows for a key; a row with any violating item counts once) and None where rows
    do not apply; for a key inside an array or a map it is in surplus values. `samples` are up to five distinct
    offending values in ascending order, a composite key as a mapping; empty where the field's values must not be shown.
    `message` is for people and never holds a value.
    `how` says in a few words where the answer came from, for `verify --explain`; it is no part of the result.
    """

    id: str
    rule: str
    field: str | None
    severity: Severity
    dimension: Dimension
    status: Status
    failed_count: int | None = None
    observed: Any = None
    threshold: Any = None
    samples: tuple[Any, ...] = ()
    message: str = ""
    how: str = attribute(default="", compare=False)

    @property
    def passed(self) -> bool:
        """Whether the check was evaluated and holds."""
        return self.status is Status.PASSED

    @property
    def stops(self) -> bool:
        """Whether the table must not be published for it: a failed error rule, or any rule that could not be judged."""
        if self.status is Status.NOT_EVALUATED:
            return True
        return self.status is Status.FAILED and self.severity is Severity.ERROR

    def to_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """As `verify --format json` prints it; with `how` if it is to explain itself."""
        facts = {
            "id": self.id,
            "rule": self.rule,
            "field": self.field,
            "severity": str(self.severity),
            "dimension": str(self.dimension),
            "status": str(self.status),
            "failed_count": self.failed_count,
            "observed": self.observed,
            "threshold": self.threshold,
            "samples": list(self.samples),
            "message": self.message,
        }
        return {**facts, "how": self.how} if explain else facts


@dataclass(frozen=True, slots=True)
class Verdict:
    """All results of one dataset, in the order of declaration.

    `settings` are the session settings the data was judged under (time zone, ANSI mode, case sensitivity).
    """

    contract: str
    version: str
    dataset: str
    row_count: int
    results: tuple[CheckResult, ...]
    settings: Mapping[str, str] = attribute(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether nothing stops the table; failed warnings do not."""
        return not any(result.stops for result in self.results)

    @property
    def violations(self) -> tuple[CheckResult, ...]:
        """The failed results, of every severity."""
        return self.with_status(Status.FAILED)

    def with_status(self, status: Status) -> tuple[CheckResult, ...]:
        """The results of that status, in order."""
        return tuple(result for result in self.results if result.status is status)

    def summary(self) -> str:
        """One sentence: contract, version, dataset, and which checks stop it."""
        name = f"{self.dataset} against {self.contract} {self.version}"
        stopping = [result for result in self.results if result.stops]
        if not stopping:
            return f"{name}: {len(self.with_status(Status.PASSED))} rules hold over {self.row_count} rows"
        shown = "; ".join(f"{result.id}: {result.message}" for result in stopping[:5])
        more = f"; and {len(stopping) - 5} more" if len(stopping) > 5 else ""
        return f"{name}: {len(stopping)} of {len(self.results)} rules violated: {shown}{more}"

    def to_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """As `verify --format json` prints it, or `verify --explain --format json`."""
        return {
            "contract": self.contract,
            "version": self.version,
            "dataset": self.dataset,
            "passed": self.passed,
            "row_count": self.row_count,
            "results": [result.to_dict(explain=explain) for result in self.results],
        }

    def to_json(self, *, explain: bool = False) -> str:
        """`to_dict` as JSON text; the same verdict gives the same text."""
        return json.dumps(self.to_dict(explain=explain), indent=2, ensure_ascii=False, default=str)

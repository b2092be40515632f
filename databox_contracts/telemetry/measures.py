"""What is measured: names, labels and numbers, the same for every system that collects them."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from databox_contracts import rules
from databox_contracts.notifications import State
from databox_contracts.results import CheckResult, Status, Verdict

OTHER: Final = "(other)"
"""The label of everything beyond what a label may hold."""

LONGEST_LABEL: Final = 200


@dataclass(frozen=True)
class Measure:
    """One metric. `name` is without a prefix, `unit` is empty where it counts things."""

    name: str
    kind: str
    text: str
    labels: tuple[str, ...]
    unit: str = ""


VIOLATIONS: Final = Measure(
    "violations", "counter", "Rules that data violated.", ("contract", "dataset", "rule", "severity")
)
VIOLATING_ROWS: Final = Measure(
    "violating_rows", "counter", "Rows that violated a rule.", ("contract", "dataset", "rule", "severity")
)
CHECKS: Final = Measure("checks", "counter", "Rules that were judged.", ("contract", "dataset", "status"))
VERIFICATIONS: Final = Measure("verifications", "counter", "Verifications.", ("contract", "dataset", "passed"))
ROWS: Final = Measure("verified_rows", "counter", "Rows that were verified.", ("contract", "dataset"))
DURATION: Final = Measure(
    "verification_duration", "histogram", "How long verifications took.", ("contract", "dataset"), "seconds"
)
LAST_FAILED: Final = Measure(
    "last_failed_checks",
    "gauge",
    "Rules that the last verification found violated or could not judge.",
    ("contract", "dataset"),
)
LAST_ROWS: Final = Measure("last_rows", "gauge", "Rows of the last verification.", ("contract", "dataset"))
LAST_PASSED: Final = Measure("last_passed", "gauge", "Whether the last verification passed.", ("contract", "dataset"))
LAST_DURATION: Final = Measure(
    "last_verification", "gauge", "How long the last verification took.", ("contract", "dataset"), "seconds"
)
NOTIFICATIONS: Final = Measure("notifications", "gauge", "Notifications in the outbox.", ("state",))
GATES: Final = Measure("gates", "counter", "Gates over branches.", ("outcome",))
GATED_CHANGES: Final = Measure("gated_changes", "counter", "Changes that gates judged.", ("verdict",))

MEASURES: Final = (
    VIOLATIONS,
    VIOLATING_ROWS,
    CHECKS,
    VERIFICATIONS,
    ROWS,
    DURATION,
    LAST_FAILED,
    LAST_ROWS,
    LAST_PASSED,
    LAST_DURATION,
    NOTIFICATIONS,
    GATES,
    GATED_CHANGES,
)


class GateResult(Protocol):
    """What a gate found, as `GateReport` tells it."""

    @property
    def clean(self) -> bool:
        """Whether the branch may be merged."""
        ...

    @property
    def breaking(self) -> Sequence[Any]:
        """Breaks that nobody accepted."""
        ...

    @property
    def acknowledged(self) -> Sequence[Any]:
        """Breaks that were accepted."""
        ...

    @property
    def additive(self) -> Sequence[Any]:
        """Everything that breaks nobody."""
        ...

    @property
    def problems(self) -> Sequence[Any]:
        """What could not be judged."""
        ...


@dataclass(frozen=True)
class Sample:
    """A number for a measure under these labels, in the measure's order."""

    measure: Measure
    labels: tuple[str, ...]
    value: float


class Labels:
    """Keeps the number of contracts and datasets that labels tell apart within bounds; the rest is `(other)`."""

    def __init__(self, most: int = 2000) -> None:
        self._most = most
        self._known: dict[tuple[str, str], tuple[str, str]] = {}
        self._lock = threading.Lock()

    def of(self, verdict: Verdict) -> tuple[str, str]:
        """Contract and dataset of a verdict as labels."""
        key = (verdict.contract, verdict.dataset)
        with self._lock:
            if key not in self._known:
                if len(self._known) >= self._most:
                    return OTHER, OTHER
                self._known[key] = (_label(verdict.contract), _label(verdict.dataset))
            return self._known[key]


class Recorder(ABC):
    """Takes what happened, and counts it; labels tell at most so many datasets apart."""

    def __init__(self, most_datasets: int) -> None:
        self._labels = Labels(most_datasets)

    def record_verdict(self, verdict: Verdict, seconds: float | None = None) -> None:
        """One verification, and how long it took."""
        self._add(of_verdict(verdict, seconds, self._labels))

    def record_gate(self, report: GateResult) -> None:
        """One gate over a branch."""
        self._add(of_gate(report))

    def record_notifications(self, counts: Mapping[State, int]) -> None:
        """How many notifications are in each state now."""
        self._add(of_notifications(counts))

    @abstractmethod
    def _add(self, samples: Iterable[Sample]) -> None: ...


def of_verdict(verdict: Verdict, seconds: float | None, labels: Labels) -> Iterator[Sample]:
    """What a verification counts. A rule's kind is a label, its id, its field and what it found are not."""
    names = labels.of(verdict)
    violated: dict[tuple[str, str], list[int]] = {}
    for result in verdict.violations:
        violated.setdefault((rule_kind(result), str(result.severity)), []).append(result.failed_count or 0)
    for key, counts in violated.items():
        yield Sample(VIOLATIONS, (*names, *key), len(counts))
        yield Sample(VIOLATING_ROWS, (*names, *key), sum(counts))
    for status in Status:
        if number := len(verdict.with_status(status)):
            yield Sample(CHECKS, (*names, str(status)), number)
    yield Sample(VERIFICATIONS, (*names, "true" if verdict.passed else "false"), 1)
    yield Sample(ROWS, names, max(verdict.row_count, 0))
    if seconds is not None:
        yield Sample(DURATION, names, seconds)
        yield Sample(LAST_DURATION, names, seconds)
    failed = len(verdict.violations) + len(verdict.with_status(Status.NOT_EVALUATED))
    yield Sample(LAST_FAILED, names, failed)
    yield Sample(LAST_ROWS, names, max(verdict.row_count, 0))
    yield Sample(LAST_PASSED, names, 1 if verdict.passed else 0)


def rule_kind(result: CheckResult) -> str:
    """The kind of the result's rule: one of those there are, never free text."""
    return result.rule if result.rule in _RULE_KINDS else OTHER


def of_gate(report: GateResult) -> Iterator[Sample]:
    """What a gate counts; that of nothing judged is `problem`."""
    outcome = "problem" if report.problems else "clean" if report.clean else "breaking"
    yield Sample(GATES, (outcome,), 1)
    for verdict in ("breaking", "acknowledged", "additive"):
        yield Sample(GATED_CHANGES, (verdict,), len(getattr(report, verdict)))


def of_notifications(counts: Mapping[State, int]) -> Iterator[Sample]:
    """Every state, with zero where none is in it."""
    for state in State:
        yield Sample(NOTIFICATIONS, (str(state),), counts.get(state, 0))


def _label(text: str) -> str:
    printable = "".join(character if character.isprintable() else "?" for character in text)
    return printable if len(printable) <= LONGEST_LABEL else printable[: LONGEST_LABEL - 1] + "…"


_RULE_KINDS: Final = frozenset(
    found.kind for found in vars(rules).values() if isinstance(found, type) and hasattr(found, "kind")
)

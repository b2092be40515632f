"""What a dataset's checks are called by an orchestrator, and what each is told to it, as plain data."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract
from databox_contracts.plan import Check
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import NotEnforced

Granularity: TypeAlias = Literal["contract", "dimension", "rule"]

MOST_NAMED: Final = 10
"""A description names so many violated rules; the table of rules has all."""

RULES_COLUMNS: Final = (
    ("rule", "string", "Its id in the contract."),
    ("field", "string", None),
    ("status", "string", None),
    ("severity", "string", None),
    ("failed_rows", "int", None),
    ("failed_percent", "float", "Of all rows."),
    ("observed", "string", None),
    ("promised", "string", None),
    ("message", "string", None),
    ("samples", "string", "Up to five values; none of a field that must not be shown."),
)
"""Name, type and description of each column of the table of rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """The result of one check. `stops` is whether an error rule of it is violated and nothing lets that through.

    `rules` are the records of its table of rules, what needs attention first.
    """

    name: str
    passed: bool
    stops: bool
    description: str
    counts: dict[str, int]
    rules: tuple[dict[str, Any], ...]


def check_name(check: Check, granularity: Granularity) -> str:
    """What the rule's check is called; rules of the same name are one check. Raises `DataboxError`."""
    match granularity:
        case "contract":
            return "contract"
        case "dimension":
            return f"contract_{check.dimension}"
        case "rule":
            return check.id
    raise unknown_granularity(granularity)


def unknown_granularity(given: object) -> DataboxError:
    """What is said of a granularity that there is not."""
    return DataboxError(f"unknown check granularity {given!r}", hint=f"Use one of {', '.join(get_args(Granularity))}.")


def grouped(checks: Iterable[Check], name_of: Callable[[Check], str]) -> dict[str, tuple[Check, ...]]:
    """The rules by the name of their check, in order of declaration.

    What consists of rules that are not enforced alone is left out: it could only ever be green.
    """
    found: dict[str, list[Check]] = {}
    for check in checks:
        found.setdefault(name_of(check), []).append(check)
    return {
        name: tuple(checks)
        for name, checks in found.items()
        if not all(isinstance(check.rule, NotEnforced) for check in checks)
    }


def check_report(name: str, results: Sequence[CheckResult], *, rows: int, lenient: bool) -> CheckReport:
    """The result of the check whose rules gave these results, of a table of so many rows.

    It passes when each of its rules was evaluated and holds, or is not ours to run.
    """
    holds = all(result.status in (Status.PASSED, Status.SKIPPED) for result in results)
    # Nothing of a group may have been evaluated; that is no pass.
    passed = holds and any(result.passed for result in results)
    broken = [result for result in results if result.status in (Status.FAILED, Status.NOT_EVALUATED)]
    return CheckReport(
        name=name,
        passed=passed,
        stops=not lenient and any(result.stops for result in results),
        description="; ".join(sentence(result) for result in broken[:MOST_NAMED]) or _all_well(results, passed),
        counts=rule_counts(results),
        rules=rule_records(results, rows),
    )


def rule_records(results: Sequence[CheckResult], rows: int) -> tuple[dict[str, Any], ...]:
    """The records of the table of rules, of a table of so many rows.

    What needs attention comes first; within that, the order of declaration.
    """
    ordered = sorted(results, key=lambda result: (not result.stops, result.status is Status.PASSED))
    return tuple(_record(result, rows) for result in ordered)


def rule_counts(results: Sequence[CheckResult]) -> dict[str, int]:
    """How many rules have each status, as `rules_passed` and so on."""
    return {f"rules_{status}": sum(result.status is status for result in results) for status in Status}


def contract_facts(contract: Contract, verdict: Verdict) -> dict[str, Any]:
    """Id, version and owner of the contract, and the counts of all its rules."""
    return {
        "contract_id": contract.id,
        "contract_version": contract.version,
        "contract_owner": contract.owning_team or "none declared",
        **rule_counts(verdict.results),
    }


def sentence(result: CheckResult) -> str:
    """The rule and what became of it, without a value."""
    return f"{result.id}: {result.message or result.status}"


def _all_well(results: Sequence[CheckResult], passed: bool) -> str:
    if not passed:
        return "none of these rules is evaluated here"
    held = sum(result.passed for result in results)
    skipped = len(results) - held
    return f"{held} rule{'s hold' if held != 1 else ' holds'}" + (f", {skipped} not enforced" if skipped else "")


def _record(result: CheckResult, rows: int) -> dict[str, Any]:
    failed = result.failed_count
    return {
        "rule": result.id,
        "field": result.field,
        "status": str(result.status),
        "severity": str(result.severity),
        "failed_rows": failed,
        "failed_percent": round(100 * failed / rows, 4) if failed is not None and rows else None,
        "observed": _text(result.observed),
        "promised": _text(result.threshold),
        "message": result.message,
        "samples": "; ".join(_value(sample) for sample in result.samples),
    }


def _text(value: Any) -> str | None:
    return None if value is None else value if isinstance(value, str) else _value(value)


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)

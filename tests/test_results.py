from __future__ import annotations

import json

import pytest

from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import Dimension, Severity


def result(status: Status, severity: Severity = Severity.ERROR, id: str = "t.a.required") -> CheckResult:
    return CheckResult(id, "required", "a", severity, Dimension.COMPLETENESS, status, message="it is so")


def verdict(*results: CheckResult) -> Verdict:
    return Verdict("urn:t", "1.0.0", "t", 3, results)


@pytest.mark.parametrize(
    ("status", "severity", "stops"),
    [
        (Status.PASSED, Severity.ERROR, False),
        (Status.FAILED, Severity.ERROR, True),
        (Status.FAILED, Severity.WARNING, False),
        (Status.FAILED, Severity.INFO, False),
        (Status.NOT_EVALUATED, Severity.ERROR, True),
        (Status.NOT_EVALUATED, Severity.INFO, True),
        (Status.SKIPPED, Severity.ERROR, False),
    ],
)
def test_what_stops_a_table(status: Status, severity: Severity, stops: bool) -> None:
    assert result(status, severity).stops is stops
    assert verdict(result(Status.PASSED), result(status, severity)).passed is not stops


def test_a_verdict_without_rules_passes_and_says_so() -> None:
    assert verdict().passed
    assert verdict().summary() == "t against urn:t 1.0.0: 0 rules hold over 3 rows"


def test_a_summary_names_five_and_counts_the_rest() -> None:
    failed = [result(Status.FAILED, id=f"t.{at}") for at in range(7)]
    assert verdict(*failed).summary() == (
        "t against urn:t 1.0.0: 7 of 7 rules violated: t.0: it is so; t.1: it is so; t.2: it is so; t.3: it is so;"
        " t.4: it is so; and 2 more"
    )


def test_json_has_the_documented_keys() -> None:
    assert json.loads(verdict(result(Status.PASSED)).to_json()) == {
        "contract": "urn:t",
        "version": "1.0.0",
        "dataset": "t",
        "passed": True,
        "row_count": 3,
        "results": [
            {
                "id": "t.a.required",
                "rule": "required",
                "field": "a",
                "severity": "error",
                "dimension": "completeness",
                "status": "passed",
                "failed_count": None,
                "observed": None,
                "threshold": None,
                "samples": [],
                "message": "it is so",
            }
        ],
    }

"""A verdict with a bit of everything, and values that must stand nowhere."""

import pytest

from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import Dimension, Severity

MARK = "mArK-jane@example.com"


def check(id, rule, status, failed=None, severity=Severity.ERROR, field=None, **facts):
    return CheckResult(
        id=id,
        rule=rule,
        field=field,
        severity=severity,
        dimension=Dimension.CONFORMITY,
        status=status,
        failed_count=failed,
        **facts,
    )


@pytest.fixture
def mark():
    return MARK


@pytest.fixture
def verdict():
    marked = {"observed": MARK, "samples": (MARK,), "message": f"found {MARK}", "threshold": MARK, "how": MARK}
    return Verdict(
        contract="crm",
        version="2.1.0",
        dataset="people",
        row_count=1000,
        results=(
            check("people.mail.required", "required", Status.FAILED, 3, field="mail", **marked),
            check("people.name.required", "required", Status.PASSED, 0, field="name"),
            check("people.mail.pattern", "pattern", Status.FAILED, 4, Severity.WARNING, field="mail", **marked),
            check("people.name.pattern", "pattern", Status.FAILED, 5, Severity.WARNING, field="name", **marked),
            check("people.freshness", "freshness", Status.FAILED, None, **marked),
            check("people.sql", "expression", Status.NOT_EVALUATED, **marked),
            check("people.prose", "prose", Status.SKIPPED, **marked),
        ),
        settings={"time_zone": MARK},
    )


@pytest.fixture
def clean():
    return Verdict("crm", "2.1.0", "people", 0, (check("people.name.required", "required", Status.PASSED, 0),))

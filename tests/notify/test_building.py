"""Who is told what."""

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from databox_contracts.drift import DriftFinding, DriftReport, Sampled, Sighting
from databox_contracts.errors import DataboxError
from databox_contracts.evolution.changes import ChangeType
from databox_contracts.evolution.judging import diff
from databox_contracts.evolution.report import FieldChange, MigrationReport
from databox_contracts.model import Consumer
from databox_contracts.notifications import EventKind
from databox_contracts.notify.building import from_deprecation, from_report, from_versions
from databox_contracts.notify.building_runs import from_drift, from_run_failure, from_verdict
from databox_contracts.notify.message import render
from databox_contracts.notify.settings import Settings
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import Dimension, Enum, Required, Severity
from databox_contracts.testing import build_contract, build_field

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MARK = "PII-4711-zebra"


def change(kind, field, dataset="orders", breaking=True, **facts):
    return FieldChange(kind, field, description=f"{field} {kind}", is_breaking=breaking, dataset=dataset, **facts)


REPORT = MigrationReport(
    "sales",
    "1.2.0",
    "2.0.0",
    (
        change(ChangeType.FIELD_REMOVED, "price", hint="deprecate it first"),
        change(ChangeType.TYPE_CHANGED, "address.zip"),
        change(ChangeType.FIELD_REMOVED, "name", dataset="people"),
        change(ChangeType.FIELD_ADDED, "note", breaking=False),
        change(ChangeType.VERSION_NOT_BUMPED, "version", dataset=None),
    ),
    policy="strict",
)


def told(consumers, report=REPORT, **facts):
    return from_report(report, consumers, **{"occurred_at": NOON, **facts})


@pytest.mark.parametrize(
    ("datasets", "fields", "lines"),
    [
        ((), (), ["price", "address.zip", "name"]),
        (("sales",), (), ["price", "address.zip", "name"]),
        (("orders",), (), ["price", "address.zip"]),
        (("sales.orders",), (), ["price", "address.zip"]),
        (("people",), (), ["name"]),
        (("orders",), ("address",), ["address.zip"]),
        (("orders",), ("address.zip.first",), ["address.zip"]),
        (("orders",), ("orders.price",), ["price"]),
        (("orders",), ("pric",), None),
        (("orders",), ("name",), None),
        (("elsewhere",), (), None),
        (("elsewhere.orders",), (), None),
    ],
)
def test_only_those_hear_of_it_whose_datasets_and_fields_it_touches(datasets, fields, lines):
    found = told([Consumer("Q", "q@x.org", datasets, fields=fields)])
    if lines is None:
        assert found == []
    else:
        (one,) = found
        assert one.facts["breaking_fields"] == lines
        assert (one.severity, one.kind, one.event) == (Severity.ERROR, EventKind.VERSION, "1.2.0 -> 2.0.0")


def test_a_break_of_the_whole_contract_touches_all_its_readers():
    report = replace(REPORT, changes=(change(ChangeType.GOVERNANCE_CHANGED, "governance purposes", dataset=None),))
    readers = [Consumer("Q", "q@x.org", ["orders"], fields=("price",)), Consumer("A", "a@x.org")]
    contract = build_contract(build_field("price", "double"), id="sales", dataset="orders")
    assert [one.consumer for one in told(readers, report, contract=contract)] == ["Q", "A"]


def test_a_consumer_may_say_what_the_table_calls_what_it_reads():
    """As the gate's report has it: `evolution.affected` is the one rule of whom something concerns."""
    (dataset,) = build_contract(build_field("price", "double", column_name="PRC"), dataset="orders").datasets
    dataset = dataset.model_copy(update={"physical_name": "raw_orders"})
    old = build_contract(id="sales").model_copy(update={"datasets": (dataset,)})
    new = old.model_copy(update={"version": "2.0.0", "datasets": (dataset.model_copy(update={"fields": ()}),)})
    readers = [Consumer("Q", None, ["raw_orders"], fields=("prc",)), Consumer("E", None, ["raw_orders"], fields=("x",))]
    assert [one.consumer for one in from_versions(old, new, readers, occurred_at=NOON)] == ["Q"]
    verdict = Verdict("sales", "1.0.0", "orders", 1, (result("orders.price.minimum", Status.FAILED, field="price"),))
    facts = {"run_id": "r1", "occurred_at": NOON}
    assert [one.consumer for one in from_verdict(verdict, readers, contract=old, **facts)] == ["Q"]


def test_who_is_pinned_elsewhere_hears_of_no_failure_of_this_version():
    readers = [
        Consumer("Q", None, versions="^1"),
        Consumer("E", None, versions="^2"),
        Consumer("U", None, versions="?"),
    ]
    assert {one.consumer for one in judged(readers)} == {"Q", "U"}
    assert {one.consumer for one in from_drift(DRIFT, readers, occurred_at=NOON)} == {"Q", "U"}
    contract = build_contract(id="people", version="1.0.0", dataset="person")
    for given in ({}, {"dataset": "person"}):
        found = from_run_failure("r1", contract, readers, occurred_at=NOON, **given)
        assert [one.consumer for one in found] == ["Q", "U"]
    elsewhere = [Consumer("Q", None, ["person"]), Consumer("E", None, ["other"])]
    found = from_run_failure("r1", "people", elsewhere, occurred_at=NOON, dataset="person")
    assert [one.consumer for one in found] == ["Q"]


def test_what_a_version_notification_says():
    (one,) = told([Consumer("Q", "q@x.org", ["orders"], fields=("price",), versions="^1.0")], owner="team sales")
    assert one.title == "Breaking change in sales: 1.2.0 -> 2.0.0"
    assert one.facts == {
        "what": ["orders.price (field_removed): price field_removed"],
        "for_you": [
            "Q reads the fields price of orders",
            "it is pinned to ^1.0, which 2.0.0 is outside of",
        ],
        "todo": [
            "Adapt what reads these before you read sales 2.0.0.",
            "Or agree with its owner: deprecate it first",
        ],
        "by": "2026-03-31",
        "since": "2026-03-01T12:00:00+00:00",
        "owner": "team sales",
        "schema": "sales",
        "from_version": "1.2.0",
        "to_version": "2.0.0",
        "policy": "strict",
        "required_bump": "major",
        "breaking": True,
        "breaking_fields": ["price"],
        "changes": [
            {
                "kind": "field_removed",
                "dataset": "orders",
                "field": "price",
                "message": "price field_removed",
                "hint": "deprecate it first",
                "breaking": True,
            }
        ],
    }


def test_each_contact_gets_its_own_and_all_have_one_key():
    found = told([Consumer("Q", "q@x.org", contacts=("slack://${T}/a/b", "q@x.org"))])
    assert [one.contact for one in found] == ["mailto:q@x.org", "slack://${T}/a/b"]
    assert len({one.key for one in found}) == 1
    assert len({one.id for one in found}) == 2


def test_a_consumer_without_a_contact_is_in_the_log():
    assert [one.contact for one in told([Consumer("Q")])] == ["log:"]


MINOR = replace(REPORT, new_version="1.3.0", changes=(change(ChangeType.FIELD_ADDED, "note", breaking=False),))
PATCH = replace(
    REPORT, new_version="1.2.1", changes=(change(ChangeType.DOCUMENTATION_CHANGED, "note", breaking=False),)
)


def test_of_a_version_that_breaks_nothing_only_those_hear_who_wish_a_digest():
    plain, wishing = Consumer("Q", "q@x.org"), Consumer("W", "w@x.org", digest=True)
    (one,) = told([plain, wishing], MINOR)
    assert (one.consumer, one.severity, one.facts["digest"], one.facts["by"]) == (
        "W",
        Severity.INFO,
        True,
        "2026-03-08",
    )
    assert one.facts["todo"] == ["Nothing; what you read stays as it is."]
    assert told([plain, wishing], PATCH) == []
    assert [one.consumer for one in told([plain, wishing])] == ["Q", "W"]
    unaffected = Consumer("W", "w@x.org", digest=True, fields=("other",))
    assert told([unaffected], MINOR) == []


@pytest.mark.parametrize(
    ("least", "breaking", "minor"),
    [(None, 1, 1), (Severity.INFO, 1, 1), (Severity.WARNING, 1, 0), (Severity.ERROR, 1, 0)],
)
def test_each_consumer_has_its_own_severity(least, breaking, minor):
    consumer = Consumer("W", "w@x.org", digest=True, severity=least)
    assert (len(told([consumer])), len(told([consumer], MINOR))) == (breaking, minor)


def test_by_when_is_the_given_day_or_the_policys():
    consumer = [Consumer("Q", "q@x.org")]
    assert told(consumer, by=date(2026, 12, 24))[0].facts["by"] == "2026-12-24"
    assert "by" not in told(consumer, replace(REPORT, policy="consumer"))[0].facts


def test_a_pin_that_is_no_range_is_said():
    (one,) = told([Consumer("Q", "q@x.org", versions="about two")])
    assert one.facts["for_you"][1] == "nobody can tell whether its pin 'about two' allows 2.0.0"


def test_from_two_contracts():
    old = build_contract(
        build_field("id", "string", Required()), build_field("price", "double"), id="sales", version="1.0.0",
        notice_period="P10D", owner="team sales", consumers=(Consumer("Q", "q@x.org", ["t"], fields=("price",)),),
    )  # fmt: skip
    new = build_contract(build_field("id", "string", Required()), id="sales", version="2.0.0")
    (one,) = from_versions(old, new, old.consumers, occurred_at=NOON)
    assert (one.facts["breaking_fields"], one.facts["by"], one.facts["owner"]) == (
        ["price"],
        "2026-03-11",
        "team sales",
    )
    dated = new.model_copy(update={"custom": {"effectiveDate": "2026-06-01"}})
    assert from_versions(old, dated, old.consumers, occurred_at=NOON)[0].facts["by"] == "2026-06-01"
    assert from_versions(None, new, old.consumers, occurred_at=NOON) == []
    assert from_versions(new, new, old.consumers, occurred_at=NOON) == []
    with pytest.raises(DataboxError):
        diff(old, None)  # type: ignore[arg-type]


def test_a_deprecation_says_until_when_and_what_takes_its_place():
    consumers = [Consumer("Q", "q@x.org", ["sales"], versions="^1"), Consumer("E", "e@x.org", versions="^2")]
    (one,) = from_deprecation("sales", "1.2.0", consumers, occurred_at=NOON, sunset=date(2026, 9, 1), successor="2.0.0")
    assert (one.kind, one.severity, one.event) == (
        EventKind.DEPRECATION,
        Severity.WARNING,
        "deprecated 1.2.0 until 2026-09-01",
    )
    assert one.title == "sales 1.2.0 is deprecated until 2026-09-01"
    assert (one.facts["todo"], one.facts["by"]) == (["Move to 2.0.0."], "2026-09-01")
    (open_end,) = from_deprecation("sales", "1.2.0", consumers, occurred_at=NOON)
    assert "by" not in open_end.facts
    assert open_end.title == "sales 1.2.0 is deprecated; no end is announced yet"
    assert [one.consumer for one in from_deprecation("sales", "2.0.0", consumers, occurred_at=NOON)] == ["E"]
    (retired,) = from_deprecation("sales", "1.2.0", consumers, occurred_at=NOON, sunset=date(2026, 2, 1), retired=True)
    assert (retired.title, retired.event, retired.severity) == (
        "sales 1.2.0 is retired",
        "retired 1.2.0",
        Severity.ERROR,
    )
    assert "by" not in retired.facts
    strict = [consumers[0].model_copy(update={"severity": Severity.ERROR})]
    assert from_deprecation("sales", "1.2.0", strict, occurred_at=NOON) == []


def result(id, status, severity=Severity.ERROR, field="email"):
    return CheckResult(
        id, "pattern", field, severity, Dimension.CONFORMITY, status, failed_count=3, observed=MARK,
        threshold=MARK, samples=(MARK, {"k": MARK}), message="3 of 10 rows are no address",
    )  # fmt: skip


VERDICT = Verdict(
    "people",
    "1.0.0",
    "person",
    10,
    (
        result("person.email.pattern", Status.FAILED),
        result("person.age.minimum", Status.FAILED, Severity.WARNING, "age"),
        result("person.name.required", Status.PASSED, field="name"),
        result("person.key", Status.NOT_EVALUATED, Severity.INFO, None),
        result("person.other", Status.SKIPPED),
    ),
)


def judged(consumers, **facts):
    return from_verdict(VERDICT, consumers, **{"run_id": "r1", "occurred_at": NOON, "asset": "hr/person", **facts})


def test_each_failed_check_is_told_to_those_who_read_its_field():
    found = judged(
        [
            Consumer("Q", "q@x.org"),
            Consumer("A", "a@x.org", ["person"], fields=("age",)),
            Consumer("E", None, ["other"]),
        ],
        published=False,
    )
    assert [(one.consumer, one.facts["check"], str(one.severity)) for one in found] == [
        ("Q", "person.email.pattern", "error"),
        ("Q", "person.age.minimum", "warning"),
        ("A", "person.age.minimum", "warning"),
        ("Q", "person.key", "error"),
        ("A", "person.key", "error"),
    ]
    one = found[0]
    assert one.event == '["r1", "hr/person", null, "person.email.pattern"]'
    assert one.ticket == '["people", "person.email.pattern", null]'
    assert one.facts["what"] == [
        "person.email.pattern: 3 of 10 rows are no address",
        "The new data was not published; the last published data stays readable.",
    ]
    assert (one.facts["run_id"], one.facts["failed_count"], one.facts["row_count"]) == ("r1", 3, 10)
    assert len({other.id for other in found}) == len(found)


def test_a_check_that_holds_again_closes_its_ticket():
    found = judged([Consumer("Q", "q@x.org")], resolved=["person.name.required", "person.email.pattern"])
    good = [one for one in found if one.resolves]
    assert [(one.facts["check"], one.title) for one in good] == [
        ("person.name.required", "person.name.required holds again in person of people 1.0.0")
    ]
    assert good[0].ticket == '["people", "person.name.required", null]'


def test_since_is_when_it_failed_first():
    found = judged([Consumer("Q", "q@x.org")], since={"person.email.pattern": datetime(2026, 2, 1, tzinfo=UTC)})
    assert found[0].facts["since"] == "2026-02-01T00:00:00+00:00"
    assert found[1].facts["since"] == "2026-03-01T12:00:00+00:00"


def test_other_runs_and_partitions_are_other_events():
    consumer = [Consumer("Q", "q@x.org")]
    keys = {
        one.key
        for facts in ({}, {"partition": "p1"}, {"partition": "p2"}, {"run_id": "r2"}, {"asset": None})
        for one in judged(consumer, **facts)
    }
    assert len(keys) == 15
    assert {one.key for one in judged(consumer)} < keys


def test_a_run_that_failed():
    (one,) = from_run_failure(
        "r1",
        "people",
        [Consumer("Q", "q@x.org")],
        occurred_at=NOON,
        asset="hr/person",
        job="nightly",
        steps=["hr__person"],
    )
    assert (one.kind, one.severity, one.event) == (EventKind.RUN, Severity.ERROR, '["r1", "hr/person", null, null]')
    assert one.facts["what"] == [
        "The run of nightly that makes hr/person failed.",
        "Step hr__person",
        "The last published data stays readable.",
    ]
    (canceled,) = from_run_failure("r1", "people", [Consumer("Q")], occurred_at=NOON, status="canceled")
    assert canceled.severity is Severity.WARNING


FINDINGS = (
    DriftFinding(
        kind="new_value", field="email", severity=Severity.WARNING, message="email has a new value", count=7,
        seen=Sighting(first_seen="2026-02-01T00:00:00+00:00", last_seen="x", times=4), place="day=1",
    ),
    DriftFinding(kind="new_value", field="country", severity=Severity.WARNING, message="a new value", value='"XX"'),
    DriftFinding(kind="rule", field="age", severity=Severity.ERROR, message="too old", rule="person.age.maximum"),
)  # fmt: skip
DRIFT = DriftReport(
    contract="people", version="1.0.0", dataset="person", as_of="2026-03-01T12:00:00+00:00", verdict=VERDICT,
    sampled=Sampled(how="newest", rows=100), findings=FINDINGS, baseline="b1",
)  # fmt: skip


def drifted(*contacts, report=DRIFT, **facts):
    return from_drift(report, [Consumer("Q", None, contacts=contacts)], occurred_at=NOON, **facts)


def test_drift_is_told_once_for_as_long_as_its_baseline_stands():
    found = drifted("q@x.org")
    assert [one.facts["what"] for one in found] == [
        ["email has a new value", "Seen in 7 of 100 sampled rows", "First in day=1"],
        ["a new value", 'The value: "XX"'],
        ["too old"],
    ]
    assert found[0].facts["since"] == "2026-02-01T00:00:00+00:00"
    assert "value" not in found[0].facts
    assert found[1].facts["value"] == "XX"
    later = replace(DRIFT, as_of="2026-03-02T12:00:00+00:00")
    assert [one.key for one in drifted("q@x.org", report=later)] == [one.key for one in found]
    other = replace(DRIFT, baseline="b2")
    assert not {one.key for one in drifted("q@x.org", report=other)} & {one.key for one in found}


def test_a_ticket_hears_of_every_sampling():
    later = replace(DRIFT, as_of="2026-03-02T12:00:00+00:00")
    contact = "ticket+https://h/issues"
    first, second = drifted(contact), drifted(contact, report=later)
    assert not {one.key for one in first} & {one.key for one in second}
    assert [one.ticket for one in first] == [one.ticket for one in second]
    assert len({one.ticket for one in first}) == 3


def test_drift_that_is_gone_closes_its_ticket():
    calm = replace(DRIFT, findings=(), as_of="2026-03-03T12:00:00+00:00")
    (gone,) = drifted("q@x.org", report=calm, resolved=FINDINGS[:1])
    assert gone.resolves
    assert gone.ticket == drifted("q@x.org")[0].ticket
    assert gone.key != drifted("q@x.org")[0].key
    assert gone.title == "Drift gone: new_value of email in person of people 1.0.0"


def test_no_value_of_a_masked_field_is_anywhere():
    consumer = [Consumer("Q", "q@x.org")]
    masked = build_contract(
        build_field("email", "string", Enum(values=(MARK, "a")), pii=True), id="people", version="1.0.0"
    )
    fewer = build_contract(build_field("email", "string", Enum(values=("a",)), pii=True), id="people", version="2.0.0")
    found = [
        *judged(consumer, resolved=["person.name.required"]),
        *from_drift(DRIFT, consumer, occurred_at=NOON, resolved=FINDINGS),
        *from_versions(masked, fewer, consumer, occurred_at=NOON),
    ]
    assert any(one.kind is EventKind.VERSION for one in found)
    for one in found:
        assert MARK not in repr(one)
        assert MARK not in repr(render(one, Settings(environ={})))

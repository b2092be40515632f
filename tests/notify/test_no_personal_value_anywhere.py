"""A value of a masked field, from the verdict to whoever is told or counts: it stands nowhere on the way."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from openlineage.client.serde import Serde
from pytest_httpserver import HTTPServer
from werkzeug import Response

from databox_contracts.drift import DriftFinding, DriftReport, Sampled
from databox_contracts.model import Consumer, Contract, Dataset, Field, Governance
from databox_contracts.notify import Channels, Delivery, Settings
from databox_contracts.notify.building import from_versions
from databox_contracts.notify.building_runs import from_drift, from_run_failure, from_verdict
from databox_contracts.registry.store import Registry
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import Dimension, Enum, Severity
from databox_contracts.telemetry.lineage import Verification, run_events
from databox_contracts.telemetry.prometheus import PrometheusMetrics
from databox_contracts.testing import build_field

MARK = "mArKeDpErSoN"
OPEN = "nobodys-value"
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
RUNS = count(1)

# How a field says that its values are personal, or not: its own facts, the contract's class, whether it is masked.
MASKING = (
    ({"pii": True}, None, True),
    ({"pii": True, "classification": "public"}, None, True),
    ({"classification": "restricted"}, None, True),
    ({"classification": "Confidential", "pii": False}, None, True),
    ({"tags": ("PII",)}, None, True),
    ({}, "gdpr", True),
    ({"pii": False}, "gdpr", False),
    ({"classification": "internal"}, None, False),
    ({"classification": "PUBLIC "}, None, False),
    ({}, None, False),
)


@st.composite
def tables(draw):
    """A contract, the version after it, and what a verification finds of it, as the engine says it."""
    pii_class = draw(st.sampled_from([None, "gdpr"]))
    ways = [way for way in MASKING if way[1] == pii_class]
    chosen = draw(st.lists(st.tuples(st.sampled_from(ways), st.booleans()), min_size=1, max_size=4))
    before, after, results, findings = [], [], [], []
    for number, ((facts, _, masked), nested) in enumerate(chosen):
        value, name = (MARK if masked else OPEN), f"f{number}"
        path = f"{name}.inner" if nested else name
        # What is inside a masked field is masked as it is, whatever it says itself.
        inside = {} if nested else facts
        for fields, values in ((before, (value, "x")), (after, ("x",))):
            leaf = build_field("inner" if nested else name, "string", Enum(values=values), **inside)
            fields.append(Field(name=name, fields=(leaf,), **facts).completed() if nested else leaf)
        status = draw(st.sampled_from([Status.FAILED, Status.NOT_EVALUATED, Status.PASSED, Status.SKIPPED]))
        failed = status is Status.FAILED
        results.append(
            CheckResult(
                id=f"t.{path}.enum",
                rule="enum",
                field=path,
                severity=draw(st.sampled_from(list(Severity))),
                dimension=Dimension.CONFORMITY,
                status=status,
                failed_count=draw(st.integers(0, 3)) if failed else None,
                # The promise itself is in the verdict; samples are so only where they may be shown.
                threshold=[value, "x"],
                samples=(value,) if failed and not masked else (),
                message="3 of 9 values are none of the 2 allowed values" if failed else "",
            )
        )
        findings.append(
            DriftFinding(
                kind="new_value",
                field=path,
                severity=Severity.WARNING,
                message="a new value",
                value=None if masked else json.dumps(value),
                place=f"{name}=…" if masked else f"{name}={value}",
                count=draw(st.integers(0, 3)),
            )
        )
    facts = {"id": "people", "status": "active", "governance": Governance(pii_class=pii_class)}
    old = Contract(version="1.0.0", datasets=(Dataset(name="t", fields=tuple(before)),), **facts)
    new = Contract(version="2.0.0", datasets=(Dataset(name="t", fields=tuple(after)),), **facts)
    return old, new, tuple(results), tuple(findings), any(masked for (_, _, masked), _ in chosen)


@pytest.fixture
def desk():
    with HTTPServer() as server:
        numbers = count(1)
        server.expect_request("/hook").respond_with_data("")
        server.expect_request("/issues", method="POST").respond_with_handler(
            lambda request: Response(json.dumps({"id": next(numbers)}))
        )
        server.expect_request("/refusing").respond_with_data("no", status=403)
        server.expect_request(re.compile("^/issues/[0-9]+$"), method="PATCH").respond_with_data("{}")
        yield server


@given(table=tables())
@settings(max_examples=6, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
def test_the_value_of_a_masked_field_is_nowhere(database_url, dumped, desk, caplog, table):
    old, new, results, findings, has_mark = table
    at = desk.url_for("/")
    consumers = [
        Consumer("hook", f"{at}hook", digest=True),
        Consumer("desk", None, contacts=(f"ticket+{at}issues", "log:")),
        Consumer("refused", f"{at}refusing", ["t"], fields=("f0",)),
    ]
    run = f"run {next(RUNS)}"
    verdict = Verdict("people", "1.0.0", "t", 9, results)
    report = DriftReport(
        contract="people",
        version="1.0.0",
        dataset="t",
        as_of=f"{NOON.isoformat()} {run}",
        verdict=verdict,
        sampled=Sampled(how="newest", rows=9),
        findings=findings,
        baseline=run,
    )
    well = replace(verdict, results=tuple(replace(one, status=Status.PASSED) for one in results))
    facts = {"occurred_at": NOON, "asset": "hr/t", "contract": old}
    told = [
        *from_verdict(verdict, consumers, run_id=run, published=False, **facts),
        *from_verdict(well, consumers, run_id=f"{run} again", resolved=[one.id for one in results], **facts),
        *from_drift(report, consumers, run_id=run, **facts),
        *from_run_failure(run, old, consumers, occurred_at=NOON, steps=["hr__t"], dataset="t"),
        *from_versions(old, new, consumers, occurred_at=NOON),
    ]
    metrics = PrometheusMetrics()
    metrics.record_verdict(verdict, 1.0)
    events = run_events(verdict, Verification(run_id=run, started_at=NOON, ended_at=NOON))
    with Registry.open(database_url, clock=lambda: NOON) as registry:
        registry.outbox.enqueue(told)
        channels = Channels(Settings(environ={}, tickets=registry.tickets, timeout=20.0))
        Delivery(registry.outbox, channels, clock=lambda: NOON).drain()
        # Only what one receiver refuses is left.
        assert {one.consumer for one, _ in registry.outbox.waiting()} <= {"refused"}
        shown = repr([*registry.outbox.waiting(), *registry.outbox.dead()])
    bodies = [f"{request.url} {dict(request.headers)} {request.get_data(as_text=True)}" for request, _ in desk.log]
    desk.clear_log()
    places = {
        "notifications": repr(told),
        "database": dumped(database_url),
        "what was sent": "\n".join(bodies),
        "outbox": shown,
        "log": caplog.text,
        "metrics": metrics.text(),
        "lineage": "".join(Serde.to_json(event) for event in events),
        "summary": verdict.summary(),
    }
    assert bodies
    assert all(places[name] for name in places if name != "log")
    # It was there to be told.
    assert (MARK in repr(old)) is has_mark
    assert [name for name, text in places.items() if MARK in text] == []

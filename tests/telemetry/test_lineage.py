"""OpenLineage events, as a real receiver gets them."""

import json
from datetime import UTC, datetime
from uuid import UUID

import pytest

from databox_contracts.errors import DataboxError
from databox_contracts.telemetry.lineage import Verification, emit, run_events

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LATER = datetime(2026, 3, 1, 12, 5, tzinfo=UTC)
RUN = "0190a3f8-7a54-7c3e-9e1c-0242ac120002"
VERIFICATION = Verification(
    run_id=RUN,
    started_at=AT,
    ended_at=LATER,
    table="crm/people",
    table_namespace="s3://lake",
    parent=("dagster", "nightly", "my run"),
)


@pytest.fixture
def received(httpserver, monkeypatch):
    monkeypatch.setenv("OPENLINEAGE_URL", httpserver.url_for("/"))
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "geheim-1234")
    httpserver.expect_request("/api/v1/lineage", method="POST").respond_with_data("", status=201)
    return lambda: [json.loads(request.get_data()) for request, _ in httpserver.log]


def test_the_beginning_and_the_end_of_a_verification(received, verdict, mark):
    emit(run_events(verdict, VERIFICATION))
    start, end = received()
    assert (start["eventType"], end["eventType"]) == ("START", "FAIL")
    assert (start["eventTime"][:19], end["eventTime"][:19]) == ("2026-03-01T12:00:00", "2026-03-01T12:05:00")
    assert start["run"]["runId"] == end["run"]["runId"] == RUN
    assert (end["job"]["namespace"], end["job"]["name"]) == ("databox-contracts", "verify.crm.people")
    assert end["producer"] == "urn:databox-contracts"
    parent = end["run"]["facets"]["parent"]
    assert (parent["job"]["namespace"], parent["job"]["name"]) == ("dagster", "nightly")
    assert UUID(parent["run"]["runId"]).version == 5
    assert "inputFacets" not in start["inputs"][0] or start["inputs"][0]["inputFacets"] == {}
    (table,) = end["inputs"]
    assert (table["namespace"], table["name"]) == ("s3://lake", "crm/people")
    quality = table["inputFacets"]
    assert quality["dataQualityMetrics"]["rowCount"] == 1000
    assert {name: column["nullCount"] for name, column in quality["dataQualityMetrics"]["columnMetrics"].items()} == {
        "mail": 3,
        "name": 0,
    }
    told = [
        {name: one.get(name) for name in ("name", "assertion", "success", "column", "severity", "actual")}
        for one in quality["dataQualityAssertions"]["assertions"]
    ]
    names = ("name", "assertion", "success", "column", "severity", "actual")
    assert told == [
        dict(zip(names, row, strict=True))
        for row in [
            ("people.mail.required", "required", False, "mail", "error", "3"),
            ("people.name.required", "required", True, "name", "error", "0"),
            ("people.mail.pattern", "pattern", False, "mail", "warn", "4"),
            ("people.name.pattern", "pattern", False, "name", "warn", "5"),
            ("people.freshness", "freshness", False, None, "error", None),
            ("people.sql", "expression", False, None, "error", None),
        ]
    ]
    assert mark not in json.dumps([start, end])
    assert quality["dataQualityAssertions"]["_schemaURL"].startswith("https://openlineage.io/spec/facets/")


def test_a_table_that_passes_with_nothing_further_said(received, clean):
    emit(run_events(clean, Verification(run_id="any text", started_at=AT, ended_at=AT)))
    _, end = received()
    assert end["eventType"] == "COMPLETE"
    assert UUID(end["run"]["runId"]).version == 5
    assert end["run"]["runId"] == str(
        run_events(clean, Verification(run_id="any text", started_at=AT, ended_at=AT))[0].run.runId
    )
    (table,) = end["inputs"]
    assert (table["namespace"], table["name"]) == ("databox-contracts", "crm.people")
    assert table["inputFacets"]["dataQualityMetrics"]["rowCount"] == 0


def test_a_receiver_that_refuses(httpserver, monkeypatch, verdict, caplog):
    monkeypatch.setenv("OPENLINEAGE_URL", httpserver.url_for("/"))
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "geheim-1234")
    httpserver.expect_request("/api/v1/lineage").respond_with_data("no", status=400)
    with pytest.raises(DataboxError, match=r"the lineage event was not sent: \w+\. Check OPENLINEAGE_URL") as found:
        emit(run_events(verdict, VERIFICATION))
    assert "geheim" not in str(found.value)
    assert "geheim" not in caplog.text


def test_a_time_without_a_zone_is_none(verdict):
    with pytest.raises(ValueError, match="without a zone"):
        run_events(verdict, Verification(run_id=RUN, started_at=AT.replace(tzinfo=None), ended_at=AT))

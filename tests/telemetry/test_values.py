"""No value of the data stands in a metric or an event, whatever a verification found."""

import json
from datetime import UTC, datetime

from hypothesis import given, settings, strategies as st
from openlineage.client.serde import Serde
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import Dimension, Severity
from databox_contracts.telemetry.lineage import Verification, run_events
from databox_contracts.telemetry.metering import OpenTelemetryMetrics
from databox_contracts.telemetry.prometheus import PrometheusMetrics

MARKED = st.text(alphabet="0123456789abcdef", min_size=6, max_size=6).map(lambda text: f"mArK{text}")
AT = datetime(2026, 3, 1, tzinfo=UTC)

RESULTS = st.builds(
    CheckResult,
    id=st.sampled_from(["t.a.required", "t.b.unique", "t.freshness"]),
    rule=st.sampled_from(["required", "unique", "freshness", "expression"]) | MARKED.map(lambda mark: f"= {mark}"),
    field=st.none() | st.sampled_from(["a", "b"]),
    severity=st.sampled_from(Severity),
    dimension=st.sampled_from(Dimension),
    status=st.sampled_from(Status),
    failed_count=st.none() | st.integers(0, 10**12),
    observed=MARKED,
    threshold=MARKED,
    samples=st.lists(MARKED | st.dictionaries(st.just("a"), MARKED), max_size=3).map(tuple),
    message=MARKED,
    how=MARKED,
)
VERDICTS = st.builds(
    Verdict,
    contract=st.just("c"),
    version=st.just("1.0.0"),
    dataset=st.just("t"),
    row_count=st.integers(0, 10**12),
    results=st.lists(RESULTS, max_size=5).map(tuple),
    settings=st.dictionaries(st.just("time_zone"), MARKED),
)


@given(verdict=VERDICTS)
@settings(max_examples=60, deadline=None)
def test_no_value_goes_out(verdict):
    prometheus, reader = PrometheusMetrics(), InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    for recorder in (prometheus, OpenTelemetryMetrics(provider)):
        recorder.record_verdict(verdict, 1.0)
    events = run_events(verdict, Verification(run_id="r", started_at=AT, ended_at=AT))
    told = [prometheus.text(), reader.get_metrics_data().to_json(), *map(Serde.to_json, events)]
    provider.shutdown()
    assert all("mArK" not in text for text in told)
    failed = sum(result.status is Status.FAILED for result in verdict.results)
    counted = sum(
        sample.value
        for family in prometheus.registry.collect()
        for sample in family.samples
        if sample.name == "databox_violations_total"
    )
    assert counted == failed
    assert json.loads(told[-1])["eventType"] in ("COMPLETE", "FAIL")

"""OpenTelemetry metrics, read back by the SDK."""

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from databox_contracts.gate.gating import GateReport
from databox_contracts.notifications import State
from databox_contracts.telemetry.metering import OpenTelemetryMetrics


@pytest.fixture
def reader():
    return InMemoryMetricReader()


@pytest.fixture
def metrics(reader):
    provider = MeterProvider(metric_readers=[reader])
    yield OpenTelemetryMetrics(provider)
    provider.shutdown()


def read(reader):
    """Name and attributes to the point; and the unit of each name."""
    points, units = {}, {}
    for resource in reader.get_metrics_data().resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                units[metric.name] = metric.unit
                for point in metric.data.data_points:
                    points[metric.name, tuple(sorted(dict(point.attributes).items()))] = point
    return points, units


OF = (("databox.contract", "crm"), ("databox.dataset", "people"))


def test_the_same_numbers_as_prometheus(metrics, reader, verdict, mark):
    metrics.record_verdict(verdict, 1.5)
    metrics.record_verdict(verdict, 2.5)
    metrics.record_gate(GateReport("a", "b", ()))
    metrics.record_notifications({State.WAITING: 7})
    points, units = read(reader)
    key = (*OF, ("databox.rule", "required"), ("databox.severity", "error"))
    assert points["databox.violations", key].value == 2
    assert points["databox.violating_rows", key].value == 6
    assert points["databox.checks", (*OF, ("databox.status", "passed"))].value == 2
    assert points["databox.verified_rows", OF].value == 2000
    duration = points["databox.verification_duration", OF]
    assert (duration.count, duration.sum) == (2, 4.0)
    assert points["databox.last_passed", OF].value == 0
    assert points["databox.gates", (("databox.outcome", "clean"),)].value == 1
    assert points["databox.notifications", (("databox.state", "waiting"),)].value == 7
    assert points["databox.notifications", (("databox.state", "dead"),)].value == 0
    assert (units["databox.verification_duration"], units["databox.violations"]) == ("s", "1")
    assert mark not in repr(points)


def test_without_a_configured_sdk_nothing_happens(verdict):
    OpenTelemetryMetrics().record_verdict(verdict, 1.0)

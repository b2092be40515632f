"""What the service measures of itself: calls by operation and status, and how long they took."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class ServiceMetrics:
    """The service's metrics, in a registry of their own or in one that is given.

    Labels are operations' names, methods and statuses: nothing of what a caller sends is in them. `refreshers` are
    called before each reading, for what has to be asked; one that fails sets `databox_registry_up` to 0.
    """

    def __init__(
        self, registry: CollectorRegistry | None = None, *, refreshers: Sequence[Callable[[], None]] = ()
    ) -> None:
        self.registry = registry if registry is not None else CollectorRegistry()
        self._refreshers = tuple(refreshers)
        self._calls = Counter(
            "databox_service_requests",
            "Calls of the registry's service.",
            ("operation", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "databox_service_request_seconds",
            "How long calls of the registry's service took.",
            ("operation",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._up = Gauge("databox_registry_up", "Whether the registry's database answered.", registry=self.registry)

    def record(self, operation: str, status: int, seconds: float) -> None:
        """One call that was answered."""
        self._calls.labels(operation, str(status)).inc()
        self._seconds.labels(operation).observe(seconds)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        try:
            for refresh in self._refreshers:
                refresh()
            self._up.set(1)
        except Exception:
            # That a database is away is what a reader of metrics wants to see, and the other metrics.
            self._up.set(0)
        return generate_latest(self.registry)

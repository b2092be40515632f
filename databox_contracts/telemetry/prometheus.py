"""Metrics for Prometheus, in a registry of their own: read over HTTP, or by the node exporter from a file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from databox_contracts.errors import DataboxError
from databox_contracts.telemetry.measures import (
    MEASURES,
    Measure,
    Recorder,
    Sample,
)

PREFIX: Final = "databox"

_SECONDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)


class PrometheusMetrics(Recorder):
    """A `Recorder` of Prometheus metrics, all of them named `databox_...`.

    Of a process that ends after one verification the counters say little; the `databox_last_...` gauges are for it.
    A process that records some of it only names those `measures`.
    """

    def __init__(
        self,
        registry: CollectorRegistry | None = None,
        *,
        measures: Sequence[Measure] = MEASURES,
        most_datasets: int = 2000,
    ) -> None:
        self.registry = registry if registry is not None else CollectorRegistry()
        super().__init__(most_datasets)
        self._metrics: dict[str, Any] = {one.name: self._made(one) for one in measures}

    def text(self) -> str:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry).decode()

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write them as a file that nobody sees half written, for the textfile collector, which wants `.prom`.

        Raises `DataboxError` where the file cannot be written.
        """
        target = Path(path)
        made: str | None = None
        try:
            with tempfile.NamedTemporaryFile("w", dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
                made = file.name
                file.write(self.text())
            # Whoever collects is another user.
            os.chmod(made, 0o644)
            os.replace(made, target)
        except OSError as error:
            if made is not None:
                Path(made).unlink(missing_ok=True)
            raise DataboxError(
                f"the metrics cannot be written to {str(target)!r}: {error.strerror}",
                hint="Name a file in a folder that is there.",
            ) from None

    def _made(self, measure: Measure) -> Counter | Gauge | Histogram:
        name = f"{PREFIX}_{measure.name}"
        facts: dict[str, Any] = {"unit": measure.unit, "registry": self.registry}
        if measure.kind == "histogram":
            return Histogram(name, measure.text, measure.labels, buckets=_SECONDS, **facts)
        made = Counter if measure.kind == "counter" else Gauge
        return made(name, measure.text, measure.labels, **facts)

    def _add(self, samples: Iterable[Sample]) -> None:
        for sample in samples:
            metric = self._metrics[sample.measure.name].labels(*sample.labels)
            getattr(metric, _VERBS[sample.measure.kind])(sample.value)


_VERBS: Final = {"counter": "inc", "gauge": "set", "histogram": "observe"}

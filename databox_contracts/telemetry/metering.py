"""The same metrics through OpenTelemetry's API; where they go is the business of whoever configures its SDK."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from opentelemetry.metrics import MeterProvider, get_meter_provider

from databox_contracts.telemetry.measures import (
    MEASURES,
    Measure,
    Recorder,
    Sample,
)

PREFIX: Final = "databox"


class OpenTelemetryMetrics(Recorder):
    """A `Recorder` of OpenTelemetry metrics, named `databox.verification_duration` and so on.

    Labels are attributes; those of the process's provider where none is given.
    """

    def __init__(self, provider: MeterProvider | None = None, *, most_datasets: int = 2000) -> None:
        chosen = provider if provider is not None else get_meter_provider()
        self._meter = chosen.get_meter("databox_contracts")
        super().__init__(most_datasets)
        self._instruments: dict[str, Any] = {one.name: self._made(one) for one in MEASURES}

    def _made(self, measure: Measure) -> Any:
        create = getattr(self._meter, f"create_{measure.kind}")
        return create(
            f"{PREFIX}.{measure.name}", unit="s" if measure.unit == "seconds" else "1", description=measure.text
        )

    def _add(self, samples: Iterable[Sample]) -> None:
        for sample in samples:
            attributes = {
                f"{PREFIX}.{name}": value for name, value in zip(sample.measure.labels, sample.labels, strict=True)
            }
            verb = _VERBS[sample.measure.kind]
            getattr(self._instruments[sample.measure.name], verb)(sample.value, attributes)


_VERBS: Final = {"counter": "add", "gauge": "set", "histogram": "record"}

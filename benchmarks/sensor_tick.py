"""How long a tick of the sensor over 1,000 contracts takes: the first, with nothing changed, and with one changed.

The contracts are the examples of this repository over and over, each with its own id and its own asset; the registry is
a SQLite file. The bar is that of a tick with nothing changed.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
from lint import COUNT, example_texts

from databox_contracts.dagster import (
    ContractRegistryResource,
    ContractTranslator,
    build_compatibility_checks,
    build_schema_diff_sensor,
)
from databox_contracts.model import Contract, Dataset

QUIET = 30
BAR = 0.05


class ById(ContractTranslator):
    """Every copy of an example is an asset of its own."""

    def get_asset_key(self, contract: Contract, dataset: Dataset) -> dg.AssetKey:
        """The contract's id and the dataset."""
        return dg.AssetKey([contract.id, dataset.name])


def main() -> None:
    """Prints a line for each kind of tick."""
    with tempfile.TemporaryDirectory() as place, dg.instance_for_test() as instance:
        folder = Path(place, "contracts")
        folder.mkdir()
        texts = example_texts()
        for number, text in enumerate(texts):
            folder.joinpath(f"c{number:04}.yaml").write_text(text)
        began = time.perf_counter()
        checks = build_compatibility_checks(folder, translator=ById())
        specs = [dg.AssetSpec(spec.asset_key) for check in checks for spec in check.check_specs]
        registry = ContractRegistryResource(location=str(Path(place, "registry.db")))
        definitions = dg.Definitions(assets=specs, asset_checks=checks, resources={"registry": registry})
        repository = definitions.get_repository_def()
        print(f"{COUNT} contracts as assets with checks of compatibility: {time.perf_counter() - began:.2f} s")
        # As if the files had been there for a while.
        later = timedelta(hours=1)
        sensor = build_schema_diff_sensor(folder, translator=ById(), clock=lambda: datetime.now(UTC) + later)
        cursor: str | None = None

        def tick() -> tuple[float, float, str]:
            """Seconds, those of the processor, and what the tick said."""
            nonlocal cursor
            context = dg.build_sensor_context(
                instance=instance, cursor=cursor, repository_def=repository, resources={"registry": registry}
            )
            began, worked = time.perf_counter(), time.process_time()
            data = sensor.evaluate_tick(context)
            cursor = data.cursor
            return time.perf_counter() - began, time.process_time() - worked, data.skip_message or ""

        first = [tick()]
        while not first[-1][2].startswith("nothing"):
            first.append(tick())
        print(f"seen for the first time: {sum(seconds for seconds, _, _ in first):.1f} s in {len(first)} ticks")
        while not tick()[2].startswith("nothing changed"):
            pass
        quiet = [tick() for _ in range(QUIET)]
        assert all(said.startswith("nothing changed") for _, _, said in quiet)
        taken = statistics.median(seconds for seconds, _, _ in quiet)
        worked = statistics.median(seconds for _, seconds, _ in quiet)
        outcome = "holds" if taken <= BAR else "MISSED"
        print(
            f"nothing changed: {taken * 1000:.1f} ms (bar {BAR * 1000:.0f} ms, {outcome}), {worked * 1000:.1f} of work"
        )
        path = folder / "c0000.yaml"
        path.write_text(path.read_text().replace("version: 1.0.0", "version: 1.0.1", 1))
        seconds, _, said = tick()
        assert "1.0.1 published" in said
        print(f"one changed: {seconds * 1000:.0f} ms")


if __name__ == "__main__":
    main()

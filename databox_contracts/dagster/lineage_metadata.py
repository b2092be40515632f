"""Which columns a table's columns are made of, as Dagster shows it: what its contract says, and what Spark knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import dagster as dg

from databox_contracts.model import Dataset

if TYPE_CHECKING:
    from databox_contracts.spark.column_sources import Sources

LINEAGE_METADATA: Final = "dagster/column_lineage"


def lineage_metadata(dataset: Dataset, deps: Iterable[dg.AssetDep], taken: Sources | None = None) -> dict[str, Any]:
    """`dagster/column_lineage`, where the contract names source columns of assets that this one reads, and of a table
    that was made, which columns are `taken` from others as they are.

    A source is written `weather.hourly.temp` or, where only one of the assets ends so, `hourly.temp`. What names no
    column of such an asset is kept under `contract_sources`. Keys are those of `deps`, which Dagster completes
    (`hourly` to `weather/hourly`) no sooner than in a run.
    """
    upstream = list(dict.fromkeys(dep.asset_key for dep in deps))
    columns: dict[str, list[dg.TableColumnDep]] = {}
    others: dict[str, list[str]] = {}
    for field in dataset.fields:
        for source in field.sources:
            found = list(_columns(source, upstream))
            if len(found) == 1:
                columns.setdefault(field.column, []).extend(found)
            else:
                others.setdefault(field.column, []).append(source)
    for column, (path, name) in (taken or {}).items():
        columns.setdefault(column, []).append(dg.TableColumnDep(asset_key=dg.AssetKey(path), column_name=name))
    shown: dict[str, Any] = {}
    if columns:
        by_column = {column: list(dict.fromkeys(found)) for column, found in columns.items()}
        shown[LINEAGE_METADATA] = dg.TableColumnLineage(deps_by_column=by_column)
    if others:
        shown["contract_sources"] = dg.MetadataValue.json(others)
    return shown


def _columns(source: str, known: Sequence[dg.AssetKey]) -> Iterator[dg.TableColumnDep]:
    """The column that is meant, of each asset that it may be of; those whose whole key is written go first."""
    parts = source.strip().replace("/", ".").split(".")
    whole = [key for key in known if len(parts) > len(key.path) and parts[: len(key.path)] == list(key.path)]
    if whole:
        longest = max(whole, key=lambda key: len(key.path))
        yield dg.TableColumnDep(asset_key=longest, column_name=".".join(parts[len(longest.path) :]))
        return
    for key in known:
        if len(parts) > 1 and key.path[-1] == parts[0]:
            yield dg.TableColumnDep(asset_key=key, column_name=".".join(parts[1:]))

"""Which columns a table's columns are made of, by what its contract says of their sources, as Dagster shows lineage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import dagster as dg

from databox_contracts.model import Dataset


def lineage_metadata(dataset: Dataset, upstream: Iterable[dg.AssetKey]) -> dict[str, Any]:
    """`dagster/column_lineage`, where the contract names source columns of assets that this one reads.

    A source is written `weather.hourly.temp` or, where only one of the assets ends so, `hourly.temp`. What names no
    column of such an asset is kept under `contract_sources`.
    """
    known = list(dict.fromkeys(upstream))
    deps: dict[str, list[dg.TableColumnDep]] = {}
    others: dict[str, list[str]] = {}
    for field in dataset.fields:
        for source in field.sources:
            found = list(_columns(source, known))
            if len(found) == 1:
                deps.setdefault(field.column, []).extend(found)
            else:
                others.setdefault(field.column, []).append(source)
    shown: dict[str, Any] = {}
    if deps:
        shown["dagster/column_lineage"] = dg.TableColumnLineage(deps_by_column=deps)
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

"""What depends on a table or a column: who reads it, and what is made of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from databox_contracts.evolution.affected import dataset_names, overlap, reads_dataset, reads_field
from databox_contracts.lineage import ColumnEdge, Edge
from databox_contracts.model import Consumer, Contract, Field
from databox_contracts.registry.consumers import Reading
from databox_contracts.registry.places import Places
from databox_contracts.registry.tables import Table, Tables


class Links:
    """The dependencies of declared consumers, of asset and column lineage, and of what contracts say of sources."""

    def __init__(self, places: Places, tables: Tables, readings: Sequence[Reading], edges: Iterable[Edge]) -> None:
        self._places = places
        self._readings: dict[str, list[Reading]] = {}
        self._makes: dict[Reading, list[Table]] = {}
        self._makers: dict[Table, Reading] = {}
        for reading in readings:
            self._readings.setdefault(reading.contract, []).append(reading)
            self._makes[reading] = [tables.find(asset) for asset in reading.consumer.assets]
            for table in self._makes[reading]:
                self._makers.setdefault(table, reading)
        self._below: dict[Table, set[Table]] = {}
        self._columns: dict[tuple[Table, Table], list[tuple[str | None, str]]] = {}
        for edge in edges:
            upstream, downstream = tables.find(edge.upstream), tables.find(edge.downstream)
            self._below.setdefault(upstream, set()).add(downstream)
            if isinstance(edge, ColumnEdge):
                source = tables.column(upstream, edge.upstream_column) if edge.upstream_column is not None else None
                self._add(upstream, source, downstream, tables.column(downstream, edge.downstream_column))
        for contract in places:
            self._add_sources(contract, tables)
        for pairs in self._columns.values():
            pairs.sort(key=lambda pair: (pair[0] or "", pair[1]))

    def _add_sources(self, contract: Contract, tables: Tables) -> None:
        for dataset in contract.datasets:
            for path, field in _with_paths(dataset.fields, ""):
                for written in field.sources:
                    source, column = tables.source(written)
                    self._add(source, column, tables.of(contract.id, dataset.name), path)

    def _add(self, upstream: Table, source: str | None, downstream: Table, column: str) -> None:
        self._below.setdefault(upstream, set()).add(downstream)
        self._columns.setdefault((upstream, downstream), []).append((source, column))

    def maker(self, table: Table) -> Consumer | None:
        """The consumer whose asset the table is, None where it is nobody's."""
        found = self._makers.get(table)
        return found.consumer if found is not None else None

    def readers(self, table: Table, column: str | None) -> Iterator[Reading]:
        """The consumers that read the table, or the column, in their order."""
        for reading in self._readings.get(table.contract or "", ()):
            if self._reads(reading, table, column):
                yield reading

    def onwards(self, table: Table, column: str | None) -> Iterator[tuple[Table, str | None]]:
        """The tables that are made of the table, or of the column, each with its column or as a whole; by name."""
        makers: dict[Table, list[Reading]] = {}
        for reading in self.readers(table, None):
            for made in self._makes[reading]:
                makers.setdefault(made, []).append(reading)
        for below in sorted({*self._below.get(table, ()), *makers}, key=lambda one: one.name):
            pairs = self._columns.get((table, below))
            if column is None:
                yield below, None
            elif pairs is not None:
                yield from ((below, to) for source, to in pairs if source is None or overlap(source, column))
            elif below not in makers or any(self._reads(one, table, column) for one in makers[below]):
                yield below, None

    def _reads(self, reading: Reading, table: Table, column: str | None) -> bool:
        if table.contract is None or table.dataset is None:
            return False
        having = (
            one
            for one in self._places.versions(table.contract)
            if any(dataset.name == table.dataset for dataset in one.datasets)
        )
        contract = next(having, None)
        names = dataset_names(contract, table.dataset)
        if not reads_dataset(reading.consumer, names):
            return False
        return column is None or reads_field(reading.consumer, names, column, contract)


def _with_paths(fields: Sequence[Field], before: str) -> Iterator[tuple[str, Field]]:
    for field in fields:
        path = f"{before}{field.name}"
        yield path, field
        yield from _with_paths(field.fields, f"{path}.")
        item = field.item
        while item is not None:
            yield path, item
            yield from _with_paths(item.fields, f"{path}.")
            item = item.item

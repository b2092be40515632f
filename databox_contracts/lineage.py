"""What is made of what: edges between tables and between their columns, as an orchestrator knows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True, order=True)
class AssetEdge:
    """The downstream table is made of the upstream one.

    Tables are named by the keys of their assets (`sales/orders`), or as contract and dataset (`shop.orders`).
    """

    upstream: str
    downstream: str


@dataclass(frozen=True, slots=True, order=True)
class ColumnEdge:
    """The downstream column is made of the upstream one. Where one such edge of two tables is known, all of them are.

    `upstream_column` None is any column of that table.
    """

    upstream: str
    upstream_column: str | None
    downstream: str
    downstream_column: str


Edge: TypeAlias = AssetEdge | ColumnEdge


@dataclass(frozen=True, slots=True)
class Lineage:
    """Edges, and of which contract's dataset an asset is, by its key; `assets` is for keys that do not tell."""

    edges: tuple[Edge, ...] = ()
    assets: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def joined(cls, parts: Iterable[Lineage]) -> Lineage:
        """All edges, and all assets; where two tell one asset differently, the last holds."""
        edges: list[Edge] = []
        assets: dict[str, str] = {}
        for part in parts:
            edges += part.edges
            assets |= part.assets
        return cls(tuple(edges), assets)

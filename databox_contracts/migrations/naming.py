"""Which table or column of a contract an identifier of SQL means, by the dialect's rules of case."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy

from databox_contracts.model import Dataset

T = TypeVar("T")

_EXACT: Final = 2
_FOLDED: Final = 1
_OTHER: Final = 0

_FOLDS: Final = {NormalizationStrategy.LOWERCASE: str.lower, NormalizationStrategy.UPPERCASE: str.upper}
"""Where a quoted name is not the same in any other case, what is made of a name without quotes."""


class Names:
    """How one dialect tells names apart.

    A name without quotes means whatever is spelled so in any case. A quoted one does too where the dialect has one case
    only; elsewhere it means its own spelling, or a name without quotes that becomes it.
    """

    def __init__(self, dialect: str) -> None:
        self._fold = _FOLDS.get(Dialect.get_or_raise(dialect).normalization_strategy)

    def find(self, identifier: exp.Expr, candidates: Iterable[tuple[str, T]]) -> list[T]:
        """The candidates that the identifier means: the one of exactly that spelling, else all that may be meant."""
        return _best((self._rank(identifier, name), found) for name, found in candidates)

    def find_table(self, table: exp.Expr, candidates: Iterable[tuple[Sequence[str], T]]) -> list[T]:
        """The candidates whose parts of a name (catalog, schema, table; the first may be missing) are the table's."""
        parts = parts_of(table)
        return _best((self._rank_table(parts, names), found) for names, found in candidates)

    def _rank_table(self, parts: Sequence[exp.Expr], names: Sequence[str]) -> int:
        ranks = [self._rank(part, name) for part, name in zip(reversed(parts), reversed(names), strict=False)]
        return min(ranks, default=_OTHER)

    def _rank(self, identifier: exp.Expr, name: str) -> int:
        if identifier.name == name:
            return _EXACT
        if self._fold is not None and identifier.args.get("quoted"):
            return _FOLDED if self._fold(name) == identifier.name else _OTHER
        return _FOLDED if identifier.name.casefold() == name.casefold() else _OTHER


def _best(ranked: Iterable[tuple[int, T]]) -> list[T]:
    found = [(rank, one) for rank, one in ranked if rank > _OTHER]
    best = max((rank for rank, _ in found), default=_OTHER)
    kept: list[T] = []
    for rank, one in found:
        if rank == best and not any(one is other for other in kept):
            kept.append(one)
    return kept


def parts_of(table: exp.Expr) -> list[exp.Expr]:
    """The identifiers of a table's name, the outermost first."""
    parts = (table.args.get(part) for part in ("catalog", "db", "this"))
    return [part for part in parts if isinstance(part, exp.Expr) and part.name]


def names_of(dataset: Dataset) -> list[tuple[str, ...]]:
    """What a dataset's table may be called, each name in its parts."""
    written = dict.fromkeys(name for name in (dataset.physical_name, dataset.name) if name)
    names = [tuple(part.strip('"`[]') for part in re.split(r"[./]", name)) for name in written]
    # A short form of a longer name says less: it would take in the tables of other schemas.
    return [one for one in names if not any(len(one) < len(other) and one == other[-len(one) :] for other in names)]

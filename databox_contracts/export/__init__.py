"""What other tools read, made from a contract: schemas, DDL, models and pages. One file per target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract, Dataset

__all__ = ["EXPORTERS", "Exported", "Exporter", "Target", "export"]


@dataclass(frozen=True)
class Target:
    """What is exported: datasets of a contract, in its order, and the SQL dialect (a name sqlglot knows) if any."""

    contract: Contract
    datasets: tuple[Dataset, ...]
    dialect: str | None = None


@dataclass(frozen=True)
class Exported:
    """The text, and in one sentence each what of the contract it cannot say."""

    text: str
    losses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exporter:
    """A target: its name on the command line, its title, and the function that makes it.

    `one_dataset` is true where a document describes one table only.
    """

    name: str
    title: str
    export: Callable[[Target], Exported]
    one_dataset: bool = False


EXPORTERS: Final[tuple[Exporter, ...]] = ()
"""Every target, in the order in which they are listed."""


def export(contract: Contract, to: str, *, dataset: str | None = None, dialect: str | None = None) -> Exported:
    """The contract, or one dataset of it, as another tool reads it. The same contract always gives the same text.

    Raises `DataboxError` for an unknown target (it lists those there are), and `UnknownDatasetError` for a dataset that
    is not there, or is not named where the target describes one table and the contract has several.
    """
    exporter = next((one for one in EXPORTERS if one.name == to), None)
    if exporter is None:
        known = ", ".join(one.name for one in EXPORTERS)
        raise DataboxError(f"nothing is exported as {to!r}", hint=f"use one of: {known}")
    wanted = (contract.dataset(dataset),) if dataset is not None or exporter.one_dataset else contract.datasets
    return exporter.export(Target(contract, wanted, dialect))

"""What every exporter takes and gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from databox_contracts.model import Contract, Dataset


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

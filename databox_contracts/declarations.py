"""Where consumers declare themselves: in the contract, in a file of their own, in code, or at the registry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from databox_contracts.model import Consumer, Contract

IN_CONTRACT: Final = "contract"
IN_FILE: Final = "file"
IN_CODE: Final = "code"
IN_REGISTRY: Final = "registry"


@dataclass(frozen=True)
class Declaration:
    """One consumer's word that it reads one contract.

    `producer` is what it calls that: the contract's id or name, with or without a dataset behind it, or the name of a
    dataset. `place` says where it was declared, for messages; `origin` is one of the four above.
    """

    producer: str
    consumer: Consumer
    place: str
    origin: str = IN_FILE


def declared_in(contracts: Iterable[Contract]) -> Iterator[Declaration]:
    """What the contracts themselves say of their consumers."""
    for contract in contracts:
        for consumer in contract.consumers:
            yield Declaration(contract.id, consumer, contract.source or f"the contract {contract.id}", IN_CONTRACT)


def declared_by(consumes: Mapping[str, str | None], consumer: Consumer, place: str) -> Iterator[Declaration]:
    """What code says: the producers, each with the range of its versions that suits; None is any version.

    `consumer` says who it is that reads them.
    """
    for producer, versions in consumes.items():
        pinned = consumer.model_copy(update={"versions": versions if versions is not None else consumer.versions})
        yield Declaration(producer, pinned, place, IN_CODE)

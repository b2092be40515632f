"""A contract that was made from a table or its schema, and which of its promises are guesses."""

from __future__ import annotations

from dataclasses import dataclass

from databox_contracts.model import Contract

TYPE = "type"
PERSONAL = "pii"
REMARK = "remark"
"""What a guess may be about that is no rule: the type, whose data it is, nothing that the contract promises."""


@dataclass(frozen=True, slots=True)
class Guess:
    """Something that the data suggests and nobody has promised; `reason` is one line and quotes no personal data.

    `field` is the way to the field from the top down, with `item`, `key` and `value` for what is inside an array or a
    map, and empty for the dataset. `about` is the kind of a rule, or `TYPE`, `PERSONAL` or `REMARK`.
    """

    dataset: str
    field: tuple[str, ...]
    about: str
    reason: str


@dataclass(frozen=True, slots=True)
class Inferred:
    """The contract, and its guesses in the order of its fields. What is no guess was said by the schema."""

    contract: Contract
    guesses: tuple[Guess, ...] = ()

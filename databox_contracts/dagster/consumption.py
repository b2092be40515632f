"""What an asset says of the datasets that it reads: which versions, which fields, for what, and how differences go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields as members
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

import dagster as dg

from databox_contracts.errors import DataboxError, VersionRangeError
from databox_contracts.model import Contract
from databox_contracts.version_ranges import VersionRange

ReadMode: TypeAlias = Literal["upgrade", "fail", "permissive"]

CONSUMES_METADATA: Final = "consumes"
"""Where an asset's metadata says what it consumes, and the metadata of a plain asset's input how it is read."""


@dataclass(frozen=True, slots=True)
class Consumes:
    """How an asset reads one dataset.

    `versions` is the range of its contract's versions that suit (`^2`), None for any. `fields` are those that are read,
    none for all. `purpose` is what for, with a `justification` where the contract does not name it. `contract` is the
    reader's own, or its file, which the table is then read as; else it is read as its producer's contract describes the
    `fields`. `mode` is what becomes of a table that differs: "upgrade" takes what loses no value, "fail" takes no
    difference, "permissive" reads what fits. With `verify_data` the reader's rules are held against the rows.

    Raises `DataboxError` for a mode that there is not and a range that is none.
    """

    versions: str | None = None
    fields: Sequence[str] = ()
    purpose: str | None = None
    justification: str | None = None
    contract: Contract | str | Path | None = None
    mode: ReadMode = "upgrade"
    verify_data: bool = False

    def __post_init__(self) -> None:
        if self.mode not in get_args(ReadMode):
            raise DataboxError(
                f"the reading mode is {self.mode!r}", hint=f"Use one of {', '.join(get_args(ReadMode))}."
            )
        if self.versions is not None:
            VersionRange.parse(self.versions)
        if isinstance(self.fields, str):
            raise DataboxError(f"fields is the text {self.fields!r}", hint=f'Write fields=["{self.fields}"].')
        object.__setattr__(self, "fields", tuple(self.fields))

    def said(self) -> Any:
        """As metadata shows it: the range alone where nothing else is said."""
        facts = {one.name: getattr(self, one.name) for one in members(self)}
        told = {name: value for name, value in facts.items() if value not in (None, (), False)}
        if told.get("mode") == "upgrade":
            del told["mode"]
        if isinstance(self.contract, Contract):
            told["contract"] = f"{self.contract.id} {self.contract.version}"
        elif self.contract is not None:
            told["contract"] = str(self.contract)
        if not set(told) - {"versions"}:
            return self.versions
        return {name: list(value) if isinstance(value, tuple) else value for name, value in told.items()}


ConsumesGiven: TypeAlias = "str | Mapping[str, Any] | Consumes | None"


def read_consumes(given: Mapping[str, ConsumesGiven] | None) -> dict[str, Consumes]:
    """What is consumed by the name of the dataset. Raises `DataboxError` for what says nothing that can be meant."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise DataboxError(
            "consumes maps the name of a dataset to the versions that suit", hint='Write consumes={"a.b": "^2"}.'
        )
    return {str(name): read_consumption(value, str(name)) for name, value in given.items()}


def read_consumption(given: ConsumesGiven, name: str) -> Consumes:
    """One of them; `name` is the dataset's, for messages. Raises `DataboxError`."""
    known = [one.name for one in members(Consumes)]
    try:
        match given:
            case Consumes():
                return given
            case None | str():
                return Consumes(versions=given)
            case Mapping():
                unknown = [str(key) for key in given if key not in known]
                if unknown:
                    raise DataboxError(
                        f"consumes[{name!r}] says {unknown[0]!r}, which means nothing",
                        hint=f"It may say {', '.join(known)}.",
                    )
                return Consumes(**given)
    except VersionRangeError as error:
        raise DataboxError(f"consumes[{name!r}]: {error.message}", hint=error.hint) from error
    raise DataboxError(
        f"consumes[{name!r}] is a {type(given).__name__}",
        hint='Write a range of versions, such as "^2", or Consumes(versions="^2", fields=["x"]).',
    )


def consumed_key(name: str) -> dg.AssetKey:
    """The asset of a dataset that is consumed under that name, `weather.stations` or `weather/stations`."""
    return dg.AssetKey(name.replace("/", ".").split("."))

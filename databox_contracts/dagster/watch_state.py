"""What a watch over contracts remembers: in Dagster's cursor how little suffices to see that nothing changed, in the
registry what became of each file and each contract.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Cursor:
    """What was seen at the end of the last tick that finished; None for what has to be looked at again.

    `requested` are the contracts and versions whose verification that tick requested.
    """

    folder: str | None = None
    registry: str | None = None
    definitions: str | None = None
    requested: tuple[tuple[str, str], ...] = ()

    @property
    def seen(self) -> tuple[str | None, str | None, str | None]:
        """What was seen, without what was requested."""
        return self.folder, self.registry, self.definitions

    def sees_the_same(self, other: Cursor) -> bool:
        """Whether nothing can have happened in between."""
        return None not in self.seen and self.seen == other.seen

    def to_text(self) -> str:
        """As Dagster keeps it."""
        return json.dumps({"version": _VERSION, **asdict(self)})

    @classmethod
    def of_text(cls, text: str | None) -> Cursor:
        """From what Dagster kept; what is of another version, or no cursor at all, is none."""
        try:
            data = json.loads(text or "")
        except (ValueError, RecursionError):
            return cls()
        if not isinstance(data, dict) or data.get("version") != _VERSION:
            return cls()
        texts = {name: data.get(name) for name in ("folder", "registry", "definitions")}
        requested = data.get("requested")
        pairs = [tuple(one) for one in requested if isinstance(one, list)] if isinstance(requested, list) else []
        return cls(
            **{name: value for name, value in texts.items() if isinstance(value, str)},
            requested=tuple((str(one[0]), str(one[1])) for one in pairs if len(one) == 2),
        )


@dataclass(frozen=True, slots=True)
class FileState:
    """What became of a file when it was read last.

    `told` is what tells that it changed, `digest` its text's. `keys` are the assets it is for. A `problem` is in words;
    with `again` it may pass without the file being changed.
    """

    told: str = ""
    digest: str = ""
    contract: str | None = None
    keys: tuple[str, ...] = ()
    problem: str | None = None
    again: bool = False


@dataclass(frozen=True, slots=True)
class Recorded:
    """Of which version the check's result was recorded; `missing`: not on all assets; `problem`: that of a problem."""

    version: str = ""
    digest: str = ""
    missing: bool = False
    problem: bool = False


@dataclass(slots=True)
class WatchState:
    """What the registry keeps; `pending` are versions by contract that are to be verified once the code has them."""

    files: dict[str, FileState] = field(default_factory=dict)
    recorded: dict[str, Recorded] = field(default_factory=dict)
    pending: dict[str, str] = field(default_factory=dict)

    def to_data(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "version": _VERSION,
            "files": {name: _short(one) for name, one in self.files.items()},
            "recorded": {name: _short(one) for name, one in self.recorded.items()},
            "pending": dict(self.pending),
        }

    @classmethod
    def of_data(cls, data: Any) -> WatchState:
        """What `to_data` gave; of another version it is as if nothing had been seen, which is harmless."""
        if not isinstance(data, Mapping) or data.get("version") != _VERSION:
            return cls()
        files = {name: FileState(**_known(FileState, one)) for name, one in _mapping(data, "files").items()}
        recorded = {name: Recorded(**_known(Recorded, one)) for name, one in _mapping(data, "recorded").items()}
        return cls(
            {name: one if isinstance(one.keys, tuple) else _with_keys(one) for name, one in files.items()},
            recorded,
            {name: str(one) for name, one in _mapping(data, "pending").items()},
        )


def _with_keys(one: FileState) -> FileState:
    return FileState(one.told, one.digest, one.contract, tuple(one.keys), one.problem, one.again)


def _mapping(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = data.get(name)
    return found if isinstance(found, Mapping) else {}


def _known(kind: type[FileState | Recorded], data: Any) -> dict[str, Any]:
    names = {one.name for one in fields(kind)}
    return {name: value for name, value in data.items() if name in names} if isinstance(data, Mapping) else {}


def _short(one: FileState | Recorded) -> dict[str, Any]:
    """Without what is as it is by default."""
    plain = type(one)()
    return {name: value for name, value in asdict(one).items() if value != getattr(plain, name)}

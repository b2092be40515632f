"""The contracts that the classes of this process declare, by name, in every version that was defined."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True)
class SchemaVersion:
    """One version of a schema: its fields in order of declaration, each with its Python type or annotation."""

    name: str
    version: str
    fields: dict[str, Any] = field(default_factory=dict)


class SchemaRegistry:
    """Every schema of the process; used on the class itself, never instantiated."""

    _versions: ClassVar[dict[str, list[SchemaVersion]]] = {}

    @classmethod
    def register(cls, version: SchemaVersion) -> None:
        """Adds a version; one of the same name and version takes the old one's place, as a reloaded module needs."""
        history = cls._versions.setdefault(version.name, [])
        for at, known in enumerate(history):
            if known.version == version.version:
                history[at] = version
                return
        history.append(version)

    @classmethod
    def get_latest(cls, name: str) -> SchemaVersion | None:
        """The version that was added last, or None for a name nobody registered."""
        history = cls._versions.get(name)
        return history[-1] if history else None

    @classmethod
    def get_history(cls, name: str) -> list[SchemaVersion]:
        """All versions in the order they were first added; empty for an unknown name."""
        return list(cls._versions.get(name, ()))

    @classmethod
    def list_schemas(cls) -> list[str]:
        """The names in the order they were first registered."""
        return list(cls._versions)

    @classmethod
    def clear(cls) -> None:
        """Forgets everything."""
        cls._versions.clear()

    @classmethod
    @contextmanager
    def isolated(cls) -> Iterator[None]:
        """An empty registry for the length of a `with` block, for tests; afterwards the former one is back."""
        former = cls._versions
        cls._versions = {}
        try:
            yield
        finally:
            cls._versions = former

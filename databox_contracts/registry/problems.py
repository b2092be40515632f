"""The registry's errors over HTTP: which status and name each has, and how the client raises the same one again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from databox_contracts.errors import (
    ConsumersError,
    ContractConflictError,
    ContractError,
    DataboxError,
    Finding,
    Level,
    LifecycleError,
    Position,
    RegistryAccessError,
    RegistryError,
    RegistryTooNewError,
    RegistryUnavailableError,
    RegistryUnusableError,
    SignOffError,
    UnknownContractError,
    UnknownPlaceError,
    VersionRangeError,
)
from databox_contracts.registry.consumers import Problem, ProblemKind

MEDIA_TYPE: Final = "application/problem+json"
PREFIX: Final = "urn:databox-contracts:problem:"


@dataclass(frozen=True)
class Kind:
    """A kind of problem: its name, its status, the class that is raised, and the attributes that travel with it.

    `detail` takes the place of the error's own text, where that tells of the service's inside.
    """

    name: str
    status: int
    error: type[DataboxError]
    facts: tuple[str, ...] = ()
    detail: str | None = None

    @property
    def type(self) -> str:
        """What stands in the document as its `type`."""
        return PREFIX + self.name


# The first whose class an error is of; a narrower class comes before a wider one.
KINDS: Final = (
    Kind("contract-conflict", 409, ContractConflictError, ("contract", "version", "published", "new")),
    Kind("sign-off", 409, SignOffError, ("contract", "version", "reasons", "missing")),
    Kind("lifecycle", 409, LifecycleError, ("contract", "version", "reasons")),
    Kind("unknown-contract", 404, UnknownContractError, ("contract", "version", "known")),
    Kind("unknown-place", 404, UnknownPlaceError, ("text", "known", "several")),
    Kind("consumers", 409, ConsumersError, ("problems",)),
    Kind("unavailable", 503, RegistryUnavailableError, (), "the registry's database does not answer"),
    Kind("too-new", 500, RegistryTooNewError, (), "the registry is of a newer version than the service"),
    Kind("unusable", 500, RegistryUnusableError, (), "the registry's database cannot be used"),
    Kind("contract", 422, ContractError, ("contract", "field", "findings")),
    Kind("version-range", 422, VersionRangeError, ("text",)),
    Kind("refused", 422, RegistryError),
    Kind("refused", 422, DataboxError),
)

# What the service says itself, without an exception of the registry's behind it.
OTHERS: Final = {
    "unauthenticated": RegistryAccessError,
    "forbidden": RegistryAccessError,
    "busy": RegistryUnavailableError,
    "too-many-requests": RegistryUnavailableError,
}


def problem_of(error: DataboxError) -> tuple[Kind, dict[str, Any]]:
    """The error's kind and its document, without what it says of the service's inside."""
    kind = next(kind for kind in KINDS if isinstance(error, kind.error))
    facts = {name: _plain(getattr(error, name, None)) for name in kind.facts}
    hint = error.hint if kind.detail is None else None
    return kind, document(kind.type, kind.status, kind.detail or error.message, hint, facts)


def document(
    type_: str, status: int, detail: str, hint: str | None = None, facts: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A document of `application/problem+json`; `hint` is the way out."""
    title = type_.removeprefix(PREFIX).replace("-", " ")
    return {
        "type": type_,
        "title": title,
        "status": status,
        "detail": detail,
        **({"hint": hint} if hint else {}),
        **({"facts": dict(facts)} if facts else {}),
    }


def error_of(problem: Mapping[str, Any]) -> DataboxError:
    """The error that a service's document is about: of the same class and with the same facts as from a database."""
    name = str(problem.get("type", "")).removeprefix(PREFIX)
    message = str(problem.get("detail") or problem.get("title") or "the registry's service gave no reason")
    hint = str(problem["hint"]) if problem.get("hint") else None
    kind = next((kind for kind in KINDS if kind.name == name), None)
    if kind is None:
        return OTHERS.get(name, RegistryError)(message, hint=hint)
    given = problem.get("facts")
    facts = given if isinstance(given, Mapping) else {}
    # Its text is given, and the class would make one of its own.
    error = kind.error.__new__(kind.error)
    DataboxError.__init__(error, message, hint=hint)
    for one in kind.facts:
        setattr(error, one, _rebuilt(one, facts.get(one)))
    if isinstance(error, ContractError):
        first = next((finding for finding in error.findings if finding.level is Level.ERROR), None)
        error.source = first.source if first is not None else None
        error.position = first.position if first is not None else None
    return error


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Finding):
        at = value.position
        return {
            "source": value.source,
            "level": str(value.level),
            "message": value.message,
            "hint": value.hint,
            "field": value.field,
            "line": at.line if at is not None else None,
            "column": at.column if at is not None else None,
        }
    return value


def _rebuilt(name: str, value: Any) -> Any:
    if name == "findings":
        return tuple(_finding(one) for one in value or ())
    if name == "problems":
        return tuple(_problem(one) for one in value or ())
    if isinstance(value, Mapping):
        return {str(key): _rebuilt("", one) for key, one in value.items()}
    return tuple(value) if isinstance(value, list) else value


def _problem(facts: Mapping[str, Any]) -> Problem:
    known = {name: facts.get(name) for name in ("producer", "consumer", "message", "hint", "place", "version", "field")}
    return Problem(kind=ProblemKind(facts["kind"]), level=Level(facts["level"]), **known)  # type: ignore[arg-type]


def _finding(facts: Mapping[str, Any]) -> Finding:
    line, column = facts.get("line"), facts.get("column")
    return Finding(
        source=str(facts.get("source", "")),
        level=Level(facts.get("level", "error")),
        message=str(facts.get("message", "")),
        position=Position(int(line), int(column)) if line is not None and column is not None else None,
        hint=facts.get("hint"),
        field=facts.get("field"),
    )

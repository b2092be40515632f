"""Where a contract, its table and the registry differ, each difference as one record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from databox_contracts.errors import DataboxError, UnknownContractError
from databox_contracts.model import Contract
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import HasType, MaxLength, Present, Required, Undeclared
from databox_contracts.versions import Version

if TYPE_CHECKING:
    from databox_contracts.registry.records import StoredVersion
    from databox_contracts.registry.store import Registry

_KINDS: Final = {
    Present.kind: "column_missing",
    HasType.kind: "type",
    MaxLength.kind: "type",
    Undeclared.kind: "column_undeclared",
    Required.kind: "nulls",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One way in which what is promised is not what there is; `promised` and `found` are None where nothing fits."""

    kind: str
    message: str
    field: str | None = None
    promised: str | None = None
    found: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As a record of a table."""
        return {name: getattr(self, name) for name in ("kind", "field", "promised", "found", "message")}


def of_schema(verdict: Verdict) -> list[Difference]:
    """Where a table's schema is not its contract's, by the verdict of `spark.schema_audit`, in order of declaration."""
    missing = {one.field for one in verdict.results if one.rule == Present.kind and one.status is Status.FAILED}
    return [
        _of_result(one)
        for one in verdict.results
        if one.status in (Status.FAILED, Status.NOT_EVALUATED)
        # What else is promised of a column that is not there, says nothing more.
        and (one.rule == Present.kind or not _is_inside(one.field, missing))
    ]


def _is_inside(field: str | None, missing: Iterable[str | None]) -> bool:
    return field is not None and any(
        outer is not None and (field == outer or field.startswith(f"{outer}.")) for outer in missing
    )


def _of_result(result: CheckResult) -> Difference:
    kind = _KINDS.get(result.rule, result.rule) if result.status is Status.FAILED else "not_evaluated"
    return Difference(
        kind=kind,
        field=result.field,
        promised=_text(result.threshold),
        found=_text(result.observed),
        message=f"{result.id}: {result.message}",
    )


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def of_registry(contract: Contract, registry: Registry) -> Iterator[Difference]:
    """Where the contract, as its file says it, is not what the registry has. Raises `RegistryError`."""
    from databox_contracts.registry.texts import ordinal

    try:
        versions = registry.versions(contract.id)
        newest = registry.get(contract.id)
    except UnknownContractError:
        yield _not_registered(contract, f"the registry has no contract {contract.id}")
        return
    same = [one for one in versions if ordinal(one.version) == ordinal(contract.version)]
    if not same:
        known = ", ".join(one.version for one in versions)
        yield _not_registered(contract, f"version {contract.version} is not in the registry, which has {known}")
    for stored in same:
        yield from _of_version(contract, stored)
    if _is_later(newest.version, contract.version):
        yield Difference(
            kind="version",
            promised=newest.version,
            found=contract.version,
            message=f"version {newest.version} is the registered one, and the file has {contract.version}",
        )


def _not_registered(contract: Contract, message: str) -> Difference:
    return Difference(kind="not_registered", found=contract.version, message=message)


def _of_version(contract: Contract, stored: StoredVersion) -> Iterator[Difference]:
    from databox_contracts.evolution.judging import diff
    from databox_contracts.registry.publishing import digest_of

    if str(stored.status) == "retired" and contract.status.strip().lower() != "retired":
        yield Difference(
            kind="version",
            promised=str(stored.status),
            found=contract.status,
            message=f"version {stored.version} is retired in the registry, and the file says {contract.status}",
        )
    if stored.digest == digest_of(contract):
        return
    try:
        changes = diff(stored.contract(), contract).changes
    except DataboxError as error:
        changes = ()
        said = f" ({error.message})"
    else:
        said = ""
    for change in changes:
        yield Difference(
            kind=f"registered_{str(change.change_type).lower()}",
            field=change.field_name or None,
            promised=_value(change.old_value),
            found=_value(change.new_value),
            message=f"{change.field_name or contract.id} is not as registered under {stored.version}: "
            f"{change.description}",
        )
    if not changes:
        yield Difference(
            kind="registered_content",
            message=f"the file is not what is registered under version {stored.version}{said}",
        )


def _value(value: Any) -> str | None:
    return None if value is None else str(value)


def _is_later(version: str, other: str) -> bool:
    parsed, known = Version.parse(version), Version.parse(other)
    return parsed is not None and known is not None and known < parsed

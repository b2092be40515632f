"""What a contract's newest version means for those who read the one before, as Dagster shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import dagster as dg

from databox_contracts.errors import ContractConflictError, UnknownContractError
from databox_contracts.evolution.affected import Affected, affected
from databox_contracts.evolution.judging import diff
from databox_contracts.evolution.policies import policy_of
from databox_contracts.evolution.report import FieldChange, MigrationReport
from databox_contracts.model import Contract, Dataset

if TYPE_CHECKING:
    from databox_contracts.registry.api import RegistryApi
    from databox_contracts.registry.records import StoredVersion

COMPATIBILITY: Final = "contract_compatibility"
"""The name of the check, unless another is given."""

MOST_NAMED: Final = 5
_DRAFTS: Final = ("draft", "proposed")

_CHANGES_TABLE: Final = dg.TableSchema(
    columns=[
        dg.TableColumn("breaking", "bool", description="Whether it breaks readers under the policy."),
        dg.TableColumn("change", "string"),
        dg.TableColumn("dataset", "string"),
        dg.TableColumn("field", "string"),
        dg.TableColumn("what", "string"),
        dg.TableColumn("way_out", "string", description="How the same is had without breaking anybody."),
    ]
)
_CONSUMERS_TABLE: Final = dg.TableSchema(
    columns=[
        dg.TableColumn("consumer", "string"),
        dg.TableColumn("owner", "string"),
        dg.TableColumn("broken", "bool", description="Whether it is about to read the version, and that breaks it."),
        dg.TableColumn("situation", "string"),
    ]
)


@dataclass(frozen=True, slots=True)
class Shown:
    """The result of the check on one asset, whoever records it."""

    passed: bool
    severity: dg.AssetCheckSeverity
    description: str
    metadata: dict[str, Any]

    def result(self, key: dg.AssetKey, name: str) -> dg.AssetCheckResult:
        """As a check gives it in a run."""
        return dg.AssetCheckResult(
            asset_key=key,
            check_name=name,
            passed=self.passed,
            severity=self.severity,
            description=self.description,
            metadata=self.metadata,
        )

    def evaluation(self, key: dg.AssetKey, name: str) -> dg.AssetCheckEvaluation:
        """As it is recorded without a run."""
        return dg.AssetCheckEvaluation(
            asset_key=key,
            check_name=name,
            passed=self.passed,
            severity=self.severity,
            description=self.description,
            metadata=self.metadata,
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """A version of a contract and what changed since the one before; no `report` where there is none before."""

    contract: Contract
    previous: Contract | None = None
    report: MigrationReport | None = None
    affected: tuple[Affected, ...] = ()

    def shown(self, dataset: str) -> Shown:
        """For the asset of one of its datasets: what is about that, about the contract, or about datasets that went."""
        facts: dict[str, Any] = {
            "contract_id": self.contract.id,
            "contract_version": self.contract.version,
            "contract_owner": self.contract.owning_team or "none declared",
        }
        report = self.report
        if report is None or self.previous is None:
            sentence = f"{self.contract.version} is the first version that is in force, or will be"
            return Shown(True, dg.AssetCheckSeverity.ERROR, sentence, facts)
        changes = self._changes(report, dataset)
        breaking = [change for change in changes if change.is_breaking]
        readers = [one for one in self.affected if any(change in changes for change in one.changes)]
        facts |= {
            "previous_version": self.previous.version,
            "policy": report.policy,
            "required_bump": str(report.required_bump),
            "actual_bump": str(report.actual_bump) if report.actual_bump is not None else "unknown",
            "changes": len(changes),
            "breaking_changes": len(breaking),
            **({"report": _changes_table(changes)} if changes else {}),
            **({"consumers": _consumers_table(readers)} if readers else {}),
            **({"remarks": dg.MetadataValue.json(list(report.remarks))} if report.remarks else {}),
        }
        # Nobody is told of a draft, and nobody has to act on one.
        is_draft = self.contract.status.lower() in _DRAFTS
        severity = dg.AssetCheckSeverity.WARN if breaking and is_draft else dg.AssetCheckSeverity.ERROR
        return Shown(not breaking, severity, _sentence(self.previous.version, report.policy, changes, breaking), facts)

    def _changes(self, report: MigrationReport, dataset: str) -> list[FieldChange]:
        others = {one.name for one in self.contract.datasets if one.name != dataset}
        return [change for change in report.changes if change.dataset not in others]


def newest_version(versions: Sequence[StoredVersion]) -> StoredVersion | None:
    """The greatest that is in force or will be; without one the greatest draft, else the last there was.

    `versions` are a contract's, in ascending order.
    """
    for statuses in (("active", "deprecated"), ("draft",), ("retired",)):
        found = [one for one in versions if one.status in statuses]
        if found:
            return found[-1]
    return None


def compare_newest(registry: RegistryApi, contract_id: str, written: Contract | None = None) -> Comparison | None:
    """The newest version that the registry has, or that is `written` in a file, against the one before it.

    None where neither knows the contract. Raises `ContractConflictError` for other content under a published version.
    """
    from databox_contracts.registry.publishing import digest_of
    from databox_contracts.registry.texts import ascending, ordinal
    from databox_contracts.registry.versions_of import before

    versions = _versions(registry, contract_id)
    stored = newest_version(versions)
    published_at, contract = datetime.max.replace(tzinfo=UTC), written
    if written is not None:
        same = next((one for one in versions if ordinal(one.version) == ordinal(written.version)), None)
        if same is not None:
            digest = digest_of(written)
            # What an older release of this package stored it would write otherwise today.
            if digest not in (same.digest, digest_of(same.contract())):
                raise ContractConflictError(
                    contract_id, written.version, same.digest, digest, published_as=same.version
                )
            published_at = same.published_at
    is_draft = written is not None and written.status.lower() in _DRAFTS
    if stored is not None and (
        written is None
        or (is_draft and stored.status != "draft")
        or ascending(stored.version, stored.published_at) > ascending(written.version, published_at)
    ):
        contract, published_at = stored.contract(), stored.published_at
    if contract is None:
        return None
    former = before(versions, contract.version, published_at)
    if former is None:
        return Comparison(contract)
    previous = former.contract()
    earlier = [one.contract() for one in versions if one.version != contract.version] if _looks_back(previous) else []
    report = diff(previous, contract, history=earlier)
    return Comparison(contract, previous, report, affected(report, previous, _consumers(registry, contract)))


def problem_shown(text: str, contract_id: str | None) -> Shown:
    """A contract that cannot be compared, or may not be published."""
    facts = {"contract_id": contract_id} if contract_id is not None else {}
    return Shown(False, dg.AssetCheckSeverity.ERROR, text, facts)


def datasets_of(comparison: Comparison) -> list[Dataset]:
    """Those of the new version, and those that it does not have any more, whose assets may still be there."""
    found = {dataset.name: dataset for dataset in comparison.contract.datasets}
    for dataset in comparison.previous.datasets if comparison.previous is not None else ():
        found.setdefault(dataset.name, dataset)
    return list(found.values())


def _versions(registry: RegistryApi, contract_id: str) -> Sequence[StoredVersion]:
    try:
        return registry.versions(contract_id)
    except UnknownContractError:
        return ()


def _looks_back(contract: Contract) -> bool:
    return policy_of(contract).transitive


def _consumers(registry: RegistryApi, contract: Contract) -> list[Any]:
    from databox_contracts.declarations import Declaration
    from databox_contracts.registry.consumers import resolve

    declared = [
        Declaration(contract.id, one.consumer, "the registry", str(one.origin))
        for one in registry.consumers(contract.id)
    ]
    return resolve([contract], declared).of(contract.id)


def _sentence(before: str, policy: str, changes: Sequence[FieldChange], breaking: Sequence[FieldChange]) -> str:
    if not changes:
        return f"nothing changed since {before}"
    count = f"{len(changes)} change{'' if len(changes) == 1 else 's'} since {before}"
    if not breaking:
        return f"{count}, of which none breaks readers under the policy {policy}"
    named = "; ".join(f"{_place(change)}: {change.description}" for change in breaking[:MOST_NAMED])
    more = f"; and {len(breaking) - MOST_NAMED} more" if len(breaking) > MOST_NAMED else ""
    return f"{len(breaking)} of {count} break readers under the policy {policy}: {named}{more}"


def _place(change: FieldChange) -> str:
    if change.dataset is None or change.field_name == change.dataset:
        return change.field_name
    return f"{change.dataset}.{change.field_name}"


def _changes_table(changes: Iterable[FieldChange]) -> dg.TableMetadataValue:
    ordered = sorted(changes, key=lambda change: not change.is_breaking)
    records = [
        dg.TableRecord(
            {
                "breaking": bool(change.is_breaking),
                "change": str(change.change_type),
                "dataset": change.dataset,
                "field": change.field_name if change.field_name != change.dataset else None,
                "what": change.description,
                "way_out": change.hint,
            }
        )
        for change in ordered
    ]
    return dg.MetadataValue.table(records=records, schema=_CHANGES_TABLE)


def _consumers_table(readers: Iterable[Affected]) -> dg.TableMetadataValue:
    records = [
        dg.TableRecord(
            {
                "consumer": one.consumer.name,
                "owner": one.consumer.owner,
                "broken": one.is_broken,
                "situation": one.situation,
            }
        )
        for one in readers
    ]
    return dg.MetadataValue.table(records=records, schema=_CONSUMERS_TABLE)

"""Checks that are red while the newest version of a contract breaks those who read the one before."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import dagster as dg

from databox_contracts.dagster.compatibility import COMPATIBILITY, Shown, compare_newest, problem_shown
from databox_contracts.dagster.contracted_tables import AssetOrKey, known_keys, require_known
from databox_contracts.dagster.registry_resources import ContractRegistryResource
from databox_contracts.dagster.specs import asset_key as translated_key, resolve_contract
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.dagster.wording import contract_text
from databox_contracts.errors import ContractConflictError, ContractError, DataboxError
from databox_contracts.model import Contract

Contracts: TypeAlias = "str | os.PathLike[str] | Contract | Iterable[Contract | str | os.PathLike[str]]"


def build_compatibility_checks(
    contracts: Contracts = "contracts",
    *,
    name: str = COMPATIBILITY,
    assets: Iterable[AssetOrKey] | None = None,
    translator: ContractTranslator | None = None,
    blocking: bool = False,
    registry_resource_key: str = "registry",
) -> list[dg.AssetChecksDefinition]:
    """A check for each dataset's asset that fails while the contract's newest version breaks its readers.

    `contracts` are a folder, files, or contracts; `build_schema_diff_sensor` records the result of these checks
    whenever a version comes, and each may be run again at any time: it reads the contract's file as it is then, and
    compares it with the version before it in the registry of `registry_resource_key`. A breaking version gives a
    failure of severity ERROR, that of a draft WARN; it keeps nothing from running unless `blocking`. A file that is no
    contract, and one whose version is published with other content, fail too.

    Asset keys are the translator's. Where `assets` are given, a check on any other asset is an error, as Dagster itself
    takes a misspelt key for an asset of its own. A file of the folder that cannot be read is left out, with a line in
    the log, so that it does not keep the others from loading. Raises `ContractError` for another contract that cannot
    be used, `DataboxError` for two contracts of one asset.
    """
    using = translator if translator is not None else ContractTranslator()
    known = known_keys(assets)
    steps: dict[dg.AssetKey, CompatibilityStep] = {}
    for contract in _resolved(contracts):
        for dataset in contract.datasets:
            key = translated_key(contract, dataset, using)
            require_known(key, known, contract)
            other = steps.get(key)
            if other is not None and other.contract.id != contract.id:
                raise DataboxError(
                    f"two contracts are for the asset {key.to_user_string()}: {other.contract.id} "
                    f"({other.contract.source or 'in code'}) and {contract.id} ({contract.source or 'in code'})",
                    hint="Give their datasets other names or domains, or override ContractTranslator.get_asset_key.",
                )
            # Several versions of one contract: the newest of them is what is judged.
            if other is None or _is_newer(contract, other.contract):
                steps[key] = CompatibilityStep(key, contract, dataset.name, name, registry_resource_key)
    return [step.definition(blocking=blocking) for step in steps.values()]


@dataclass(frozen=True, slots=True)
class CompatibilityStep:
    """What the check of one asset does in a run."""

    key: dg.AssetKey
    contract: Contract
    dataset: str
    name: str
    registry_resource_key: str

    def definition(self, *, blocking: bool) -> dg.AssetChecksDefinition:
        """The check."""
        spec = dg.AssetCheckSpec(
            name=self.name,
            asset=self.key,
            description=f"The newest version of contract {contract_text(self.contract)} breaks nobody who read the "
            "version before it.",
            blocking=blocking,
            metadata={"contract_id": self.contract.id, "contract_version": self.contract.version},
        )
        return dg.multi_asset_check(
            name=f"{self.key.to_python_identifier()}_{self.name.replace('.', '_')}",
            specs=[spec],
            required_resource_keys={self.registry_resource_key},
        )(self._compute())

    def _compute(self) -> Callable[..., Iterator[dg.AssetCheckResult]]:
        # Dagster looks for a function, and at its annotations, which must not be texts it cannot resolve.
        def compute(context):  # type: ignore[no-untyped-def]
            registry = ContractRegistryResource.among(context.resources, self.registry_resource_key)
            yield self.shown(registry).result(self.key, self.name)

        return compute

    def shown(self, resource: ContractRegistryResource) -> Shown:
        """The result as it is now. A registry that does not answer is an error of the run, not a failed check."""
        source = self.contract.source
        try:
            written = self.contract
            if source is not None and Path(source).is_file():
                written = resolve_contract(source)
            with closing(resource.open()) as registry:
                comparison = compare_newest(registry, self.contract.id, written)
        except (ContractError, ContractConflictError) as error:
            return problem_shown(str(error), self.contract.id)
        except DataboxError as error:
            raise dg.Failure(f"The versions of {self.contract.id} cannot be compared: {error}") from None
        assert comparison is not None
        return comparison.shown(self.dataset)


def _resolved(contracts: Contracts) -> Iterator[Contract]:
    if isinstance(contracts, Contract):
        yield contracts
    elif isinstance(contracts, str | os.PathLike):
        path = Path(contracts)
        if path.is_dir():
            yield from _readable(path)
        else:
            yield resolve_contract(path)
    else:
        for one in contracts:
            yield one if isinstance(one, Contract) else resolve_contract(Path(one))


def _readable(folder: Path) -> Iterator[Contract]:
    from databox_contracts.formats import contract_files

    for path in contract_files(folder):
        try:
            yield resolve_contract(path)
        except ContractError as error:
            dg.get_dagster_logger().error("no check of compatibility for %s: %s", path.name, error)


def _is_newer(contract: Contract, other: Contract) -> bool:
    from databox_contracts.versions import Version

    mine, its = Version.parse(contract.version), Version.parse(other.version)
    return mine is not None and (its is None or mine > its)

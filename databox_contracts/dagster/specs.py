"""Asset and check specs of a contract, shared by everything that declares contracted assets."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

import dagster as dg

from databox_contracts.check_reports import grouped
from databox_contracts.dagster.loading import load_once, plan_of
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.dagster.wording import check_text, contract_text
from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract, Dataset
from databox_contracts.plan import Check
from databox_contracts.rules import NotEnforced, Severity

MOST_LISTED: Final = 50
_CHECK_NAME: Final = re.compile(r"[A-Za-z0-9_.]+")


@dataclass(frozen=True, slots=True)
class CheckGroup:
    """The rules that are one check in Dagster."""

    name: str
    checks: tuple[Check, ...]

    @property
    def blocking(self) -> bool:
        """Whether a failure keeps what is downstream from running: where a rule of severity error is among them."""
        return any(
            check.severity is Severity.ERROR and not isinstance(check.rule, NotEnforced) for check in self.checks
        )


def resolve_contract(contract: Contract | str | Path, *, beside: str | None = None) -> Contract:
    """The contract itself, or the one of that file.

    A relative path is looked for from the working directory, and if it is not there, from the directory of the file
    `beside`. Raises `ContractError` for a file that is missing or no contract.
    """
    if isinstance(contract, Contract):
        return contract
    path = Path(contract)
    if beside is not None and not path.is_absolute() and not path.exists() and (Path(beside).parent / path).exists():
        path = Path(beside).parent / path
    return load_once(path)


def asset_key(contract: Contract, dataset: Dataset, translator: ContractTranslator) -> dg.AssetKey:
    """The translator's key. Raises `DataboxError` if it is none."""
    key = translator.get_asset_key(contract, dataset)
    if not isinstance(key, dg.AssetKey):
        raise DataboxError(
            f"{type(translator).__name__}.get_asset_key gave {key!r} for {contract.title}",
            hint="Return a dagster.AssetKey.",
        )
    return key


def check_groups(contract: Contract, dataset: Dataset, translator: ContractTranslator) -> tuple[CheckGroup, ...]:
    """The dataset's rules under the translator's check names, in order of declaration.

    Rules that are not enforced are no check of their own, as such a check could only ever be green; they are listed in
    the asset's metadata, and in the results of the group they share. Raises `DataboxError` for a name that Dagster
    does not take.
    """

    def name_of(check: Check) -> str:
        name = translator.get_check_name(contract, dataset, check)
        if not isinstance(name, str) or not _is_check_name(name):
            raise DataboxError(
                f"{type(translator).__name__}.get_check_name gave {name!r} for {check.id}",
                hint="A check's name is made of letters, digits, '_' and '.'.",
            )
        return name

    checks = plan_of(contract, dataset).checks
    return tuple(CheckGroup(name, group) for name, group in grouped(checks, name_of).items())


@lru_cache(maxsize=1024)
def _is_check_name(name: str) -> bool:
    return _CHECK_NAME.fullmatch(name) is not None


def selected_groups(
    contract: Contract, dataset: Dataset, translator: ContractTranslator, names: Collection[str]
) -> list[CheckGroup]:
    """Those of the names that a run selected, in order; made in the run, since a load would have to keep all rules."""
    return [group for group in check_groups(contract, dataset, translator) if group.name in names]


def check_specs(
    contract: Contract,
    dataset: Dataset,
    groups: Sequence[CheckGroup],
    key: dg.AssetKey,
    *,
    deps: Iterable[dg.AssetKey] = (),
    partitions_def: dg.PartitionsDefinition[Any] | None = None,
) -> list[dg.AssetCheckSpec]:
    """One spec per group, which waits for the assets `deps` beside its own.

    The description holds version, owner and rules, since Dagster shows no metadata of a spec. Checks are partitioned
    like the asset where the running Dagster has that as a settled feature.
    """
    others = list(dict.fromkeys(deps))
    partitioned: dict[str, Any] = {}
    if partitions_def is not None and checks_take_partitions():
        partitioned["partitions_def"] = partitions_def
    return [
        dg.AssetCheckSpec(
            name=group.name,
            asset=key,
            description=_group_description(contract, group),
            blocking=group.blocking,
            additional_deps=others,
            metadata={
                "contract_id": contract.id,
                "contract_version": contract.version,
                "contract_dataset": dataset.name,
                "rules": [check.id for check in group.checks],
            },
            **partitioned,
        )
        for group in groups
    ]


@cache
def checks_take_partitions() -> bool:
    """Whether the running Dagster has partitions of checks, and does not warn of them as a preview."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            dg.AssetCheckSpec("probe", asset="probe", partitions_def=dg.StaticPartitionsDefinition(["a"]))
        except (TypeError, Warning):
            return False
    return True


def build_asset_spec(
    contract: Contract,
    dataset: Dataset,
    *,
    translator: ContractTranslator,
    key: dg.AssetKey | None = None,
    io_manager_key: str = "io_manager",
) -> dg.AssetSpec:
    """The spec of one dataset, its table being read and written by the IO manager of that key."""
    return describe(contract, dataset, translator=translator, key=key).with_io_manager_key(io_manager_key)


def describe(
    contract: Contract, dataset: Dataset, *, translator: ContractTranslator, key: dg.AssetKey | None = None
) -> dg.AssetSpec:
    """The spec of one dataset, of which nothing is said how it is made.

    Raises `DataboxError` where the translator gives what Dagster does not take.
    """
    given: dict[str, Any] = {
        "group_name": translator.get_group_name(contract, dataset),
        "description": translator.get_description(contract, dataset),
        "owners": translator.get_owners(contract, dataset),
        "tags": translator.get_tags(contract, dataset),
        "kinds": translator.get_kinds(contract, dataset),
        "metadata": translator.get_metadata(contract, dataset),
        "freshness_policy": translator.get_freshness_policy(contract, dataset),
        "automation_condition": translator.get_automation_condition(contract, dataset),
    }
    chosen = key if key is not None else asset_key(contract, dataset, translator)
    try:
        return dg.AssetSpec(chosen, **given)
    except Exception as error:  # Dagster has an error of its own for each argument.
        said = " ".join(str(error).split())
        raise DataboxError(
            f"{type(translator).__name__} gave what Dagster does not take for {contract.title}: {said}",
            hint="Override the method concerned.",
        ) from error


def build_contract_asset_specs(
    contract: Contract | str | Path,
    *,
    translator: ContractTranslator | None = None,
    io_manager_key: str = "io_manager",
) -> list[dg.AssetSpec]:
    """A spec for each dataset of a contract, in order: for external assets, or for a multi-asset of one's own.

    `contract` is the contract or its file. Raises `ContractError` for a file that is no contract, `DataboxError` for a
    translator that gives what Dagster does not take.
    """
    resolved = resolve_contract(contract)
    using = translator if translator is not None else ContractTranslator()
    return [
        build_asset_spec(resolved, dataset, translator=using, io_manager_key=io_manager_key)
        for dataset in resolved.datasets
    ]


def _group_description(contract: Contract, group: CheckGroup) -> str:
    listed = [f"- `{check.id}`: {check_text(check)}" for check in group.checks[:MOST_LISTED]]
    left = len(group.checks) - len(listed)
    count = len(group.checks)
    return "\n".join(
        [
            f"Contract {contract_text(contract)}: {count} rule{'s' if count != 1 else ''}.",
            "",
            *listed,
            *([f"- and {left} more"] if left else []),
        ]
    )

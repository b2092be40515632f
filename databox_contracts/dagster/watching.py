"""The tables that a schedule looks at, and the check of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import dagster as dg

from databox_contracts.dagster.contracted_tables import ContractedTable, ContractOrPath, contracted_tables
from databox_contracts.dagster.producers import read_contracts
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract


def all_contracts(given: ContractOrPath | Iterable[ContractOrPath]) -> list[Contract]:
    """As `read_contracts`. Raises `DataboxError` where there is none at all: it would be watched by nobody."""
    given = [given] if isinstance(given, ContractOrPath) else list(given)
    found = read_contracts(given)
    if not found:
        where = ", ".join(str(one) for one in given)
        raise DataboxError(
            f"there is no contract in {where}" if where else "no contract was given",
            hint="Give contracts, their files, or a folder that has some.",
        )
    return found


def watched_tables(
    contracts: ContractOrPath | Iterable[ContractOrPath], *, translator: ContractTranslator | None, **where: Any
) -> list[ContractedTable]:
    """As `contracted_tables`, of files and folders too. Raises `DataboxError` for two contracts about one asset."""
    using = translator if translator is not None else ContractTranslator()
    tables = contracted_tables(all_contracts(contracts), translator=using, **where)
    found: dict[dg.AssetKey, ContractedTable] = {}
    for table in tables:
        other = found.setdefault(table.key, table)
        if other is not table:
            raise DataboxError(
                f"contracts {other.contract.title} and {table.contract.title} are both about {table.name}",
                hint="Leave one of them out, or override ContractTranslator.get_asset_key.",
            )
    return tables


def table_facts(table: ContractedTable) -> dict[str, Any]:
    """What every result about the table says of its contract."""
    return {
        "contract_id": table.contract.id,
        "contract_version": table.contract.version,
        "contract_owner": table.contract.owning_team or "none declared",
        "contract_dataset": table.dataset.name,
    }


def watching_check(
    table: ContractedTable,
    name: str,
    compute: Callable[..., Any],
    *,
    description: str,
    retry_policy: dg.RetryPolicy | None,
    op_tags: Mapping[str, Any] | None,
    pool: str | None,
) -> dg.AssetChecksDefinition:
    """The check of that name on the table's asset, which blocks nothing; `compute` is its op, with the last three."""
    check = dg.AssetCheckSpec(name=name, asset=table.key, description=description, metadata=table_facts(table))
    return dg.multi_asset_check(
        name=f"{table.key.to_python_identifier()}_{name}",
        specs=[check],
        required_resource_keys={table.source.resource_key},
        retry_policy=retry_policy,
        op_tags=op_tags,
        pool=pool,
    )(compute)

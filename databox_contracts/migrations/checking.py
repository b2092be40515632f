"""A migration held against the contract of the tables that it changes."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

from databox_contracts.errors import ContractError
from databox_contracts.evolution.changes import ChangeType, Difference
from databox_contracts.evolution.comparison import compare
from databox_contracts.evolution.judging import judge
from databox_contracts.evolution.policies import find_policy, policy_of
from databox_contracts.evolution.report import MigrationReport, required_bump
from databox_contracts.evolution.table_formats import TableFormat, gate_of
from databox_contracts.migrations.applying import Migration, start
from databox_contracts.migrations.creating import SOURCE
from databox_contracts.migrations.statements import chosen_dialect
from databox_contracts.model import Contract, Dataset
from databox_contracts.versions import Bump

MOST_CHARACTERS: Final = 1_000_000
"""The longest text that is read; what is longer holds data, not a migration."""


def check_migration(
    contract: Contract,
    sql: str,
    dialect: str | None = None,
    *,
    source: str = SOURCE,
    dataset: str | None = None,
    policy: str | None = None,
    table_format: TableFormat | None = None,
) -> MigrationReport:
    """What the contract would have to become after the statements, judged under its own policy or the named one.

    Only what a database knows is compared, and only where a statement touched it. `dialect` is a name sqlglot knows,
    Spark's if None; `source` is what errors call the text; `dataset` looks at one of the contract's alone. Raises
    `ContractError`, with the place, for a statement that cannot be followed, and `DataboxError` for an unknown
    dialect, dataset or policy.
    """
    chosen = policy_of(contract) if policy is None else find_policy(policy)
    asked = contract.model_copy(update={"datasets": (contract.dataset(dataset),)}) if dataset is not None else contract
    if len(sql) > MOST_CHARACTERS:
        raise ContractError(
            f"the text has {len(sql):,} characters, a migration at most {MOST_CHARACTERS:,}",
            hint="put its data into a file of its own",
            source=source,
        )
    if "\0" in sql:
        raise ContractError("this is no text", hint="name a file with SQL", source=source)
    migration = Migration(asked, start(asked), chosen_dialect(dialect), source)
    migration.run(sql)
    differences = tuple(_differences(asked, migration))
    changes = tuple(judge(differences, chosen))
    return MigrationReport(
        schema_name=contract.id,
        old_version=contract.version,
        new_version=f"{contract.version} after {PurePath(source).name}",
        changes=changes,
        policy=chosen.name,
        remarks=tuple(_remarks(asked, migration, required_bump(changes))),
        title=contract.title,
        table_format=gate_of(differences, chosen, table_format) if table_format is not None else None,
    )


def _differences(contract: Contract, migration: Migration) -> list[Difference]:
    after: list[Dataset] = []
    further: list[Difference] = []
    for dataset in contract.datasets:
        state = next((one for one in migration.tables if one.promised is dataset), None)
        if state is None:
            continue
        after.append(state.dataset)
        if state.moved is not None:
            kind = ChangeType.DATASET_RENAMED
            further.append(Difference(kind, dataset.name, old=dataset.table_name, new=state.moved, subject="table"))
        further += state.further_differences()
    return [*compare(contract, contract.model_copy(update={"datasets": tuple(after)})), *further]


def _remarks(contract: Contract, migration: Migration, needed: Bump) -> list[str]:
    remarks = list(migration.remarks)
    for state in migration.tables:
        remarks += [
            f"{name!r} of {state.dataset.name!r} holds what {origin!r} held" for name, origin in state.takeovers()
        ]
    if not migration.count:
        remarks.append("the file has no statement")
    elif not any(state.promised is not None for state in migration.touched):
        names = ", ".join(dataset.table_name for dataset in contract.datasets) or "none"
        remarks.append(f"no statement is about a table of the contract ({names})")
    if needed is not Bump.NONE:
        remarks.append(f"the contract has to say so too: these changes need a {needed} version of it")
    return remarks

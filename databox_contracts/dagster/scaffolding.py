"""`dg scaffold defs databox_contracts.dagster.DataContractsComponent NAME`: a component with a first contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field

from databox_contracts.errors import DataboxError, Level

if TYPE_CHECKING:
    from databox_contracts.inferred import Inferred
    from databox_contracts.model import Dataset
    from databox_contracts.rules import Rule

FOLDER: Final = "contracts"
"""Where the contracts are, in the component's folder."""


class ContractsParams(BaseModel):
    """What `dg scaffold defs` may be told."""

    model_config = ConfigDict(extra="forbid")

    contracts: str | None = Field(
        default=None, description="A folder of contracts that is there already, from the component's folder."
    )
    table: str | None = Field(
        default=None, description="A Parquet file or directory that a first contract is made of; no row is looked at."
    )
    ddl: str | None = Field(default=None, description="A file of SQL that creates tables, for a first contract.")
    dialect: str | None = Field(default=None, description="The SQL dialect of the DDL; Spark's if not given.")
    contract_id: str | None = Field(default=None, description="The contract's id; the table's name if not given.")
    domain: str | None = Field(default=None, description="The contract's domain, the first part of the asset's key.")


class ContractsScaffolder(dg.Scaffolder[ContractsParams]):
    """Writes `defs.yaml`, and beside it a folder of contracts with a first one: that of the table that is named.

    Where none is named, it is one to begin with, of a table that has the component's name.
    """

    @classmethod
    def get_scaffold_params(cls) -> type[ContractsParams]:
        """What may be told."""
        return ContractsParams

    def scaffold(self, request: dg.ScaffoldRequest[ContractsParams]) -> None:
        """Raises `DataboxError` for parameters that contradict, a table that cannot be read, a file that is there."""
        params = request.params
        given = [name for name in ("contracts", "table", "ddl") if getattr(params, name) is not None]
        if len(given) > 1:
            raise DataboxError(f"both {given[0]} and {given[1]} were given", hint="Give one of them.")
        if params.contracts is None:
            inferred = first_contract(params, request.target_path.name)
            text = checked_text(inferred)
            folder = request.target_path / FOLDER
            folder.mkdir(parents=True, exist_ok=True)
            _write(folder / f"{inferred.contract.datasets[0].name}.yaml", text)
        attributes: dict[str, Any] = {"contracts": params.contracts or FOLDER, "granularity": "dimension"}
        dg.scaffold_component(request, attributes)


def first_contract(params: ContractsParams, name: str) -> Inferred:
    """The contract of the table or the DDL that is named, else one to begin with, of a table of that name.

    It says what the schema says: types, keys, nulls; and what looks personal by its name is marked, as a guess.
    """
    from databox_contracts.model import Dataset

    if params.dialect is not None and params.ddl is None:
        raise DataboxError("a dialect was given, and no DDL", hint="Name the file of SQL as ddl.")
    if params.ddl is not None:
        from databox_contracts.migrations import datasets_of

        path = Path(params.ddl)
        return _described(params, datasets_of(_text(path), params.dialect, source=str(path)))
    if params.table is not None:
        from databox_contracts.spark.parquet_schema import fields_of_parquet

        table = Path(params.table)
        stem = table.name.split(".")[0] or "data"
        return _described(params, (Dataset(name=stem, fields=fields_of_parquet(table)),))
    return _described(params, (_to_begin_with(name),))


def _to_begin_with(name: str) -> Dataset:
    from databox_contracts.datatypes import parse_type
    from databox_contracts.model import Dataset, Field
    from databox_contracts.rules import Required, Unique

    fields = (
        Field(name="id", type=parse_type("bigint"), rules=(Required(), Unique()), description="Identifies a row."),
        Field(name="updated_at", type=parse_type("timestamp"), description="When the row was last written."),
    )
    return Dataset(name=name, fields=fields, description="Say here what a row of this table is.")


def _described(params: ContractsParams, datasets: tuple[Dataset, ...]) -> Inferred:
    from databox_contracts.inferred import Inferred
    from databox_contracts.model import Contract
    from databox_contracts.personal import mark_personal

    known = {dataset.name for dataset in datasets}
    kept = [dataset.model_copy(update={"rules": tuple(_within(dataset, known))}) for dataset in datasets]
    marked = [(dataset, *mark_personal(dataset.name, dataset.fields)) for dataset in kept]
    contract = Contract(
        id=params.contract_id or datasets[0].name,
        version="0.1.0",
        domain=params.domain,
        datasets=tuple(dataset.model_copy(update={"fields": fields}) for dataset, fields, _ in marked),
    )
    return Inferred(contract, tuple(guess for _, _, guesses in marked for guess in guesses))


def _within(dataset: Dataset, known: set[str]) -> Iterator[Rule]:
    """The rules of a dataset but for references to tables that are not in the contract."""
    from databox_contracts.rules import ForeignKey

    return (rule for rule in dataset.rules if not isinstance(rule, ForeignKey) or rule.to in known)


def checked_text(inferred: Inferred) -> str:
    """The text of the contract. Raises `DataboxError` where it would not be read without a remark."""
    from databox_contracts.formats import read
    from databox_contracts.formats.guesses import dump_inferred

    text = dump_inferred(inferred)
    bad = [finding for finding in read(text, "the first contract")[1] if finding.level is not Level.NOTE]
    if bad:
        raise DataboxError(f"no contract can say this: {bad[0].message}", hint=bad[0].hint)
    return text


def _write(path: Path, text: str) -> None:
    if path.exists():
        raise DataboxError(f"there is {str(path)!r} already", hint="Remove it, or name another component.")
    path.write_text(text, encoding="utf-8")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "it is not UTF-8"
        raise DataboxError(f"cannot read {str(path)!r}: {reason}", hint="Check the path.") from None

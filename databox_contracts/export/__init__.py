"""What other tools read, made from a contract: schemas, DDL, models and pages. One file per target."""

from __future__ import annotations

from typing import Final

from databox_contracts.errors import DataboxError
from databox_contracts.export.avro import export_avro
from databox_contracts.export.dbt import export_dbt
from databox_contracts.export.html import export_html
from databox_contracts.export.json_schema import export_json_schema
from databox_contracts.export.markdown import export_markdown
from databox_contracts.export.spark_ddl import export_spark_ddl
from databox_contracts.export.spark_json import export_spark_json
from databox_contracts.export.sql_ddl import export_sql
from databox_contracts.export.targets import Exported, Exporter, Target
from databox_contracts.model import Contract

__all__ = ["EXPORTERS", "Exported", "Exporter", "Target", "export"]


EXPORTERS: Final[tuple[Exporter, ...]] = (
    Exporter("spark-ddl", "Spark schema as DDL", export_spark_ddl, one_dataset=True),
    Exporter("spark-json", "Spark schema as JSON", export_spark_json, one_dataset=True),
    Exporter("avro", "Avro schema", export_avro, one_dataset=True),
    Exporter("json-schema", "JSON Schema of a row, draft 2020-12", export_json_schema, one_dataset=True),
    Exporter("sql", "CREATE TABLE in any SQL dialect", export_sql),
    Exporter("dbt", "dbt models with contracts and tests", export_dbt),
    Exporter("markdown", "Markdown, one page", export_markdown),
    Exporter("html", "HTML, one self-contained page", export_html),
)
"""Every target, in the order in which they are listed."""


def export(contract: Contract, to: str, *, dataset: str | None = None, dialect: str | None = None) -> Exported:
    """The contract, or one dataset of it, as another tool reads it. The same contract always gives the same text.

    Raises `DataboxError` for an unknown target (it lists those there are), and `UnknownDatasetError` for a dataset that
    is not there, or is not named where the target describes one table and the contract has several.
    """
    exporter = next((one for one in EXPORTERS if one.name == to), None)
    if exporter is None:
        known = ", ".join(one.name for one in EXPORTERS)
        raise DataboxError(f"nothing is exported as {to!r}", hint=f"use one of: {known}")
    wanted = (contract.dataset(dataset),) if dataset is not None or exporter.one_dataset else contract.datasets
    return exporter.export(Target(contract, wanted, dialect))

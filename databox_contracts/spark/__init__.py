"""Verification and publication of Spark tables; the only room that imports pyspark."""

from databox_contracts.spark.catalog_publication import CatalogPlace
from databox_contracts.spark.delta_publication import DeltaPlace
from databox_contracts.spark.drifting import sample_drift
from databox_contracts.spark.iceberg_publication import IcebergPlace
from databox_contracts.spark.iceberg_session import SessionIcebergPlace
from databox_contracts.spark.profiling import infer_contract, infer_with_guesses
from databox_contracts.spark.publication import Publication, publish
from databox_contracts.spark.reader_columns import ReadChange
from databox_contracts.spark.reader_contracts import ReadReport, read_with_contract
from databox_contracts.spark.reading import is_dataframe, read_table
from databox_contracts.spark.replaying import Replay, replay
from databox_contracts.spark.server import server_status, shared_session, stop_server
from databox_contracts.spark.splitting import Split, quarantine
from databox_contracts.spark.stores import read_published
from databox_contracts.spark.streams import BatchReport, ContractStream, enforce_stream
from databox_contracts.spark.tables import TablePlace
from databox_contracts.spark.verification import enforce, verify

__all__ = [
    "BatchReport",
    "CatalogPlace",
    "ContractStream",
    "DeltaPlace",
    "IcebergPlace",
    "Publication",
    "ReadChange",
    "ReadReport",
    "Replay",
    "SessionIcebergPlace",
    "Split",
    "TablePlace",
    "enforce",
    "enforce_stream",
    "infer_contract",
    "infer_with_guesses",
    "is_dataframe",
    "publish",
    "quarantine",
    "read_published",
    "read_table",
    "read_with_contract",
    "replay",
    "sample_drift",
    "server_status",
    "shared_session",
    "stop_server",
    "verify",
]

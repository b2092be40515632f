"""Verification and publication of Spark tables; the only room that imports pyspark."""

from databox_contracts.spark.publication import Publication, publish
from databox_contracts.spark.tables import TablePlace, read_published
from databox_contracts.spark.verification import enforce, verify

__all__ = ["Publication", "TablePlace", "enforce", "publish", "read_published", "verify"]

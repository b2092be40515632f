"""The fields of Parquet files are told from their footers, without a session."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from databox_contracts.errors import UnreadableTableError
from databox_contracts.rules import Required
from databox_contracts.spark.parquet_schema import fields_of_parquet


def types_of(fields):
    return [(field.name, str(field.type)) for field in fields]


def test_files_that_spark_wrote_have_its_own_schema(spark, tmp_path):
    columns = "1S id, cast('2024-01-01' as timestamp_ntz) at, named_struct('sku', 'a', 'n', 2) item, map('a', 1D) by"
    spark.sql(f"select {columns}").write.parquet(str(tmp_path / "orders"))
    fields = fields_of_parquet(tmp_path / "orders")
    assert types_of(fields) == [
        ("id", "integer(16)"),
        ("at", "timestamp without zone"),
        ("item", "object"),
        ("by", "map"),
    ]
    assert types_of(fields[2].fields) == [("sku", "string"), ("n", "integer(32)")]
    assert types_of(fields[3].parts) == [("key", "string"), ("value", "number(64)")]


def test_files_that_others_wrote_have_arrows(tmp_path):
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("at", pa.timestamp("us", tz="UTC")),
            pa.field("day", pa.date32()),
            pa.field("total", pa.decimal128(38, 9)),
            pa.field("raw", pa.binary()),
        ]
    )
    pq.write_table(schema.empty_table(), tmp_path / "t.parquet")
    fields = fields_of_parquet(tmp_path / "t.parquet")
    assert types_of(fields) == [
        ("id", "integer(64)"),
        ("at", "timestamp with zone"),
        ("day", "date"),
        ("total", "decimal(38, 9)"),
        ("raw", "binary"),
    ]
    assert [bool(field.rules) for field in fields] == [True, False, False, False, False]
    assert fields[0].rules == (Required(),)


def test_what_cannot_be_told_is_said(tmp_path):
    with pytest.raises(UnreadableTableError, match="there is nothing"):
        fields_of_parquet(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnreadableTableError, match="there are no data files"):
        fields_of_parquet(tmp_path / "empty")
    (tmp_path / "a.csv").write_text("a,b\n")
    with pytest.raises(UnreadableTableError, match=r"a\.csv is no Parquet file"):
        fields_of_parquet(tmp_path / "a.csv")
    (tmp_path / "t" / "day=2024-01-01").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "t" / "day=2024-01-01" / "part.parquet")
    with pytest.raises(UnreadableTableError, match=r"it has partitions.*generate --data"):
        fields_of_parquet(tmp_path / "t")
    pq.write_table(pa.table({"for": pa.array([1], pa.duration("s"))}), tmp_path / "u.parquet")
    fields = fields_of_parquet(tmp_path / "u.parquet")
    # An interval, which contracts have no word for.
    assert types_of(fields) == [("for", "None")]

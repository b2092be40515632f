"""Iceberg tables of a session's catalog, on a PySpark that has Iceberg's runtime: that of `scripts/iceberg_lane.sh`."""

from __future__ import annotations

import json
import os
import subprocess
import textwrap
from pathlib import Path

import pytest

import databox_contracts
from databox_contracts.errors import PublicationError
from databox_contracts.spark import SessionIcebergPlace

PROJECT = Path(databox_contracts.__file__).parent.parent
PYTHON = Path(os.environ.get("DATABOX_ICEBERG_PYTHON", PROJECT / ".lanes" / "iceberg" / "bin" / "python"))

SCRIPT = textwrap.dedent(
    """
    import contextlib, io, json, sys
    from importlib.util import find_spec
    from pathlib import Path
    from pyspark.sql import SparkSession
    from databox_contracts import rules
    from databox_contracts.cli import main
    from databox_contracts.errors import DataboxError, ContractViolationError
    from databox_contracts.formats import dump_contract
    from databox_contracts.spark import SessionIcebergPlace, publish, read_published, replay
    from databox_contracts.testing import build_contract, build_field

    root = Path(sys.argv[1])
    jars = Path(find_spec("snowpark_connect_deps_iceberg").origin).parent / "jars"
    [jar] = jars.glob("iceberg-spark-runtime-3.5_2.12-*.jar")
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", str(jar))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.lake.type", "hadoop")
        .config("spark.sql.catalog.lake.warehouse", str(root / "warehouse"))
        .getOrCreate()
    )
    spark.sql("CREATE NAMESPACE lake.shop")
    place = SessionIcebergPlace("lake.shop.orders", root / "staging")
    contract = build_contract(
        build_field("id", "int"),
        build_field("price", "double", rules.Minimum(limit=0)),
        rules=(rules.PrimaryKey(fields=("id",)),),
    )

    def rows(*found):
        return spark.createDataFrame(list(found), "id int, price double").coalesce(1)

    def attempt(what):
        try:
            return what()
        except DataboxError as error:
            return error

    def see():
        return sorted(row[0] for row in spark.sql("SELECT id FROM lake.shop.orders").collect())

    said = {}
    said["nothing yet"] = str(attempt(lambda: read_published(spark, place)))
    first = publish(rows((1, 1.0), (2, 2.0)), contract, place=place)
    said["first"] = [first.rows_published, see()]
    opened = read_published(spark, place)

    violated = attempt(lambda: publish(rows((3, -1.0)), contract, place=place))
    said["violated"] = [type(violated).__name__, violated.publication.version == first.version, see()]

    held = publish(rows((5, 1.0), (6, -1.0), (7, 1.0), (7, 2.0)), contract, place=place, on_violation="quarantine")
    said["quarantined"] = [held.rows_in, held.rows_published, held.rows_quarantined, see()]
    said["held"] = sorted(row[0] for row in spark.read.parquet(str(held.quarantine)).select("id").collect())
    said["reader of before"] = sorted(row[0] for row in opened.collect())

    publish(rows((8, 1.0)), contract, place=place, mode="append")
    said["appended"] = see()
    clash = attempt(lambda: publish(rows((8, 1.0)), contract, place=place, mode="append"))
    said["clash"] = [type(clash).__name__, see()]

    calls = []

    def clock():
        from datetime import UTC, datetime

        calls.append(1)
        # While the staged rows are already audited.
        if len(calls) == 4:
            spark.sql("INSERT INTO lake.shop.orders VALUES (100, 1.0)")
        return datetime.now(UTC)

    said["overtaken"] = [str(attempt(lambda: publish(rows((9, 1.0)), contract, place=place, clock=clock))), see()]
    wide = rows((1, 1.0)).selectExpr("*", "1S small")
    small = build_contract(build_field("id", "int"), build_field("price", "double"), build_field("small", "smallint"))
    said["type"] = str(attempt(lambda: publish(wide, small, place=place)))
    said["branches"] = [row[0] for row in spark.sql("SELECT name FROM lake.shop.orders.refs").collect()]

    days = SessionIcebergPlace("lake.shop.days", root / "staging")
    free = build_contract(
        build_field("id", "int"), build_field("day", "date"), build_field("v", "string", rules.Enum(values=("x",)))
    )

    def by_day(*found):
        return spark.createDataFrame(list(found), "id int, day string, v string").selectExpr("id", "date(day) day", "v")

    def all_days():
        rows = spark.sql("SELECT id, day FROM lake.shop.days").collect()
        return sorted([[row[0], str(row[1])] for row in rows])

    FIRST, SECOND = "2024-01-01", "2024-01-02"
    publish(by_day((1, FIRST, "x"), (2, SECOND, "x"), (3, None, "x")), free, place=days, partition_by=("day",))
    said["partitioned"] = all_days()
    options = {"mode": "overwrite_partitions", "partitions": [{"day": SECOND}, {"day": None}]}
    publish(by_day((5, SECOND, "x")), free, place=days, **options)
    said["partitions replaced"] = all_days()
    publish(by_day(), free, place=days, mode="overwrite_partitions", partitions=[{"day": FIRST}])
    said["partition emptied"] = all_days()
    publish(by_day((6, FIRST, "x"), (7, FIRST, "y")), free, place=days, mode="append", on_violation="quarantine")
    said["partition appended"] = all_days()
    other = attempt(lambda: publish(by_day((6, FIRST, "x")), free, place=days, mode="append", partition_by="v"))
    said["other partitions"] = str(other)
    wider = build_contract(
        build_field("id", "int"),
        build_field("day", "date"),
        build_field("v", "string", rules.Enum(values=("x", "y"))),
        version="1.1.0",
    )
    (root / "wider.yaml").write_text(dump_contract(wider))

    def command(action, *more):
        heard = io.StringIO()
        with contextlib.redirect_stdout(heard):
            arguments = [action, str(root / "staging"), "lake.shop.days", "--place", "iceberg-session", *more]
            code = main(["quarantine", *arguments, "--format", "json"])
        return [code, json.loads(heard.getvalue())]

    code, listed = command("list")
    said["listed"] = [code, [batch["rows"] for batch in listed["batches"]]]
    code, done = command("replay", "--contract", str(root / "wider.yaml"))
    # The command has a session of its own, and Iceberg's catalog remembers a table for half a minute in each.
    spark.sql("REFRESH TABLE lake.shop.days")
    said["released"] = [code, done["rows_released"], done["rows_held"], done["table_rows"], all_days()]
    said["released again"] = [replay(spark, wider, place=days).rows, all_days()]
    summaries = [row[0] for row in spark.sql("SELECT summary FROM lake.shop.days.snapshots").collect()]
    said["releases"] = [value for one in summaries for key, value in one.items() if ".release." in key]
    said["left"] = sorted(file.name for file in (root / "staging").rglob("*.parquet") if "quarantine" not in str(file))
    print("SAID " + json.dumps(said))
    spark.stop()
    """
)


def test_names() -> None:
    for name in ("orders", "shop.orders", "lake.shop.or ders", "lake..orders"):
        with pytest.raises(PublicationError, match=r"Name it catalog\.namespace\.table"):
            SessionIcebergPlace(name, Path("staging"))


@pytest.mark.full
@pytest.mark.skipif(not PYTHON.exists(), reason="PySpark 3.5 with Iceberg is not there: run scripts/iceberg_lane.sh")
def test_write_audit_publish_through_the_catalog_of_the_session(tmp_path: Path) -> None:
    done = subprocess.run(
        [PYTHON, "-c", SCRIPT, tmp_path],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
    )
    answers = [line for line in done.stdout.splitlines() if line.startswith("SAID ")]
    assert answers, done.stderr[-3000:]
    said = json.loads(answers[0].removeprefix("SAID "))
    overtaken, seen = said.pop("overtaken")
    of_type, nothing_yet, other = said.pop("type"), said.pop("nothing yet"), said.pop("other partitions")
    assert said == {
        "first": [2, [1, 2]],
        "violated": ["ContractViolationError", True, [1, 2]],
        "quarantined": [4, 1, 3, [5]],
        "held": [6, 7, 7],
        "reader of before": [1, 2],
        "appended": [5, 8],
        "clash": ["ContractViolationError", [5, 8]],
        "branches": ["main"],
        "left": [],
        "partitioned": [[1, "2024-01-01"], [2, "2024-01-02"], [3, "None"]],
        "partitions replaced": [[1, "2024-01-01"], [5, "2024-01-02"]],
        "partition emptied": [[5, "2024-01-02"]],
        "partition appended": [[5, "2024-01-02"], [6, "2024-01-01"]],
        "listed": [0, [1]],
        "released": [0, 1, 0, 3, [[5, "2024-01-02"], [6, "2024-01-01"], [7, "2024-01-01"]]],
        "released again": [0, [[5, "2024-01-02"], [6, "2024-01-01"], [7, "2024-01-01"]]],
        "releases": ["1"],
    }
    assert "it is partitioned by day, and the rows would be by v" in other
    assert "finished first" in overtaken
    assert seen == [5, 8, 100]
    assert "is of type smallint, which Iceberg does not have" in of_type
    assert "nothing was published there yet" in nothing_yet

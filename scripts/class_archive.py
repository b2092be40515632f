"""Writes Spark's classes, as Java has read and checked them, into a file that other Java processes map.

The tests start more than a hundred Java processes, and reading classes is two fifths of what a short one takes. The
file fits one Java and one PySpark; a Java process that it does not fit goes without.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable -Xlog:all=error:stderr"


def main() -> None:
    """`class_archive.py FILE`: publishes tables, and keeps the classes that this took."""
    archive = Path(sys.argv[1])
    os.environ["SPARK_SUBMIT_OPTS"] = f"{JAVA} -XX:ArchiveClassesAtExit={archive}"
    from databox_contracts.formats import load_contract
    from databox_contracts.spark import TablePlace, publish
    from databox_contracts.spark.session import local_session

    spark = local_session("classes", master="local[2]", conf={"spark.sql.shuffle.partitions": 2})
    project = Path(__file__).resolve().parent.parent
    contract = load_contract(project / "contracts" / "aviation" / "airports.yaml")
    rows = spark.read.csv(
        str(project / "examples" / "nyc_weather" / "airports.csv.gz"),
        schema="faa string, name string, lat double, lon double, alt int, tz int, dst string, tzone string",
        header=True,
    )
    with tempfile.TemporaryDirectory() as root:
        for format in ("parquet", "csv"):
            publish(rows, contract, place=TablePlace(Path(root), format, format), on_violation="quarantine")
    spark.stop()


if __name__ == "__main__":
    main()

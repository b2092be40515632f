"""Which files count as the newest; no Spark is needed for it."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from databox_contracts.spark.newest import (
    DataFile,
    files_below,
    files_listed,
    in_order,
    is_time_like,
    newest_writes,
    partition_values,
)
from databox_contracts.spark.row_groups import footer_of, last_groups, read_last, shares


def make(root: Path, *files: tuple[str, int]) -> None:
    for name, written in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (written, written))


def newest(root: Path, most: int) -> list[str]:
    listed = [str(path) for path in sorted(root.rglob("*")) if path.is_file() and path.name[0] not in "._"]
    known = [DataFile(path, os.stat(path).st_mtime_ns) for path in listed]
    walked = [one for written, _ in newest_writes(files_below(root), most=most) for one in written]
    told = [one for written, _ in newest_writes(files_listed(known, str(root)), most=most) for one in written]
    assert [one.path for one in walked] == [one.path for one in told]
    return [one.path[len(str(root)) + 1 :] for one in walked]


def test_the_last_written_file_is_first_and_hidden_ones_are_none(tmp_path: Path) -> None:
    make(tmp_path, ("a.parquet", 30), ("b.parquet", 10), ("c.parquet", 20), ("_SUCCESS", 99), (".a.parquet.crc", 99))
    assert newest(tmp_path, 2) == ["a.parquet", "c.parquet"]
    assert newest(tmp_path, 9) == ["a.parquet", "c.parquet", "b.parquet"]
    (tmp_path / "none").mkdir()
    assert newest(tmp_path / "none", 2) == []


def test_the_files_of_one_write_are_evenly_taken(tmp_path: Path) -> None:
    old, new = ("11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222")
    make(tmp_path, *((f"part-{at:05}-{new}-c000.parquet", 50 - at) for at in range(9)))
    make(tmp_path, *((f"part-{at:05}-{old}-c000.parquet", 20) for at in range(9)))
    assert [name[5:10] for name in newest(tmp_path, 3)] == ["00008", "00005", "00002"]
    assert [name[11] for name in newest(tmp_path, 12)] == ["2"] * 9 + ["1"] * 3
    complete = [whole for _, whole in newest_writes(files_below(tmp_path), most=12)]
    assert complete == [True, False]


def test_partitions_by_time_are_taken_from_the_last_on_whenever_they_were_written(tmp_path: Path) -> None:
    make(tmp_path, *((f"day=2026-01-{day:02}/f.parquet", 100 - day) for day in (1, 2, 9, 10)))
    make(tmp_path, ("day=__HIVE_DEFAULT_PARTITION__/f.parquet", 500))
    assert newest(tmp_path, 3) == [f"day=2026-01-{day:02}/f.parquet" for day in (10, 9, 2)]
    assert newest(tmp_path, 9)[-1] == "day=__HIVE_DEFAULT_PARTITION__/f.parquet"


def test_numbers_of_a_time_are_ordered_by_size_and_other_partitions_taken_together(tmp_path: Path) -> None:
    make(
        tmp_path,
        ("country=DE/month=9/a.parquet", 1),
        ("country=DE/month=10/b.parquet", 2),
        ("country=US/month=10/c.parquet", 3),
        ("country=US/month=2/d.parquet", 9),
    )
    assert newest(tmp_path, 4) == [
        "country=US/month=10/c.parquet",
        "country=DE/month=10/b.parquet",
        "country=US/month=2/d.parquet",
        "country=DE/month=9/a.parquet",
    ]


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [
        (["d=2026-01-01", "d=2026-01-02"], True),
        (["d=2026-01"], True),
        (["d=2026-01-01 10%3A00%3A00"], True),
        (["d=20260101"], True),
        (["d=2026"], True),
        (["hour=7", "hour=11"], True),
        # A shop or a version is no time.
        (["shop=7", "shop=11"], False),
        (["d=2026-01-01", "d=other"], False),
        (["d=__HIVE_DEFAULT_PARTITION__"], False),
        (["data"], False),
        ([], False),
    ],
)
def test_what_is_a_time(partitions: list[str], expected: bool) -> None:
    assert is_time_like(partitions) is expected


def test_names_and_values_of_partitions() -> None:
    assert in_order(["h=9", "h=10", "h=011"]) == ["h=011", "h=10", "h=9"]
    path = "/t/a%20b=x%2Fy/c=__HIVE_DEFAULT_PARTITION__/part=0.parquet"
    assert partition_values(path, "/t") == {"a b": "x/y", "c": None}


def test_the_last_row_groups_are_read_and_no_more_than_asked_for(tmp_path: Path) -> None:
    path = str(tmp_path / "f.parquet")
    pq.write_table(pa.table({"id": list(range(10))}), path, row_group_size=4)
    footer = footer_of(path)
    assert (footer.rows, footer.groups, footer.exact) == (10, (4, 4, 2), True)
    assert last_groups(footer, 2) == [2]
    assert last_groups(footer, 3) == [1, 2]
    assert last_groups(footer, 99) == [0, 1, 2]
    assert read_last(footer, 3)["id"].to_pylist() == [4, 8, 9]
    assert read_last(footer, 1)["id"].to_pylist() == [8]
    assert read_last(footer, 99)["id"].to_pylist() == list(range(10))
    assert read_last(footer, 0)["id"].to_pylist() == []
    pq.write_table(pa.table({"t": pa.array([1], pa.timestamp("ns"))}), path, use_deprecated_int96_timestamps=True)
    assert not footer_of(path).exact


@pytest.mark.parametrize(
    ("files", "rows", "expected"),
    [([10, 10], 10, [5, 5]), ([1, 10], 10, [1, 9]), ([0, 3], 10, [0, 3]), ([5, 5, 5], 4, [2, 1, 1]), ([], 5, [])],
)
def test_files_give_even_shares(tmp_path: Path, files: list[int], rows: int, expected: list[int]) -> None:
    footers = []
    for at, count in enumerate(files):
        pq.write_table(pa.table({"id": list(range(count))}), str(tmp_path / f"{at}.parquet"))
        footers.append(footer_of(str(tmp_path / f"{at}.parquet")))
    assert shares(footers, rows) == expected

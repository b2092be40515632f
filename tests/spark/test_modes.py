"""Schema modes with real Spark, against an oracle in plain Python that looks at one row after the other."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from pyspark.sql import functions as F

from databox_contracts.errors import DataValidationError
from databox_contracts.model import Mode, SchemaModes
from databox_contracts.spark import TablePlace, publish, read_published
from databox_contracts.spark.modes import apply_modes
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

E, Z, R, V = Mode.EVOLVE, Mode.FREEZE, Mode.DISCARD_ROW, Mode.DISCARD_VALUE
ALL: Final = list(itertools.product(Mode, Mode, Mode))

SCHEMA: Final = (
    "extra string, id int, n string, o struct<a:int,b:string>, subs array<struct<k:int>>,"
    " items array<struct<q:string,z:int>>, tags array<string>"
)
CONTRACT: Final = build_contract(
    build_field("id", "int"),
    build_field("n", "int"),
    build_field("o", "struct<a: int>"),
    build_field("items", "array<struct<q: int>>"),
    build_field("tags", "array<int>"),
    dataset="orders",
)
# What a text is as an int, literally; what is not here is none.
INTS: Final = {"1": 1, "07": 7, "-3": -3, "2147483647": 2147483647}
ROWS: Final[list[tuple[Any, ...]]] = [
    (None, 1, "1", (1, None), None, [("1", None)], ["1", "07"]),
    ("e", 2, "07", (2, None), [(1,), (2,)], [], []),
    (None, 3, "x", (None, None), [], None, None),
    (None, 4, None, None, None, [("x", None), ("1", 5), ("-3", None), None], ["1", "x", None]),
    (None, 5, "2.5", (5, "b"), None, [("2.5", 6)], ["x", "y"]),
    (None, None, "", (1, None), [(None,)], [(None, None), (None, 7)], [None]),
    ("", 7, "2147483648", (1, ""), [None], [("2147483647", None)], ["2147483648"]),
    (None, 8, "-3", (1, None), None, None, ["-3"]),
]


def missing(text: str | None) -> bool:
    return text is not None and text not in INTS


class Oracle:
    def __init__(self, tables: Mode, columns: Mode, data_type: Mode) -> None:
        self.tables, self.columns, self.data_type = tables, columns, data_type
        self.rows: list[dict[str, Any]] = []
        self.discarded = self.elements = self.values = 0
        for row in ROWS:
            self.row(*row)

    def row(self, extra: Any, id_: Any, n: Any, o: Any, subs: Any, items: Any, tags: Any) -> None:
        t, c, d = self.tables, self.columns, self.data_type
        drop = (c is R and (extra is not None or (o is not None and o[1] is not None))) or (d is R and missing(n))
        if drop:
            self.discarded += 1
            return
        out: dict[str, Any] = {}
        last: dict[str, Any] = {}
        variants: dict[str, Any] = {}
        self.undeclared(c, "extra", extra, out, last)
        out["id"] = id_
        self.typed("n", n, out, variants)
        out["o"] = None if o is None else self.object("a", o[0], "b", o[1])
        if t in (Z, E):
            (out if t is Z else last)["subs"] = None if subs is None else [s and {"k": s[0]} for s in subs]
        elif subs is not None:
            self.elements += len(subs)
        out["items"] = None if items is None else list(self.items(items))
        if d is E:
            odd = tags is not None and any(map(missing, tags))
            out["tags"] = None if odd or tags is None else [INTS.get(tag) for tag in tags]
            variants["tags__v_array_string"] = tags if odd else None
        elif tags is None or d is Z:
            out["tags"] = tags
        else:
            odd = sum(map(missing, tags))
            self.elements += odd if d is R else 0
            self.values += odd if d is V else 0
            out["tags"] = [INTS.get(tag) for tag in tags if not (d is R and missing(tag))]
        self.rows.append({**out, **last, **variants})

    def undeclared(self, mode: Mode, name: str, value: Any, out: dict[str, Any], last: dict[str, Any]) -> None:
        if mode is Z:
            out[name] = value
        elif mode is E:
            last[name] = value
        elif mode is V:
            self.values += value is not None

    def typed(self, name: str, text: Any, out: dict[str, Any], variants: dict[str, Any]) -> None:
        if self.data_type is Z:
            out[name] = text
            return
        out[name] = INTS.get(text)
        if self.data_type is E:
            variants[f"{name}__v_string"] = text if missing(text) else None
        if self.data_type is V:
            self.values += missing(text)

    def object(self, name: str, value: Any, other: str, extra: Any) -> dict[str, Any]:
        out, last = {name: value}, {}
        self.undeclared(self.columns, other, extra, out, last)
        return {**out, **last}

    def items(self, items: list[Any]) -> Iterator[Any]:
        for item in items:
            if item is None:
                yield None
                continue
            if (self.columns is R and item[1] is not None) or (self.data_type is R and missing(item[0])):
                self.elements += 1
                continue
            out: dict[str, Any] = {}
            last: dict[str, Any] = {}
            variants: dict[str, Any] = {}
            self.typed("q", item[0], out, variants)
            self.undeclared(self.columns, "z", item[1], out, last)
            yield {**out, **last, **variants}

    @property
    def frozen(self) -> list[tuple[str, str]]:
        odd = [
            ("columns", "extra"),
            ("data_type", "n"),
            ("columns", "o.b"),
            ("tables", "subs"),
            ("data_type", "items.q"),
            ("columns", "items.z"),
            ("data_type", "tags.item"),
        ]
        return [(entity, field) for entity, field in odd if getattr(self, entity) is Z]


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path = str(tmp_path_factory.mktemp("modes") / "in")
    spark.createDataFrame(ROWS, SCHEMA).coalesce(1).write.parquet(path)  # type: ignore[type-var]
    return spark.read.parquet(path)


@pytest.fixture
def place(tmp_path: Path) -> TablePlace:
    return TablePlace(tmp_path / "root", "orders")


def as_json(df: DataFrame) -> Any:
    return F.to_json(F.struct(*(df[f"`{name}`"] for name in df.columns)), {"ignoreNullFields": "false"})


def by_json(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row) for row in rows)


def test_all_combinations_of_modes(table: DataFrame) -> None:
    dataset = CONTRACT.dataset()
    made, counted = [], []
    for at, (tables, columns, data_type) in enumerate(ALL):
        applied = apply_modes(
            table, CONTRACT, dataset, SchemaModes(tables=tables, columns=columns, data_type=data_type)
        )
        assert [(c.entity, c.field) for c in applied.frozen] == Oracle(tables, columns, data_type).frozen
        made.append(applied.df.select(F.lit(at).alias("at"), as_json(applied.df).alias("row")))
        source = applied._source
        if source is not None and source.counting:
            aggregates = source.view.agg(*source.aggregates())
            counted.append(aggregates.select(F.lit(at).alias("at"), F.to_json(F.struct("*")).alias("row")))
    found: dict[int, list[dict[str, Any]]] = {at: [] for at in range(64)}
    totals: dict[int, dict[str, Any]] = {}
    for size in range(0, 64, 16):
        union = made[size]
        for one in made[size + 1 : size + 16]:
            union = union.unionByName(one)
        for row in union.collect():
            found[row["at"]].append(json.loads(row["row"]))
    union = counted[0]
    for one in counted[1:]:
        union = union.unionByName(one)
    for row in union.collect():
        totals[row["at"]] = json.loads(row["row"])
    for at, modes in enumerate(ALL):
        oracle = Oracle(*modes)
        assert by_json(found[at]) == by_json(oracle.rows), modes
        source = apply_modes(
            table, CONTRACT, dataset, SchemaModes(tables=modes[0], columns=modes[1], data_type=modes[2])
        )._source
        if at in totals:
            assert source is not None
            counts = source.counts(totals[at])
            seen = (counts.rows_in, counts.rows_discarded, counts.elements_discarded, counts.values_discarded)
            assert seen == (len(ROWS), oracle.discarded, oracle.elements, oracle.values), modes
        else:
            assert (oracle.discarded, oracle.elements, oracle.values) == (0, 0, 0), modes


PUBLISHED: Final = [(E, R, R), (R, V, E), (V, E, V), (E, Z, R), (Z, E, E)]


@pytest.mark.parametrize(
    "modes",
    [pytest.param(one, marks=[] if one in PUBLISHED else pytest.mark.full) for one in ALL],
    ids=lambda modes: "-".join(modes),
)
def test_publishing_under_each_combination(
    spark: SparkSession, table: DataFrame, place: TablePlace, modes: tuple[Mode, Mode, Mode]
) -> None:
    # Something is there already, so that `tables` is only asked about the table in a column.
    publish(
        spark.createDataFrame([], "id int, n int, o struct<a:int>, items array<struct<q:int>>, tags array<int>"),
        CONTRACT,
        place=place,
    )
    oracle = Oracle(*modes)
    given = dict(zip(("tables", "columns", "data_type"), modes, strict=True))
    if oracle.frozen:
        before = place.current_version()
        with pytest.raises(DataValidationError) as error:
            publish(table, CONTRACT, place=place, schema_modes=given)
        refused = error.value
        assert (refused.schema_entity, refused.contract_mode) == (oracle.frozen[0][0], "freeze")
        assert refused.schema_contract == given
        assert (refused.schema_name, refused.table_schema) == ("test", CONTRACT.dataset())
        assert place.current_version() == before
        publication = refused.publication
        assert (publication.rows_in, publication.rows_rejected, publication.rows_discarded) == (8, 8, 0)
        return
    publication = publish(table, CONTRACT, place=place, schema_modes=given)
    out = read_published(spark, place)
    rows = [json.loads(row[0]) for row in out.select(as_json(out)).collect()]
    assert by_json(rows) == by_json(oracle.rows)
    assert publication.rows_discarded == oracle.discarded
    assert publication.elements_discarded == oracle.elements
    assert publication.values_discarded == oracle.values
    assert publication.rows_in == len(ROWS) == publication.rows_published + publication.rows_discarded

"""Schema modes with real Spark, against an oracle in plain Python that looks at one row after the other."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from pyspark.sql import functions as F

from databox_contracts import rules
from databox_contracts.errors import ContractViolationError, DataboxError, DataValidationError
from databox_contracts.model import Contract, Mode, SchemaModes
from databox_contracts.results import Status
from databox_contracts.spark import TablePlace, enforce, publish, read_published, verify
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


def test_no_rows_and_nothing_to_change(spark: SparkSession, table: DataFrame, place: TablePlace) -> None:
    modes = {"tables": "discard_value", "columns": "discard_row", "data_type": "discard_value"}
    publish(
        spark.createDataFrame([], "id int, n int, o struct<a:int>, items array<struct<q:int>>, tags array<int>"),
        CONTRACT,
        place=place,
        schema_modes="evolve",
    )
    publication = publish(table.where("id = 100"), CONTRACT, place=place, schema_modes=modes)
    assert (publication.rows_in, publication.rows_published, publication.rows_discarded) == (0, 0, 0)
    assert (publication.elements_discarded, publication.values_discarded, publication.discarded) == (0, 0, ())
    good = table.select("id").where("id = 1")
    assert enforce(good, build_contract(build_field("id", "int")), schema_modes=modes) is good


def test_a_new_table(spark: SparkSession, place: TablePlace) -> None:
    contract = build_contract(build_field("id", "int"), dataset="orders")
    df = spark.createDataFrame([(1,), (2,), (None,)], "id int")
    for mode in ("discard_row", "discard_value"):
        left_out = publish(df, contract, place=place, schema_modes={"tables": mode})
        assert not left_out.published
        assert not place.link.exists()
        assert (left_out.rows_in, left_out.rows_discarded, left_out.rows_published) == (3, 3, 0)
        assert [(one.entity, one.unit, one.count) for one in left_out.discarded] == [("tables", "rows", 3)]
        assert {result.status for result in left_out.verdict.results} == {Status.SKIPPED}
    with pytest.raises(DataValidationError, match="the table is new") as error:
        publish(df, contract, place=place, schema_modes="freeze")
    refused = error.value
    assert (refused.schema_entity, refused.table_name, refused.column_name) == ("tables", "orders", None)
    assert refused.data_item is None
    assert (refused.publication.rows_in, refused.publication.rows_rejected) == (3, 3)
    publish(df, contract, place=place, schema_modes={"columns": "freeze", "data_type": "freeze"})
    assert publish(df, contract, place=place, schema_modes="freeze").rows_published == 3


def test_a_table_whose_contract_leaves_columns_open_knows_what_it_first_had(
    spark: SparkSession, place: TablePlace
) -> None:
    contract = build_contract(build_field("number"), dataset="blocks")
    frozen = {"columns": "freeze", "data_type": "freeze"}
    first = spark.createDataFrame([("a", 1)], "hash string, number int")
    assert publish(first, contract, place=place, schema_modes=frozen).rows_published == 1
    assert read_published(spark, place).columns == ["number", "hash"]
    assert publish(first, contract, place=place, schema_modes=frozen).verdict.passed
    with pytest.raises(DataValidationError) as error:
        publish(first.withColumn("size", F.lit(5)), contract, place=place, schema_modes=frozen)
    assert (error.value.schema_entity, error.value.column_name) == ("columns", "size")
    assert error.value.data_item == {"hash": "a", "number": 1, "size": 5}
    with pytest.raises(DataValidationError, match="number is string, and was of another type") as error:
        publish(first.withColumn("number", F.lit("x")), contract, place=place, schema_modes=frozen)
    assert (error.value.schema_entity, error.value.column_name) == ("data_type", "number")
    typed = build_contract(build_field("number", "int"), dataset="typed")
    with pytest.raises(DataValidationError):
        publish(first, typed, place=TablePlace(place.root, "typed"))


def test_the_item_that_a_frozen_schema_refuses_has_no_personal_values(spark: SparkSession) -> None:
    contract = build_contract(
        build_field("id", "int"),
        build_field("mail", "string", pii=True),
        build_field("who", "struct<name: string>").model_copy(
            update={"fields": (build_field("name", "string", pii=True), build_field("at", "string"))}
        ),
        build_field("rows", "array<struct<sku: int>>"),
        dataset="people",
    )
    df = spark.createDataFrame(
        [(1, "m@x", ("n", "z"), [("1",)]), (2, "k@x", ("p", "y"), [("1",), ("secret",)])],
        "id int, mail string, who struct<name:string,at:string>, rows array<struct<sku:string>>",
    )
    with pytest.raises(DataValidationError) as error:
        enforce(df, contract)
    refused = error.value
    assert refused.data_item == {"id": 2, "who": {"at": "y"}, "rows": [{"sku": "1"}, {"sku": "secret"}]}
    assert (refused.table_name, refused.column_name, refused.schema_entity) == ("people__rows", "sku", "data_type")
    assert "secret" not in str(refused)
    (broken,) = refused.verdict.violations
    assert (broken.id, broken.failed_count, broken.samples) == ("people.rows.sku.type", 1, ("secret",))
    assert "1 row has a value that is none" in broken.message


def test_what_verify_says_was_done(table: DataFrame) -> None:
    verdict = verify(
        table, CONTRACT, schema_modes={"tables": "discard_row", "columns": "discard_value", "data_type": "discard_row"}
    )
    results = {result.id: result for result in verdict.results}
    assert verdict.passed
    assert verdict.row_count == 4
    assert results["orders.undeclared"].observed == ["extra", "o.b", "subs", "items.z"]
    assert results["orders.undeclared"].message == (
        "extra is not declared, and left out with 1 value; o.b is not declared, and left out with 0 values;"
        " subs is not declared, and left out with 2 elements; items.z is not declared, and left out with 1 value"
    )
    assert results["orders.n.type"].message == ("it was string; 4 rows that cannot be read as promised were discarded")
    frozen = verify(table, CONTRACT, schema_modes="freeze")
    assert not frozen.passed
    failed = {result.id: result for result in frozen.violations}
    assert failed["orders.n.type"].samples == ("", "2.5", "2147483648", "x")
    assert (failed["orders.n.type"].failed_count, failed["orders.tags.item.type"].failed_count) == (4, 3)


def test_a_discarded_value_faces_required_and_rows_are_conserved(spark: SparkSession, place: TablePlace) -> None:
    contract = build_contract(
        build_field("id", "int", rules.Required()), build_field("n", "int", rules.Minimum(limit=0)), dataset="orders"
    )
    rows = [("1", "5"), ("x", "1"), ("3", "-1"), ("4", "y"), (None, "1")]
    df = spark.createDataFrame(rows, "id string, n string").repartition(3)
    nulls = publish(df, contract, place=place, schema_modes={"data_type": "discard_value"}, on_violation="quarantine")
    assert (nulls.rows_published, nulls.rows_quarantined, nulls.rows_discarded) == (2, 3, 0)
    assert [(one.field, one.unit, one.count) for one in nulls.discarded] == [("id", "values", 1), ("n", "values", 1)]
    gone = publish(df, contract, place=place, schema_modes={"data_type": "discard_row"}, on_violation="quarantine")
    assert (gone.rows_published, gone.rows_quarantined, gone.rows_discarded, gone.rows_in) == (1, 2, 2, 5)
    with pytest.raises(ContractViolationError) as error:
        publish(df, contract, place=place, schema_modes={"data_type": "discard_row"})
    assert not isinstance(error.value, DataValidationError)
    assert error.value.publication.rows_rejected == 5


def test_names_that_would_be_one(spark: SparkSession) -> None:
    contract = build_contract(build_field("id", "int"))
    twice = spark.createDataFrame([("1", "x")], "id string, id__v_string string")
    with pytest.raises(DataboxError, match="two columns would have one name, id__v_string and id__v_string"):
        enforce(twice, contract, schema_modes="evolve")
    cased = spark.createDataFrame([(1, 2, 3)], "id int, more int, MORE int")
    with pytest.raises(DataboxError, match="more and MORE"):
        enforce(cased, contract, schema_modes={"columns": "discard_value"})


def test_names_with_dots_and_quotes(spark: SparkSession) -> None:
    contract = build_contract(
        build_field("a.b", "int"),
        build_field("o`o", "struct<x: int>").model_copy(update={"fields": (build_field("x.y", "int"),)}),
    )
    df = spark.createDataFrame([("1", ("2", 3), 4)], "`a.b` string, `o``o` struct<`x.y`:string,`z``.`:int>, `e.e` int")
    out = enforce(df, contract, schema_modes={"columns": "discard_value", "data_type": "discard_value"})
    assert out.columns == ["a.b", "o`o"]
    assert out.collect()[0].asDict(recursive=True) == {"a.b": 1, "o`o": {"x.y": 2}}


def test_a_column_of_nothing_takes_the_promised_type(spark: SparkSession) -> None:
    contract = build_contract(build_field("id", "int"), build_field("at", "date"))
    df = spark.sql("select 1 as id, null as at")
    assert enforce(df, contract, schema_modes={"data_type": "discard_row"}).dtypes == [("id", "int"), ("at", "date")]
    assert not verify(df, contract).passed


def test_no_row_is_left_and_spark_knows_it_beforehand(spark: SparkSession, place: TablePlace) -> None:
    contract = build_contract(build_field("id", "int"))
    df = spark.range(5).select((F.col("id") > 1).alias("id"))
    assert not df.schema["id"].nullable
    published = publish(df, contract, place=place, schema_modes={"data_type": "discard_row"})
    assert (published.rows_in, published.rows_published, published.rows_discarded) == (5, 0, 5)
    assert read_published(spark, place).dtypes == [("id", "int")]
    assert enforce(df, contract, schema_modes={"data_type": "discard_row"}).count() == 0


# In SQL: the value, the declared type, and whether it fits.
FITS: Final = [
    ("5L", "int", True),
    ("2147483648L", "int", False),
    ("5.0D", "int", True),
    ("5.5D", "int", False),
    ("double('NaN')", "int", False),
    ("9.223372036854775807E18D", "bigint", False),
    ("-9.223372036854775808E18D", "bigint", True),
    ("9007199254740992L", "double", True),
    ("9007199254740993L", "double", False),
    ("9223372036854775807L", "double", False),
    ("0.5D", "float", True),
    ("0.1D", "float", False),
    ("1e300D", "float", False),
    ("float('0.5')", "double", True),
    ("double('NaN')", "decimal(10,2)", False),
    ("double('Infinity')", "decimal(10,2)", False),
    ("0.125D", "decimal(10,2)", False),
    ("0.25D", "decimal(10,2)", True),
    ("cast(1.10 as decimal(38,18))", "decimal(10,2)", True),
    ("cast(1.005 as decimal(38,18))", "decimal(10,2)", False),
    ("cast(123456789 as decimal(38,18))", "decimal(10,2)", False),
    ("100", "decimal(3,1)", False),
    ("99", "decimal(3,1)", True),
    ("timestamp'2026-01-02 00:00:00'", "date", True),
    ("timestamp'2026-01-02 00:00:01'", "date", False),
    ("date'2026-01-02'", "timestamp", True),
    ("timestamp_ntz'2026-01-02 03:04:05'", "timestamp_ltz", True),
    ("true", "int", False),
    ("1", "boolean", False),
    ("array(1)", "int", False),
    ("1", "array<int>", False),
    ("named_struct('a', 1)", "string", False),
    ("X'00'", "string", False),
    ("12", "string", True),
    ("true", "string", True),
    ("'12'", "int", True),
    ("'12x'", "int", False),
    ("'2026-01-02'", "date", True),
    ("'2026-01-02 03:04:05'", "date", False),
    ("'2026-1-2'", "date", True),
    ("' 2026-01-02\\t'", "date", True),
    ("'+2026-01-02'", "date", True),
    ("'2026'", "date", False),
    ("'2026-01'", "date", False),
    ("'2026-1-2 x'", "date", False),
    ("'2026-1-2T'", "date", False),
    ("'2026-02-30'", "date", False),
    ("'2026-01-02'", "timestamp", True),
    ("'2026-01-02 03'", "timestamp", True),
    ("' 2026-01-02T03:04:05.123456Z'", "timestamp", True),
    ("'2026-01-02 03:04:05.123456000 Europe/Berlin'", "timestamp", True),
    ("'2026-01-02 03:04:05.1234561'", "timestamp", False),
    ("'2026'", "timestamp", False),
    ("'1500'", "timestamp", False),
    ("'2026-01'", "timestamp", False),
    ("'03:04:05'", "timestamp", False),
    ("'T03'", "timestamp", False),
    ("'2026-01-02T24:00:00'", "timestamp", False),
    ("'2026-01-02'", "timestamp_ntz", True),
    ("'2026-01-02T03:04:05.123456'", "timestamp_ntz", True),
    ("'2026-01-02 3:4 '", "timestamp_ntz", True),
    ("'2026-01-02T03:04:05Z'", "timestamp_ntz", False),
    ("'2026-01-02 03:04:05+01:00'", "timestamp_ntz", False),
    ("'2026-01-02 03:04:05 Europe/Berlin'", "timestamp_ntz", False),
    ("'2026'", "timestamp_ntz", False),
    ("'03:04:05'", "timestamp_ntz", False),
    ("'1.5'", "double", True),
    ("'-.5e-3'", "double", True),
    ("'Infinity'", "double", True),
    ("'-inf'", "double", True),
    ("'NaN'", "double", True),
    ("'1e400'", "double", False),
    ("'12d'", "double", False),
    ("'1.5F '", "float", False),
    ("'0x1p3'", "double", False),
    ("'1.005'", "decimal(10,2)", False),
    ("map(1, 2)", "map<string,int>", False),
]


def test_which_values_fit_another_type(spark: SparkSession) -> None:
    contract = build_contract(*(build_field(f"c{at}", type_) for at, (_, type_, _) in enumerate(FITS)))
    values = ", ".join(f"{value} as c{at}" for at, (value, _, _) in enumerate(FITS))
    df = spark.sql(f"select {values}")
    out = enforce(df, contract, schema_modes={"data_type": "discard_value"})
    row = out.collect()[0]
    assert [(value, type_, row[at] is not None) for at, (value, type_, _) in enumerate(FITS)] == FITS
    verdict = verify(df, contract)
    assert not verdict.passed
    counted = {result.field: result.failed_count for result in verdict.violations if result.failed_count is not None}
    assert {FITS[int(field[1:])][2] for field, count in counted.items() if count == 1 and field[1:].isdigit()} == {
        False
    }
    assert {FITS[int(field[1:])][2] for field, count in counted.items() if count == 0 and field[1:].isdigit()} == {True}


def test_a_pydantic_model_discards_whole_rows(spark: SparkSession, model_contract: Contract) -> None:
    df = spark.createDataFrame(
        [(1, [("1", None), ("2", None)]), (2, [("1", None), ("x", None)]), (3, [("1", 9)]), (4, None)],
        "id int, items array<struct<q:string,z:int>>",
    )
    out = enforce(df, model_contract, schema_modes={"columns": "discard_row", "data_type": "discard_row"})
    assert [row["id"] for row in out.collect()] == [1, 4]
    ignored = verify(
        df.where("id = 3").withColumn("items", F.expr("cast(items as array<struct<q:bigint,z:int>>)")), model_contract
    )
    assert ignored.passed
    assert {result.message for result in ignored.results if result.rule == "undeclared"} == {
        "items.z is not declared, and left out with 1 value"
    }


@pytest.fixture
def model_contract() -> Contract:
    from pydantic import BaseModel

    from databox_contracts.declare import contract_of

    class Item(BaseModel):
        q: int | None

    class Order(BaseModel):
        id: int
        items: list[Item] | None

    return contract_of(Order)

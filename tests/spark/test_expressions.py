"""Conditions in SQL on real rows: names at every depth, and what must not break the job."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from databox_contracts import rules
from databox_contracts.errors import ContractViolationError
from databox_contracts.results import CheckResult, Status
from databox_contracts.spark.publication import publish
from databox_contracts.spark.tables import TablePlace
from databox_contracts.spark.verification import verify
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

AS_OF = datetime(2024, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def orders(spark: SparkSession) -> DataFrame:
    schema = (
        "id int, a int, b int, `sel.ect` int, `x y` int, `q``q` int, s string, at timestamp,"
        " o struct<n:int,`order`:int>, items array<struct<sku:string,qty:int,tags:array<string>>>,"
        " m map<string,struct<v:int>>, g array<array<int>>, empty array<int>"
    )
    at = datetime(2024, 1, 1, tzinfo=UTC)
    item = [("p", 1, ["t"]), ("q", 0, [])]
    rows: list[Any] = [
        (1, 10, 2, 1, 1, 1, "7", at, (1, 2), item, {"k": (1,)}, [[1], [2]], [1]),
        (2, 10, 0, 2, 2, 2, "no", at, None, [("z", -5, ["bad", "t"])], {"k": (-1,), "l": (2,)}, [[], [-9]], [1]),
        (3, None, None, None, None, None, None, None, (None, None), None, None, None, None),
        (4, 2147483647, 1, 4, 4, 4, "8", at, (9, 1), [], {}, [], []),
    ]
    return spark.createDataFrame(rows, schema)


# A field, the rule's SQL, how many of the four rows break it, and the values that are shown.
CASES: list[tuple[str | None, str, int, tuple[Any, ...]]] = [
    (None, "a > 5", 0, ()),
    (None, "a > 10", 2, ()),
    ("a", "a > 10", 2, (10,)),
    ("a", "{column} > 10 and ${field} > 10", 2, (10,)),
    (None, "t.a > 10", 2, ()),
    (None, "A > 10", 2, ()),
    (None, "a / b > 5", 1, ()),
    (None, "a % b = 1 or a div b > 5", 1, ()),
    (None, "a + a > 0", 0, ()),
    (None, "a * a < 100", 2, ()),
    (None, "cast(s as int) > 7", 1, ()),
    (None, "s::int = 8", 1, ()),
    (None, "to_date(s) is null", 0, ()),
    (None, "to_timestamp(s, 'yyyy') is null", 0, ()),
    (None, "element_at(empty, 5) is null", 0, ()),
    (None, "empty[3] is null and empty[0] = 1", 0, ()),
    (None, "empty[3] is null and empty[0] is not null", 2, ()),
    (None, "items[1].qty = 0 and m['k'].v = 1", 1, ()),
    (None, "power(a, 2) >= 0 and array_contains(empty, 1) and upper(s) <> 'NO' and a between 0 and 99", 2, ()),
    (None, "sel.ect > 1", 1, ()),
    (None, "`sel.ect` > 1", 1, ()),
    (None, "`x y` + `q``q` > 2", 1, ()),
    (None, "s rlike '^\\\\d$'", 1, ()),
    (None, "s like '7' or s = '8' -- or so", 1, ()),
    (None, "o.order > 1 and o.n > 0", 1, ()),
    ("o.n", "n < `order`", 1, (9,)),
    ("o.n", "o.n < o.order", 1, (9,)),
    ("o.n", "n is not null", 1, (None,)),
    (None, "exists(items, i -> i.qty > b)", 3, ()),
    ("items.qty", "qty > 0", 2, (-5, 0)),
    ("items.qty", "items.qty > 0 or sku = 'q'", 1, (-5,)),
    ("items.qty", "qty + b >= 1", 1, (-5,)),
    ("items.item", "qty > 0", 2, ({"qty": 0, "sku": "q", "tags": []}, {"qty": -5, "sku": "z", "tags": ["bad", "t"]})),
    ("items.tags.item", "item <> 'bad' and item <> sku", 1, ("bad",)),
    ("m.key", "key <> 'l'", 1, ("l",)),
    ("m.value.v", "v > 0", 1, (-1,)),
    ("m.value", "value.v > 0", 1, ({"v": -1},)),
    ("g.item.item", "item > id - 10", 1, (-9,)),
    ("g.item", "size(item) > 0", 1, ([],)),
    (None, "at < now()", 0, ()),
    (None, "at >= current_timestamp() - interval 1 day and current_date() = date '2024-01-02'", 0, ()),
]


def field_rules(place: str | None, rule: rules.Rule) -> Any:
    def held(name: str) -> tuple[rules.Rule, ...]:
        return (rule,) if name == place else ()

    def with_rule(name: str, type_: str | None, **facts: Any) -> Any:
        return build_field(name.rsplit(".", 1)[-1], type_, *held(name), **facts)

    tags = with_rule("items.tags", "array", item=with_rule("items.tags.item", "string"))
    sku, qty = with_rule("items.sku", "string"), with_rule("items.qty", "int")
    value = with_rule("m.value", "object", fields=(with_rule("m.value.v", "int"),))
    return build_contract(
        with_rule("id", "int"),
        with_rule("a", "int"),
        build_field("b", "int"),
        build_field("sel.ect", "int"),
        build_field("x y", "int"),
        build_field("q`q", "int"),
        build_field("s", "string"),
        build_field("at", "timestamp"),
        build_field("o", "object", fields=(with_rule("o.n", "int"), build_field("order", "int"))),
        build_field("items", "array", item=with_rule("items.item", "object", fields=(sku, qty, tags))),
        build_field("m", "map", key=with_rule("m.key", "string"), value=value),
        build_field("g", "array", item=with_rule("g.item", "array", item=with_rule("g.item.item", "int"))),
        build_field("empty", "array<int>"),
        rules=() if place is not None else (rule,),
    )


def combined(orders: DataFrame, cases: list[tuple[str | None, rules.Rule]]) -> list[CheckResult]:
    """The results of many rules in one verification, in the order of the rules."""
    found: dict[int, CheckResult] = {}
    by_place: dict[str | None, list[tuple[int, rules.Rule]]] = {}
    for at, (place, rule) in enumerate(cases):
        by_place.setdefault(place, []).append((at, rule))
    for place, held in by_place.items():
        contract = field_rules(place, rules.Expression(sql="true", name="stand-in"))
        contract = _with(contract, [rule for _, rule in held])
        results = [r for r in verify(orders, contract, as_of=AS_OF).results if r.rule == held[0][1].kind]
        found |= dict(zip([at for at, _ in held], results, strict=True))
    return [found[at] for at in range(len(cases))]


def _with(part: Any, held: list[rules.Rule]) -> Any:
    """The contract with the rules in place of the stand-in."""

    def swap(one: Any) -> Any:
        update: dict[str, Any] = {}
        if any(rule.name == "stand-in" for rule in one.rules):
            update["rules"] = tuple(held)
        for name in ("item", "key", "value"):
            if getattr(one, name, None) is not None:
                update[name] = swap(getattr(one, name))
        if getattr(one, "fields", ()):
            update["fields"] = tuple(swap(field) for field in one.fields)
        return one.model_copy(update=update)

    return part.model_copy(update={"datasets": tuple(swap(dataset) for dataset in part.datasets)})


def test_conditions_at_every_depth(orders: DataFrame) -> None:
    results = combined(orders, [(place, rules.Expression(sql=sql)) for place, sql, _, _ in CASES])
    told = [(r.status, r.message) for r in results if r.status in (Status.NOT_EVALUATED, Status.SKIPPED)]
    assert told == []
    found = [(*case[:2], r.failed_count, r.samples) for case, r in zip(CASES, results, strict=True)]
    assert [pair for pair in zip(found, CASES, strict=True) if pair[0] != pair[1]] == []


REFUSED = [
    ("nope > 1", "names nope, which the table does not have"),
    ("o.nope > 1", "names o.nope, which the table does not have"),
    ("a in (select 1)", "holds a query or a statement"),
    ("exists (select 1 from t)", "holds a query or a statement"),
    ("drop table t", "no condition that can be read"),
    ("a > 1; drop table t", "no condition that can be read"),
    ("a > 1) or (1 = 1", "no condition that can be read"),
    ("max(a) > 1", "is not about one row"),
    ("sum(a) over () > 1", "is not about one row"),
    ("reflect('java.lang.System', 'exit', 1) is null", "calls reflect"),
    ("java_method('java.lang.System', 'exit', 1) is null", "calls java_method"),
    ("rand() > 0", "calls rand, whose answer is another one each time"),
    ("uuid() = s", "calls uuid"),
    ("no_such_function(a)", "calls no_such_function, which is not among the functions that a condition may call"),
    ("spark_catalog.default.upper(s) = 'X'", "calls upper, which is not among"),
    ("explode(empty) is null", "calls explode, which is not among"),
    ("current_database() = s", "calls current_database, which is not among"),
    ("session_window(at, '1 day') is null", "calls session_window, which is not among"),
    ("coalesce(ai_query('model', s), s) = s", "calls ai_query, which is not among"),
    ("a", "BOOLEAN"),
    ("s > 1", "CAST_INVALID_INPUT"),
    ("raise_error('x') is null", "calls raise_error"),
    ("exists(empty, c0 -> c0 > a)", "choose another name"),
    ("{column} > 1", "has a placeholder for a field"),
    (":x > 1", "has a parameter"),
    ("", "no condition that can be read"),
]


def test_what_must_not_or_cannot_be_run_says_why_and_the_rest_is_judged(orders: DataFrame) -> None:
    wrong = [rules.Expression(sql=sql) for sql, _ in REFUSED]
    results = combined(orders, [*((None, rule) for rule in wrong), (None, rules.Expression(sql="a > 10"))])
    assert (results[-1].status, results[-1].failed_count) == (Status.FAILED, 2)
    left = [
        (sql, r.status, r.message)
        for (sql, reason), r in zip(REFUSED, results, strict=False)
        if r.status is not Status.NOT_EVALUATED or reason not in r.message
    ]
    assert left == []
    # The text that is no number is a value of the table.
    assert [r.message for r in results if "'no'" in r.message] == []


REQUIRED = [
    ("a", "id = 3", 1),
    ("a", "id <> 3", 0),
    ("a", "b / 0 > 1", 0),
    ("a", "true", 1),
    ("o.n", "id > 1", 1),
    ("items.qty", "sku = 'p'", 0),
]


def test_required_when(orders: DataFrame) -> None:
    results = combined(orders, [(place, rules.RequiredWhen(condition=sql)) for place, sql, _ in REQUIRED])
    found = [(*case[:2], r.failed_count) for case, r in zip(REQUIRED, results, strict=True)]
    assert found == REQUIRED
    assert results[0].message == "1 of 4 rows (25 %) are null where the condition requires a value"
    assert results[0].samples == ()


def test_names_of_the_contract_stand_for_columns_of_the_table(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, (2,))], "col_a int, obj struct<inner_x:int>")  # type: ignore[type-var]
    inner = build_field("x", "int", column_name="inner_x")
    contract = build_contract(
        build_field("a", "int", column_name="col_a"),
        build_field("o", "object", fields=(inner,), column_name="obj"),
        rules=(rules.Expression(sql="a + o.x = 3"), rules.Expression(sql="col_a + obj.inner_x = 4")),
    )
    assert [r.status.value for r in verify(df, contract).results if r.rule == "expression"] == ["passed", "failed"]


def test_columns_of_one_name_are_not_guessed_at(spark: SparkSession) -> None:
    df = spark.range(1).selectExpr("id a", "id A", "id b")
    contract = build_contract(build_field("b"), rules=(rules.Expression(sql="a > 1 or b > 1"),))
    [result] = [r for r in verify(df, contract).results if r.rule == "expression"]
    assert result.failed_count == 1 or "2 columns of that name" in result.message


def test_values_of_masked_fields_are_not_shown(spark: SparkSession) -> None:
    df = spark.createDataFrame([("s3cret",)], "v string")  # type: ignore[type-var]
    verdict = verify(df, build_contract(build_field("v", "string", rules.Expression(sql="v = ''"), pii=True)))
    assert [r.failed_count for r in verdict.violations] == [1]
    assert "s3cret" not in verdict.to_json()


def test_rows_that_break_a_condition_are_held(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(6).selectExpr("id", "id % 3 k")
    contract = build_contract(
        build_field("id", "bigint"), build_field("k", "bigint", rules.Expression(sql="id / k < 4 or k is null"))
    )
    place = TablePlace(tmp_path, "t")
    with pytest.raises(ContractViolationError):
        publish(df, contract, place=place)
    published = publish(df, contract, place=place, on_violation="quarantine")
    assert (published.rows_published, published.rows_quarantined) == (5, 1)

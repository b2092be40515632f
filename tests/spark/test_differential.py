"""Random tables and rules, judged by Spark and by an oracle in plain Python that looks at one row after the other."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pytest
from pyspark.sql.types import StructType, _parse_datatype_string

from databox_contracts import rules
from databox_contracts.results import Status
from databox_contracts.row_rules import keeps
from databox_contracts.rules import Rule
from databox_contracts.spark.verification import verify
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN: Final = float("nan")
SCHEMA: Final = (
    "i int, d double, n decimal(38,10), s string, o struct<i:int,s:string>, a array<int>,"
    " q array<struct<i:int,s:string,g:array<double>>>, m map<string,array<int>>"
)
TEXTS: Final = ("", "a", "b", "ab", "a\n", " ", "1.2.3.4", "::1", "x@y.z", "2024-02-29", "\U0001f600", "A" * 40)
INTS: Final = (0, 1, -1, 2, 3, 7, 2**31 - 1, -(2**31))
DOUBLES: Final = (0.0, -0.0, 0.1, 0.3, -2.5, 1e300, NAN, float("inf"), -float("inf"))
DECIMALS: Final = ("0", "1", "0.1", "-0.0000000001", "9999999999999999999999999999.9999999999", "2.5000000000")


class Random(random.Random):
    def maybe(self, value: Callable[[], Any]) -> Any:
        return None if self.random() < 0.15 else value()

    def some(self, value: Callable[[], Any]) -> list[Any]:
        return [self.maybe(value) for _ in range(self.randrange(4))]

    def row(self) -> tuple[Any, ...]:
        def integer() -> int:
            return self.choice(INTS)

        def text() -> str:
            return self.choice(TEXTS)

        def thing() -> tuple[Any, ...]:
            doubles = self.maybe(lambda: self.some(lambda: self.choice(DOUBLES)))
            return (self.maybe(integer), self.maybe(text), doubles)

        return (
            self.maybe(integer),
            self.maybe(lambda: self.choice(DOUBLES)),
            self.maybe(lambda: Decimal(self.choice(DECIMALS))),
            self.maybe(text),
            self.maybe(lambda: (self.maybe(integer), self.maybe(text))),
            self.maybe(lambda: self.some(integer)),
            self.maybe(lambda: self.some(thing)),
            self.maybe(lambda: {text(): self.maybe(lambda: self.some(integer)) for _ in range(self.randrange(3))}),
        )

    def rule(self, kind: str) -> Rule:
        made: Rule = self.choice(RULES[kind])(self)
        return made


def limit(r: Random) -> Any:
    return r.choice((0, 1, -1, 0.1, 2.5, Decimal("0.1"), 10**12, -(10**30)))


BOUNDS: Final = [
    lambda r: rules.Minimum(limit=limit(r)),
    lambda r: rules.Maximum(limit=limit(r)),
    lambda r: rules.ExclusiveMinimum(limit=limit(r)),
    lambda r: rules.ExclusiveMaximum(limit=limit(r)),
]
NULLS: Final = [lambda r: rules.Required()]
RULES: Final[dict[str, list[Callable[[Random], Rule]]]] = {
    "int": [
        *BOUNDS,
        *NULLS,
        lambda r: rules.Enum(values=tuple(r.sample(INTS, r.randrange(4)))),
        lambda r: rules.MultipleOf(divisor=r.choice((1, 2, 3, 7))),
        lambda r: rules.Expression(sql=f"{{column}} > {r.choice(INTS[:6])}"),
    ],
    "double": [*BOUNDS, *NULLS],
    "decimal": [*BOUNDS, *NULLS, lambda r: rules.MultipleOf(divisor=r.choice((1, Decimal("0.1"), Decimal("2.5"))))],
    "string": [
        *NULLS,
        lambda r: rules.Enum(values=tuple(r.sample(TEXTS, r.randrange(4)))),
        lambda r: rules.MinLength(length=r.randrange(3)),
        lambda r: rules.MaxLength(length=r.randrange(3)),
        lambda r: rules.Pattern(pattern=r.choice(("^a", "a$", "^.$", r"\s", "b|^$", "^[^a]*$"))),
        lambda r: rules.Format(format=r.choice(rules.KNOWN_FORMATS)),
    ],
    "array": [
        *NULLS,
        lambda r: rules.MinItems(count=r.randrange(3)),
        lambda r: rules.MaxItems(count=r.randrange(3)),
        lambda r: rules.UniqueItems(),
    ],
    "object": [*NULLS],
}

# Where there is a value, of what kind, and all that a row has there; what holds it being null, nothing.
PLACES: Final[dict[str, tuple[str, Callable[[Any], Iterator[Any]]]]] = {
    "i": ("int", lambda row: iter([row[0]])),
    "d": ("double", lambda row: iter([row[1]])),
    "n": ("decimal", lambda row: iter([row[2]])),
    "s": ("string", lambda row: iter([row[3]])),
    "o": ("object", lambda row: iter([row[4]])),
    "o.i": ("int", lambda row: (row[4][0] for _ in range(row[4] is not None))),
    "o.s": ("string", lambda row: (row[4][1] for _ in range(row[4] is not None))),
    "a": ("array", lambda row: iter([row[5]])),
    "a.item": ("int", lambda row: iter(row[5] or ())),
    "q.item": ("object", lambda row: iter(row[6] or ())),
    "q.i": ("int", lambda row: (one[0] for one in row[6] or () if one is not None)),
    "q.s": ("string", lambda row: (one[1] for one in row[6] or () if one is not None)),
    "q.g": ("array", lambda row: (one[2] for one in row[6] or () if one is not None)),
    "q.g.item": ("double", lambda row: (g for one in row[6] or () if one is not None for g in one[2] or ())),
    "m.key": ("string", lambda row: iter(row[7] or ())),
    "m.value": ("array", lambda row: iter((row[7] or {}).values())),
    "m.value.item": ("int", lambda row: (one for value in (row[7] or {}).values() for one in value or ())),
}


def breaks(rule: Rule, value: Any) -> bool:
    if value is None:
        return isinstance(rule, rules.Required)
    if isinstance(rule, rules.Expression):
        return not value > int(rule.sql.rsplit(" ", 1)[1])
    if isinstance(rule, rules.UniqueItems):
        # Unlike Python, Spark takes a NaN for the same as another.
        told = ["nan" if one != one else one for one in value]
        return any(one in told[:at] for at, one in enumerate(told))
    return not keeps(rule, value)


def contract_of(held: dict[str, list[Rule]]) -> Any:
    def at(place: str, type_: str | None, **facts: Any) -> Any:
        return build_field(place.rsplit(".", 1)[-1], type_, *held.get(place, ()), **facts)

    things = (at("q.i", "int"), at("q.s", "string"), at("q.g", "array", item=at("q.g.item", "double")))
    return build_contract(
        at("i", "int"),
        at("d", "double"),
        at("n", "decimal(38,10)"),
        at("s", "string"),
        at("o", "object", fields=(at("o.i", "int"), at("o.s", "string"))),
        at("a", "array", item=at("a.item", "int")),
        build_field("q", "array", item=at("q.item", "object", fields=things)),
        build_field(
            "m", "map", key=at("m.key", "string"), value=at("m.value", "array", item=at("m.value.item", "int"))
        ),
    )


def differences(spark: SparkSession, seed: int) -> list[Any]:
    r = Random(seed)
    rows = [r.row() for _ in range(r.choice((0, 1, 5, 30)))]
    rows += [r.choice(rows) for _ in range(r.randrange(5))] if rows else []
    schema = _parse_datatype_string(SCHEMA)
    assert isinstance(schema, StructType)
    df = spark.createDataFrame(rows, schema)
    # Even, or by a key that most rows share, so that most of the partitions are empty.
    df = df.repartition(r.choice((1, 2, 7, 64)), *r.choice(((), (), ("i",), ("s",))))
    held = {place: [r.rule(kind) for _ in range(2)] for place, (kind, _) in PLACES.items()}
    verdict = verify(df, contract_of(held), samples=0)
    by_place: dict[str | None, list[Any]] = {}
    for result in verdict.results:
        if result.rule not in ("present", "type", "undeclared"):
            by_place.setdefault(result.field, []).append(result)
    wrong: list[Any] = [] if verdict.row_count == len(rows) else [("rows", verdict.row_count, len(rows))]
    for place, kept in held.items():
        named = place if place in by_place else place.replace("q.", "q.item.", 1)
        for rule, result in zip(kept, by_place[named], strict=True):
            expected = sum(any(breaks(rule, value) for value in PLACES[place][1](row)) for row in rows)
            status = Status.FAILED if expected else Status.PASSED
            if (result.status, result.failed_count) != (status, expected):
                wrong.append((seed, place, rule, result.message, result.failed_count, expected))
    return wrong


@pytest.mark.parametrize("seed", range(6))
def test_spark_and_the_oracle_agree(spark: SparkSession, seed: int) -> None:
    assert differences(spark, seed) == []


@pytest.mark.full
@pytest.mark.parametrize("first", range(100, 3100, 100))
def test_spark_and_the_oracle_agree_on_many_more(spark: SparkSession, first: int) -> None:
    assert [wrong for seed in range(first, first + 100) for wrong in differences(spark, seed)] == []

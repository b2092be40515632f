"""Whom a change or a broken promise concerns, and in which version they meet it."""

import pytest

from databox_contracts.evolution.affected import Standing, affected, affected_by_failure, standing_of, trail_of
from databox_contracts.evolution.changes import ChangeType
from databox_contracts.evolution.judging import diff
from databox_contracts.evolution.report import FieldChange, MigrationReport
from databox_contracts.evolution.schema_diff import SchemaDiff
from databox_contracts.model import Consumer, Contract, Dataset
from databox_contracts.schema_registry import SchemaVersion
from databox_contracts.testing import build_field


def shop(version="1.0.0", *, orders=("id", "total"), lines=("order_id", "sku")) -> Contract:
    return Contract(
        id="shop",
        version=version,
        datasets=(
            Dataset(name="orders", physical_name="tbl_orders", fields=tuple(build_field(f, "string") for f in orders)),
            Dataset(name="lines", fields=tuple(build_field(f, "string") for f in lines)),
        ),
    )


REMOVED = diff(shop(), shop("2.0.0", orders=("id",)))

READERS = [
    (Consumer("all"), True),
    (Consumer("dataset", datasets=["orders"]), True),
    (Consumer("table", datasets=["tbl_orders"]), True),
    (Consumer("whole name", datasets=["shop.orders"]), True),
    (Consumer("contract", datasets=["shop"]), True),
    (Consumer("all fields of the dataset", fields=("orders",)), True),
    (Consumer("all fields of another dataset", fields=("lines",)), False),
    (Consumer("other dataset", datasets=["lines"]), False),
    (Consumer("other case of a dataset", datasets=["Orders"]), False),
    (Consumer("field", fields=("total",)), True),
    (Consumer("field in another case", fields=("TOTAL",)), True),
    (Consumer("field of the dataset", fields=("orders.total",)), True),
    (Consumer("field of the table", fields=("tbl_orders.total",)), True),
    (Consumer("field of the whole name", fields=("shop.orders.total",)), True),
    (Consumer("inside it", fields=("total.net",)), True),
    (Consumer("other field", fields=("id",)), False),
    (Consumer("beginning alike", fields=("tot", "total2")), False),
    (Consumer("field of another dataset", datasets=["lines"], fields=("total",)), False),
    (Consumer("falsy", datasets=[], fields=()), True),
]


@pytest.mark.parametrize(("consumer", "is_told"), READERS, ids=lambda value: getattr(value, "name", ""))
def test_who_hears_of_a_removed_field(consumer, is_told):
    found = affected(REMOVED, shop(), [consumer])
    assert [one.consumer for one in found] == ([consumer] if is_told else [])
    for one in found:
        assert [str(change.change_type) for change in one.changes] == ["field_removed"]
        assert one.is_broken


@pytest.mark.parametrize(("consumer", "is_told"), READERS, ids=lambda value: getattr(value, "name", ""))
def test_who_hears_of_a_rule_that_failed(consumer, is_told):
    assert affected_by_failure(shop(), "orders", ["total"], [consumer]) == ((consumer,) if is_told else ())


def test_a_rule_about_the_table_concerns_all_who_read_it():
    readers = [Consumer("a", fields=("id",)), Consumer("b", datasets=["lines"]), Consumer("c", datasets=["orders"])]
    assert [one.name for one in affected_by_failure(shop(), "orders", [], readers)] == ["a", "c"]
    assert [one.name for one in affected_by_failure(shop(), "tbl_orders", ["sku", "id"], readers)] == ["a", "c"]


def test_who_cannot_read_the_version_does_not_hear_of_its_failures():
    readers = [Consumer("old", versions="^1"), Consumer("new", versions=">=2"), Consumer("odd", versions="soon")]
    assert [one.name for one in affected_by_failure(shop("2.1.0"), "orders", [], readers)] == ["new", "odd"]


STANDINGS = [
    (None, "1.0.0", "2.0.0", Standing.FOLLOWS),
    ("*", "1.0.0", "2.0.0", Standing.FOLLOWS),
    (">=1", "1.0.0", "2.0.0", Standing.FOLLOWS),
    ("^1", "1.0.0", "1.1.0", Standing.FOLLOWS),
    ("^1", "1.0.0", "2.0.0", Standing.STAYS),
    ("~1.0", "1.0.3", "1.1.0", Standing.STAYS),
    ("^3", "1.0.0", "2.0.0", Standing.OUTSIDE),
    ("^2", "1.0.0", "2.0.0", Standing.FOLLOWS),
    ("soon", "1.0.0", "2.0.0", Standing.UNKNOWN),
    ("", "1.0.0", "2.0.0", Standing.UNKNOWN),
    ("^1", "1.0.0", "newest", Standing.UNKNOWN),
    ("^2", "oldest", "2.0.0", Standing.FOLLOWS),
    ("^1", "oldest", "2.0.0", Standing.OUTSIDE),
    ("^3.2", "3.2", "3.10", Standing.FOLLOWS),
]


@pytest.mark.parametrize(("pin", "old", "new", "standing"), STANDINGS)
def test_what_a_pin_makes_of_a_new_version(pin, old, new, standing):
    assert standing_of(Consumer("a", versions=pin), old, new) is standing


SITUATIONS = [
    (None, "a pins no version and gets 2.0.0", True),
    (">=1", "a gets 2.0.0, which its pin >=1 allows", True),
    ("^1", "a stays on 1.0.0: its pin ^1 does not allow 2.0.0", False),
    ("^3", "a pins ^3, which allows neither 1.0.0 nor 2.0.0", True),
    ("x y", "nobody can tell whether the pin 'x y' of a allows 2.0.0", True),
]


@pytest.mark.parametrize(("pin", "sentence", "is_broken"), SITUATIONS)
def test_a_consumer_hears_what_the_version_means_for_it(pin, sentence, is_broken):
    (found,) = affected(REMOVED, shop(), [Consumer("a", versions=pin)])
    assert (found.situation, found.is_broken) == (sentence, is_broken)
    assert found.to_dict()["situation"] == sentence


def test_each_consumer_hears_of_its_own_changes_only_in_the_order_of_the_report():
    report = diff(shop(), shop("2.0.0", orders=("id", "note", "more"), lines=("order_id",)))
    readers = [Consumer("z"), Consumer("a", fields=("sku",)), Consumer("m", datasets=["orders"], fields=("id",))]
    found = affected(report, shop(), readers)
    assert [(one.consumer.name, [change.field_name for change in one.changes]) for one in found] == [
        ("z", ["total", "note", "more", "sku"]),
        ("a", ["sku"]),
    ]


def test_what_is_about_the_whole_contract_concerns_everybody():
    report = diff(shop(), shop("1.0.1").model_copy(update={"owner": "others"}))
    readers = [Consumer("a", datasets=["lines"], fields=("sku",)), Consumer("b")]
    assert [one.consumer.name for one in affected(report, shop(), readers)] == ["a", "b"]


def test_a_version_that_should_have_moved_is_no_consumers_business():
    report = diff(shop(), shop("1.0.0", orders=("id",)))
    assert "version_not_bumped" in [str(change.change_type) for change in report.changes]
    (found,) = affected(report, shop(), [Consumer("a")])
    assert [str(change.change_type) for change in found.changes] == ["field_removed"]


def test_nothing_changed_and_nobody_is_told():
    assert affected(diff(shop(), shop()), shop(), [Consumer("a")]) == ()
    assert affected(REMOVED, shop(), []) == ()


def test_a_report_on_a_schema_goes_to_those_who_subscribed_to_it():
    old = SchemaVersion("TradeSchemaV1", "1.0", {"symbol": str, "price": float})
    new = SchemaVersion("TradeSchemaV1", "2.0", {"symbol": str, "close_price": float})
    readers = [
        Consumer("Quant team", "quant@example.com", ["TradeSchemaV1"]),
        Consumer("Risk system", "risk@example.com", ["TradeSchemaV1"]),
        Consumer("ML pipeline", "ml@example.com", ["TradeSchemaV1"]),
        Consumer("Reporting svc", "bi@example.com", ["PriceSchema"]),
    ]
    found = affected(SchemaDiff(old, new).generate_report(), None, readers)
    assert [one.consumer.name for one in found] == ["Quant team", "Risk system", "ML pipeline"]


@pytest.mark.parametrize(
    ("dotted", "found"),
    [
        ("payload", "payload"),
        ("PAYLOAD.Items", "payload.items"),
        ("payload.items.sku", "payload.items.sku"),
        ("payload.tags", "payload.tags"),
        ("payload.tags.x", ""),
        ("amount", "total"),
        ("a.b", "a.b"),
        ("payload.nothing", ""),
        ("", ""),
    ],
)
def test_a_field_is_found_by_its_path_or_its_columns_name(dotted, found):
    fields = (
        build_field("payload", "struct<items:array<struct<sku:string>>,tags:array<string>>"),
        build_field("total", "string", column_name="amount"),
        build_field("a.b", "string"),
    )
    assert ".".join(field.name for field in trail_of(Dataset(name="t", fields=fields), dotted)) == found


def test_a_field_that_is_called_like_its_dataset_is_that_field():
    fields = (build_field("price", "string"), build_field("note", "string"))
    contract = Contract(id="price", version="1.0.0", datasets=(Dataset(name="price", fields=fields),))
    reader = Consumer("a", fields=("price",))
    assert affected_by_failure(contract, "price", ["note"], [reader]) == ()
    assert affected_by_failure(contract, "price", ["price"], [reader]) == (reader,)


def test_a_consumer_may_call_a_field_what_its_column_is_called():
    contract = Contract(
        id="c", version="1.0.0", datasets=(Dataset(name="t", fields=(build_field("total", "int", column_name="TTL"),)),)
    )
    change = FieldChange(ChangeType.TYPE_CHANGED, "total", dataset="t")
    report = MigrationReport("c", "1.0.0", "2.0.0", [change])
    assert len(affected(report, contract, [Consumer("a", fields=("ttl",)), Consumer("b", fields=("other",))])) == 1

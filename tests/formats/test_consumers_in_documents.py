"""Who reads the data, in the documents of every dialect: read, written and read again whole."""

import pytest

from databox_contracts.formats import FORMATS, dump_contract, examine, load_contract, losses
from databox_contracts.model import Consumer, Governance
from databox_contracts.rules import Severity
from databox_contracts.testing import build_contract, build_field

WHOLE = Consumer(
    "Revenue märt",
    "revenue@example.com",
    ["orders"],
    owner="analytics",
    contacts=("#revenue", "https://hooks.example.com/${HOOK}"),
    fields=("total", "orders.id"),
    versions="^3.2",
    purpose="payment_processing",
    justification="the books",
    criticality="high",
    severity=Severity.WARNING,
    digest=True,
    assets=("marts/revenue",),
)
ENTRY = (
    "{name: Revenue märt, contact: revenue@example.com, datasets: [orders], owner: analytics, criticality: high,"
    " contacts: ['#revenue', 'https://hooks.example.com/${HOOK}'], fields: [total, orders.id], versions: ^3.2,"
    " purpose: payment_processing, justification: the books, severity: warning, digest: true, assets: [marts/revenue]}"
)
HEADS = {
    "odcs": (
        "apiVersion: v3.1.0\nkind: DataContract\nid: shop\nversion: 1.0.0\nstatus: active\n"
        "schema: [{name: orders, properties: [{name: id, logicalType: string}, {name: total, logicalType: number}]}]\n"
        "customProperties: [{property: consumers, value: [%s]}]\n"
    ),
    "datacontract": (
        "dataContractSpecification: 1.2.0\nid: shop\ninfo: {title: Shop, version: 1.0.0}\n"
        "models: {orders: {fields: {id: {type: string}, total: {type: double}}}}\nconsumers: [%s]\n"
    ),
    "sections": (
        "contract: {name: shop.orders, version: 1.0.0}\n"
        "schema: {fields: [{name: id, type: STRING}, {name: total, type: DOUBLE}]}\nconsumers: [%s]\n"
    ),
    "soda": (
        "dataset: wh/main/orders\ncolumns: [{name: id, data_type: varchar}, {name: total, data_type: double}]\n"
        "consumers: [%s]\n"
    ),
}


def test_every_dialect_is_here():
    assert list(HEADS) == [format_.name for format_ in FORMATS]


@pytest.mark.parametrize("dialect", HEADS)
def test_a_consumer_is_read_whole_and_written_again(dialect):
    text = HEADS[dialect] % f"{ENTRY}, {{name: 'NO'}}"
    contract = load_contract(text)
    assert contract.dialect == dialect
    assert contract.consumers == (WHOLE, Consumer("NO"))
    assert [str(found) for found in contract.findings if "consumer" in found.message] == []
    again = load_contract(dump_contract(contract, dialect))
    assert again.consumers == contract.consumers
    assert dump_contract(again, dialect) == dump_contract(contract, dialect)


@pytest.mark.parametrize("dialect", HEADS)
def test_no_dialect_loses_a_consumer(dialect):
    contract = build_contract(build_field("id", "string"), dataset="orders", consumers=(WHOLE, Consumer("b")))
    assert [loss for loss in losses(contract, dialect) if "consumer" in loss] == []


@pytest.mark.parametrize("dialect", HEADS)
@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{name: a, severity: loud}", "error: unknown severity 'loud' (use one of error, warning, info)"),
        ("{name: a, severity: warnin}", "error: unknown severity 'warnin' (did you mean 'warning'?)"),
        (
            "{name: a, digest: daily}",
            "error: 'digest' must be true or false, not the text 'daily' (write `digest: true`)",
        ),
        ("{name: b}, {contact: a@example.com}", "error: a consumer has no 'name' (give it one: `name: ...`)"),
        ("{name: a, contact: nobody}", "warning: the consumer 'a' cannot be reached: 'nobody' is neither an address"),
        (
            "{name: a, fields: [totl]}",
            "warning: the consumer 'a' reads 'totl', which is no field (did you mean 'total'?)",
        ),
        ("{name: a, version: 1}", "warning: the unknown key 'version' is ignored (did you mean 'versions'?)"),
    ],
)
def test_what_is_wrong_with_a_consumer_is_said_at_its_place(dialect, entry, said):
    text = HEADS[dialect] % entry
    line = text[: text.index("consumers")].count("\n") + 1
    found = [str(one) for one in examine(text)[1]]
    assert [one for one in found if one.startswith(f"<text>:{line}:") and said in one], found


@pytest.mark.parametrize("dialect", ["datacontract", "soda"])
@pytest.mark.parametrize("written", ["everybody", "[]", "{a: b}", "[a, b]", "[{team: a, reads: b}]"])
def test_consumers_of_another_kind_are_somebody_elses(dialect, written):
    contract, findings = examine(HEADS[dialect].replace("[%s]", written))
    assert contract is not None
    assert contract.consumers == ()
    assert any("consumers" in found.message and found.level != "error" for found in findings)


@pytest.mark.parametrize(
    ("dialect", "written"),
    [
        ("odcs", "customProperties: [{property: governance, value: {closed: true}}]"),
        ("sections", "governance: {closed: true}"),
    ],
)
def test_a_closed_list_of_consumers_is_read_and_written(dialect, written):
    head = HEADS[dialect].partition("customProperties" if dialect == "odcs" else "consumers")[0]
    contract = load_contract(head + written)
    assert contract.governance == Governance(closed=True)
    assert load_contract(dump_contract(contract, dialect)).governance == Governance(closed=True)


@pytest.mark.parametrize(
    ("sign_off", "said"),
    [
        ("required", []),
        ("optional", []),
        ("requird", ["no gate knows the sign-off 'requird', so nobody is asked (did you mean 'required'?)"]),
        ("''", ["no gate knows the sign-off '', so nobody is asked (use one of: required, optional, none)"]),
    ],
)
@pytest.mark.parametrize("dialect", ["odcs", "sections"])
def test_a_sign_off_that_asks_nobody_by_mistake_is_told(dialect, sign_off, said):
    head = HEADS[dialect].partition("customProperties" if dialect == "odcs" else "consumers")[0]
    written = {
        "odcs": f"customProperties: [{{property: evolution, value: {{signOff: {sign_off}}}}}]",
        "sections": f"evolution: {{sign_off: {sign_off}}}",
    }
    found = [str(one) for one in examine(head + written[dialect])[1] if "sign-off" in one.message]
    assert [one.partition("warning: ")[2] for one in found] == said

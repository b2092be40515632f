"""All consumers of a set of contracts as one list: what is merged, what is refused, and who may not read."""

from datetime import date
from pathlib import Path

import pytest

from databox_contracts.approvals import Approval
from databox_contracts.declarations import IN_CODE, IN_CONTRACT, Declaration, declared_by
from databox_contracts.errors import ConsumersError, UnknownPlaceError
from databox_contracts.model import Consumer, Contract, Dataset, Governance
from databox_contracts.registry.consumer_checks import check_consumers, require_consumers
from databox_contracts.registry.consumers import Reading, resolve
from databox_contracts.registry.places import Place, Places
from databox_contracts.testing import build_field


def dataset(name: str, *fields: str, **facts) -> Dataset:
    return Dataset(name=name, fields=tuple(build_field(one, "string") for one in fields), **facts)


def shop(version: str = "1.2.0", **facts) -> Contract:
    found = {"id": "shop", "version": version, "owner": "sales", "source": f"shop-{version}.yaml"}
    datasets = (dataset("orders", "id", "total", physical_name="tbl_orders"), dataset("lines", "sku", "order_id"))
    return Contract(**{**found, "datasets": datasets, **facts})


PAYMENTS = Contract(
    id="payments.transaction",
    name="Payments",
    version="3.2",
    datasets=(dataset("transaction", "id", "amount_paise"),),
    governance=Governance(purposes=("payment_processing",), read=("analytics", "ml-fraud")),
    owner="payments-platform",
)


def said(producer: str, *arguments, place: str = "c.yaml:2:5", origin: str = "file", **facts) -> Declaration:
    return Declaration(producer, Consumer(*arguments, **facts), place, origin)


# --- names ------------------------------------------------------------------------------------------------------------

NAMES = [
    ("shop", Place("shop")),
    ("shop.orders", Place("shop", "orders")),
    ("shop.tbl_orders", Place("shop", "orders")),
    ("shop.orders.total", Place("shop", "orders", "total")),
    ("shop.total", Place("shop", "orders", "total")),
    ("orders", Place("shop", "orders")),
    ("orders.total", Place("shop", "orders", "total")),
    ("tbl_orders.TOTAL", Place("shop", "orders", "total")),
    ("payments.transaction", Place("payments.transaction")),
    ("payments.transaction.id", Place("payments.transaction", "transaction", "id")),
    ("payments.transaction.transaction.id", Place("payments.transaction", "transaction", "id")),
    ("Payments", Place("payments.transaction")),
    ("Payments.amount_paise", Place("payments.transaction", "transaction", "amount_paise")),
]


@pytest.mark.parametrize(("text", "place"), NAMES)
def test_what_a_name_means(text, place):
    assert Places([shop(), PAYMENTS]).find(text) == place


UNKNOWN = [
    ("", "no contract, dataset or field is called ''. Name it as contract, contract.dataset or .field"),
    ("shop.ordrs", "no contract, dataset or field is called 'shop.ordrs'. Did you mean one of: shop.orders"),
    ("shop.", "no contract, dataset or field is called 'shop.'"),
    ("Shop", "no contract, dataset or field is called 'Shop'"),
    ("shop.nothing.at.all", "is called 'shop.nothing.at.all'"),
]


@pytest.mark.parametrize(("text", "message"), UNKNOWN)
def test_a_name_that_nothing_has(text, message):
    with pytest.raises(UnknownPlaceError) as caught:
        Places([shop(), PAYMENTS]).find(text)
    assert message in str(caught.value)


def test_a_name_that_several_have():
    other = Contract(id="b", version="1.0.0", datasets=(dataset("orders", "id"), dataset("more", "id")))
    places = Places([shop(), other])
    with pytest.raises(UnknownPlaceError, match=r"'orders' could mean 2 things\. Name one of: shop\.orders, b\.orders"):
        places.find("orders")
    with pytest.raises(UnknownPlaceError, match=r"b\.orders\.id, b\.more\.id"):
        places.find("b.id")
    assert places.find("lines") == Place("shop", "lines")


DOMAINS = [
    ("weather.hourly", Place("urn:w:h", "hourly")),
    ("weather/hourly", Place("urn:w:h", "hourly")),
    ("weather.hourly.temp", Place("urn:w:h", "hourly", "temp")),
    ("weather.tbl.temp", Place("urn:w:h", "hourly", "temp")),
    ("Hourly weather.temp", Place("urn:w:h", "hourly", "temp")),
    ("hourly", Place("urn:w:h", "hourly")),
    ("urn:w:h.hourly", Place("urn:w:h", "hourly")),
]


@pytest.mark.parametrize(("text", "place"), DOMAINS)
def test_a_dataset_may_be_named_with_its_domain(text, place):
    hourly = dataset("hourly", "temp", physical_name="tbl")
    weather = Contract(id="urn:w:h", name="Hourly weather", version="1.0.0", domain="weather", datasets=(hourly,))
    assert Places([shop(), weather]).find(text) == place
    (found,) = resolve([weather], declared_by({text.removesuffix(".temp"): "^1"}, Consumer("a"), "asset a")).readings
    assert found.contract == "urn:w:h"


def test_an_id_is_that_contract_whatever_else_has_the_name():
    places = Places(
        [Contract(id="a", version="1.0.0", datasets=(dataset("b", "c"),)), Contract(id="a.b", version="1.0.0")]
    )
    assert places.find("a.b") == Place("a.b")
    assert places.find("b") == Place("a", "b")
    assert places.find("a.b.c") == Place("a", "b", "c")


def test_a_name_is_looked_up_in_the_newest_version_that_has_it():
    newer = shop("10.0.0", datasets=(dataset("orders", "id"),))
    places = Places([shop("9.0.0"), newer, shop("oldest"), shop("2.0.0")])
    assert [one.version for one in places.versions("shop")] == ["10.0.0", "9.0.0", "2.0.0", "oldest"]
    assert places.find("shop.orders.total") == Place("shop", "orders", "total")
    assert places.find("lines") == Place("shop", "lines")


# --- one list ---------------------------------------------------------------------------------------------------------


def resolved(*declarations: Declaration, contracts=None) -> list[Reading]:
    found = resolve(contracts or [shop(), PAYMENTS], declarations)
    assert found.problems == ()
    return list(found.readings)


def test_consumers_stand_by_contract_and_then_as_declared():
    contracts = [shop(consumers=(Consumer("z"), Consumer("b"))), PAYMENTS]
    found = resolved(said("Payments", "y"), said("shop", "a"), said("orders", "z2"), contracts=contracts)
    assert [(one.contract, one.consumer.name) for one in found] == [
        ("shop", "z"),
        ("shop", "b"),
        ("shop", "a"),
        ("shop", "z2"),
        ("payments.transaction", "y"),
    ]


def test_what_one_declaration_says_is_kept_as_it_is():
    whole = Consumer("a", "a@x", ["orders"], contacts=("#a", "#b"), fields=("total",), versions="^1", digest=True)
    (found,) = resolved(Declaration("shop", whole, "here"))
    assert found == Reading("shop", whole, ("here",))


def test_what_several_declarations_say_of_one_consumer_is_joined():
    declared = shop(consumers=(Consumer("a", "a@x", ["orders"], owner="bi", fields=("id",), contacts=("#a",)),))
    (found,) = resolved(
        said("shop", "a", "b@x", ["orders"], fields=("total",), versions="^1", contacts=("a@x",), assets=("m/a",)),
        said("shop.orders", "a", versions="^1", place="asset m/b", origin=IN_CODE, assets=("m/b",), digest=True),
        contracts=[declared],
    )
    assert found.consumer == Consumer(
        "a",
        "a@x",
        ["orders"],
        owner="bi",
        contacts=("#a", "b@x"),
        fields=("id", "total"),
        versions="^1",
        assets=("m/a", "m/b"),
        digest=True,
    )
    assert found.places == ("shop-1.2.0.yaml", "c.yaml:2:5", "asset m/b")


SCOPES = [
    ([((), ()), (("orders",), ("id",))], (), ()),
    ([(("orders",), ()), (("orders",), ("id",))], ("orders",), ()),
    ([(("orders",), ("total",)), (("lines",), ())], ("orders", "lines"), ("orders.total", "lines")),
    ([(("orders",), ("total",)), ((), ("sku",))], ("orders", "lines"), ("orders.total", "lines.sku")),
    ([((), ("total",)), ((), ("id", "total"))], (), ("total", "id")),
]


@pytest.mark.parametrize(("scopes", "datasets", "fields"), SCOPES)
def test_who_names_no_fields_reads_all_of_them(scopes, datasets, fields):
    (found,) = resolved(*(said("shop", "a", None, one, fields=two) for one, two in scopes))
    assert (found.consumer.datasets, found.consumer.fields) == (datasets, fields)


CODE = [
    ({"shop": "^1"}, ("orders",), ("total",)),
    ({"shop.orders": "^1"}, ("orders",), ("total",)),
    ({"shop.orders": "^1", "shop.lines": "^1"}, ("orders", "lines"), ("orders.total", "lines")),
]


@pytest.mark.parametrize(("consumes", "datasets", "fields"), CODE)
def test_code_says_nothing_of_fields(consumes, datasets, fields):
    stated = said("shop", "a", None, ["orders"], fields=("total",), versions="^1")
    (found,) = resolved(stated, *declared_by(consumes, Consumer("a"), "asset a"))
    assert (found.consumer.datasets, found.consumer.fields) == (datasets, fields)


def test_code_alone_reads_all_fields_of_what_it_names():
    found = resolved(*declared_by({"shop.orders": "^1", "Payments": None}, Consumer("a", assets=("m/a",)), "asset a"))
    assert [(one.contract, one.consumer.datasets, one.consumer.fields, one.consumer.versions) for one in found] == [
        ("shop", ("orders",), (), "^1"),
        ("payments.transaction", (), (), None),
    ]


@pytest.mark.parametrize(
    ("key", "one", "other"),
    [
        ("owner", "bi", "ml"),
        ("versions", "^1", "^1.0"),
        ("purpose", "a", "b"),
        ("justification", "a", "b"),
        ("criticality", "low", "high"),
        ("severity", "info", "error"),
    ],
)
def test_what_two_declarations_say_differently_is_refused_with_both_places(key, one, other):
    found = resolve(
        [shop()], [said("shop", "a", **{key: one}), said("orders", "a", place="d.yaml:7:3", **{key: other})]
    )
    assert [str(problem) for problem in found.problems] == [
        f"d.yaml:7:3: error: a is declared as a consumer of shop with the {key} {other!r} here and {one!r} in "
        "c.yaml:2:5 (say the same in both places, remove one of them, or give one another name)"
    ]
    assert [getattr(reading.consumer, key) for reading in found.readings] == [one]


def test_one_name_may_read_two_contracts_differently():
    found = resolved(said("shop", "a", versions="^1"), said("Payments", "a", versions="^3"))
    assert [one.consumer.versions for one in found] == ["^1", "^3"]


def test_the_newest_version_says_who_its_consumers_are_and_older_ones_who_is_left():
    old = shop("1.0.0", consumers=(Consumer("a", versions="^1"), Consumer("left", versions="^1")))
    new = shop("2.0.0", consumers=(Consumer("a", versions="^2"),))
    found = resolved(contracts=[old, new])
    assert [(one.consumer.name, one.consumer.versions) for one in found] == [("a", "^2"), ("left", "^1")]


# --- who may read -----------------------------------------------------------------------------------------------------

CLOSED = shop(governance=Governance(closed=True), consumers=(Consumer("a"),))
APPROVAL = Approval("payments.transaction", "a", "keeper", date(2026, 11, 21), purpose="fraud")
READER = {"owner": "analytics", "purpose": "payment_processing"}

FINE = [
    [said("shop", "a")],
    [said("shop", "a", versions="^1")],
    [said("shop", "a", versions="*", fields=("ID", "lines.sku", "tbl_orders.total", "lines"))],
    [said("shop", "a", None, ["shop.orders"])],
    [said("Payments", "a", **READER)],
    [said("Payments", "analytics", purpose="payment_processing")],
    [said("Payments", "a", owner="analytics", purpose="fraud", justification="chargebacks")],
    [],
]


@pytest.mark.parametrize("declarations", FINE)
def test_who_may_read(declarations):
    assert require_consumers([shop(), PAYMENTS], declarations, [APPROVAL]).problems == ()


REFUSED = [
    (
        said("shp", "a"),
        "a reads 'shp': no contract, dataset or field is called 'shp' (did you mean one of: shop?)",
    ),
    (
        said("shop", "a", None, ["ordrs"]),
        "a, a consumer of shop 1.2.0, reads 'ordrs', which is no dataset of it (did you mean 'orders'?)",
    ),
    (
        said("shop", "a", versions="^2"),
        "a pins ^2 of shop, and there is only 1.2.0 (pin a range with 1.2.0 in it, or bring back a version that ^2 "
        "allows)",
    ),
    (
        said("shop", "a", versions="soon"),
        "a, a consumer of shop 1.2.0, pins 'soon', which is no range of versions (write it as ^2.1, ~1.4, >=1.2,<2, 1.x"
        " or *; alternatives are separated by ||)",
    ),
    (
        said("shop", "a", None, ["orders"], fields=("id", "totl")),
        "a, a consumer of shop 1.2.0, reads the field 'totl', which is not promised by orders (did you mean 'total'?; "
        "otherwise ask sales to promise it)",
    ),
    (
        said("shop", "a", None, ["orders"], fields=("lines.sku",)),
        "a, a consumer of shop 1.2.0, reads the field 'lines.sku', which is not promised by orders (there is id, total;"
        " otherwise ask sales to promise it)",
    ),
    (
        said("Payments", "a", owner="analytics", purpose="ads"),
        "a, a consumer of payments.transaction 3.2, uses the data for 'ads', and the contract allows "
        "'payment_processing' (use it for that, or give the further purpose a `justification` and have it approved)",
    ),
    (
        said("Payments", "b", owner="analytics", purpose="fraud", justification="chargebacks"),
        "b, a consumer of payments.transaction 3.2, uses the data for 'fraud', and the contract allows "
        "'payment_processing'; the further purpose is justified, and nobody has approved it (ask payments-platform for "
        "the approval {contract: payments.transaction, consumer: b, purpose: fraud})",
    ),
    (
        said("Payments", "a", owner="sales", purpose="payment_processing"),
        "a, a consumer of payments.transaction 3.2, is of the team 'sales', and only analytics and ml-fraud may read"
        " it (give it an `owner` that may read, or ask for 'sales' to be added to the contract's readers)",
    ),
    (
        said("Payments", "a", purpose="payment_processing"),
        "a, a consumer of payments.transaction 3.2, names no owner, and only analytics and ml-fraud may read"
        " it (give it an `owner` that may read, or ask for 'a' to be added to the contract's readers)",
    ),
]


@pytest.mark.parametrize(("declaration", "message"), REFUSED)
def test_who_may_not_read(declaration, message):
    with pytest.raises(ConsumersError) as caught:
        require_consumers([shop(), PAYMENTS], [declaration], [APPROVAL])
    assert [str(problem) for problem in caught.value.problems] == [f"c.yaml:2:5: error: {message}"]


def test_a_secret_in_a_contact_is_a_problem_that_does_not_show_it():
    declaration = said("shop", "a", "https://bot:s3cr3t@example.com/hook")
    with pytest.raises(ConsumersError) as caught:
        require_consumers([shop()], [declaration])
    assert "contact 1 of consumer 'a' has a password in it (Write it as ${NAME}" in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


def test_a_closed_list_keeps_others_out():
    assert require_consumers([CLOSED], [said("shop", "a", versions="^1")]).problems == ()
    with pytest.raises(ConsumersError) as caught:
        require_consumers([CLOSED], [said("shop", "b")])
    assert [str(problem) for problem in caught.value.problems] == [
        "c.yaml:2:5: error: b, a consumer of shop 1.2.0, is not on its list of consumers, which is closed: a "
        "(ask sales to declare it in the contract)"
    ]
    empty = shop(governance=Governance(closed=True))
    with pytest.raises(ConsumersError, match="which is closed: nobody"):
        require_consumers([empty], [said("shop", "b")])


def test_who_says_no_purpose_is_reminded_and_not_kept_out():
    found = require_consumers([PAYMENTS], [said("Payments", "a", owner="analytics")])
    assert [str(problem) for problem in found.problems] == [
        "c.yaml:2:5: warning: a, a consumer of payments.transaction 3.2, does not say what it uses the data for;"
        " allowed is 'payment_processing' (give it `purpose: payment_processing`)"
    ]


@pytest.mark.parametrize(
    "facts",
    [
        {"contract": "shop"},
        {"consumer": "b"},
        {"purpose": "ads"},
        {"purpose": None},
        {"version": "3.1"},
    ],
)
def test_an_approval_of_something_else_approves_nothing(facts):
    found = {"contract": "payments.transaction", "consumer": "a", "approver": "k", "on": date(2026, 1, 1)}
    approval = Approval(**{**found, "purpose": "fraud", **facts})
    declaration = said("Payments", "a", owner="analytics", purpose="fraud", justification="x")
    with pytest.raises(ConsumersError, match="nobody has approved it"):
        require_consumers([PAYMENTS], [declaration], [approval])


def test_a_pin_is_held_against_every_version_that_is_there():
    contracts = [shop("1.2.0"), shop("2.0.0", datasets=(dataset("orders", "id"),))]
    fine = [said("shop", "old", versions="^1", fields=("total",)), said("shop", "new", versions="^2", fields=("id",))]
    assert require_consumers(contracts, fine).problems == ()
    with pytest.raises(ConsumersError) as caught:
        require_consumers(contracts, [said("shop", "a", versions=">=1", fields=("total",))])
    (problem,) = caught.value.problems
    assert (problem.version, problem.field, str(problem.kind)) == ("2.0.0", "total", "field_not_promised")
    with pytest.raises(ConsumersError, match=r"there is only 2\.0\.0, 1\.2\.0"):
        require_consumers(contracts, [said("shop", "a", versions="^3")])


def test_each_declaration_is_held_against_the_contract_with_what_others_say_of_the_consumer():
    file = said("Payments", "a", owner="analytics", purpose="payment_processing", fields=("amount",))
    code = declared_by({"Payments": "^4"}, Consumer("a"), "asset m/a")
    whole = said("Payments", "a", place="d.yaml:1:1")
    with pytest.raises(ConsumersError) as caught:
        require_consumers([PAYMENTS], [file, whole, *code])
    assert [(problem.place, str(problem.kind)) for problem in caught.value.problems] == [
        ("asset m/a", "version_not_allowed"),
        ("c.yaml:2:5", "field_not_promised"),
    ]


def test_one_error_has_them_all_in_order():
    declarations = [
        said("shop", "a", versions="^9", fields=("x",)),
        said("nothing", "b", place="c.yaml:9:5"),
        said("Payments", "c", owner="sales", purpose="ads", place="c.yaml:12:5"),
    ]
    with pytest.raises(ConsumersError) as caught:
        require_consumers([shop(consumers=(Consumer("d", fields=("y",)),)), PAYMENTS], declarations)
    assert [(problem.place, str(problem.kind)) for problem in caught.value.problems] == [
        ("c.yaml:9:5", "unknown_producer"),
        ("shop-1.2.0.yaml", "field_not_promised"),
        ("c.yaml:2:5", "version_not_allowed"),
        ("c.yaml:2:5", "field_not_promised"),
        ("c.yaml:12:5", "purpose_not_allowed"),
        ("c.yaml:12:5", "team_may_not_read"),
    ]
    text = str(caught.value)
    assert text.startswith("the declared consumers do not fit the contracts, 6 problems:\n  c.yaml:9:5: error: b reads")
    assert len(text.splitlines()) == 7
    assert caught.value.problems[1].to_dict() == {
        "kind": "field_not_promised",
        "level": "error",
        "producer": "shop",
        "version": "1.2.0",
        "consumer": "d",
        "field": "y",
        "message": "d, a consumer of shop 1.2.0, reads the field 'y', which is not promised by orders or lines",
        "hint": "there is id, total, sku, order_id; otherwise ask sales to promise it",
        "place": "shop-1.2.0.yaml",
    }


def test_the_contracts_of_the_project_have_no_problem():
    from databox_contracts.formats import load_contracts

    folder = Path(__file__).parents[2] / "contracts"
    assert check_consumers(load_contracts(folder)).problems == ()


def test_a_contract_without_consumers_has_none():
    assert resolve([shop()]).readings == ()
    assert resolve([]).by_contract() == {}
    found = resolve([shop(consumers=(Consumer("a"),))])
    assert found.of("shop") == [Consumer("a")]
    assert found.of("nothing") == []
    assert found.by_contract() == {"shop": [Consumer("a")]}


def test_a_contract_that_names_a_consumer_twice_names_it_once():
    (found,) = resolved(contracts=[shop(consumers=(Consumer("a", fields=("id",)), Consumer("a", fields=("sku",))))])
    assert found.consumer.fields == ("id", "sku")
    assert IN_CONTRACT == "contract"

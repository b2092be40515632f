"""The page of a contract, before it is any notation: what is on it, what is hidden, what is left out."""

import pytest

from databox_contracts import rules
from databox_contracts.export.contacts import Contact, contacts, safe_location
from databox_contracts.export.contract_page import contract_page, left_out
from databox_contracts.export.losses import field_places
from databox_contracts.export.page import (
    Anchors,
    Code,
    Facts,
    Items,
    Link,
    Page,
    Section,
    Table,
    clean,
    joined,
    linked,
    plain_text,
    prose,
)
from databox_contracts.export.targets import Target
from databox_contracts.formats import load_contract
from databox_contracts.model import Contract, Dataset, Field, Governance, Server
from databox_contracts.plan import build_plan
from databox_contracts.rules import Operator, Threshold
from databox_contracts.testing import build_contract, build_field


def page_of(contract: Contract) -> Page:
    return contract_page(Target(contract, contract.datasets))


def section(page: Page, *titles: str) -> Section:
    sections = page.sections
    for title in titles:
        (found,) = (one for one in sections if one.title == title)
        sections = found.sections
    return found


def said(cell) -> str:
    return " / ".join(plain_text(line) for line in cell)


def facts(block: object) -> dict[str, str]:
    assert isinstance(block, Facts)
    return {label: said(cell) for label, cell in block.rows}


def fields(page: Page, dataset: str) -> dict[str, dict[str, str]]:
    (table,) = section(page, f"Dataset {dataset}", "Fields").blocks
    assert isinstance(table, Table)
    return {
        said(row.cells[0]): dict(zip(table.columns, (said(cell) for cell in row.cells), strict=True))
        for row in table.rows
    }


def all_text(page: Page) -> str:
    return repr(page)


# --- what is on the page ----------------------------------------------------------------------------------------------


def test_sections_stand_in_one_order(small):
    page = page_of(small)
    assert page.title == "Orders 2.10"
    assert [one.title for one in page.sections] == [
        "Dataset orders",
        "Dataset shops",
        "Ownership",
        "Consumers",
        "Evolution",
        "Governance",
        "Servers",
        "Custom properties",
        "History",
    ]
    assert [one.title for one in section(page, "Dataset orders").sections] == [
        "Fields",
        "Rules",
        "Guarantees",
        "Promises that are not enforced",
    ]


def test_a_field_is_a_row(small):
    rows = fields(page_of(small), "orders")
    assert rows["id"] == {
        "Field": "id",
        "Type": "integer(64)",
        "Required": "yes",
        "Key": "primary key",
        "Rules": "",
        "Description": "Its number.",
        "Protection": "no personal data",
    }
    assert rows["total"]["Rules"] == "Is at least 0. Refunds are apart. (warning)"
    assert rows["state"]["Description"] == 'Default: "new" / Examples: "new"'


def test_parts_of_fields_are_rows_where_their_type_does_not_say_it_all():
    contract = build_contract(
        build_field("sizes", "array<int>"),
        Field(name="codes", type=build_field("x", "array<string>").type, item=Field(name="item", pii=True)),
        build_field("lines", "array<struct<sku: string>>"),
        build_field("labels", "map<string, int>"),
    )
    rows = fields(page_of(contract), "t")
    assert list(rows) == ["sizes", "codes", "codes.item", "lines", "lines.sku", "labels"]
    assert rows["lines"]["Type"] == "array of object"
    assert rows["labels"]["Type"] == "map of string to integer(32)"
    assert rows["codes"]["Protection"] == "values are not shown"


def test_a_composite_key_says_which_part_a_field_is():
    contract = build_contract(
        build_field("a", "int"), build_field("b", "int"), rules=(rules.PrimaryKey(fields=("b", "a")),)
    )
    rows = fields(page_of(contract), "t")
    assert (rows["a"]["Key"], rows["b"]["Key"]) == ("primary key, 2 of 2", "primary key, 1 of 2")
    assert rows["a"]["Required"] == "yes"


def test_a_required_field_that_only_warns_says_so():
    rule = rules.Required(severity=rules.Severity.WARNING)
    row = fields(page_of(build_contract(build_field("a", "int", rule))), "t")["a"]
    assert (row["Required"], row["Rules"]) == ("no", "Always has a value. (warning)")


def test_falsy_facts_are_facts():
    contract = build_contract(
        build_field("a", "int", default=0, examples=(0, False, "")), governance=Governance(retention_days=0)
    )
    page = page_of(contract)
    assert fields(page, "t")["a"]["Description"] == 'Default: 0 / Examples: 0, false, ""'
    assert facts(section(page, "Governance").blocks[0]) == {"Retention": "0 days"}


def test_the_history_is_told_where_a_contract_carries_one():
    def blocks(**custom):
        return section(page_of(build_contract(custom=custom)), "History").blocks

    (table,) = blocks(changelog=[{"version": "1.0", "text": "first"}, {"version": "1.1"}])
    assert isinstance(table, Table)
    assert [[said(cell) for cell in row.cells] for row in table.rows] == [["1.0", "first"], ["1.1", ""]]
    assert blocks(history=["first", "then"]) == (Items((("first",), ("then",))),)
    assert facts(blocks(history={"1.0": "first"})[0]) == {"1.0": "first"}
    assert "History" not in [one.title for one in page_of(build_contract(custom={"history": []})).sections]


def test_custom_properties_are_facts_and_those_of_a_dialect_are_left_out():
    contract = build_contract(
        build_field("a", "int", custom={"unit": "kg", "$odcs": {"id": "i"}}),
        custom={"team-channel": None, "zero": 0, "$soda": {"data_source": "w"}},
    )
    page = page_of(contract)
    assert facts(section(page, "Custom properties").blocks[0]) == {"team-channel": "", "zero": "0"}
    (table,) = section(page, "Dataset t", "Custom properties").blocks
    assert [[said(cell) for cell in row.cells] for row in table.rows] == [["a", "unit", "kg"]]
    assert left_out(Target(contract, contract.datasets)) == (
        "what only soda says (data_source) of the contract: a page has no words for it",
        "what only odcs says (id) of a: a page has no words for it",
    )


@pytest.mark.parametrize(
    ("carried", "lost"),
    [
        ({"support": [{"channel": "#a", "tool": "slack"}], "description": {"usage": "u", "purpose": "p"}}, ""),
        ({"support": [{"channel": "#a", "customProperties": []}]}, "support"),
        ({"description": {"usage": "u", "authoritativeDefinitions": []}, "price": 0}, "description, price"),
    ],
)
def test_what_the_page_says_all_the_same_is_not_lost(carried, lost):
    contract = build_contract(custom={"$odcs": carried})
    sentence = f"what only odcs says ({lost}) of the contract: a page has no words for it"
    assert left_out(Target(contract, contract.datasets)) == ((sentence,) if lost else ())


def test_no_rule_is_lost(document):
    contract = load_contract(document)
    lost = left_out(Target(contract, contract.datasets))
    assert [sentence for sentence in lost if sentence.startswith("`")] == []
    # Nothing of the model itself is lost either: only settings, and what dialects have words of their own for.
    assert [
        one for one in lost if not one.startswith(("what only", "the further entries")) and "server" not in one
    ] == []


def test_only_the_datasets_asked_for_are_shown(small):
    page = contract_page(Target(small, small.datasets[1:]))
    assert page.sections[0].title == "Dataset shops"
    assert "Dataset orders" not in [one.title for one in page.sections]


# --- what is hidden ---------------------------------------------------------------------------------------------------

SECRET = "jane@example.com"


@pytest.mark.parametrize(
    ("facts_of_field", "facts_of_contract"),
    [
        ({"pii": True}, {}),
        ({"classification": "restricted"}, {}),
        ({"tags": ("PII",)}, {}),
        ({}, {"governance": Governance(pii_class="A")}),
    ],
)
def test_values_of_a_field_that_conceals_are_not_on_the_page(facts_of_field, facts_of_contract):
    secret = {"examples": (SECRET,), "default": SECRET, "custom": {"sample": SECRET}}
    values = (
        rules.Enum(values=(SECRET,)),
        rules.InvalidCount(valid_values=(SECRET,), threshold=Threshold(Operator.MUST_BE, 0)),
        rules.NotEnforced(reason="prose", custom={"$x": {"value": SECRET}}),
    )
    inner = build_field("mail", "string", *values, **secret)
    whole = Field(name="who", type=build_field("x", "struct<mail: string>").type, fields=(inner,), **facts_of_field)
    shown = build_contract(whole.model_copy(update={"pii": False, "classification": None, "tags": ()}))
    assert SECRET in all_text(page_of(shown))
    contract = build_contract(whole, **facts_of_contract)
    assert SECRET not in all_text(page_of(contract))
    assert "not shown" in fields(page_of(contract), "t")["who.mail"]["Rules"]


def test_an_object_hides_what_a_part_of_it_hides():
    inner = build_field("mail", "string", pii=True)
    whole = Field(name="who", fields=(inner,), examples=({"mail": SECRET},))
    assert SECRET not in all_text(page_of(build_contract(whole)))


def test_fields_are_hidden_as_their_checks_are(document):
    contract = load_contract(document)
    for dataset in contract.datasets:
        places = {place.name: place.masked for place in field_places(contract, dataset)}
        for check in build_plan(contract, dataset).checks:
            if check.path and check.field is not None:
                assert places[check.field] == check.masked, check.id


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("s3://bucket/path/*.parquet", "s3://bucket/path/*.parquet"),
        ("s3://bucket/part-?.csv", "s3://bucket/part-?.csv"),
        ("https://user:secret@example.com/a", "https://example.com/a"),
        ("https://secret@example.com/a", "https://example.com/a"),
        ("https://example.com/a?X-Signature=secret&b=1", "https://example.com/a…"),
        ("https://example.com/a#token=secret", "https://example.com/a…"),
        ("abfss://container@account.dfs.example.com/a", "abfss://container@account.dfs.example.com/a"),
        ("jdbc:postgresql://h:5432/db?user=me&password=secret", "jdbc:postgresql://h:5432/db…"),
        ("jdbc:sqlserver://h:1433;user=me;password=secret", "jdbc:sqlserver://h:1433…"),
        ("jdbc:oracle:thin:me/secret@//h:1521/x", "jdbc:oracle:thin://h:1521/x"),
        ("", ""),
    ],
)
def test_a_location_shows_no_secret(location, shown):
    server = Server(name="s", type="s3", settings={"path": location} if location else {"location": location})
    assert safe_location(server) == shown


def test_a_server_shows_no_settings():
    server = Server(name="s", type="postgres", description="d", settings={"host": "h", "password": "secret"})
    contract = build_contract(servers=(server,))
    assert "secret" not in all_text(page_of(contract))
    assert left_out(Target(contract, contract.datasets)) == (
        "host, password, description of the server s: settings may hold secrets",
    )


# --- contacts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("custom", "found"),
    [
        ({}, ()),
        (
            {"$odcs": {"support": [{"channel": "#a", "url": "https://x.example", "scope": "issues"}]}},
            (Contact("#a", ("https://x.example",), "issues"),),
        ),
        ({"$odcs": {"support": [{"url": "mailto:a@example.com"}]}}, (Contact("mailto:a@example.com"),)),
        ({"$odcs": {"support": "nobody"}}, ()),
        ({"$odcs": {"support": [None, {}]}}, ()),
        (
            {"$datacontract": {"info": {"contact": {"name": "Till", "email": "a@example.com"}}}},
            (Contact("Till", ("a@example.com",)),),
        ),
        ({"$datacontract": {"info": {"contact": {"url": "https://x.example"}}}}, (Contact("https://x.example"),)),
        (
            {"$sections": {"contract": {"on_call_slack": "#oncall", "ownership_email": "a@example.com"}}},
            (Contact("a@example.com", (), "owner"), Contact("#oncall", (), "on call")),
        ),
    ],
)
def test_contacts_are_those_of_every_dialect(custom, found):
    assert contacts(build_contract(custom=custom)) == found


# --- texts of unknown origin ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("https://example.com/a?b=1", Link("https://example.com/a?b=1", "https://example.com/a?b=1")),
        ("HTTP://EXAMPLE.COM", Link("HTTP://EXAMPLE.COM", "HTTP://EXAMPLE.COM")),
        ("mailto:a@example.com", Link("a@example.com", "mailto:a@example.com")),
        ("a.b+c@example.com", Link("a.b+c@example.com", "mailto:a.b+c@example.com")),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("JaVaScRiPt:alert(1)", "JaVaScRiPt:alert(1)"),
        ("java\tscript:alert(1)", "java\tscript:alert(1)"),
        ("data:text/html,x", "data:text/html,x"),
        ("//example.com", "//example.com"),
        ("https://example.com and more", "https://example.com and more"),
        ('https://example.com/"onclick="x', 'https://example.com/"onclick="x'),
        ("#till", "#till"),
        ("", ""),
    ],
)
def test_only_addresses_of_the_web_and_of_mail_are_links(text, span):
    assert linked(text) == span


def test_a_link_to_anywhere_else_cannot_be_made():
    with pytest.raises(ValueError, match="no page leads to"):
        Link("x", "javascript:alert(1)")


def test_what_nobody_sees_is_seen():
    assert clean("a\x00b\u202ec\ud800d\r\ne\u2028f\tg") == "a\ufffdb\ufffdc\ufffdd\ne\nf\tg"


def test_lines_and_lists():
    assert prose("a\n\n b \n") == (("a",), ("b",))
    assert prose(" \n") == ()
    assert joined([]) == ()
    assert joined(["a", Code("b")]) == ("a", ", ", Code("b"))


def test_no_two_anchors_are_the_same():
    anchors = Anchors()
    names = [anchors.named(*parts) for parts in [("a", "b c"), ("a", "b_c"), ("a-b_c",), ("", "")]]
    assert names == ["a-b_c", "a-b_c-2", "a-b_c-3", "-"]


def test_two_datasets_of_one_name_are_two_sections():
    contract = Contract(id="x", version="1", datasets=(Dataset(name="a"), Dataset(name="a")))
    assert [one.anchor for one in page_of(contract).sections] == ["dataset-a", "dataset-a-2"]

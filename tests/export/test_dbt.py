"""Models of dbt: what rules become, what is lost, and that texts of a contract never become Jinja or SQL."""

import re

import pytest
import yaml

from databox_contracts import rules
from databox_contracts.errors import DataboxError
from databox_contracts.export import Exported, export
from databox_contracts.export.dbt_text import inert
from databox_contracts.formats import load_contract
from databox_contracts.model import Contract, Dataset, Field, Governance
from databox_contracts.rules import Operator, Severity, Threshold, Unit
from databox_contracts.testing import build_contract, build_field

NONE = Threshold(Operator.MUST_BE, 0)

GOLDEN = """\
# For dbt 1.10.5 or later.
# Tests of dbt_utils need the package dbt-labs/dbt_utils in packages.yml.
version: 2
models:
  - name: orders
    description: One row for each order.
    config:
      contract:
        enforced: true
      alias: shop_orders
      meta:
        data_contract:
          id: shop.orders
          name: Orders
          version: "2.10"
          status: active
          domain: sales
          owner: checkout
          tags:
            - core
          dataset: orders
          retention_days: 0
          purposes:
            - billing
          read:
            - finance
    columns:
      - name: id
        data_type: BIGINT
        description: Its number.
        config:
          meta:
            pii: false
        constraints:
          - type: not_null
          - type: primary_key
        data_tests:
          - not_null
          - unique
      - name: state
        data_type: VARCHAR(8)
        data_tests:
          - accepted_values:
              name: orders_state_enum
              arguments:
                values:
                  - new
                  - paid
      - name: total_eur
        data_type: DECIMAL(10, 2)
        config:
          meta:
            name: total
            classification: internal
        data_tests:
          - dbt_utils.accepted_range:
              name: orders_total_minimum
              description: Refunds are apart.
              arguments:
                min_value: 0
              config:
                severity: warn
      - name: mail
        data_type: STRING
        config:
          meta:
            pii: true
      - name: shop
        data_type: INT
        constraints:
          - type: foreign_key
            to: ref('shops')
            to_columns:
              - id
        data_tests:
          - relationships:
              name: orders_shop_foreign_key
              arguments:
                to: ref('shops')
                field: id
      - name: tags
        data_type: ARRAY<STRING>
        config:
          meta:
            deprecated: true
  - name: shops
    config:
      contract:
        enforced: true
      meta:
        data_contract:
          id: shop.orders
          name: Orders
          version: "2.10"
          status: active
          domain: sales
          owner: checkout
          tags:
            - core
          dataset: shops
          retention_days: 0
          purposes:
            - billing
          read:
            - finance
    columns:
      - name: id
        data_type: INT
        constraints:
          - type: not_null
          - type: unique
        data_tests:
          - not_null
          - unique
"""


def test_a_small_file_is_this(small):
    exported = export(small, "dbt", dialect="spark")
    assert exported.text == GOLDEN
    assert exported.losses == (
        "`enum` of orders.mail: its values must not be shown",
        "`row_count` of orders: dbt has no test of a number of rows",
        "`freshness` of orders: dbt knows the freshness of sources, not of models",
        "`not_enforced` (no data shows it) of orders: dbt has no place for what is only written down",
        "the examples of orders.state, orders.mail: dbt has no place for it",
        "the default of orders.state, orders.mail: dbt has no place for it",
        "the schema modes of orders: dbt has no place for it",
        "the description of the contract: dbt has no place for it",
        "the team till: dbt has no place for it",
        "the servers lake: dbt has no place for it",
        "the consumers Reports: dbt has no place for it",
        "how the contract may change (evolution): dbt has no place for it",
        "the grace period: dbt has no place for it",
        "the notice period P3M: dbt has no place for it",
        "the custom properties cost-center, docs, changelog; $odcs: support, price: dbt has no place for it",
    )


def model(contract: Contract, dialect: str | None = "spark") -> dict:
    (found,) = yaml.safe_load(export(contract, "dbt", dialect=dialect).text)["models"]
    return found


def column(field: Field, dialect: str = "spark") -> dict:
    (found,) = model(build_contract(field), dialect)["columns"]
    return found


def of_column(*found: rules.Rule, type: str = "int", dialect: str = "spark") -> list:
    """The tests of the one column `a` with those rules."""
    return column(build_field("a", type, *found), dialect).get("data_tests", [])


def losses(contract: Contract) -> tuple[str, ...]:
    return tuple(one for one in export(contract, "dbt", dialect="spark").losses if one.startswith(("`", "the ")))


def test_rules_of_a_column_are_tests():
    assert of_column(rules.Required()) == ["not_null"]
    assert of_column(rules.Unique()) == ["unique"]
    assert of_column(rules.Enum(values=(0, 1))) == [
        {"accepted_values": {"name": "t_a_enum", "arguments": {"values": [0, 1], "quote": False}}}
    ]
    assert of_column(rules.Enum(values=(True, None)), type="boolean") == [
        {"accepted_values": {"name": "t_a_enum", "arguments": {"values": [True], "quote": False}}}
    ]
    assert of_column(rules.Enum(values=("", "O'Hara", "NO")), type="string") == [
        {"accepted_values": {"name": "t_a_enum", "arguments": {"values": ["", "O\\'Hara", "NO"]}}}
    ]
    assert of_column(rules.Enum(values=("O'Hara",)), type="string", dialect="postgres") == [
        {"accepted_values": {"name": "t_a_enum", "arguments": {"values": ["O''Hara"]}}}
    ]
    assert of_column(rules.Enum(values=())) == [
        {"dbt_utils.expression_is_true": {"name": "t_a_enum", "arguments": {"expression": "is null"}}}
    ]
    assert of_column(rules.ExclusiveMinimum(limit=0)) == [
        {
            "dbt_utils.accepted_range": {
                "name": "t_a_exclusive_minimum",
                "arguments": {"min_value": 0, "inclusive": False},
            }
        }
    ]
    assert of_column(rules.Maximum(limit="2020-01-31"), type="date") == [
        {
            "dbt_utils.accepted_range": {
                "name": "t_a_maximum",
                "arguments": {"max_value": "cast('2020-01-31' as DATE)"},
            }
        }
    ]
    assert of_column(rules.NullCount(threshold=NONE)) == ["not_null"]
    assert of_column(rules.NullCount(threshold=Threshold(Operator.LESS_OR_EQUAL, 10))) == [
        {"not_null": {"name": "t_a_null_count", "config": {"error_if": "> 10", "warn_if": "> 10"}}}
    ]
    assert of_column(rules.RequiredWhen(condition="b = 1")) == [
        {"not_null": {"name": "t_a_required_when", "config": {"where": "b = 1"}}}
    ]
    assert of_column(rules.DuplicateCount(threshold=NONE)) == ["unique"]
    assert of_column(rules.InvalidCount(valid_values=("x",), threshold=NONE), type="string") == [
        {"accepted_values": {"name": "t_a_invalid_count", "arguments": {"values": ["x"]}}}
    ]


def test_rules_that_need_an_expression_are_tests_of_the_model():
    contract = build_contract(
        build_field("a", "int", rules.MultipleOf(divisor=5)),
        build_field("b c", "string", rules.MinLength(length=0), rules.MaxLength(length=3)),
        rules=(rules.Expression(sql="a > 0"), rules.Expression(sql="a < 0")),
    )
    found = model(contract)
    assert [
        (name, said["name"], said["arguments"]["expression"])
        for test in found["data_tests"]
        for name, said in test.items()
    ] == [
        ("dbt_utils.expression_is_true", "t_a_multiple_of", "a % 5 = 0"),
        ("dbt_utils.expression_is_true", "t_b_c_min_length", "LENGTH(`b c`) >= 0"),
        ("dbt_utils.expression_is_true", "t_b_c_max_length", "LENGTH(`b c`) <= 3"),
        # Named alike by dbt itself, which tells tests apart by letters and digits only.
        ("dbt_utils.expression_is_true", "t_expression", "a > 0"),
        ("dbt_utils.expression_is_true", "t_expression_2", "a < 0"),
    ]
    assert found["constraints"] == [
        {"type": "check", "expression": "a > 0"},
        {"type": "check", "expression": "a < 0"},
    ]
    assert found["columns"][1]["quote"] is True


@pytest.mark.parametrize(
    "sql",
    ["a in (select b from c)", "a < current_date()", "a < (", "sum(a) > 1", "ours(a)"],
)
def test_what_no_table_takes_as_a_check_is_a_test_only(sql):
    found = model(build_contract(build_field("a", "int"), rules=(rules.Expression(sql=sql),)))
    assert "constraints" not in found
    assert found["data_tests"][0]["dbt_utils.expression_is_true"]["arguments"] == {"expression": sql}


def test_a_key_of_several_columns_is_one_of_the_model():
    fields = (build_field("a", "int", rules.Required()), build_field("b", "int"))
    found = model(build_contract(*fields, rules=(rules.PrimaryKey(fields=("a", "b")),)))
    assert found["constraints"] == [{"type": "primary_key", "columns": ["a", "b"]}]
    combined = found["data_tests"][0]["dbt_utils.unique_combination_of_columns"]
    assert combined == {"name": "t_a_b_primary_key", "arguments": {"combination_of_columns": ["a", "b"]}}
    assert [one["data_tests"] for one in found["columns"]] == [["not_null"], ["not_null"]]
    # A key with a null part is not compared, which the test would do.
    found = model(build_contract(*fields, rules=(rules.Unique(fields=("a", "b")),)))
    assert found["data_tests"][0]["dbt_utils.unique_combination_of_columns"]["config"] == {"where": "b is not null"}


def test_a_warning_warns_and_is_no_constraint():
    rule = rules.Required(severity=Severity.WARNING)
    found = column(build_field("a", "int", rule))
    assert found["data_tests"] == [{"not_null": {"name": "t_a_required", "config": {"severity": "warn"}}}]
    assert "constraints" not in found
    # Said twice, the one that is an error counts.
    assert column(build_field("a", "int", rule, rules.Required()))["data_tests"] == ["not_null"]


def test_a_foreign_key_refers_to_a_model_of_the_same_contract():
    key = rules.ForeignKey(fields=("a", "b"), to="x.shops", to_fields=("c", "d"))
    there = Dataset(name="shops", fields=(build_field("c", "int"), build_field("d", "int")))
    here = Dataset(name="t", fields=(build_field("a", "int"), build_field("b", "int")), rules=(key,))
    contract = Contract(id="x", version="1", datasets=(here, there))
    found = yaml.safe_load(export(contract, "dbt").text)["models"][0]
    assert found["constraints"] == [
        {"type": "foreign_key", "columns": ["a", "b"], "to": "ref('shops')", "to_columns": ["c", "d"]}
    ]
    elsewhere = contract.model_copy(update={"datasets": (here,)})
    assert losses(elsewhere)[0].endswith("dbt refers to models, and the contract says nothing of the other's")


@pytest.mark.parametrize(
    ("rule", "type"),
    [
        (rules.Pattern(pattern="x"), "string"),
        (rules.Format(format="uuid"), "string"),
        (rules.Enum(values=(1, "a")), "string"),
        (rules.MultipleOf(divisor=0.1), "double"),
        (rules.NullCount(threshold=Threshold(Operator.LESS_OR_EQUAL, 1, unit=Unit.PERCENT)), "int"),
        (rules.NullCount(threshold=Threshold(Operator.MUST_BE, 7)), "int"),
        (rules.DuplicateCount(threshold=Threshold(Operator.LESS_OR_EQUAL, 1)), "int"),
        (rules.InvalidCount(pattern="x", threshold=NONE), "string"),
        (rules.RequiredWhen(condition="a rlike '\\d'"), "string"),
        (rules.UniqueItems(), "array<int>"),
        (rules.NotEnforced(reason="prose"), "int"),
    ],
)
def test_what_dbt_cannot_say_is_lost_and_named(rule, type):
    contract = build_contract(build_field("a", type, rule))
    assert "data_tests" not in model(contract)["columns"][0]
    assert [one for one in losses(contract) if one.startswith(f"`{rule.kind}`")] != []


def test_rules_inside_of_columns_are_lost_and_named():
    inner = build_field("b", "int", rules.Required(), description="x")
    contract = build_contract(Field(name="a", type=build_field("x", "struct<b: int>").type, fields=(inner,)))
    assert model(contract)["columns"] == [{"name": "a", "data_type": "STRUCT<`b`: INT>"}]
    assert losses(contract)[:2] == (
        "`required` of a.b: dbt tests whole columns",
        "the description of a.b: dbt describes whole columns",
    )


def test_a_model_whose_types_are_not_all_known_is_not_held_to_them():
    contract = build_contract(build_field("a", None, rules.Required()), build_field("b", "int", rules.Required()))
    found = model(contract)
    assert found["config"]["contract"] == {"enforced": False}
    assert [one.get("constraints") for one in found["columns"]] == [None, None]
    assert [one["data_tests"] for one in found["columns"]] == [["not_null"], ["not_null"]]
    assert losses(contract)[:2] == (
        "the type of a: the contract leaves it, or what it holds, open; a model has none for it",
        "the enforced contract of t: dbt holds a model to one where it knows the type of every column",
    )


def test_hidden_values_are_not_in_the_file():
    field = build_field("a", "string", rules.Enum(values=("jane",)), examples=("jane",), default="jane")
    contract = build_contract(field, governance=Governance(pii_class="A"))
    exported = export(contract, "dbt")
    assert "jane" not in exported.text + repr(exported.losses)


@pytest.mark.parametrize(("dialect", "type_"), [("postgres", "JSONB"), ("bigquery", "STRUCT<`b` INT64>")])
def test_types_are_those_of_the_warehouse(dialect, type_):
    assert column(build_field("a", "struct<b: bigint>"), dialect)["data_type"].replace("b INT64", "`b` INT64") == type_


def test_what_a_warehouse_has_no_type_for_is_a_loss_and_no_remark_in_a_log(caplog):
    exported = export(build_contract(build_field("a", "struct<b: int>")), "dbt", dialect="singlestore")
    assert exported.losses[0] == "what it holds of a: singlestore has no type for it; written as JSON"
    assert caplog.records == []


def test_an_unknown_dialect_is_refused_with_those_there_are():
    with pytest.raises(DataboxError, match="postgres"):
        export(build_contract(build_field("a", "int")), "dbt", dialect="klingon")


# --- names and texts of unknown origin --------------------------------------------------------------------------------


def test_models_have_legal_and_different_names():
    datasets = tuple(Dataset(name=name) for name in ("a b", "a_b", "1", "", "größe"))
    contract = Contract(id="x", version="1", datasets=datasets)
    names = [one["name"] for one in yaml.safe_load(export(contract, "dbt").text)["models"]]
    assert names == ["a_b", "a_b_2", "_1", "_", "gr__e"]
    assert "the name of a b: written as a_b" in export(contract, "dbt").losses


@pytest.mark.parametrize(
    "text",
    ["", "plain", "{{ x }}", "{% set a %}", "{# no #}", "{{{", "{{{%", "}}", "ref('x')", " var ( 'x' )", "env_var('A')",
     "reference (x)", "doc", "a\n{{ b }}", "{", "{{ '{{' }}"],
)  # fmt: skip
def test_a_text_renders_to_itself(text):
    jinja2 = pytest.importorskip("jinja2")
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    assert environment.from_string(inert(text)).render() == text
    # dbt takes an argument that looks like a call of one of these for one.
    assert not re.match(r"^\s*(env_var|ref|var|source|doc)\s*\(.+\)\s*$", inert(text))


def test_no_text_of_a_contract_is_run(hostile):
    jinja2 = pytest.importorskip("jinja2")
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    data = yaml.safe_load(export(hostile, "dbt", dialect="postgres").text)

    def texts(value):
        match value:
            case str():
                yield value
            case dict():
                for key, item in value.items():
                    yield key
                    # What refers to another model is ours.
                    if key != "to":
                        yield from texts(item)
            case list():
                for item in value:
                    yield from texts(item)

    for text in texts(data):
        environment.from_string(text).render()
    names = [one["name"] for one in data["models"]]
    assert len(set(names)) == len(names) == len(hostile.datasets)


def test_a_value_cannot_leave_its_quotes():
    (test,) = of_column(rules.Enum(values=("a' or '1'='1", "b\\")), type="string", dialect="spark")
    assert test["accepted_values"]["arguments"]["values"] == ["a\\' or \\'1\\'=\\'1", "b\\\\"]


@pytest.mark.parametrize(
    ("contract", "models"),
    [
        (Contract(id="x", version="1"), []),
        (
            Contract(id="x", version="1", datasets=(Dataset(name="empty"),)),
            [
                {
                    "name": "empty",
                    "config": {
                        "contract": {"enforced": False},
                        "meta": {"data_contract": {"id": "x", "version": "1", "status": "draft", "dataset": "empty"}},
                    },
                }
            ],
        ),
    ],
)
def test_a_contract_without_anything_is_a_file_all_the_same(contract, models):
    assert yaml.safe_load(export(contract, "dbt").text) == {"version": 2, "models": models}


def test_every_document_is_a_file_the_same_each_time(document):
    contract = load_contract(document)
    exported = export(contract, "dbt")
    assert isinstance(exported, Exported)
    assert export(load_contract(document), "dbt") == exported
    data = yaml.safe_load(exported.text)
    assert [len(one.get("columns", [])) for one in data["models"]] == [len(one.fields) for one in contract.datasets]
    for one in data["models"]:
        for entry in [one, *one.get("columns", [])]:
            tests = entry.get("data_tests", [])
            assert len({repr(test) for test in tests}) == len(tests)
            named = [
                said["name"] for test in tests if isinstance(test, dict) for said in test.values() if "name" in said
            ]
            assert len(set(named)) == len(named)

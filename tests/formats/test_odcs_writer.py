"""A contract as a document of the Open Data Contract Standard: what is written how, and what is lost."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family, parse_type
from databox_contracts.errors import DataboxError
from databox_contracts.formats import FORMATS, dump_contract, load_contract, losses
from databox_contracts.formats.canonical import canonical
from databox_contracts.formats.emitting import to_yaml
from databox_contracts.model import Consumer, Evolution, Field, Governance, Server, Team
from databox_contracts.rules import NO_ROWS, Operator, Severity, Threshold, Unit
from databox_contracts.testing import build_contract, build_field

CASES = Path(__file__).parents[1] / "cases" / "odcs"


def written(contract) -> dict[str, Any]:
    return yaml.safe_load(dump_contract(contract))


def property_of(*found: rules.Rule, type: str | None = "string", **facts: Any) -> dict[str, Any]:
    return written(build_contract(build_field("c", type, *found, **facts)))["schema"][0]["properties"][0]


# --- YAML -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("NO", 'v: "NO"\n'),
        ("y", 'v: "y"\n'),
        ("", 'v: ""\n'),
        ("3.10", 'v: "3.10"\n'),
        ("1.0.0", 'v: "1.0.0"\n'),
        ("1e3", 'v: "1e3"\n'),
        ("0o17", 'v: "0o17"\n'),
        ("12:30", 'v: "12:30"\n'),
        ("2020-01-01", 'v: "2020-01-01"\n'),
        ("null", 'v: "null"\n'),
        ("~", 'v: "~"\n'),
        ("plain text", "v: plain text\n"),
        ("a\nb\n", "v: |\n  a\n  b\n"),
        (" a\nb", 'v: " a\\nb"\n'),
        ("\u2028", 'v: "\\L"\n'),
        (False, "v: false\n"),
        (0, "v: 0\n"),
        (1e20, "v: 1.0e+20\n"),
        (None, "v: null\n"),
        ([], "v: []\n"),
        (("a", 1), "v:\n  - a\n  - 1\n"),
        ({"NO": {"a": []}}, 'v:\n  "NO":\n    a: []\n'),
    ],
)
def test_yaml_that_nobody_misreads(value, expected):
    assert to_yaml({"v": value}) == expected


def test_a_version_is_text():
    for version in ("1.0.0", "3.10", "1"):
        text = dump_contract(build_contract(version=version))
        assert f'version: "{version}"\n' in text
        assert load_contract(text).version == version


# --- what is written how ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (None, {}),
        ("string", {"logicalType": "string"}),
        ("varchar(0)", {"logicalType": "string", "physicalType": "varchar(0)"}),
        ("int", {"logicalType": "integer", "physicalType": "int"}),
        ("double", {"logicalType": "number", "physicalType": "double"}),
        ("decimal(10,0)", {"logicalType": "number", "physicalType": "decimal(10, 0)"}),
        ("decimal", {"logicalType": "number", "physicalType": "decimal"}),
        ("binary", {"logicalType": "string", "physicalType": "binary"}),
        ("variant", {"logicalType": "object", "physicalType": "variant"}),
        ("timestamptz", {"logicalType": "timestamp", "logicalTypeOptions": {"timezone": True}}),
        ("timestamp_ntz", {"logicalType": "timestamp", "logicalTypeOptions": {"timezone": False}}),
        ("array<int>", {"logicalType": "array", "items": {"logicalType": "integer", "physicalType": "int"}}),
    ],
)
def test_types(type_, expected):
    assert property_of(type=type_) == {"name": "c", **expected}
    found = load_contract(dump_contract(build_contract(build_field("c", type_)))).datasets[0].fields[0].type
    assert (found is None) == (type_ is None)
    assert found is None or parse_type(type_).accepts(found)


@pytest.mark.parametrize(
    ("type_", "rule", "expected"),
    [
        ("string", rules.Required(), {"required": True}),
        ("string", rules.Unique(), {"unique": True}),
        ("string", rules.MinLength(length=0), {"logicalTypeOptions": {"minLength": 0}}),
        ("string", rules.Format(format="email"), {"logicalTypeOptions": {"format": "email"}}),
        ("number", rules.Minimum(limit=0), {"logicalTypeOptions": {"minimum": 0}}),
        ("date", rules.Maximum(limit="2020-01-01"), {"logicalTypeOptions": {"maximum": "2020-01-01"}}),
        ("string", rules.Enum(values=("NO", "", None)), {"enum": [{"value": "NO"}, {"value": ""}, {"value": None}]}),
        ("boolean", rules.Enum(values=(False,)), {"enum": [{"value": False}]}),
    ],
)
def test_options_and_flags(type_, rule, expected):
    found = property_of(rule, type=type_)
    assert {key: value for key, value in found.items() if key not in ("name", "logicalType")} == expected


def ours(**implementation: Any) -> dict[str, Any]:
    return {"type": "custom", "engine": "databox", "implementation": implementation}


@pytest.mark.parametrize(
    ("type_", "rule", "expected"),
    [
        ("string", rules.NullCount(threshold=NO_ROWS), {"metric": "nullValues", "mustBe": 0}),
        (
            "string",
            rules.MissingCount(
                missing_values=(None, ""), threshold=Threshold(Operator.LESS_THAN, 5, unit=Unit.PERCENT), name="few"
            ),
            {
                "name": "few",
                "metric": "missingValues",
                "arguments": {"missingValues": [None, ""]},
                "mustBeLessThan": 5,
                "unit": "percent",
            },
        ),
        (
            "string",
            rules.InvalidCount(pattern="^a", threshold=NO_ROWS, severity=Severity.WARNING),
            {"metric": "invalidValues", "arguments": {"pattern": "^a"}, "mustBe": 0, "severity": "warning"},
        ),
        (
            "string",
            rules.Query(sql="select 1", threshold=Threshold(Operator.BETWEEN, 0, 1)),
            {"type": "sql", "query": "select 1", "mustBeBetween": [0, 1]},
        ),
        # What the standard has no word for, or only one that is not read as the same rule.
        ("string", rules.Required(severity=Severity.INFO), {**ours(rule="required"), "severity": "info"}),
        ("string", rules.Enum(values=()), ours(rule="enum", values=[])),
        ("integer", rules.MinLength(length=0), ours(rule="min_length", length=0)),
        ("string", rules.Format(format="isbn"), ours(rule="format", format="isbn")),
        ("string", rules.Expression(sql="a > 0"), ours(rule="expression", sql="a > 0")),
        ("string", rules.NotEnforced(reason="why"), ours(rule="not_enforced", reason="why")),
        (
            "string",
            rules.Statistic(statistic="avg", threshold=NO_ROWS, quantile=None),
            ours(rule="statistic", statistic="avg", threshold={"mustBe": 0}),
        ),
        (
            "string",
            rules.InvalidCount(valid_values=(), threshold=NO_ROWS),
            ours(rule="invalid_count", valid_values=[], threshold={"mustBe": 0}),
        ),
    ],
)
def test_quality(type_, rule, expected):
    assert property_of(rule, type=type_)["quality"] == [expected]


def test_keys_and_service_levels():
    found = written(
        build_contract(
            build_field("a", "int"),
            Field(name="o", type=DataType(Family.OBJECT), fields=(build_field("b", "timestamp"),)),
            rules=(
                rules.PrimaryKey(fields=("o.b", "a")),
                rules.Freshness(seconds=86_400 * 4, element="o.b"),
                rules.Retention(seconds=90),
                rules.Freshness(seconds=0.5, severity=Severity.WARNING),
                rules.ForeignKey(fields=("a",), to="u", to_fields=("id",)),
                rules.RowCount(threshold=Threshold(Operator.GREATER_THAN, 0)),
            ),
        )
    )
    a, o = found["schema"][0]["properties"]
    assert (a["primaryKeyPosition"], o["properties"][0]["primaryKeyPosition"]) == (2, 1)
    assert found["slaProperties"] == [
        {"property": "latency", "value": 4, "unit": "d", "element": "t.o.b"},
        {"property": "retention", "value": 90, "unit": "s"},
    ]
    assert found["schema"][0]["relationships"] == [{"type": "foreignKey", "from": "t.a", "to": "u.id"}]
    assert found["schema"][0]["quality"] == [
        {**ours(rule="freshness", seconds=0.5), "severity": "warning"},
        {"metric": "rowCount", "mustBeGreaterThan": 0},
    ]


def test_words_of_ours():
    contract = build_contract(
        build_field("a", "string", pii=False, default="", semantics="A thing."),
        owner="team",
        governance=Governance(pii_class="B", retention_days=0, purposes=("p",)),
        consumers=(Consumer(name="c", datasets=("t",)),),
        evolution=Evolution(),
        notice_period="P30D",
        custom={"$x": {"a": None}, "empty": None},
    )
    found = written(contract)
    assert found["customProperties"] == [
        {"property": "owner", "value": "team"},
        {"property": "piiClass", "value": "B"},
        {"property": "governance", "value": {"purposes": ["p"], "retentionDays": 0}},
        {"property": "consumers", "value": [{"name": "c", "datasets": ["t"]}]},
        {"property": "evolution", "value": {}},
        {"property": "noticePeriod", "value": "P30D"},
        {"property": "$x", "value": {"a": None}},
        {"property": "empty", "value": None},
    ]
    assert found["schema"][0]["properties"][0]["customProperties"] == [
        {"property": "pii", "value": False},
        {"property": "semantics", "value": "A thing."},
        {"property": "default", "value": ""},
    ]
    again = load_contract(dump_contract(contract))
    assert canonical(again) == canonical(contract)
    assert again.custom == contract.custom


def test_the_least_contract():
    assert dump_contract(build_contract()) == (
        'apiVersion: v3.1.0\nkind: DataContract\nid: test\nversion: "1.0.0"\nstatus: draft\nschema:\n  - name: t\n'
    )


@pytest.mark.parametrize(
    ("contract", "expected"),
    [
        (build_contract(build_field("a", "int")), "v3.1.0"),
        (build_contract(build_field("a", "string", rules.Enum(values=("x",)))), "v3.2.0"),
        (build_contract(build_field("a", "map<string,int>")), "v3.2.0"),
        (build_contract(build_field("a", "int", deprecated=True)), "v3.2.0"),
        # A word of somebody's own is not the standard's.
        (build_contract(custom={"x": {"enum": [1]}}), "v3.1.0"),
    ],
)
def test_the_version_is_the_newest_only_where_it_is_needed(contract, expected):
    assert written(contract)["apiVersion"] == expected


def test_servers_and_team():
    contract = build_contract(
        servers=(Server(name="s", type="kafka", settings={"host": "h", "port": 0}),), team=Team(name="crew")
    )
    found = written(contract)
    assert found["servers"] == [{"server": "s", "type": "kafka", "host": "h", "port": 0}]
    assert found["team"] == {"name": "crew"}


def test_a_changed_type_is_not_written_as_it_was():
    contract = load_contract(CASES / "orders.odcs.yaml")
    dataset = contract.datasets[0]
    field = dataset.fields[0].model_copy(update={"type": DataType(Family.STRING)})
    changed = contract.model_copy(update={"datasets": (dataset.model_copy(update={"fields": (field,)}),)})
    assert load_contract(dump_contract(changed)).datasets[0].fields[0].type == DataType(Family.STRING)


def test_an_id_is_kept_only_where_it_still_names_the_same():
    contract = load_contract(CASES / "whole.odcs.yaml")
    lines = written(contract)["schema"][1]
    assert lines["relationships"][1] == {
        "id": "by-id",
        "type": "foreignKey",
        "from": "schema/lines_tbl/properties/c",
        "to": "schema/shops_tbl/properties/shop_country",
    }
    renamed = tuple(
        dataset.model_copy(update={"custom": {}}) if dataset.name == "shops" else dataset
        for dataset in contract.datasets
    )
    lines = written(contract.model_copy(update={"datasets": renamed}))["schema"][1]
    assert lines["relationships"][1]["to"] == "shops.country"


# --- what is lost, and unknown names ----------------------------------------------------------------------------------


def test_nothing_is_lost():
    assert losses(load_contract(CASES / "whole.odcs.yaml"), "odcs") == []


@pytest.mark.parametrize("function", [dump_contract, losses])
def test_an_unknown_name_lists_the_known(function):
    with pytest.raises(DataboxError) as caught:
        function(build_contract(), "nothing")
    assert str(caught.value).startswith("no contract is written as 'nothing'. Use one of: odcs")


def test_the_first_format_writes():
    assert FORMATS[0].write is not None

"""Every row of every change table in the documents that the policies come from, with that document's verdict."""

import pytest

from databox_contracts import rules
from databox_contracts.evolution.judging import diff
from databox_contracts.evolution.schema_diff import SchemaDiff
from databox_contracts.model import Contract, Dataset, Evolution, Field
from databox_contracts.schema_registry import SchemaVersion
from databox_contracts.testing import build_contract, build_field

REQUIRED = rules.Required()


def contract(*fields: Field, found: tuple[rules.Rule, ...] = (), **facts: object) -> Contract:
    return build_contract(*fields, rules=found, **facts)


def enum(*values: object) -> rules.Enum:
    return rules.Enum(values=values)


A = build_field("a", "string")
NO_TABLES = Contract(id="test", version="1.0.0")


def kinds(report, *, breaking: bool) -> list[str]:
    changes = report.breaking_changes if breaking else report.safe_changes
    return [str(change.change_type) for change in changes if change.change_type != "version_not_bumped"]


# --- the four kinds of a consumer's view ------------------------------------------------------------------------------

CONSUMER = [
    ({"a": str, "b": int}, {"a": str}, "field_removed", True),
    ({"price": float}, {"close_price": float}, "field_renamed", True),
    ({"a": float}, {"a": str}, "type_changed", True),
    ({"a": str}, {"a": str, "b": int}, "field_added", False),
]


@pytest.mark.parametrize(("old", "new", "kind", "breaking"), CONSUMER)
def test_the_four_kinds_of_changes_for_a_consumer(old, new, kind, breaking):
    report = SchemaDiff(SchemaVersion("S", "1.0.0", old), SchemaVersion("S", "2.0.0", new)).generate_report()
    assert [(str(change.change_type), change.is_breaking) for change in report.changes] == [(kind, breaking)]
    assert report.is_breaking is breaking


def test_the_trade_schema_prints_as_shown(capsys):
    v1 = SchemaVersion("TradeSchemaV1", "1.0.0", {"symbol": str, "price": float, "volume": int})
    v2 = SchemaVersion("TradeSchemaV2", "2.0.0", {"symbol": str, "close_price": float, "volume": int, "timestamp": str})
    SchemaDiff(v1, v2).generate_report().print_report()
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == [
        "============================================================",
        "Schema migration report: TradeSchemaV1",
        "1.0.0 -> 2.0.0",
        "============================================================",
        "Status: BREAKING",
        "Changes: 2 (breaking: 1, safe: 1)",
        "Breaking changes:",
        "[FIELD_RENAMED] price",
        "'price' -> 'close_price'. Update all consumers.",
        "Safe changes:",
        "[FIELD_ADDED] timestamp",
        "Consumers unaffected (additive change).",
        "============================================================",
    ]


def test_two_candidates_are_no_rename():
    v1 = SchemaVersion("S", "1", {"bid": float, "ask": float})
    v2 = SchemaVersion("S", "2", {"bid_price": float, "ask_price": float})
    changes = SchemaDiff(v1, v2).generate_report().changes
    assert [(str(change.change_type), change.field_name) for change in changes] == [
        ("field_removed", "bid"),
        ("field_removed", "ask"),
        ("field_added", "bid_price"),
        ("field_added", "ask_price"),
    ]


# --- data versioned like an API ---------------------------------------------------------------------------------------

STRICT = [
    # Patch: nothing but documentation.
    (contract(A), contract(build_field("a", "string", description="typo put right")), "patch"),
    (contract(A), contract(build_field("a", "string", examples=("x",))), "patch"),
    # Minor: a new optional field, a constraint relaxed, an enum extended.
    (contract(A), contract(A, build_field("b", "string")), "minor"),
    (
        contract(build_field("a", "int", rules.Maximum(limit=10))),
        contract(build_field("a", "int", rules.Maximum(limit=20))),
        "minor",
    ),
    (
        contract(build_field("a", "string", enum("x"))),
        contract(build_field("a", "string", enum("x", "y"))),
        "minor",
    ),
    # Major: renamed, another type, removed, nullable now required, another primary key, an enum restricted.
    (contract(A), contract(build_field("b", "string")), "major"),
    (contract(build_field("a", "bigint")), contract(A), "major"),
    (contract(build_field("a", "float")), contract(build_field("a", "double")), "major"),
    (contract(build_field("a", "date")), contract(build_field("a", "timestamp")), "major"),
    (contract(build_field("a", "int")), contract(build_field("a", "bigint")), "major"),
    (contract(A, build_field("b", "int")), contract(A), "major"),
    (contract(A), contract(build_field("a", "string", REQUIRED)), "major"),
    (contract(A), contract(A, found=(rules.PrimaryKey(fields=("a",)),)), "major"),
    (
        contract(A, build_field("b", "string"), found=(rules.PrimaryKey(fields=("a",)),)),
        contract(A, build_field("b", "string"), found=(rules.PrimaryKey(fields=("a", "b")),)),
        "major",
    ),
    (
        contract(build_field("a", "string", enum("x", "y"))),
        contract(build_field("a", "string", enum("x"))),
        "major",
    ),
    # A new required field: what producers wrote so far does not have it.
    (contract(A), contract(A, build_field("b", "string", REQUIRED)), "major"),
    # Nothing.
    (contract(A), contract(A), "none"),
    (contract(A, build_field("b", "int")), contract(build_field("b", "int"), A), "none"),
]


@pytest.mark.parametrize(("old", "new", "bump"), STRICT)
def test_the_bump_that_a_change_needs(old, new, bump):
    report = diff(old, new)
    assert report.policy == "strict"
    assert str(report.required_bump) == bump
    assert bool(kinds(report, breaking=True)) is (bump == "major")


# --- the gate of Soda contracts ---------------------------------------------------------------------------------------

SODA = [
    # Breaking: fail closed.
    (contract(A), NO_TABLES, "dataset_removed", True),
    (contract(A, build_field("b", "int")), contract(A), "field_removed", True),
    (contract(build_field("a", "bigint")), contract(build_field("a", "int")), "type_changed", True),
    (contract(build_field("a", "timestamp")), contract(build_field("a", "date")), "type_changed", True),
    (contract(A, dataset="t"), contract(A, dataset="u"), "dataset_renamed", True),
    # Additive: always safe.
    (NO_TABLES, contract(A), "dataset_added", False),
    (contract(A), contract(A, build_field("b", "int")), "field_added", False),
    (contract(A), contract(A, build_field("b", "int", REQUIRED)), "field_added", False),
    (contract(build_field("a", "int")), contract(build_field("a", "bigint")), "type_changed", False),
    (contract(build_field("a", "date")), contract(build_field("a", "timestamp")), "type_changed", False),
    (contract(build_field("a", "text")), contract(build_field("a", "varchar(10)")), "type_changed", False),
    (
        contract(A),
        contract(A, found=(rules.RowCount(threshold=rules.Threshold(rules.Operator.GREATER_THAN, 0)),)),
        "rule_added",
        False,
    ),
    (contract(A), contract(build_field("a", "string", REQUIRED)), "nullability_tightened", False),
    (contract(A), contract(build_field("a", "string", enum("x"))), "constraint_added", False),
]


@pytest.mark.parametrize(("old", "new", "kind", "breaking"), SODA)
def test_the_gate_of_soda_contracts(old, new, kind, breaking):
    report = diff(
        old.model_copy(update={"dialect": "soda", "version": "0.0.0"}),
        new.model_copy(update={"dialect": "soda", "version": "0.0.0"}),
    )
    assert report.policy == "widening"
    assert kinds(report, breaking=breaking) == [kind]
    assert kinds(report, breaking=not breaking) == []


def test_a_type_change_that_only_looks_the_same_is_none():
    assert diff(contract(build_field("a", "varchar")), contract(build_field("a", "text"))).changes == ()


# --- the contract's own evolution block -------------------------------------------------------------------------------

BLOCK = Evolution(
    policy="backwards_compatible_only",
    allowed=("add_optional_field", "widen_enum_values", "widen_numeric_type"),
    disallowed=("remove_field", "rename_field", "narrow_enum_values", "change_field_type", "tighten_nullability"),
    deprecation_window_days=90,
)

OWN = [
    (contract(A), contract(A, build_field("b", "string")), []),
    (
        contract(build_field("a", "string", enum("INR"))),
        contract(build_field("a", "string", enum("INR", "JPY"))),
        [],
    ),
    (contract(build_field("a", "int")), contract(build_field("a", "bigint")), []),
    (contract(build_field("a", "float")), contract(build_field("a", "double")), []),
    (contract(build_field("a", "decimal(10,2)")), contract(build_field("a", "decimal(12,3)")), []),
    (contract(build_field("a", "int")), contract(build_field("a", "double")), []),
    (contract(A), contract(build_field("a", "string", description="x")), []),
    (contract(A, build_field("b", "int")), contract(A), ["remove_field"]),
    (
        contract(build_field("txn_amt_paise", "bigint", REQUIRED)),
        contract(build_field("amount_paise", "bigint", REQUIRED)),
        ["remove_field", "add_required_field"],
    ),
    (contract(A), contract(A, build_field("b", "string", REQUIRED)), ["add_required_field"]),
    (
        contract(build_field("a", "string", enum("INR", "USD"))),
        contract(build_field("a", "string", enum("INR"))),
        ["narrow_enum_values"],
    ),
    (contract(build_field("a", "bigint")), contract(A), ["change_field_type"]),
    (contract(build_field("a", "bigint")), contract(build_field("a", "int")), ["change_field_type"]),
    (contract(A), contract(build_field("a", "string", REQUIRED)), ["tighten_nullability"]),
    # In neither list, so not allowed.
    (contract(build_field("a", "string", REQUIRED)), contract(A), ["relax_nullability"]),
    (contract(A), contract(A, found=(rules.PrimaryKey(fields=("a",)),)), ["change_key"]),
    (
        contract(build_field("a", "int", rules.Maximum(limit=1))),
        contract(build_field("a", "int", rules.Maximum(limit=2))),
        ["relax_constraint"],
    ),
]


@pytest.mark.parametrize(("old", "new", "violated"), OWN)
@pytest.mark.parametrize("block", [BLOCK, None, Evolution(policy="backwards_compatible_only")], ids=repr)
def test_the_evolution_block_of_a_contract(old, new, violated, block):
    facts = {"evolution": block, "dialect": "sections"}
    report = diff(old.model_copy(update=facts), new.model_copy(update=facts))
    assert report.policy == "backwards_compatible_only"
    found = [change for change in report.breaking_changes if change.change_type != "version_not_bumped"]
    assert [change.description.split(" violates ")[0] for change in found] == violated
    assert all(" violates backwards_compatible_only. " in change.description for change in found)


def test_a_rename_is_told_as_what_it_is_and_hinted_at():
    old = contract(build_field("txn_amt_paise", "bigint", REQUIRED), evolution=BLOCK)
    new = contract(build_field("amount_paise", "bigint", REQUIRED), evolution=BLOCK)
    removed, added, _ = diff(old, new).breaking_changes
    assert (removed.field_name, added.field_name) == ("txn_amt_paise", "amount_paise")
    assert removed.hint is not None
    assert removed.hint.startswith("this looks like a rename of 'txn_amt_paise' to 'amount_paise': add 'amount_paise'")


# --- schema registries ------------------------------------------------------------------------------------------------

OPTIONAL_B, REQUIRED_B = build_field("b", "int"), build_field("b", "int", REQUIRED)

REGISTRY = [
    # old fields, new fields: can the new read old data, can the old read new data?
    ((A,), (A, OPTIONAL_B), True, True),
    ((A,), (A, REQUIRED_B), False, True),
    ((A, OPTIONAL_B), (A,), True, True),
    ((A, REQUIRED_B), (A,), True, False),
    ((build_field("a", "int"),), (build_field("a", "bigint"),), True, False),
    ((build_field("a", "bigint"),), (build_field("a", "int"),), False, True),
    ((build_field("a", "int"),), (build_field("a", "double"),), True, False),
    ((build_field("a", "int"),), (A,), False, False),
    ((build_field("a", "string", enum("x")),), (build_field("a", "string", enum("x", "y")),), True, False),
    ((build_field("a", "string", enum("x", "y")),), (build_field("a", "string", enum("x")),), False, True),
    ((A,), (build_field("a", "string", REQUIRED),), False, True),
    ((build_field("a", "string", REQUIRED),), (A,), True, False),
    ((build_field("c", "date"),), (build_field("d", "date"),), True, True),
    ((build_field("c", "date", REQUIRED),), (build_field("d", "date", REQUIRED),), False, False),
]


@pytest.mark.parametrize(("old", "new", "backward", "forward"), REGISTRY)
def test_the_modes_of_schema_registries(old, new, backward, forward):
    def holds(policy: str) -> bool:
        return kinds(diff(contract(*old), contract(*new), policy), breaking=True) == []

    assert (holds("backward"), holds("forward")) == (backward, forward)
    assert holds("full") is (backward and forward)
    assert holds("none")


def test_a_transitive_mode_looks_at_every_earlier_version():
    first = contract(build_field("a", "int"))
    second = contract(A, dataset="t")
    third = contract(build_field("a", "int"))
    # Back to what it was: the last version cannot be read, the first one can.
    assert kinds(diff(second, third, "backward", history=[first]), breaking=True) == ["type_changed"]
    added = contract(A, build_field("b", "int", REQUIRED))
    without = contract(A)
    again = contract(A, build_field("b", "int", REQUIRED))
    assert kinds(diff(without, without, "backward_transitive", history=[added]), breaking=True) == []
    assert kinds(diff(added, again, "backward", history=[without]), breaking=True) == []
    assert kinds(diff(added, again, "backward_transitive", history=[without]), breaking=True) == ["field_added"]


def test_a_dataset_of_several_is_removed_or_added():
    one, two = Dataset(name="t", fields=(A,)), Dataset(name="u", fields=(A,))
    both = Contract(id="x", version="1.0.0", datasets=(one, two))
    only = Contract(id="x", version="1.0.0", datasets=(one,))
    assert kinds(diff(both, only), breaking=True) == ["dataset_removed"]
    assert kinds(diff(only, both), breaking=False) == ["dataset_added"]

"""The table of policies is whole, and what a contract says of its own evolution is understood or refused."""

import pytest

import databox_contracts as dbc
from databox_contracts.errors import DataboxError
from databox_contracts.evolution import explain
from databox_contracts.evolution.changes import ChangeType, Difference, Variant
from databox_contracts.evolution.judging import diff
from databox_contracts.evolution.policies import OWN_NAMES, POLICIES, policy_of
from databox_contracts.evolution.report import FieldChange, MigrationReport
from databox_contracts.model import Evolution
from databox_contracts.testing import build_contract, build_field
from databox_contracts.versions import Bump
from databox_contracts.vocabulary import CHANGE_NAMES, OWN_POLICY, POLICY_NAMES

A = build_field("a", "string")
VARIANTS = {
    ChangeType.FIELD_ADDED: (Variant.OPTIONAL, Variant.REQUIRED),
    ChangeType.FIELD_REMOVED: (Variant.OPTIONAL, Variant.REQUIRED),
    ChangeType.GOVERNANCE_CHANGED: (None, Variant.GRACE_EXTENDED),
}
DIFFERENCES = [
    Difference(kind, "t", "a", old="x", new="y", subject="s", variant=variant)
    for kind in ChangeType
    for variant in VARIANTS.get(kind, (None,))
]


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_judges_every_change(name):
    judged = [d for d in DIFFERENCES if d.kind is not ChangeType.VERSION_NOT_BUMPED]
    assert {type(POLICIES[name].breaks(difference)) for difference in judged} == {bool}
    assert not POLICIES[name].breaks(Difference(ChangeType.DOCUMENTATION_CHANGED))
    assert not POLICIES[name].breaks(Difference(ChangeType.FIELD_REORDERED))


def test_a_change_without_its_row_is_not_let_through():
    with pytest.raises(LookupError, match="field_removed"):
        POLICIES["strict"].breaks(Difference(ChangeType.FIELD_REMOVED, "t", "a"))


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda found: f"{found.kind}-{found.variant}")
def test_every_change_has_a_message_and_no_open_place(difference):
    text = explain.message(difference)
    assert text.endswith(".")
    assert "{" not in text
    assert "{" not in (explain.way_out(difference, "2.0.0") or "")


def test_what_breaks_under_some_policy_has_a_way_out():
    for difference in DIFFERENCES:
        if difference.kind is ChangeType.VERSION_NOT_BUMPED:
            continue
        if any(policy.breaks(difference) for policy in POLICIES.values()):
            assert explain.way_out(difference), difference.kind


@pytest.mark.parametrize(
    ("evolution", "dialect", "name"),
    [
        (None, "odcs", "strict"),
        (None, "datacontract", "strict"),
        (None, "soda", "widening"),
        (None, "sections", "backwards_compatible_only"),
        (Evolution(), "odcs", "strict"),
        (Evolution(sign_off="required"), "soda", "widening"),
        (Evolution(policy="none"), "sections", "none"),
        (Evolution(policy="full_transitive"), "odcs", "full_transitive"),
        (Evolution(policy="backwards_compatible_only"), "odcs", "backwards_compatible_only"),
        (Evolution(allowed=("add_optional_field",)), "odcs", "evolution"),
    ],
)
def test_which_policy_a_contract_has(evolution, dialect, name):
    assert policy_of(build_contract(A, evolution=evolution, dialect=dialect)).name == name


def test_lists_bend_a_named_policy():
    old, new = build_contract(A, build_field("b", "int")), build_contract(A)
    lenient = Evolution(policy="strict", allowed=("remove_field",))
    assert not diff(old.model_copy(update={"evolution": lenient}), new).changes[0].is_breaking
    stern = Evolution(policy="none", disallowed=("remove_field",))
    assert diff(old.model_copy(update={"evolution": stern}), new).changes[0].is_breaking


@pytest.mark.parametrize(
    ("evolution", "message"),
    [
        (Evolution(policy="stricct"), r"there is no policy 'stricct'.*Did you mean 'strict'\? Use one of"),
        (Evolution(policy=""), "there is no policy ''"),
        (Evolution(allowed=("add_field",)), r"lists 'add_field', which is no change.*(?i:use)"),
        (Evolution(policy="strict", disallowed=("x",)), "lists 'x', which is no change"),
    ],
)
def test_a_block_that_nobody_understands_is_refused(evolution, message):
    with pytest.raises(DataboxError, match=message):
        diff(build_contract(A, evolution=evolution), build_contract(A))


def test_every_name_of_a_block_is_one_kind_of_change():
    rows = [row for rows in OWN_NAMES.values() for row in rows]
    assert len(rows) == len(set(rows))


def test_lint_and_gate_know_the_same_words():
    assert tuple(OWN_NAMES) == CHANGE_NAMES
    assert (*POLICIES, OWN_POLICY) == POLICY_NAMES


# --- versions ---------------------------------------------------------------------------------------------------------

WIDER = build_contract(A, build_field("b", "string"))


def versions(old: str, new: str, changed=WIDER):
    return diff(build_contract(A, version=old), changed.model_copy(update={"version": new}))


@pytest.mark.parametrize(
    ("old", "new", "actual", "found", "remarks"),
    [
        ("1.0.0", "1.1.0", Bump.MINOR, [], []),
        ("1.0.0", "1.0.0", Bump.NONE, [("version_not_bumped", False)], []),
        ("1.0.0", "1.0.1", Bump.PATCH, [("version_not_bumped", False)], []),
        ("1.0.0", "2.0.0", Bump.MAJOR, [], ["2.0.0 is a major version, and these changes need a minor one only"]),
        ("3.1", "3.10", Bump.MINOR, [], []),
        ("1.1.0", "1.0.0", None, [], ["the version went back, from 1.1.0 to 1.0.0"]),
        (
            "one",
            "1.0.0",
            None,
            [],
            ["the version 'one' is not semantic, so nobody can tell whether it moved far enough"],
        ),
        # A dialect without versions.
        ("0.0.0", "0.0.0", None, [], []),
    ],
)
def test_the_version_that_a_change_needs(old, new, actual, found, remarks):
    report = versions(old, new)
    assert report.actual_bump == actual
    assert [(str(c.change_type), c.is_breaking) for c in report.changes[1:]] == found
    assert list(report.remarks) == remarks


def test_a_break_without_a_major_version_is_an_error():
    gone = build_contract(build_field("c", "int"))
    breaking = versions("1.0.0", "1.1.0", gone).breaking_changes
    assert [str(change.change_type) for change in breaking] == ["field_removed", "version_not_bumped"]
    assert breaking[-1].hint == "write version: 2.0.0"
    assert len(versions("1.0.0", "2.0.0", gone).breaking_changes) == 1


def test_a_version_that_moved_for_nothing_is_told():
    same = build_contract(A)
    assert diff(same, same.model_copy(update={"version": "1.1.0"})).remarks == (
        "1.1.0 is a minor version, and these changes need none",
    )


# --- the public names -------------------------------------------------------------------------------------------------


def test_a_report_made_by_hand_sorts_its_changes():
    removed = FieldChange(ChangeType.FIELD_REMOVED, "a")
    added = FieldChange(change_type=ChangeType.FIELD_ADDED, field_name="b", new_value="int", description="new")
    report = MigrationReport(schema_name="S", old_version="1", new_version="2", changes=[added, removed])
    assert (report.breaking_changes, report.safe_changes, report.is_breaking) == ([removed], [added], True)
    assert not MigrationReport("S", "1", "2").is_breaking
    assert FieldChange(ChangeType.FIELD_REMOVED, "a", is_breaking=False).is_breaking is False


def test_what_is_no_contract_cannot_be_compared():
    with pytest.raises(DataboxError, match="only contracts"):
        dbc.diff("a.yaml", "b.yaml")  # type: ignore[arg-type]


def test_names_that_differ_are_no_change_between_schemas():
    one, two = dbc.SchemaVersion("A", "1.0.0", {"a": int}), dbc.SchemaVersion("B", "2.0.0", {"a": int})
    report = dbc.SchemaDiff(one, two).generate_report()
    assert (report.changes, report.is_breaking) == ([], False)
    assert dbc.SchemaDiff(dbc.SchemaVersion("A", "1"), dbc.SchemaVersion("A", "2")).generate_report().changes == []


def test_the_field_order_never_changes_a_verdict():
    fields = [build_field(name, kind) for name, kind in (("a", "int"), ("b", "string"), ("c", "double"), ("d", "date"))]
    changed = [
        build_field("a", "bigint"),
        build_field("b2", "string"),
        build_field("c", "double"),
        build_field("e", "int"),
    ]
    expected = None
    for turn in range(4):
        old = build_contract(*fields[turn:], *fields[:turn])
        new = build_contract(*changed[::-1][turn:], *changed[::-1][:turn])
        report = diff(old, new)
        found = sorted(
            (str(c.change_type), c.field_name, c.is_breaking)
            for c in report.changes
            if c.change_type is not ChangeType.FIELD_REORDERED
        )
        expected = expected or found
        assert found == expected

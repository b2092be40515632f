"""From personal data to everybody who holds it, and the plan of its deletion."""

import multiprocessing
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from databox_contracts.errors import DataboxError, UnknownPlaceError
from databox_contracts.lineage import AssetEdge, ColumnEdge
from databox_contracts.model import Consumer, Contract, Dataset, Governance
from databox_contracts.registry.consumers import Reading
from databox_contracts.registry.deletion_plans import StoredPlan
from databox_contracts.registry.impact import Dependencies
from databox_contracts.registry.plan_files import FilePlanStore, plan_facts
from databox_contracts.registry.store import Registry
from databox_contracts.registry.tracing import (
    KEY_VARIABLE,
    Trace,
    deletion_plan,
    is_about,
    personal_fields,
    subject_digest,
    trace,
)
from databox_contracts.testing import build_field

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
KEY = "a key that nobody can guess"

CUSTOMERS = Contract(
    id="crm",
    version="1.0.0",
    owner="crm-team",
    domain="crm",
    datasets=(
        Dataset(
            name="customers",
            fields=(
                build_field("id", "string"),
                build_field("email", "string", pii=True),
                build_field("city", "string"),
            ),
        ),
    ),
    governance=Governance(purposes=("support", "billing")),
)
MART = Contract(
    id="mart",
    version="2.0.0",
    owner="bi",
    domain="marts",
    datasets=(Dataset(name="mailing", fields=(build_field("address", "string"), build_field("n", "int"))),),
    governance=Governance(purposes=("ads",)),
)
READINGS = [
    Reading("crm", Consumer("Helpdesk", owner="support", purpose="support", fields=("email",)), ("here",)),
    Reading("crm", Consumer("Bills", owner="finance", purpose="billing", assets=("lake/bills",)), ("here",)),
    Reading("crm", Consumer("Cities", purpose="support", fields=("city",)), ("here",)),
    Reading("crm", Consumer("Curious"), ("here",)),
    Reading("mart", Consumer("Mailer", owner="ads-team", purpose="ads"), ("here",)),
]
EDGES = [
    ColumnEdge("crm/customers", "email", "marts/mailing", "address"),
    AssetEdge("lake/bills", "lake/archive"),
]


def traced(target: str | None = "crm.email", **facts) -> Trace:
    return trace(Dependencies([CUSTOMERS, MART], READINGS, EDGES), target, **facts)


def names(found: Trace) -> list[tuple[int, str]]:
    return [(one.reached.distance, one.reached.name) for one in found.holders]


ALL = [
    (0, "crm.customers"),
    (1, "mart.mailing"),
    (1, "lake/bills"),
    (1, "Bills"),
    (1, "Curious"),
    (1, "Helpdesk"),
    (2, "lake/archive"),
    (2, "Mailer"),
]


@pytest.mark.parametrize("target", ["crm.email", "crm", "customers.email", None])
def test_everybody_who_holds_the_field_is_told_the_nearest_first(target):
    found = traced(target)
    assert found.fields == ("crm.customers.email",)
    assert names(found) == ALL
    assert {one.reached.name: one.held for one in found.holders if one.reached.distance < 2} == {
        "crm.customers": (("crm.customers.email", ("email",)),),
        "mart.mailing": (("crm.customers.email", ("address",)),),
        "lake/bills": (("crm.customers.email", ()),),
        "Bills": (("crm.customers.email", ("email",)),),
        "Curious": (("crm.customers.email", ("email",)),),
        "Helpdesk": (("crm.customers.email", ("email",)),),
    }


def test_a_field_is_traced_whether_it_is_personal_or_not():
    assert names(traced("crm.city")) == [
        (0, "crm.customers"),
        (1, "lake/bills"),
        (1, "Bills"),
        (1, "Cities"),
        (1, "Curious"),
        (2, "lake/archive"),
    ]


PURPOSES = [
    (
        "support",
        ["crm.customers", "Curious", "Helpdesk", "lake/archive"],
        ["mart.mailing", "lake/bills", "Bills", "Mailer"],
    ),
    (
        "ads",
        ["mart.mailing", "Curious", "lake/archive", "Mailer"],
        ["crm.customers", "lake/bills", "Bills", "Helpdesk"],
    ),
    ("", ["Curious", "lake/archive"], ["crm.customers", "mart.mailing", "lake/bills", "Bills", "Helpdesk", "Mailer"]),
]


@pytest.mark.parametrize(("purpose", "kept", "left_out"), PURPOSES)
def test_who_uses_it_for_something_else_is_left_out_and_told(purpose, kept, left_out):
    found = traced(purpose=purpose)
    assert [name for _, name in names(found)] == kept
    assert [one.name for one in found.excluded] == left_out
    assert {one.reason for one in found.excluded if one.name == "Bills"} == {"it is used for billing only"}


def test_fields_that_meet_in_one_place_are_one_step():
    two = CUSTOMERS.model_copy(
        update={
            "datasets": (
                Dataset(
                    name="customers",
                    fields=(build_field("email", "string", pii=True), build_field("phone", "string", tags=("PII",))),
                ),
            )
        }
    )
    found = trace(Dependencies([two], [Reading("crm", Consumer("a"), ("here",))]), None)
    assert [one.held for one in found.holders] == [
        (("crm.customers.email", ("email",)), ("crm.customers.phone", ("phone",))),
        (("crm.customers.email", ("email",)), ("crm.customers.phone", ("phone",))),
    ]
    plan = deletion_plan(found, plan_id="p", by="me", at=NOON)
    assert [step.title for step in plan.steps] == [
        "crm-team: delete it from crm.customers (email, phone)",
        "delete it from what a holds of crm (email, phone)",
    ]


PERSONAL = [
    (build_field("a", "string", pii=True), None, ["a"]),
    (build_field("a", "string"), None, []),
    (build_field("a", "string"), "B", ["a"]),
    (build_field("a", "string", pii=False), "B", []),
    (build_field("a", "string", classification="restricted"), None, ["a"]),
    (build_field("a", "string", classification="Internal"), None, []),
    (build_field("a", "struct<b:string>", pii=True), None, ["a"]),
    (
        build_field("a", "struct<b:string>").model_copy(update={"fields": (build_field("b", "string", pii=True),)}),
        None,
        ["a.b"],
    ),
    (
        build_field("a", "array<string>").model_copy(update={"item": build_field("item", "string", pii=True)}),
        None,
        ["a"],
    ),
    (
        build_field("a", "array<struct<b:string,c:string>>").model_copy(
            update={
                "item": build_field("item", "struct<b:string,c:string>").model_copy(
                    update={"fields": (build_field("b", "string"), build_field("c", "string", pii=True))}
                )
            }
        ),
        None,
        ["a.c"],
    ),
    (
        build_field("a", "map<string,string>").model_copy(update={"value": build_field("value", "string", pii=True)}),
        None,
        ["a"],
    ),
]


@pytest.mark.parametrize(("field", "pii_class", "found"), PERSONAL)
def test_which_fields_are_personal(field, pii_class, found):
    contract = Contract(
        id="c",
        version="1.0.0",
        datasets=(Dataset(name="t", fields=(field,)),),
        governance=Governance(pii_class=pii_class),
    )
    assert [place.field for place in personal_fields(contract)] == found


def test_what_cannot_be_traced_is_an_error():
    with pytest.raises(UnknownPlaceError, match=r"'crm\.phone'"):
        traced("crm.phone")
    with pytest.raises(DataboxError, match="'mart' has no field with personal data"):
        traced("mart")
    with pytest.raises(DataboxError, match="the contracts have no field with personal data"):
        trace(Dependencies([MART], []), None)


# --- plans ------------------------------------------------------------------------------------------------------------


def planned(**facts) -> StoredPlan:
    return deletion_plan(traced(), plan_id="deletion-1", by="privacy", at=NOON, **facts)


def test_what_is_nearest_to_the_source_is_deleted_first():
    plan = planned()
    assert (plan.contract_id, plan.field, plan.made_by, plan.made_at) == ("crm", "crm.email", "privacy", NOON)
    assert [f"{step.number}. {step.title}" for step in plan.steps] == [
        "1. crm-team: delete it from crm.customers (email)",
        "2. bi: delete it from mart.mailing (address)",
        "3. finance: delete it from lake/bills (crm.customers.email)",
        "4. finance: delete it from what Bills holds of crm (email)",
        "5. delete it from what Curious holds of crm (email)",
        "6. support: delete it from what Helpdesk holds of crm (email)",
        "7. delete it from lake/archive (crm.customers.email)",
        "8. ads-team: delete it from what Mailer holds of mart (address)",
    ]
    assert not plan.is_done


SUBJECT = "Jörg.Müller-marked-7f3a@example.com"


def test_of_the_subject_there_is_a_keyed_digest_or_nothing():
    kept, nothing = planned(subject=SUBJECT, key=KEY), planned(subject=SUBJECT)
    for plan in (kept, nothing):
        assert SUBJECT not in repr(plan_facts(plan))
        assert KEY not in repr(plan_facts(plan))
    assert nothing.facts["subject_digest"] is None
    assert planned(subject=SUBJECT, key="").facts["subject_digest"] is None
    assert str(kept.facts["subject_digest"]).startswith("hmac-sha256:")
    assert planned(subject=f" {SUBJECT}\n", key=KEY).facts == kept.facts
    assert planned(subject=SUBJECT, key=KEY + "!").facts != kept.facts
    assert is_about(kept, SUBJECT, KEY) is True
    assert is_about(kept, "somebody else", KEY) is False
    assert is_about(kept, SUBJECT, None) is None
    assert is_about(nothing, SUBJECT, KEY) is None


def test_a_short_key_is_refused_without_being_shown():
    with pytest.raises(DataboxError) as caught:
        subject_digest(SUBJECT, "guessable")
    assert KEY_VARIABLE in str(caught.value)
    assert "guessable" not in str(caught.value)
    assert SUBJECT not in str(caught.value)


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


@pytest.fixture
def store(tmp_path) -> FilePlanStore:
    return FilePlanStore(tmp_path / "plan.json", Clock())


def test_steps_are_ticked_off_once_with_who_and_when(store):
    store.save(planned())
    store.tick("deletion-1", 2, by="Ann", note="table rewritten")
    after = store.tick("deletion-1", 2, by="Bob", note="again")
    step = after.steps[1]
    assert (step.done_by, step.done_at, step.note) == ("Ann", NOON + timedelta(minutes=1), "table rewritten")
    for number in range(1, 9):
        after = store.tick("deletion-1", number, by="Zoë")
    assert after.is_done
    assert FilePlanStore(store.path, Clock()).plan("deletion-1") == after
    assert store.plan("another") is None
    assert store.plans() == [after]
    assert [(entry.who, entry.action, dict(entry.details)) for entry in store.audit()][:3] == [
        ("privacy", "plan deletion", {"steps": 8}),
        ("Ann", "tick step 2", {"note": "table rewritten"}),
        ("Zoë", "tick step 1", {}),
    ]
    assert len(store.audit()) == 9


def test_a_file_is_its_owners_and_never_written_over(store):
    store.save(planned())
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    before = store.path.read_bytes()
    with pytest.raises(DataboxError, match="there is a file"):
        store.save(planned())
    assert store.path.read_bytes() == before


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda store: store.tick("deletion-1", 9, by="a"), "has no step 9"),
        (lambda store: store.tick("deletion-1", 0, by="a"), "has no step 0"),
        (lambda store: store.tick("other", 1, by="a"), "holds the plan deletion-1, not other"),
    ],
)
def test_a_tick_of_what_is_not_there_changes_nothing(store, act, message):
    store.save(planned())
    before = store.path.read_bytes()
    with pytest.raises(DataboxError, match=message):
        act(store)
    assert store.path.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[]",
        "no json",
        '{"format": "databox-deletion-plan/1"}',
        "[" * 100_000,
        '{"format": "other/1"}',
        "\xff",
    ],
)
def test_a_file_that_holds_no_plan_is_an_error(store, content):
    store.path.write_bytes(content.encode("latin-1"))
    with pytest.raises(DataboxError, match="cannot use the plan"):
        store.plans()
    with pytest.raises(DataboxError, match="cannot use the plan"):
        store.tick("deletion-1", 1, by="a")


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(DataboxError, match="cannot use the plan"):
        FilePlanStore(tmp_path / "none.json", Clock()).plans()
    with pytest.raises(DataboxError, match="cannot use the plan"):
        FilePlanStore(tmp_path / "no folder" / "plan.json", Clock()).save(planned())


def tick_from_elsewhere(path: Path, number: int, together) -> None:
    store = FilePlanStore(path, lambda: NOON)
    together.wait()
    for step in range(1, 9):
        store.tick("deletion-1", step, by=f"worker {number}")


def test_processes_that_tick_at_once_do_each_step_once_and_lose_nothing(store):
    store.save(planned())
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(3)
    workers = [context.Process(target=tick_from_elsewhere, args=(store.path, number, together)) for number in (1, 2, 3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    plan = store.plans()[0]
    assert plan.is_done
    ticks = [(entry.action, entry.who) for entry in store.audit()[1:]]
    assert ticks == [(f"tick step {step.number}", step.done_by) for step in plan.steps]


def test_the_registry_keeps_the_same_plan(registry: Registry):
    plan = planned(subject=SUBJECT, key=KEY)
    assert registry.plans.save(plan) == plan
    after = registry.plans.tick("deletion-1", 2, by="Ann", note="done")
    assert (after.steps[1].done_by, after.steps[1].note) == ("Ann", "done")
    assert registry.plans.plan("deletion-1") == after
    assert [entry.action for entry in registry.audit("deletion-1")] == ["plan deletion", "tick step 2"]
    assert plan_facts(after)["facts"] == plan_facts(plan)["facts"]


def test_a_trace_of_everything_is_kept_by_the_registry(registry: Registry):
    other = CUSTOMERS.model_copy(update={"id": "shop"})
    found = trace(Dependencies([CUSTOMERS, other], READINGS), None)
    plan = deletion_plan(found, plan_id="deletion-2", by="privacy", at=NOON)
    assert (plan.contract_id, plan.field) == ("*", "*")
    assert registry.plans.save(plan) == plan

"""What the operations do, on both databases; what is refused, and with which problem."""

import json
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml

from databox_contracts.formats import load_contract
from databox_contracts.lineage import AssetEdge, Lineage
from databox_contracts.notifications import EventKind, Notification
from databox_contracts.rules import Severity

EVENTS = Path(__file__).parents[1] / "cases" / "reference" / "user_events.contract.yaml"


def orders(version="1.0.0", fields="", **facts):
    document = {
        "dataContractSpecification": "1.2.0",
        "id": "orders",
        "info": {"title": "Orders", "version": version, "status": "active"},
        "models": {"orders": {"fields": {"number": {"type": "string", "required": True}}}},
    } | facts
    if fields:
        document["models"] = {"orders": {"fields": fields}}
    return document


WITHOUT_NUMBER = {"other": {"type": "int"}}


def test_the_publish_step_of_a_producers_pipeline(call):
    # As it is written there: the YAML document as JSON, at its own id, with a bearer token.
    contract = yaml.safe_load(EVENTS.read_text())
    target = f"/contracts/{contract['id']}"
    first = call("PUT", target, contract, scope="publish")
    again = call("PUT", target, contract, scope="publish")
    assert (first.status, again.status) == (201, 200)
    assert first.facts["contract"] == "urn:datacontract:user-events:v2"
    assert (first.facts["version"], first.facts["outcome"]) == ("2.1.0", "published")
    assert again.facts["outcome"] == "unchanged"
    # The same document in YAML is the same contract.
    assert call("PUT", target, EVENTS.read_text()).facts["outcome"] == "unchanged"
    contract["models"]["user_event"]["fields"]["session_id"]["required"] = True
    refused = call("PUT", target, contract, scope="publish")
    assert refused.status == 409
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.facts["type"] == "urn:databox-contracts:problem:contract-conflict"
    assert refused.facts["facts"]["version"] == "2.1.0"


def test_what_is_published_is_read_again(call):
    call("PUT", "/contracts/orders", orders())
    call("PUT", "/contracts/orders", orders("1.1.0", {"number": {"type": "string"}, "note": {"type": "string"}}))
    assert [one["version"] for one in call("GET", "/contracts").facts["contracts"]] == ["1.1.0"]
    assert "content" not in call("GET", "/contracts").facts["contracts"][0]
    found = call("GET", "/contracts/orders").facts
    assert load_contract(found["content"]).version == found["version"] == "1.1.0"
    assert call("GET", "/contracts/orders?version=%3C1.1").facts["version"] == "1.0.0"
    assert call("GET", "/contracts/orders/versions/1.0").facts["version"] == "1.0.0"
    known = call("GET", "/contracts/orders/versions?content=true").facts["versions"]
    assert [(one["version"], bool(one["content"])) for one in known] == [("1.0.0", True), ("1.1.0", True)]


IDS = ("a/b", "a b", "a%2Fb", "..", "a//b", "käse/\N{SNOWMAN}", "a?b=c", "a#b", "versions", "x/versions", "%")


def test_any_id_that_is_encoded(call):
    for id_ in IDS:
        target = f"/contracts/{quote(id_, safe='')}"
        assert call("PUT", target, orders(id=id_)).status == 201
        assert call("GET", target).facts["contract"] == id_
        assert call("GET", f"{target}/versions").facts["versions"][0]["contract"] == id_
    assert sorted(one["contract"] for one in call("GET", "/contracts").facts["contracts"]) == sorted(IDS)


def test_an_id_with_slashes_may_be_put_as_it_is(call):
    assert call("PUT", "/contracts/sales/orders", orders(id="sales/orders")).status == 201
    assert call("GET", "/contracts/sales%2Forders").facts["contract"] == "sales/orders"


def test_a_contract_is_put_at_its_own_id(lite):
    refused = lite("PUT", "/contracts/payments", orders())
    assert (refused.status, refused.facts["type"]) == (422, "urn:databox-contracts:problem:other-contract")
    assert lite("GET", "/contracts").facts["contracts"] == []


def test_a_catalogue_is_published_whole_or_not_at_all(call):
    other = {**orders(), "id": "payments"}
    done = call("POST", "/contracts", {"contracts": [orders(), yaml.safe_dump(other)]})
    assert done.status == 201
    assert [one["contract"] for one in done.facts["publications"]] == ["orders", "payments"]
    third, changed = {**orders(), "id": "third"}, orders(fields=WITHOUT_NUMBER)
    assert call("POST", "/contracts", {"contracts": [third, changed]}).status == 409
    assert call("GET", "/contracts/third").status == 404


def test_drafts_become_active_where_it_is_asked_for(lite):
    draft = orders() | {"info": {"title": "Orders", "version": "1.0.0", "status": "draft"}}
    assert lite("PUT", "/contracts/orders", draft).facts["status"] == "draft"
    assert lite("PUT", "/contracts/orders?activate=true", draft).facts["status"] == "active"
    assert lite("PUT", "/contracts/orders?activate=yes", draft).status == 400


def test_the_life_of_a_version(call, clock):
    call("PUT", "/contracts/orders", orders())
    early = call("POST", "/contracts/orders/versions/1.0.0/deprecate", {"sunset": "2026-03-02"})
    assert (early.status, early.facts["type"]) == (409, "urn:databox-contracts:problem:lifecycle")
    assert early.facts["facts"]["reasons"] == ["it cannot end on 2026-03-02: its consumers have 30 days of notice"]
    ended = call("POST", "/contracts/orders/versions/1.0.0/deprecate", {"sunset": "2026-04-10"})
    assert (ended.facts["status"], ended.facts["sunset"]) == ("deprecated", "2026-04-10")
    assert call("POST", "/contracts/orders/versions/1.0.0/retire").status == 409
    clock.pass_by(days=41)
    assert call("POST", "/contracts/orders/versions/1.0.0/retire").facts["status"] == "retired"
    assert call("POST", "/contracts/orders/versions/1.0.0/activate").status == 409


@pytest.mark.parametrize("sunset", ["tomorrow", "2026-02-30", "", 20260410, ["2026-04-10"]])
def test_what_is_no_day(lite, sunset):
    lite("PUT", "/contracts/orders", orders())
    assert lite("POST", "/contracts/orders/versions/1.0.0/deprecate", {"sunset": sunset}).status == 422


def test_consumers_are_registered_and_removed(call):
    declared = {"contacts": "mailto:q@example.com", "versions": "^1", "fields": ["number"], "owner": None}
    done = call("PUT", "/contracts/orders/consumers/the%20quants?origin=code", declared)
    assert done.status == 200
    assert done.facts["name"] == "the quants"
    assert (done.facts["contacts"], done.facts["origin"]) == (["mailto:q@example.com"], "code")
    assert call("GET", "/contracts/orders/consumers").facts == call("GET", "/consumers").facts
    assert call("GET", "/contracts/other/consumers").facts == {"consumers": []}
    assert call("DELETE", "/contracts/orders/consumers/the%20quants").facts == {"removed": False}
    assert call("DELETE", "/contracts/orders/consumers/the%20quants?origin=code").facts == {"removed": True}


@pytest.mark.parametrize(
    ("target", "declared", "status"),
    [
        ("/contracts/orders/consumers/quant", {"name": "somebody else"}, 422),
        ("/contracts/orders/consumers/quant", {"versions": "whichever"}, 422),
        ("/contracts/orders/consumers/quant", {"contact": 7}, 422),
        ("/contracts/orders/consumers/quant", {"colour": "red"}, 422),
        ("/contracts/orders/consumers/quant", [], 422),
        ("/contracts/orders/consumers/quant?origin=contract", {}, 400),
        ("/contracts/orders/consumers/quant?origin=moon", {}, 400),
        ("/contracts/orders/consumers/quant?by=", {}, 400),
        ("/contracts/orders/consumers/quant?by=a&by=b", {}, 400),
        ("/contracts/orders/consumers/quant?by=" + "a" * 151, {}, 422),
        ("/contracts/orders/consumers/" + "a" * 801, {}, 422),
    ],
)
def test_what_is_no_consumer(lite, target, declared, status):
    refused = lite("PUT", target, declared)
    assert refused.status == status
    assert refused.headers["content-type"] == "application/problem+json"
    assert lite("GET", "/consumers").facts == {"consumers": []}


# --- compatibility ---

NEXT = orders("1.1.0", WITHOUT_NUMBER)


def test_a_contract_against_the_registered_one(call):
    call("PUT", "/contracts/orders", orders())
    call("PUT", "/contracts/orders/consumers/quant", {"fields": ["number"]})
    report = call("POST", "/compatibility", NEXT, scope="read").facts
    assert sorted(report) == sorted(
        ("clean", "base", "head", "breaking", "additive", "acknowledged", "conditions", "remarks", "problems")
    )
    assert (report["clean"], report["base"], report["head"]) == (False, "1.0.0", "1.1.0")
    removed = next(one for one in report["breaking"] if one["kind"] == "field_removed")
    assert (removed["dataset"], removed["field"], removed["consumers"]) == ("orders", "number", ["quant"])
    assert removed["missing_approvals"] == ["quant"]
    call("POST", "/contracts/orders/approvals", {"consumer": "quant", "version": "1.1.0"})
    after = call("POST", "/compatibility", NEXT, scope="read").facts
    assert next(one for one in after["breaking"] if one["kind"] == "field_removed")["missing_approvals"] == []
    # Nothing was published by it.
    assert [one["version"] for one in call("GET", "/contracts/orders/versions").facts["versions"]] == ["1.0.0"]


@pytest.mark.parametrize(
    ("asked", "clean"),
    [
        ({"contract": NEXT}, False),
        ({"contract": yaml.safe_dump(NEXT), "policy": "none"}, True),
        ({"contract": NEXT, "old": NEXT}, True),
        ({"contract": NEXT, "old": yaml.safe_dump(orders())}, False),
        ({"contract": NEXT, "version": "2.0.0"}, True),
        ({"contract": NEXT, "version": "^1"}, False),
        ({"contract": NEXT, "old": None, "version": None, "policy": None}, True),
        ({"contract": {**NEXT, "id": "new"}}, True),
    ],
)
def test_what_a_contract_may_be_judged_against(lite, asked, clean):
    lite("PUT", "/contracts/orders", orders())
    if asked.get("version") == "2.0.0" or asked.get("version", "") is None:
        lite("PUT", "/contracts/orders", orders("2.0.0", WITHOUT_NUMBER))
    reply = lite("POST", "/compatibility", asked, scope="read")
    assert (reply.status, reply.facts["clean"]) == (200, clean)


@pytest.mark.parametrize(
    ("target", "asked", "status"),
    [
        ("/compatibility", {"contract": NEXT, "policy": "whatever"}, 422),
        ("/compatibility?policy=whatever", NEXT, 422),
        ("/compatibility", {"contract": NEXT, "version": "9.9.9"}, 404),
        ("/compatibility?version=9.9.9", yaml.safe_dump(NEXT), 404),
        ("/compatibility", {"contract": NEXT, "old": NEXT, "version": "1.0.0"}, 422),
        ("/compatibility", {"contract": None}, 422),
        ("/compatibility", {"contract": 1}, 422),
        ("/compatibility", {"contract": NEXT, "version": 1.0}, 422),
        ("/compatibility", {}, 422),
        ("/compatibility", "", 422),
        ("/compatibility", b"", 422),
    ],
)
def test_what_cannot_be_judged(lite, target, asked, status):
    lite("PUT", "/contracts/orders", orders())
    reply = lite("POST", target, asked)
    assert (reply.status, reply.headers["content-type"]) == (status, "application/problem+json")


def test_a_transitive_policy_sees_the_registered_history(lite):
    lite("PUT", "/contracts/orders", orders("1.0.0"))
    lite("PUT", "/contracts/orders", orders("2.0.0", WITHOUT_NUMBER))
    third = orders("3.0.0", {"other": {"type": "int"}, "number": {"type": "bigint"}})
    kinds = {
        policy: [one["kind"] for one in lite("POST", f"/compatibility?policy={policy}", third).facts["breaking"]]
        for policy in ("full", "full_transitive")
    }
    assert kinds == {"full": [], "full_transitive": ["type_changed", "nullability_relaxed"]}


# --- who is told, who has to agree, who is reached ---


def test_who_is_to_be_told_is_told_in_the_same_transaction(calling, database_url):
    def note(kind, contract, version, consumers):
        return [
            Notification(
                consumer=consumer.name,
                contract=contract,
                event=f"{kind} {version}",
                kind=EventKind.VERSION,
                severity=Severity.INFO,
                contact=consumer.contact or "log:",
                title=kind,
                occurred_at=datetime(2026, 3, 1, tzinfo=UTC),
            )
            for consumer in consumers
        ]

    wiring = {
        "announce": lambda new, before, consumers: note("begins", new.id, new.version, consumers),
        "announce_end": lambda ended, consumers: note(
            f"is {ended.status}", ended.contract_id, ended.version, consumers
        ),
    }
    with calling(database_url, wiring) as call:
        call("PUT", "/contracts/orders/consumers/quant", {"contact": "mailto:q@example.com", "versions": "^2"})
        assert call("PUT", "/contracts/orders", orders()).facts["notified"] == 1
        assert call("PUT", "/contracts/orders", orders()).facts["notified"] == 0
        draft = orders("2.0.0", WITHOUT_NUMBER, info={"title": "Orders", "version": "2.0.0", "status": "draft"})
        call("POST", "/contracts", {"contracts": [draft]})
        call("POST", "/contracts/orders/versions/2.0.0/activate")
        call("POST", "/contracts/orders/versions/1.0.0/deprecate")
        lease = call.registry.outbox.lease("test")
        assert [item.notification.event for item in lease.items] == [
            "begins 1.0.0",
            "begins 2.0.0",
            "is deprecated 1.0.0",
        ]


def test_a_break_that_needs_consent_is_not_published_without(call):
    first, second = (
        {
            "apiVersion": "v3.1.0",
            "kind": "DataContract",
            "id": "orders",
            "version": version,
            "status": "active",
            "schema": [{"name": "orders", "properties": [{"name": name, "logicalType": "string"}]}],
            "customProperties": [{"property": "evolution", "value": {"signOff": "required"}}],
        }
        for version, name in (("1.0.0", "number"), ("2.0.0", "other"))
    )
    assert call("PUT", "/contracts/orders", first).status == 201
    assert call("PUT", "/contracts/orders/consumers/quant", {"fields": ["number"]}).status == 200
    refused = call("PUT", "/contracts/orders", second, scope="publish")
    assert (refused.status, refused.facts["type"]) == (409, "urn:databox-contracts:problem:sign-off")
    assert list(refused.facts["facts"]["missing"]) == ["quant"]
    # Whoever publishes cannot consent in the consumer's place.
    consent = {"consumer": "quant", "version": "2.0.0"}
    assert call("POST", "/contracts/orders/approvals", consent, scope="publish").status == 403
    assert call("POST", "/contracts/orders/approvals", consent).status == 200
    assert call("PUT", "/contracts/orders", second, scope="publish").status == 201


def test_a_consumer_who_may_not_read_is_not_registered(call):
    call("PUT", "/contracts/orders", orders())
    refused = call("PUT", "/contracts/orders/consumers/quant", {"fields": ["nothing"]})
    assert (refused.status, refused.facts["type"]) == (409, "urn:databox-contracts:problem:consumers")
    (problem,) = refused.facts["facts"]["problems"]
    assert (problem["producer"], problem["consumer"], problem["field"]) == ("orders", "quant", "nothing")
    assert call("GET", "/consumers").facts == {"consumers": []}


def test_whom_a_change_reaches(calling, database_url):
    lineage = Lineage((AssetEdge("orders.orders", "reports/daily"),))
    with calling(database_url, {"lineage": lineage}) as call:
        call("PUT", "/contracts/orders", orders())
        call("PUT", "/contracts/orders/consumers/quant", {"fields": ["number"], "owner": "the quants"})
        found = call("GET", "/impact?target=orders.number", scope="read").facts
        assert [(one["kind"], one["name"]) for one in found["reached"]] == [
            ("asset", "reports/daily"),
            ("consumer", "quant"),
        ]
        assert call("GET", "/impact").status == 400
        report = call("POST", "/compatibility", NEXT).facts
        removed = next(one for one in report["breaking"] if one["kind"] == "field_removed")
        assert [(one["kind"], one["name"], one["distance"]) for one in removed["readers"]] == [
            ("consumer", "quant", 1),
            ("asset", "reports/daily", 1),
        ]
        missing = call("GET", "/impact?target=orders.numbre")
        assert (missing.status, missing.facts["facts"]["known"]) == (404, missing.facts["facts"]["known"])


# --- what is refused ---


def test_findings_have_their_lines_in_yaml_and_none_in_json(lite):
    text = (
        "dataContractSpecification: 1.2.0\nid: orders\ninfo: {title: x}\nmodels: {o: {fields: {a: {type: strang}}}}\n"
    )
    told = lite("PUT", "/contracts/orders", text).facts["facts"]["findings"]
    assert any(finding["line"] == 4 and "strang" in finding["message"] for finding in told)
    told = lite("PUT", "/contracts/orders", yaml.safe_load(text)).facts["facts"]["findings"]
    assert {(finding["line"], finding["column"]) for finding in told} == {(None, None)}


def test_numbers_in_json_stay_as_they_are_written(lite):
    text = json.dumps(orders()).replace('"1.0.0"', "3.10").replace('"id": "orders"', '"id": 1e400')
    assert lite("PUT", "/contracts/1e400", text.encode(), headers={"content-type": "application/json"}).status == 201
    assert lite("GET", "/contracts/1e400").facts["version"] == "3.10"


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/contracts/", 405),
        ("PUT", "/contracts/", 400),
        ("GET", "/nothing", 404),
        ("PATCH", "/contracts/orders", 405),
        ("DELETE", "/contracts/orders", 405),
        ("GET", "/contracts/orders", 404),
        ("GET", "/contracts/orders/versions", 404),
        ("GET", "/contracts/%FF", 400),
        ("GET", "/contracts/%00", 400),
        ("GET", "/contracts/a%0d%0ab", 400),
        ("GET", "/contracts?token=dbx_secret", 400),
        ("GET", "/contracts/orders?version=", 400),
        ("GET", "/contracts/" + "a" * 1001, 400),
        ("GET", "/../etc/passwd", 404),
        ("OPTIONS", "/contracts", 405),
    ],
)
def test_what_is_not_there(lite, method, target, status):
    reply = lite(method, target)
    assert (reply.status, reply.headers["content-type"]) == (status, "application/problem+json")
    assert "secret" not in reply.body.decode()


def test_a_head_is_a_get_without_its_body(lite):
    assert lite("HEAD", "/contracts").status == 200


def test_nothing_goes_out_of_an_error_of_ours(lite, monkeypatch, caplog):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a secret of the inside")

    monkeypatch.setattr(lite.registry, "contracts", broken)
    with caplog.at_level("INFO", logger="databox_contracts.service"):
        reply = lite("GET", "/contracts")
    assert (reply.status, reply.facts["type"]) == (500, "urn:databox-contracts:problem:internal")
    told = reply.facts["detail"]
    number = told.split("error ")[1].split(" ")[0]
    assert told == f"something went wrong (error {number} in the service's log)"
    assert f"error {number}: ZeroDivisionError" in caplog.text
    assert "in broken" in caplog.text
    assert "a secret" not in caplog.text


@pytest.mark.full
def test_a_database_that_is_away(calling, stoppable_postgresql):
    with calling(stoppable_postgresql.new_database()) as call:
        assert call("GET", "/health/ready", scope=None).status == 200
        stoppable_postgresql.stop()
        reply = call("GET", "/contracts")
        assert (reply.status, reply.facts["type"]) == (503, "urn:databox-contracts:problem:unavailable")
        assert reply.headers["retry-after"] == "2"
        assert reply.facts["detail"] == "the registry's database does not answer"
        assert call("GET", "/health/ready", scope=None).status == 503
        assert call("GET", "/health/live", scope=None).status == 200
        assert b"databox_registry_up 0.0" in call.metrics.text()
        stoppable_postgresql.start()
        assert call("GET", "/health/ready", scope=None).status == 200
        assert call("GET", "/contracts").status == 200
        assert b"databox_registry_up 1.0" in call.metrics.text()


def test_calls_are_counted_by_operation_and_status(lite):
    lite("GET", "/contracts")
    lite("GET", "/contracts/some-id-of-somebody")
    lite("GET", "/nothing/of/that/name")
    text = lite("GET", "/metrics").body.decode()
    assert 'databox_service_requests_total{operation="listContracts",status="200"} 1.0' in text
    assert 'databox_service_requests_total{operation="getContract",status="404"} 1.0' in text
    assert 'databox_service_requests_total{operation="none",status="404"} 1.0' in text
    assert 'databox_service_request_seconds_count{operation="listContracts"} 1.0' in text
    assert "somebody" not in text
    assert "nothing" not in text

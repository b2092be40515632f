"""Who may do what, and how often."""

from datetime import timedelta

import pytest

from databox_contracts.registry.tokens import Scope
from databox_contracts.service.rates import Buckets, Rate, caller_at

CONTRACT = """
dataContractSpecification: 1.2.0
id: orders
info: {title: Orders, version: 1.0.0, status: active, owner: sales}
models:
  orders:
    fields:
      number: {type: string, required: true}
"""

# Every operation, what it is given, and its status with no token and with each scope, called in this order.
TABLE = [
    ("GET", "/health/live", b"", (200, 200, 200, 200)),
    ("GET", "/health/ready", b"", (200, 200, 200, 200)),
    ("GET", "/openapi.json", b"", (200, 200, 200, 200)),
    ("GET", "/metrics", b"", (401, 200, 200, 200)),
    ("PUT", "/contracts/orders", CONTRACT, (401, 403, 201, 200)),
    ("POST", "/contracts", {"contracts": [CONTRACT]}, (401, 403, 200, 200)),
    ("GET", "/contracts", b"", (401, 200, 200, 200)),
    ("GET", "/contracts/orders", b"", (401, 200, 200, 200)),
    ("GET", "/contracts/orders/versions", b"", (401, 200, 200, 200)),
    ("GET", "/contracts/orders/versions/1.0.0", b"", (401, 200, 200, 200)),
    ("PUT", "/contracts/orders/consumers/quant", {"contact": "mailto:q@example.com"}, (401, 403, 200, 200)),
    ("GET", "/contracts/orders/consumers", b"", (401, 200, 200, 200)),
    ("GET", "/consumers", b"", (401, 200, 200, 200)),
    ("POST", "/contracts/orders/approvals", {"consumer": "quant"}, (401, 403, 403, 200)),
    ("GET", "/contracts/orders/approvals", b"", (401, 200, 200, 200)),
    ("GET", "/approvals", b"", (401, 200, 200, 200)),
    ("DELETE", "/contracts/orders/consumers/quant", b"", (401, 403, 403, 200)),
    ("GET", "/impact?target=orders.number", b"", (401, 200, 200, 200)),
    ("POST", "/compatibility", CONTRACT, (401, 200, 200, 200)),
    ("POST", "/contracts/orders/versions/1.0.0/deprecate", b"", (401, 403, 200, 200)),
    ("POST", "/contracts/orders/versions/1.0.0/activate", b"", (401, 403, 200, 200)),
    # Refused by the lifecycle, not for the scope.
    ("POST", "/contracts/orders/versions/1.0.0/retire", b"", (401, 403, 409, 409)),
]


def test_every_operation_with_every_scope(calling, clock):
    with calling() as call:
        seen = [
            (method, target, body, tuple(call(method, target, body, scope=scope).status for scope in scopes))
            for method, target, body, _ in TABLE
            for scopes in [(None, "read", "publish", "admin")]
            if clock.pass_by(seconds=60) is None
        ]
    assert seen == TABLE


def test_the_table_has_every_operation():
    from databox_contracts.service.openapi import DOCUMENT

    told = {
        (method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item if method != "parameters"
    }
    here = {
        (
            method,
            target.partition("?")[0]
            .replace("/orders", "/{id}")
            .replace("/1.0.0", "/{version}")
            .replace("/quant", "/{name}"),
        )
        for method, target, _, _ in TABLE
    }
    assert here == told


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic {token}",
        "{token}",
        "Bearer {token}x",
        "Bearer {shorter}",
        "Bearer {token} {token}",
        "Bearer {token},",
        "Bearer \N{LATIN SMALL LETTER E WITH ACUTE}",
        "Bearer " + "a" * 300,
        "Bearer ' OR 1=1 --",
        "Bearer dbx_' OR '1'='1",
    ],
)
def test_what_is_no_token(lite, header):
    text = header.format(token=lite.tokens["admin"], shorter=lite.tokens["admin"][:-1])
    reply = lite("GET", "/contracts", scope=None, headers={"authorization": text})
    assert reply.status == 401
    assert reply.headers["www-authenticate"] == 'Bearer realm="databox-contracts"'
    assert lite.tokens["admin"] not in reply.body.decode()


def test_two_tokens_are_none(lite):
    second = [(b"authorization", f"Bearer {lite.tokens['admin']}".encode())]
    assert lite("GET", "/contracts", scope="admin", raw_headers=second).status == 401


def test_the_scheme_may_be_written_in_any_case(lite):
    assert (
        lite("GET", "/contracts", scope=None, headers={"authorization": f"bEARER {lite.tokens['read']}"}).status == 200
    )


def test_a_revoked_token_is_worth_nothing_at_once(call):
    assert call("GET", "/contracts", scope="read").status == 200
    assert call.registry.tokens.revoke("holder of read", by="tests")
    assert call("GET", "/contracts", scope="read").status == 401


def test_an_expired_token_is_worth_nothing(call, clock):
    end = clock() + timedelta(hours=1)
    token = call.registry.tokens.issue("short", Scope.READ, by="tests", expires_at=end)
    header = {"authorization": f"Bearer {token}"}
    assert call("GET", "/contracts", scope=None, headers=header).status == 200
    clock.pass_by(hours=1)
    assert call("GET", "/contracts", scope=None, headers=header).status == 401


def test_tokens_are_kept_as_hashes(lite, tmp_path):
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"holder of admin" in stored
    for token in lite.tokens.values():
        assert token.encode() not in stored
        assert token.removeprefix("dbx_").encode() not in stored


def test_who_did_it_is_the_tokens_holder_whatever_is_claimed(call):
    call("PUT", "/contracts/orders?by=the%20boss", CONTRACT, scope="publish")
    call("POST", "/contracts/orders/approvals", {"consumer": "quant", "approver": "quant lead"})
    assert call("GET", "/contracts/orders").facts["published_by"] == "the boss (token holder of publish)"
    (approval,) = call("GET", "/approvals").facts["approvals"]
    assert approval["approver"] == "quant lead (token holder of admin)"
    assert approval["at"] == "2026-03-01T12:00:00+00:00"
    assert {entry.who for entry in call.registry.audit("orders")} == {
        "the boss (token holder of publish)",
        "quant lead (token holder of admin)",
    }


# --- rates ---


def test_a_token_that_calls_too_often_waits_and_the_others_do_not(calling, clock):
    with calling(by_token=Rate(burst=3, per_second=0.5)) as call:
        assert [call("GET", "/contracts", scope="read").status for _ in range(4)] == [200, 200, 200, 429]
        reply = call("GET", "/contracts", scope="read", address="192.0.2.2")
        assert (reply.status, reply.headers["retry-after"]) == (429, "2")
        assert reply.facts["type"] == "urn:databox-contracts:problem:too-many-requests"
        assert call("GET", "/contracts", scope="publish").status == 200
        clock.pass_by(seconds=2)
        assert call("GET", "/contracts", scope="read").status == 200


def test_an_address_that_calls_too_often_waits_even_where_no_token_is_needed(calling, clock):
    with calling(by_address=Rate(burst=2, per_second=1)) as call:
        assert [call("GET", "/health/live", scope=None).status for _ in range(3)] == [200, 200, 429]
        assert call("GET", "/nothing", scope=None).status == 429
        assert call("GET", "/health/live", scope=None, address="192.0.2.9").status == 200
        clock.pass_by(seconds=1)
        assert call("GET", "/health/live", scope=None).status == 200


def test_whoever_guesses_tokens_is_slowed_down_and_nobody_else_at_that_address(calling, clock):
    with calling(failures=Rate(burst=2, per_second=0.1)) as call:
        wrong = {"authorization": "Bearer dbx_guess"}
        seen = [call("GET", "/contracts", scope=None, headers=wrong) for _ in range(3)]
        assert [reply.status for reply in seen] == [401, 401, 429]
        assert seen[2].headers["retry-after"] == "10"
        assert call("GET", "/contracts", scope="read").status == 200
        assert call("GET", "/contracts", scope=None, address="192.0.2.9").status == 401
        clock.pass_by(seconds=10)
        assert call("GET", "/contracts", scope=None, headers=wrong).status == 401


def test_buckets_are_bounded_in_number():
    buckets = Buckets(Rate(burst=1, per_second=1), lambda: 0.0, most_callers=3)
    assert [buckets.take(caller) for caller in "aabcd"] == [0, 1, 0, 0, 0]
    assert len(buckets._left) == 3
    assert buckets.take("a") == 0


@pytest.mark.parametrize(
    ("address", "caller"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        (None, "-"),
        ("not an address\x1b", "-"),
    ],
)
def test_whom_an_address_stands_for(address, caller):
    assert caller_at(address) == caller

"""Bodies, names and headers of somebody who means ill; and no secret or personal value where it does not belong."""

import gzip
import json
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from databox_contracts.errors import ContractError
from databox_contracts.service.bodies import contract_of, contract_of_data, json_of, object_of, plain
from databox_contracts.service.rates import Rate

SMALL = {
    "dataContractSpecification": "1.2.0",
    "id": "orders",
    "info": {"title": "Orders", "version": "1.0.0"},
    "models": {"t": {"fields": {"f": {"type": "int"}}}},
}
JSON = {"content-type": "application/json"}


# --- sizes and forms ---


@pytest.mark.parametrize(
    ("target", "method", "most"),
    [
        ("/contracts/orders", "PUT", 2 * 1024 * 1024),
        ("/contracts", "POST", 16 * 1024 * 1024),
        ("/compatibility", "POST", 4 * 1024 * 1024),
        ("/contracts/orders/consumers/quant", "PUT", 64 * 1024),
        ("/contracts/orders/approvals", "POST", 64 * 1024),
        ("/contracts/orders/versions/1/deprecate", "POST", 64 * 1024),
        ("/contracts", "GET", 0),
        ("/contracts/orders/consumers/quant", "DELETE", 0),
    ],
)
def test_a_body_has_at_most_so_many_bytes(lite, target, method, most):
    lied = lite(method, target, b"{}", headers={**JSON, "content-length": str(most + 1)})
    chunked = lite(method, target, headers=JSON, chunks=[b" " * 1024] * (most // 1024) + [b"  "])
    fitting = lite(method, target, headers=JSON, chunks=[b" " * 1024] * (most // 1024) or [b""])
    assert (lied.status, chunked.status) == (413, 413)
    assert lied.headers["connection"] == "close"
    assert fitting.status != 413


def test_the_operator_may_allow_less(calling):
    with calling(most_bytes=100) as call:
        assert call("PUT", "/contracts/orders", SMALL).status == 413


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"content-type": "application/json"}, json.dumps(SMALL), 201),
        ({"content-type": "application/json; charset=utf-8"}, json.dumps(SMALL), 201),
        ({"content-type": "APPLICATION/VND.API+JSON"}, json.dumps(SMALL), 201),
        ({"content-type": "text/yaml"}, json.dumps(SMALL), 201),
        ({"content-type": "application/json"}, "\ufeff" + json.dumps(SMALL), 201),
        ({"content-type": ""}, json.dumps(SMALL), 415),
        ({"content-type": "application/x-www-form-urlencoded"}, json.dumps(SMALL), 415),
        ({"content-type": "multipart/form-data; boundary=x"}, json.dumps(SMALL), 415),
        ({"content-type": "application/json", "content-encoding": "gzip"}, json.dumps(SMALL), 415),
        ({"content-type": "application/json"}, "", 422),
        ({"content-type": "application/json"}, "[]", 422),
        ({"content-type": "application/json"}, "null", 422),
        ({"content-type": "application/json"}, '"text"', 422),
        ({"content-type": "application/json"}, "NaN", 422),
        ({"content-type": "application/json"}, '{"id": "a", "id": "b"}', 422),
        ({"content-type": "application/json"}, json.dumps({**SMALL, "info": {"title": "\ud800"}}), 422),
        ({"content-type": "application/yaml"}, "", 422),
        ({"content-type": "application/yaml"}, "!!python/object/apply:os.system ['true']", 422),
        ({"content-type": "application/yaml"}, "a: &a [*a]", 422),
    ],
)
def test_what_a_body_may_be(lite, headers, body, status):
    reply = lite("PUT", "/contracts/orders", body, headers=headers)
    assert reply.status == status
    assert reply.headers["content-type"] == ("application/problem+json" if status > 201 else "application/json")


BOMB = "\n".join(
    ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"] + [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
)


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("application/yaml", BOMB.encode()),
        ("application/yaml", b"[" * 500_000),
        ("application/yaml", b"{a: " * 200_000),
        ("application/yaml", b"- " * 500_000),
        ("application/json", b"[" * 1_000_000),
        ("application/json", b'{"a":' * 300_000),
        ("application/json", b'{"a":' * 70 + b"1" + b"}" * 70),
        ("application/json", b"[" + b"0," * 1_000_000 + b"0]"),
        ("application/json", b"9" * 1_500_000),
        ("application/json", b"\xff\xfe\x00"),
        ("application/yaml", b"\xff\xfe\x00"),
        ("application/yaml", b"a: b\x00"),
        ("application/yaml", gzip.compress(b"a: b")),
    ],
    ids=range(13),
)
def test_what_is_to_exhaust_the_reader(lite, media_type, body):
    reply = lite("PUT", "/contracts/orders", body, headers={"content-type": media_type})
    assert (reply.status, reply.facts["type"]) == (422, "urn:databox-contracts:problem:contract")
    assert len(reply.body) < 10_000


def test_a_body_that_does_not_come_is_not_waited_for(calling):
    with calling(body_seconds=0.05) as call:
        reply = call("PUT", "/contracts/orders", headers=JSON, chunks=[b"{"], stalls=True)
    assert (reply.status, reply.facts["title"]) == (408, "timeout")


def test_a_caller_who_goes_in_the_middle_changes_nothing(lite):
    whole = json.dumps(SMALL).encode()
    # The connection ends after a first half that says that there is more.
    reply = lite("PUT", "/contracts/orders", headers=JSON, chunks=[whole[:40], whole[40:60]])
    assert reply.status in (400, 422)
    assert lite("GET", "/contracts").facts["contracts"] == []


def test_numbers_and_text_are_told_apart():
    found = object_of(b'{"a": 3.10, "b": "3.10", "c": [1, {"d": -0.0}], "e": true}', ("a", "b", "c", "e"))
    assert found["a"] == "3.10"
    assert plain(found) == {"a": 3.1, "b": "3.10", "c": [1.0, {"d": 0.0}], "e": True}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)


@given(text=st.text(max_size=40))
@settings(max_examples=50)
def test_every_text_comes_through_json_as_it_is(text):
    document = {**SMALL, "info": {**SMALL["info"], "title": text}}
    try:
        contract = contract_of(json.dumps(document).encode(), "application/json")
    except ContractError:
        # Half a character, and nothing, are no names.
        assert not text.strip() or any("\ud800" <= character <= "\udfff" for character in text)
        return
    assert contract.name in (text, text.strip()) or not text.strip()


@given(value=VALUES)
def test_any_json_is_a_contract_or_a_contract_error(value):
    document = {**SMALL, "info": {**SMALL["info"], "x": value}}
    assert plain(json_of(json.dumps(document).encode())) == json.loads(json.dumps(document), parse_int=float)
    contract_of_data(json_of(json.dumps(document).encode()))
    with pytest.raises(ContractError):
        contract_of(json.dumps(value).encode(), "application/json")


# --- injection ---

NASTY = [
    "'; DROP TABLE databox_versions; --",
    "' OR '1'='1",
    '" OR ""="',
    "orders') UNION SELECT hash FROM databox_tokens --",
    "%' OR name LIKE '%",
    "a\\'b",
    "${DATABOX_REGISTRY_TOKEN}",
    "{{7*7}}",
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "a;b,c:d",
    ":id",
    "%s%s%n",
]


def test_names_are_nothing_but_names(call):
    for nasty in NASTY:
        place, name = f"/contracts/{quote(nasty, safe='')}", quote(nasty, safe="")
        document = {**SMALL, "id": nasty, "info": {"title": nasty, "version": "1.0.0", "owner": nasty}}
        assert call("GET", place).status == 404
        assert call("PUT", f"{place}?by={name}", document).status == 201
        assert call("PUT", f"{place}/consumers/{name}", {"owner": nasty, "purpose": nasty}).status == 200
        assert call("POST", f"{place}/approvals", {"consumer": nasty, "note": nasty, "dataset": nasty}).status == 200
        assert call("GET", f"{place}/versions/{name}").status == 404
        assert call("GET", f"{place}?version={name}").status == 404
        assert call("GET", f"/impact?target={name}").status in (200, 404)
        (consumer,) = call("GET", "/consumers").facts["consumers"]
        assert (consumer["name"], consumer["owner"]) == (nasty, nasty)
        assert call("GET", f"{place}/approvals").facts["approvals"][0]["note"] == nasty
        assert call("DELETE", f"{place}/consumers/{name}").facts == {"removed": True}
    assert sorted(one["contract"] for one in call("GET", "/contracts").facts["contracts"]) == sorted(NASTY)
    assert len(call.registry.tokens.tokens()) == 3


@pytest.mark.parametrize("nasty", ["a\r\nX-Evil: 1", "a\nb", "a\x00b", "\x1b[31m", "a\rb"])
def test_no_name_becomes_a_header_or_a_line_of_the_log(lite, caplog, nasty):
    encoded = quote(nasty, safe="")
    with caplog.at_level("INFO", logger="databox_contracts.service"):
        for method, target in [
            ("GET", f"/contracts/{encoded}"),
            ("PUT", f"/contracts/orders?by={encoded}"),
            ("GET", f"/contracts/orders?version={encoded}"),
            ("PUT", f"/contracts/orders/consumers/{encoded}"),
        ]:
            reply = lite(method, target, SMALL if method == "PUT" else b"")
            assert reply.status == 400
            assert "x-evil" not in {name.lower() for name in reply.headers}
        lite(nasty, "/contracts")
        lite("GET", "/contracts", headers={"x-forwarded-for": nasty, "host": nasty, "user-agent": nasty})
    for record in caplog.records:
        assert not set("\r\n\x00\x1b") & set(record.getMessage())


def test_a_token_named_by_the_operator_cannot_break_the_log(lite, caplog):
    from databox_contracts.registry.tokens import Scope

    token = lite.registry.tokens.issue("two\nlines", Scope.READ, by="tests")
    with caplog.at_level("INFO", logger="databox_contracts.service"):
        assert lite("GET", "/contracts", scope=None, headers={"authorization": f"Bearer {token}"}).status == 200
    assert '"two\\nlines"' in caplog.text
    assert all("\n" not in record.getMessage() for record in caplog.records)


# --- secrets and personal values ---

MARK = "mArK"
MARKED = st.text(alphabet="0123456789abcdef", min_size=8, max_size=8).map(lambda text: f"{MARK}{text}")


def declaring(contact):
    value = [{"name": "q", "contact": contact}]
    return {
        "apiVersion": "v3.1.0",
        "kind": "DataContract",
        "id": "orders",
        "version": "1.0.0",
        "status": "active",
        "schema": [{"name": "t", "properties": [{"name": "f", "logicalType": "integer"}]}],
        "customProperties": [{"property": "consumers", "value": value}],
    }


@pytest.fixture
def generous(calling):
    often = Rate(burst=10_000, per_second=1)
    with calling(by_token=often, by_address=often, failures=often) as call:
        yield call


@given(mark=MARKED)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_secret_goes_in_and_nowhere_out(generous, tmp_path, caplog, mark):
    lite = generous
    caplog.clear()
    with caplog.at_level("DEBUG"):
        replies = [
            lite("GET", "/contracts", scope=None, headers={"authorization": f"Bearer {mark}"}),
            lite("GET", "/contracts", scope=None, headers={"authorization": f"Basic {mark}"}),
            lite("GET", "/contracts", headers={"cookie": mark, "x-api-key": mark}),
            lite("GET", f"/contracts?token={mark}"),
            lite("GET", f"/contracts?{mark}=1"),
            lite("PUT", "/contracts/orders/consumers/q", {"contact": f"mailto://u:{mark}@example.com"}),
            lite("PUT", "/contracts/orders/consumers/q", {"contact": f"https://hooks.slack.com/services/{mark}"}),
            lite("PUT", "/contracts/orders/consumers/q", {"contact": f"https://a.example/?token={mark}"}),
            lite("PUT", "/contracts/orders/consumers/q", {mark: "x"}),
            lite("PUT", "/contracts/orders/consumers/q", {"contacts": {"password": mark}}),
            lite("POST", "/contracts/orders/approvals", {"consumer": "q", mark: "x"}),
            lite("POST", "/contracts/orders/versions/1/deprecate", {"sunset": mark}),
            lite("PUT", "/contracts/orders", declaring(f"slack://{mark}")),
            lite("POST", "/contracts", {"contracts": [SMALL, declaring(f"mailto://u:{mark}@example.com")]}),
            lite("GET", f"/{mark}"),
            lite(mark, "/contracts"),
        ]
        metrics = lite("GET", "/metrics")
    assert [reply.status for reply in replies] == [401, 401, 200, *[400] * 2, *[422] * 9, 404, 405]
    for reply in replies:
        assert mark.encode() not in reply.body
        assert all(mark not in value for value in reply.headers.values())
    assert mark.encode() not in metrics.body
    assert mark not in caplog.text
    for path in tmp_path.iterdir():
        assert mark.encode() not in path.read_bytes()


def test_a_token_that_is_right_stands_nowhere_either(lite, tmp_path, caplog):
    with caplog.at_level("DEBUG"):
        replies = [lite("GET", target) for target in ("/contracts", "/nothing", "/metrics", "/contracts/x")]
        replies.append(lite("PUT", "/contracts/orders", b"{", headers=JSON))
    for token in lite.tokens.values():
        assert token not in caplog.text
        assert all(token.encode() not in reply.body for reply in replies)
        assert all(token.encode() not in path.read_bytes() for path in tmp_path.iterdir())


ANY_PART = st.sampled_from(
    ["contracts", "orders", "versions", "1.0.0", "consumers", "q", "approvals", "%2F", "%00", "%FF", ""]
)
ANY_TARGET = st.lists(
    ANY_PART | st.text(max_size=5).map(lambda text: quote(text, safe="", errors="replace")), max_size=6
)
ANY_BODY = st.binary(max_size=40) | VALUES.map(lambda value: json.dumps(value).encode())


@given(
    method=st.sampled_from(["GET", "PUT", "POST", "DELETE", "HEAD", "PATCH", "\x00"]),
    parts=ANY_TARGET,
    query=st.sampled_from(
        ["", "?", "?by=a", "?version=%5E1", "?version=)(", "?content=true", "?&&=", "?target=a.b.c.d"]
    ),
    body=ANY_BODY,
    media_type=st.sampled_from(["application/json", "application/yaml", "text/plain", ";", "a/b+json"]),
)
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_nothing_that_is_sent_makes_it_go_wrong(generous, method, parts, query, body, media_type):
    reply = generous(method, "/" + "/".join(parts) + query, body, headers={"content-type": media_type})
    assert reply.status < 500
    assert reply.headers["content-type"] in ("application/json", "application/problem+json")
    if method != "HEAD":
        assert isinstance(reply.facts, dict)

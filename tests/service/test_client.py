"""The client: the same registry from elsewhere, and what it makes of services that are busy, broken or not one."""

import json
import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from werkzeug import Response

from databox_contracts.errors import (
    ConsumersError,
    ContractConflictError,
    ContractError,
    Level,
    LifecycleError,
    RegistryAccessError,
    RegistryError,
    RegistryTooNewError,
    RegistryUnavailableError,
    RegistryUnusableError,
    SignOffError,
    UnknownContractError,
    UnknownPlaceError,
)
from databox_contracts.formats import load_contract
from databox_contracts.model import Consumer
from databox_contracts.registry.api import RegistryApi
from databox_contracts.registry.client import RegistryClient
from databox_contracts.registry.consumers import Problem, ProblemKind
from databox_contracts.registry.http_calls import _asked_for
from databox_contracts.registry.problems import KINDS, error_of, problem_of
from databox_contracts.registry.records import Origin, Outcome, Status, StoredApproval
from databox_contracts.registry.store import Registry
from databox_contracts.testing import build_contract, build_field

CASES = Path(__file__).parents[1] / "cases"


def contract(version="1.0.0", *fields, **facts):
    built = [build_field(name, "string") for name in fields or ("a",)]
    return build_contract(*built, version=version, **{"id": "c/d ä", "status": "active", **facts})


@pytest.fixture
def remote(server):
    with RegistryClient(server.url, token=server.token()) as client:
        yield client


@pytest.fixture(scope="module")
def shared(tmp_path_factory, serving):
    """A service for all tests to which it does not matter what is in its registry."""
    folder = tmp_path_factory.mktemp("shared")
    with serving(str(folder / "registry.db"), folder) as running:
        yield running


def test_it_offers_what_a_database_offers(server, remote):
    api: RegistryApi = remote
    with Registry.open(server.registry) as local:
        first = api.publish(contract(), by="me")
        assert (first.outcome, first.stored.status) == (Outcome.PUBLISHED, Status.ACTIVE)
        assert local.publish(contract(), by="me").outcome is Outcome.UNCHANGED
        second = api.publish_all([contract("2.0.0", "b"), contract("1.0.0")], by="me")
        assert [one.outcome for one in second] == [Outcome.PUBLISHED, Outcome.UNCHANGED]
        assert second[0].previous == "1.0.0"
        assert api.publish_all([], by="me") == []
        assert api.contracts() == local.contracts()
        assert api.versions("c/d ä") == local.versions("c/d ä")
        assert api.get("c/d ä") == local.get("c/d ä")
        assert api.get("c/d ä", "^1").version == "1.0.0"
        assert api.get("c/d ä").contract() == local.get("c/d ä").contract()

        consumer = Consumer(name="the quants", contact="mailto:q@example.com", fields=("b",), versions=">=2")
        kept = api.register("c/d ä", consumer, by="me", origin=Origin.FILE)
        assert kept.consumer == consumer
        assert api.consumers() == api.consumers("c/d ä") == local.consumers() == [kept]
        assert api.remove_consumer("c/d ä", "the quants", by="me") is False
        assert api.remove_consumer("c/d ä", "the quants", by="me", origin=Origin.FILE) is True

        given = StoredApproval(
            contract_id="c/d ä", consumer="quant", approver="lead", at=datetime(2020, 1, 1, tzinfo=UTC), version="2.0.0"
        )
        stored = api.approve(given)
        assert stored.approver.startswith("lead (token admin ")
        assert api.approve(given) == stored
        assert api.approvals() == api.approvals("c/d ä") == local.approvals() == [stored]

        ended = api.deprecate("c/d ä", "1.0.0", by="me", sunset=date(2099, 1, 1))
        assert (ended.status, ended.sunset) == (Status.DEPRECATED, date(2099, 1, 1))
        assert api.activate("c/d ä", "1.0.0", by="me").status is Status.ACTIVE
        assert {entry.who for entry in local.audit("c/d ä")} >= {given.approver + stored.approver[4:]}
    api.check()  # type: ignore[attr-defined]


def test_its_errors_are_those_of_a_database(server, remote):
    remote.publish(contract(), by="me")
    with Registry.open(server.registry) as local:
        for registry in (local, remote):
            with pytest.raises(ContractConflictError, match=r"is published already with other content") as conflict:
                registry.publish(contract("1.0.0", "b"), by="me")
            assert (conflict.value.contract, conflict.value.version) == ("c/d ä", "1.0.0")
            with pytest.raises(UnknownContractError) as unknown:
                registry.get("c/d a")
            assert unknown.value.known == ("c/d ä",)
            with pytest.raises(LifecycleError) as early:
                registry.retire("c/d ä", "1.0.0", by="me")
            assert early.value.reasons == ("it cannot be retired: it is active and was never deprecated",)
            with pytest.raises(RegistryError, match="has a password in it") as secret:
                registry.register("c", Consumer(name="x", contact="mailto://u:pass@h"), by="me")
            assert str(secret.value).endswith("set NAME in the environment of whoever sends.")
            with pytest.raises(RegistryError, match="is empty"):
                registry.get(" " if registry is local else "", None) if registry is remote else registry.publish(
                    contract(id=" "), by="me"
                )


@pytest.mark.parametrize("path", sorted((CASES / "reference").glob("*.yaml")), ids=lambda path: path.name)
def test_a_contract_of_any_dialect_is_the_same_from_elsewhere(shared, path, tmp_path):
    given = load_contract(path)
    remote = RegistryClient(shared.url, token=shared.token())
    with Registry.open(tmp_path / "other.db") as local:
        here, there = local.publish(given, by="me").stored, remote.publish(given, by="me").stored
    assert (here.digest, here.status, here.version) == (there.digest, there.status, there.version)
    assert here.contract() == there.contract()


def test_compatibility(shared):
    remote = RegistryClient(shared.url, token=shared.token())
    remote.publish(contract(), by="me")
    assert remote.compatibility(contract("1.1.0", "a", "b"))["clean"] is True
    report = remote.compatibility(contract("1.1.0", "b"), policy="consumer")
    assert [one["kind"] for one in report["breaking"]] != []
    assert remote.compatibility(contract("1.1.0", "b"), old=contract("1.1.0", "b"))["clean"] is True


def test_impact(shared):
    remote = RegistryClient(shared.url, token=shared.token())
    remote.publish(contract(id="reached"), by="me")
    remote.register("reached", Consumer(name="the quants", fields=("a",), owner="quant"), by="me")
    found = remote.impact("reached.a")
    assert [(one["kind"], one["name"], one["distance"]) for one in found["reached"]] == [("consumer", "the quants", 1)]
    assert (found["owners"], found["problems"]) == (["quant"], [])
    with pytest.raises(UnknownPlaceError, match="no contract, dataset or field is called"):
        remote.impact("reached.b")


def test_a_wrong_token_and_a_small_one(shared):
    server = shared
    with pytest.raises(RegistryAccessError, match="the token is not a valid one"):
        RegistryClient(server.url, token="dbx_wrong").contracts()
    with pytest.raises(RegistryAccessError, match=r"no token was given\. Set DATABOX_REGISTRY_TOKEN to a token"):
        RegistryClient(server.url, token="").contracts()
    with pytest.raises(RegistryAccessError, match="the token's scope is read, and this takes publish"):
        RegistryClient(server.url, token=server.token("read")).publish(contract(), by="me")


# --- services that are not as they should be ---


@pytest.fixture
def waits():
    return []


@pytest.fixture
def asking(httpserver, waits):
    return RegistryClient(httpserver.url_for("/base"), token="dbx_secret", sleep=waits.append, timeout=5)


def scripted(httpserver, *answers):
    """Each call takes the next answer, the last one from then on."""
    left = list(answers)

    def answer(request):
        return left.pop(0) if len(left) > 1 else left[0]

    httpserver.expect_request("/base/consumers").respond_with_handler(answer)
    httpserver.expect_request("/base/contracts/c/versions/1/activate").respond_with_handler(answer)


FINE = Response('{"consumers": []}', content_type="application/json")


def problem(name, status, headers=None):
    document = {"type": f"urn:databox-contracts:problem:{name}", "status": status, "detail": "no"}
    return Response(json.dumps(document), status=status, content_type="application/problem+json", headers=headers or {})


def test_a_busy_service_is_asked_again_after_as_long_as_it_says(httpserver, asking, waits):
    scripted(
        httpserver,
        problem("too-many-requests", 429, {"Retry-After": "7"}),
        problem("unavailable", 503, {"Retry-After": "3600"}),
        Response("", status=502),
        FINE,
    )
    assert asking.consumers() == []
    assert waits[:2] == [7.0, 30.0]
    assert 0.8 <= waits[2] <= 1.6
    assert {request.headers["Authorization"] for request, _ in httpserver.log} == {"Bearer dbx_secret"}


def test_a_service_that_stays_busy_is_given_up(httpserver, asking, waits):
    scripted(httpserver, problem("unavailable", 503))
    with pytest.raises(RegistryUnavailableError, match="no"):
        asking.consumers()
    assert (len(httpserver.log), len(waits)) == (5, 4)
    assert waits == sorted(waits) or all(wait <= 6.4 for wait in waits)


def test_what_may_not_be_repeated_is_not(httpserver, asking, waits):
    scripted(httpserver, problem("unavailable", 503))
    with pytest.raises(RegistryUnavailableError):
        asking.activate("c", "1", by="me")
    assert (len(httpserver.log), waits) == (1, [])


def test_too_many_calls_were_not_made_and_may_be_made_again(httpserver, asking, waits):
    scripted(httpserver, problem("too-many-requests", 429, {"Retry-After": "1"}), problem("forbidden", 403))
    with pytest.raises(RegistryAccessError):
        asking.activate("c", "1", by="me")
    assert (len(httpserver.log), waits) == (2, [1.0])


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (
            Response("<html>", content_type="text/html"),
            RegistryError,
            "is no registry's service: its answer is not JSON",
        ),
        (Response("[]"), RegistryError, "its answer is no JSON object"),
        (Response("{}"), RegistryError, "its answer lacks what a registry tells"),
        (Response('{"consumers": [{"name": 7}]}'), RegistryError, "its answer lacks what a registry tells"),
        (Response("x", status=404), RegistryError, "is no registry's service: it answers with status 404"),
        (Response("x", status=500), RegistryError, "it answers with status 500"),
        (Response("{", status=409, content_type="application/problem+json"), RegistryError, "status 409"),
        (Response("[]", status=409, content_type="application/problem+json"), RegistryError, "status 409"),
        (
            Response("", status=302, headers={"Location": "http://127.0.0.1:1/"}),
            RegistryError,
            "sends its callers else",
        ),
        (problem("something-new", 418), RegistryError, "^no$"),
        (Response("x", status=401), RegistryAccessError, "it answers with status 401. Check DATABOX_REGISTRY_TOKEN"),
    ],
)
def test_what_is_no_registry(httpserver, asking, answer, error, text):
    scripted(httpserver, answer)
    with pytest.raises(error, match=text) as found:
        asking.consumers()
    assert "dbx_secret" not in str(found.value)
    assert len(httpserver.log) == 1


@contextmanager
def listening(answer):
    """A server that does this with each connection; yields its port and how many there were."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        seen = []

        def run():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                seen.append(1)
                with connection:
                    answer(connection)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield server.getsockname()[1], seen
        server.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def reset(connection):
    connection.recv(10)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def silent(connection):
    connection.settimeout(5)
    with suppress(OSError):
        while connection.recv(1000):
            pass


@pytest.mark.parametrize(
    "answer", [reset, lambda connection: None, lambda connection: connection.sendall(b"HTTP/1.1 2"), silent]
)
def test_connections_that_break_are_made_again(answer, waits):
    with listening(answer) as (port, seen):
        client = RegistryClient(
            f"http://127.0.0.1:{port}", token="dbx_secret", sleep=waits.append, timeout=0.2, attempts=3
        )
        with pytest.raises(RegistryUnavailableError, match="does not answer") as found:
            client.consumers()
        assert (len(seen), len(waits)) == (3, 2)
        with pytest.raises(RegistryUnavailableError):
            client.activate("c", "1", by="me")
        assert len(seen) == 4
    assert "dbx_secret" not in str(found.value)


def test_nobody_listens(waits):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    client = RegistryClient(f"http://127.0.0.1:{port}", sleep=waits.append)
    with pytest.raises(RegistryUnavailableError, match=r"does not answer: Connection refused\. See that it runs"):
        client.activate("c", "1", by="me")
    # It never arrived, so it may be made again whatever it is.
    assert len(waits) == 4


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://", "is no URL"),
        ("ftp://host", "is no URL"),
        ("https://host:99999", "is no URL"),
        ("https://[host", "is no URL"),
        ("https://user:geheim@host", "holds more than a place"),
        ("https://host?token=geheim", "holds more than a place"),
        ("https://host#geheim", "holds more than a place"),
        ("https://host/a b", "has a character"),
        ("http://registry.example.com", "would travel readable"),
    ],
)
def test_what_is_no_place_for_a_token(url, text):
    with pytest.raises(RegistryError, match=text) as found:
        RegistryClient(url, token="dbx_geheim")
    assert "geheim" not in str(found.value)


def test_a_network_that_encrypts_itself(monkeypatch):
    monkeypatch.setenv("DATABOX_REGISTRY_INSECURE", "1")
    assert RegistryClient("http://registry.example.com/", token="x").location == "http://registry.example.com"


@pytest.mark.parametrize("token", ["a b", "a\r\nX-Evil: 1", "ä", "a" * 201, '"quoted"'])
def test_what_is_no_token(token, monkeypatch):
    monkeypatch.setenv("DATABOX_REGISTRY_TOKEN", token)
    with pytest.raises(RegistryAccessError) as found:
        RegistryClient("https://registry.example.com")
    assert token not in str(found.value)


@pytest.mark.parametrize("name", ["", " ", "a\0b", "\ud800", "a" * 900])
def test_names_that_no_registry_has(name):
    with pytest.raises(RegistryError):
        RegistryClient("http://127.0.0.1:9", attempts=1).versions(name)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, None), ("0", 0.0), ("12", 12.0), ("100000", 30.0), ("soon", None), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0)],
)
def test_how_long_to_wait(header, seconds):
    assert _asked_for(header) == seconds


def test_a_certificate_that_nobody_knows(tmp_path, certificate_pair):
    certificate, key = certificate_pair
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def greet(connection):
        with suppress(OSError), context.wrap_socket(connection, server_side=True) as wrapped:
            wrapped.recv(1)

    with listening(greet) as (port, seen):
        with pytest.raises(RegistryError, match=r"is not trusted: .*SSL_CERT_FILE") as found:
            RegistryClient(f"https://127.0.0.1:{port}", token="dbx_secret").consumers()
        assert len(seen) == 1
        assert not isinstance(found.value, RegistryUnavailableError)


def test_a_service_that_speaks_no_tls():
    def answer(connection):
        connection.sendall(b"HTTP/1.1 400 Bad\r\n\r\n")

    with listening(answer) as (port, _), pytest.raises(RegistryError, match="no encrypted connection to"):
        RegistryClient(f"https://127.0.0.1:{port}").consumers()


# --- problems ---

ERRORS = [
    ContractConflictError("c", "1", "aa", "bb", published_as="1.0"),
    LifecycleError("c", "1", ["one", "two"], hint="wait"),
    UnknownContractError("c", "1", known=["2", "3"]),
    RegistryUnavailableError("postgresql://host/db does not answer", hint="inside"),
    RegistryUnusableError("/var/registry.db cannot be used", hint="inside"),
    RegistryTooNewError("/var/registry.db", 9, 1),
    RegistryError("no", hint="way out"),
    SignOffError("c", "2", {"quant": ["field_removed a", "type_changed b"], "bi": []}),
    UnknownPlaceError("c.f", ["c.e", "c.g"], several=True),
    ConsumersError(
        [
            Problem(ProblemKind.VERSION, "c", "quant", "pins 3", "pin 2", "consumers.yaml:1:2", version="2.0.0"),
            Problem(ProblemKind.TEAM, "c", "bi", "may not", "ask", "the registry", level=Level.WARNING),
        ]
    ),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_at_the_other_end(error):
    kind, document = problem_of(error)
    again = error_of(json.loads(json.dumps(document)))
    assert type(again) is type(error)
    assert document["status"] == kind.status
    if kind.detail is None:
        assert str(again) == str(error)
        assert {name: getattr(again, name) for name in kind.facts} == {
            name: getattr(error, name) for name in kind.facts
        }
    else:
        assert "/var" not in json.dumps(document)
        assert "host" not in json.dumps(document)
        assert "inside" not in json.dumps(document)


def test_findings_are_the_same_at_the_other_end():
    with pytest.raises(ContractError) as found:
        load_contract("kind: DataContract\napiVersion: v3.1.0\nid: a\nschema: 7\n")
    again = error_of(json.loads(json.dumps(problem_of(found.value)[1])))
    assert isinstance(again, ContractError)
    assert again.findings == found.value.findings
    assert str(again) == str(found.value)


def test_every_kind_has_a_name_of_its_own_but_the_last():
    names = [kind.name for kind in KINDS]
    assert sorted(set(names)) == sorted(names[:-1])

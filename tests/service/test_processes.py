"""The service as a process: how it begins and ends, and many who call it at once."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from databox_contracts.cli import main
from databox_contracts.registry.client import RegistryClient
from databox_contracts.registry.records import Outcome
from databox_contracts.registry.store import Registry
from databox_contracts.testing import build_contract, build_field

CONTRACT = {
    "dataContractSpecification": "1.2.0",
    "id": "orders",
    "info": {"title": "Orders", "version": "1.0.0", "status": "active"},
    "models": {"orders": {"fields": {"number": {"type": "string", "required": True}}}},
}


@pytest.fixture
def lite_server(tmp_path, serving):
    with serving(str(tmp_path / "registry.db"), tmp_path) as running:
        yield running


def connected(server):
    parts = urlsplit(server.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=30)


# Imports once and forks; the children wait until all are there.
CLIENTS = """
import json, os, sys
from databox_contracts.errors import ContractConflictError
from databox_contracts.registry.client import RegistryClient
from databox_contracts.testing import build_contract, build_field

url, token, count = sys.argv[1], sys.argv[2], int(sys.argv[3])

def work(number):
    client = RegistryClient(url, token=token)
    for version in ("1.0.0", "2.0.0", "3.0.0"):
        # Two contents, so that there are winners of each kind.
        field = build_field(f"field_{number % 2}", "string")
        contract = build_contract(field, id="c", version=version, status="active")
        own = build_contract(field, id=f"c{number}", version=version, status="active")
        try:
            said = str(client.publish(contract, by=f"client {number}").outcome)
        except ContractConflictError as error:
            said = type(error).__name__
        os.write(1, (json.dumps([version, number % 2, said]) + "\\n").encode())
        assert client.publish(own, by="me").outcome == "published"

starting, gate = os.pipe()
children = []
for number in range(count):
    if (child := os.fork()) == 0:
        os.close(gate)
        os.read(starting, 1)
        status = 1
        try:
            work(number)
            status = 0
        finally:
            os._exit(status)
    children.append(child)
os.close(gate)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


def test_eight_clients_at_once_publish_the_same_versions(server):
    done = subprocess.run(
        [sys.executable, "-c", CLIENTS, server.url, server.token("publish"), "8"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(said) == 24
    with Registry.open(server.registry) as registry:
        assert [one.version for one in registry.versions("c")] == ["1.0.0", "2.0.0", "3.0.0"]
        for one in registry.versions("c"):
            of_version = [(kind, outcome) for version, kind, outcome in said if version == one.version]
            (winner,) = [kind for kind, outcome in of_version if outcome == "published"]
            assert f"field_{winner}" in one.content
            assert sorted(of_version) == sorted(
                [(winner, "published")] + [(winner, "unchanged")] * 3 + [(1 - winner, "ContractConflictError")] * 4
            )
        assert all(len(registry.versions(f"c{number}")) == 3 for number in range(8))


@pytest.mark.full
def test_a_service_that_is_killed_and_comes_back_loses_nothing(tmp_path, serving):
    def work(number, url, token):
        client = RegistryClient(url, token=token, attempts=12)
        field = build_field("a", "string")
        for minor in range(15):
            contract = build_contract(field, id=f"c{number}", version=f"1.{minor}.0", status="active")
            # The answer may have been lost, but not what it was about.
            assert client.publish(contract, by="me").outcome in (Outcome.PUBLISHED, Outcome.UNCHANGED)

    registry, port = str(tmp_path / "registry.db"), "0"
    url = token = None
    with ThreadPoolExecutor(4) as pool:
        working = []
        for _ in range(4):
            (tmp_path / "port").unlink(missing_ok=True)
            with serving(registry, tmp_path, "--port", port) as running:
                if url is None:
                    url, token, port = running.url, running.token("publish"), str(urlsplit(running.url).port)
                    working = [pool.submit(work, number, url, token) for number in range(4)]
                time.sleep(0.4)
                running.process.kill()
                running.process.wait(timeout=30)
        (tmp_path / "port").unlink()
        with serving(registry, tmp_path, "--port", port):
            for one in working:
                one.result(timeout=120)
    with Registry.open(registry) as opened:
        assert [len(opened.versions(f"c{number}")) for number in range(4)] == [15] * 4


def test_it_ends_when_it_is_told_to_and_finishes_what_was_begun(lite_server):
    body = json.dumps(CONTRACT).encode()
    head = (
        f"PUT /contracts/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {lite_server.token()}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with connected(lite_server) as begun, connected(lite_server) as idle:
        begun.sendall(head.encode() + body[:20])
        # That it was begun is known when another call that came later is answered.
        idle.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200 OK" in idle.recv(1000)
        lite_server.process.send_signal(signal.SIGTERM)
        while b"Shutting down" not in lite_server.log.read_bytes():
            time.sleep(0.01)
        begun.sendall(body[20:])
        assert begun.recv(1000).startswith(b"HTTP/1.1 201 ")
    assert lite_server.process.wait(timeout=60) == 0
    with Registry.open(lite_server.registry) as registry:
        assert registry.get("orders").version == "1.0.0"
    assert "Traceback" not in lite_server.log.read_text()


def test_an_interrupt_ends_it_too(lite_server):
    lite_server.process.send_signal(signal.SIGINT)
    assert lite_server.process.wait(timeout=60) in (0, 130)
    assert "Traceback" not in lite_server.log.read_text()


@pytest.mark.full
def test_whoever_does_not_finish_the_head_of_a_request_is_left(lite_server):
    with connected(lite_server) as slow, connected(lite_server) as quick:
        slow.sendall(b"GET /health/live HTTP/1.1\r\nHo")
        # A first call in full does not give a second one more time.
        quick.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while b'"live"}' not in answer:
            answer += quick.recv(1000)
        quick.sendall(b"GET /he")
        assert slow.recv(10) == b""
        assert quick.recv(10) == b""


def test_what_is_no_http(lite_server):
    with connected(lite_server) as strange:
        strange.sendall(b"\x16\x03\x01\x02\x00 not http\r\n\r\n")
        assert strange.recv(1000).startswith(b"HTTP/1.1 400 ")
    with connected(lite_server) as long:
        long.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * 40_000)
        assert long.recv(1000).startswith(b"HTTP/1.1 400 ")
    with connected(lite_server) as two:
        two.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\nX-A: b\r\n X-Evil: 1\r\nTransfer-Encoding: x\r\n\r\n")
        assert not two.recv(1000).startswith(b"HTTP/1.1 2")


def test_nobody_keeps_a_connection_by_sending_what_is_not_read(lite_server):
    head = (
        b"PUT /contracts/orders HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    )
    with connected(lite_server) as dripping:
        dripping.sendall(head)
        answer = b""
        while part := dripping.recv(1000):
            answer += part
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert b"connection: close" in answer
    with connected(lite_server) as kept:
        for _ in range(2):
            kept.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"connection: close" not in kept.recv(1000)


def test_its_log_and_process_list_have_no_secret(server):
    token = server.token(name="the holder")
    client = RegistryClient(server.url, token=token)
    client.contracts()
    parts = urlsplit(server.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    for path, headers in [
        (f"/contracts?token={token}", {}),
        (f"/{token}", {}),
        ("/contracts/mArK-somebody@example.com", {"Authorization": f"Bearer {token}"}),
        ("/contracts", {"Authorization": "Bearer mArK-wrong", "X-Forwarded-For": "203.0.113.7"}),
    ]:
        connection.request("GET", path, headers=headers)
        connection.getresponse().read()
    connection.close()
    log = server.log.read_text()
    assert '"the holder"' in log
    assert "GET getContract 404" in log
    assert token not in log
    assert "mArK" not in log
    assert "203.0.113.7" not in log
    assert token not in Path(f"/proc/{server.process.pid}/cmdline").read_text()


def test_https(tmp_path, serving, monkeypatch, certificate_pair):
    certificate, key = certificate_pair
    arguments = ("--certificate", str(certificate), "--key", str(key))
    with serving(str(tmp_path / "registry.db"), tmp_path, *arguments) as running:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert RegistryClient(running.url, token=running.token()).contracts() == []


# --- the command line ---


def test_the_same_commands_with_the_url_of_a_service(lite_server, tmp_path, monkeypatch, capsys):
    file = tmp_path / "orders.yaml"
    file.write_text(yaml.safe_dump(CONTRACT))
    monkeypatch.setenv("DATABOX_REGISTRY", lite_server.url)
    monkeypatch.setenv("DATABOX_REGISTRY_TOKEN", lite_server.token(name="ci"))

    def said(*arguments):
        code = main(["registry", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    assert said("publish", str(file), "--by", "me") == (0, "published  orders 1.0.0 (active)\n", "")
    assert said("publish", str(tmp_path), "--by", "me") == (0, "unchanged  orders 1.0.0 (active)\n", "")
    assert said("list") == (0, "orders  1.0.0  active  -  Orders\n", "")
    code, out, _ = said("show", "orders")
    assert (code, "by me (token ci)" in out) == (0, True)
    assert said("approve", "orders", "--consumer", "quant", "--by", "lead", "--format", "json")[0] == 0
    assert said("deprecate", "orders", "1.0.0", "--sunset", "2020-01-01")[0] == 1
    assert said("retire", "orders", "1.0.0")[0] == 1
    file.write_text(yaml.safe_dump({**CONTRACT, "models": {"orders": {"fields": {"other": {"type": "int"}}}}}))
    code, out, _ = said("publish", str(file))
    assert (code, "is published already with other content" in out) == (1, True)
    code, _, err = said("show", "order")
    assert (code, "There is: orders." in err) == (2, True)
    code, _, err = said("token", "list")
    assert (code, "not through its service" in err) == (2, True)
    monkeypatch.setenv("DATABOX_REGISTRY_TOKEN", "dbx_wrong")
    code, _, err = said("list")
    assert (code, "the token is not a valid one" in err, "dbx_wrong" in err) == (2, True, False)


def test_tokens_are_made_shown_once_and_revoked(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DATABOX_REGISTRY", str(tmp_path / "registry.db"))

    def said(*arguments):
        code = main(["registry", "token", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    code, token, note = said("create", "ci", "--scope", "publish", "--by", "me")
    assert (code, token.startswith("dbx_"), note) == (0, True, "This is 'ci' (publish). It is shown only now.\n")
    code, listed, _ = said("list")
    assert (code, listed.startswith("ci  publish  since "), token.strip() in listed) == (0, True, False)
    code, again, note = said("create", "ci")
    assert (code, again, "there is a token named 'ci'" in note) == (2, "", True)
    assert said("create")[0] == 2
    code, made, _ = said("create", "short", "--expires", "2099-01-31", "--format", "json")
    assert (code, sorted(json.loads(made))) == (0, ["name", "scope", "token"])
    (_, short) = json.loads(said("list", "--format", "json")[1])["tokens"]
    assert (short["scope"], short["expires_at"]) == ("read", "2099-01-31T00:00:00+00:00")
    assert said("revoke", "ci")[:2] == (0, "'ci' is worth nothing any more.\n")
    assert said("revoke", "ci")[:2] == (1, "No token named 'ci' is in use.\n")
    assert "revoked" in said("list")[1]


def test_what_cannot_be_served(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("DATABOX_REGISTRY", str(tmp_path / "registry.db"))

    def error(*arguments):
        assert main(["registry", "serve", *arguments]) == 2
        return capsys.readouterr().err

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"cannot listen on 127.0.0.1 port {port}: Address already in use. Choose another" in error(
            "--port", port
        )
    assert "cannot listen on 192.0.2.1" in error("--host", "192.0.2.1")
    assert "there is no port 99999" in error("--port", "99999")
    assert "belong together" in error("--key", "k.pem")
    empty = tmp_path / "empty.pem"
    empty.touch()
    assert "the certificate cannot be used" in error("--certificate", str(empty), "--key", str(empty))
    assert "the certificate cannot be used" in error("--certificate", "/nothing", "--key", "/nothing")
    assert "not through its service" in error("--registry", "http://127.0.0.1:9")
    assert "nothing.yaml" in error("--edges", "/nothing.yaml")
    for rate in ("0", "-1", "nan", "inf", "many"):
        with pytest.raises(SystemExit):
            error("--calls-per-second", rate)
        assert "is no number above 0" in capsys.readouterr().err

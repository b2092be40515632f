"""A webhook of ours against real receivers, good and bad."""

import base64
import hashlib
import hmac
import json
import logging
import socket
import struct
import time

import pytest

from databox_contracts.errors import DeliveryError
from databox_contracts.notify import Channels, Settings
from databox_contracts.notify.channels.http import MOST_ANSWER, retry_after
from databox_contracts.notify.message import render

SECRET = "topsecret-4711"
ENVIRON = {
    "HOOK": SECRET,
    "TOKEN": "token-0815",
    "PW": "pass/wörd@1",
    "SIGNED": "whsec_" + base64.b64encode(b"k").decode(),
}


def send(one, contact, **settings):
    made = Settings(environ=ENVIRON, **{"timeout": 5.0, **settings})
    Channels(made).send(render(one, made), contact)


def received(httpserver, at=-1):
    return httpserver.log[at][0]


def test_it_posts_what_a_machine_reads(httpserver, notification):
    httpserver.expect_request("/hook", method="POST").respond_with_data("", status=202)
    one = notification(title="ünïcode", facts={"count": 0})
    send(one, httpserver.url_for("/hook"))
    request = received(httpserver)
    assert request.headers["Idempotency-Key"] == request.headers["webhook-id"] == one.key
    assert request.headers["Content-Type"] == "application/json"
    assert "webhook-signature" not in request.headers
    assert "Authorization" not in request.headers
    body = json.loads(request.data)
    assert (body["key"], body["title"], body["facts"]) == (one.key, "ünïcode", {"count": 0})


@pytest.mark.parametrize(("variable", "key"), [("HOOK", SECRET.encode()), ("SIGNED", b"k")])
def test_the_signature_is_that_of_an_independent_computation(httpserver, notification, variable, key):
    httpserver.expect_request("/hook").respond_with_data("")
    before = int(time.time())
    send(notification(), httpserver.url_for("/hook") + f"#secret=${{{variable}}}")
    request = received(httpserver)
    stamp = request.headers["webhook-timestamp"]
    assert before <= int(stamp) <= int(time.time())
    signed = b".".join((request.headers["webhook-id"].encode(), stamp.encode(), request.data))
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert request.headers["webhook-signature"] == f"v1,{expected}"
    assert SECRET not in str(request.headers) + request.data.decode() + request.url


def test_who_sends_is_told_in_the_header_not_in_the_url(httpserver, notification):
    httpserver.expect_request("/hook").respond_with_data("")
    place = httpserver.url_for("/hook").removeprefix("http://")
    send(notification(), f"http://me:${{PW}}@{place}")
    expected = base64.b64encode("me:pass/wörd@1".encode()).decode()
    assert received(httpserver).headers["Authorization"] == f"Basic {expected}"
    send(notification(), f"http://{place}#token=${{TOKEN}}")
    assert received(httpserver).headers["Authorization"] == "Bearer token-0815"


@pytest.mark.parametrize(
    ("status", "headers", "permanent", "asked"),
    [
        (500, {}, False, None),
        (503, {"Retry-After": "120"}, False, 120.0),
        (429, {"Retry-After": "7"}, False, 7.0),
        (429, {"Retry-After": "soon"}, False, None),
        (408, {}, False, None),
        (425, {}, False, None),
        (400, {}, True, None),
        (401, {}, True, None),
        (404, {}, True, None),
        (410, {"Retry-After": "1"}, True, 1.0),
        (304, {}, False, None),
    ],
)
def test_an_answer_that_is_no_success(httpserver, notification, status, headers, permanent, asked):
    httpserver.expect_request("/hook").respond_with_data(f"no {SECRET}", status=status, headers=headers)
    with pytest.raises(DeliveryError) as caught:
        send(notification(), httpserver.url_for("/hook") + "?key=${HOOK}")
    assert f"the receiver answered {status}" in str(caught.value)
    assert (caught.value.permanent, caught.value.retry_after) == (permanent, asked)
    assert SECRET not in str(caught.value) + repr(caught.value.args)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("0", 0.0),
        ("3600", 3600.0),
        ("Sun, 01 Mar 2026 12:05:00 GMT", 300.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("Sunday, 01-Mar-26 12:05:00 GMT", 300.0),
        ("9" * 40, float("9" * 12)),
        ("-5", None),
        ("", None),
        ("½", None),
        (None, None),
    ],
)
def test_retry_after_is_read_in_seconds_and_as_a_date(clock, written, seconds):
    assert retry_after(written, clock()) == seconds


def test_a_redirect_is_followed_in_place_and_nowhere_else(httpserver, notification, serve):
    reached = []
    elsewhere = serve(lambda connection: reached.append(connection.recv(4096)))
    httpserver.expect_request("/moved").respond_with_data("", status=308, headers={"Location": "/hook"})
    httpserver.expect_request("/hook", method="POST").respond_with_data("")
    send(notification(), httpserver.url_for("/moved") + "#token=${TOKEN}")
    assert received(httpserver).path == "/hook"
    assert json.loads(received(httpserver).data)["key"] == notification().key
    for path, status, place in (
        ("/a", 307, f"http://127.0.0.1:{elsewhere.port}/hook"),
        ("/b", 302, "/hook"),
        ("/c", 308, "file:///etc/passwd"),
    ):
        httpserver.expect_request(path).respond_with_data("", status=status, headers={"Location": place})
        with pytest.raises(DeliveryError, match=f"answered {status} and leads elsewhere") as caught:
            send(notification(), httpserver.url_for(path) + "#token=${TOKEN}")
        assert caught.value.permanent
    httpserver.expect_request("/circle").respond_with_data("", status=307, headers={"Location": "/circle"})
    with pytest.raises(DeliveryError, match="in circles"):
        send(notification(), httpserver.url_for("/circle"))
    assert reached == []


def broken_redirect(connection):
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 308 Moved\r\nLocation: http://[broken\r\nContent-Length: 0\r\n\r\n")


def test_a_redirect_to_nowhere(serve, notification):
    with pytest.raises(DeliveryError, match="answered 308 and leads elsewhere"):
        send(notification(), f"http://127.0.0.1:{serve(broken_redirect).port}/")


def reset(connection):
    connection.recv(10)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def silent(connection):
    while connection.recv(65536):
        pass


def drip(connection):
    connection.recv(65536)
    for byte in b"HTTP/1.1 200 OK\r\nX: " + b"a" * 10_000:
        connection.sendall(bytes([byte]))
        time.sleep(0.05)


def nonsense(connection):
    connection.recv(65536)
    connection.sendall(b"220 mail.example.com ESMTP\r\n")


def hang_up(connection):
    connection.recv(65536)


@pytest.mark.parametrize(
    ("behave", "reason"),
    [
        (reset, "it closed the connection"),
        (hang_up, "it closed the connection"),
        (silent, "it did not answer in time"),
        (drip, "it did not answer in time"),
        (nonsense, "it does not speak HTTP as it should"),
    ],
)
def test_a_receiver_that_does_not_answer_is_tried_again(serve, notification, behave, reason):
    with pytest.raises(DeliveryError, match=reason) as caught:
        send(notification(), f"http://127.0.0.1:{serve(behave).port}/${{HOOK}}", timeout=0.5)
    assert not caught.value.permanent
    assert SECRET not in str(caught.value)


def test_nothing_listens_and_no_such_host(serve, notification, monkeypatch):
    gone = serve(hang_up)
    gone.close()
    with pytest.raises(DeliveryError, match="nothing listens there") as caught:
        send(notification(), f"http://127.0.0.1:{gone.port}/")
    assert not caught.value.permanent

    def nobody(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    with pytest.raises(DeliveryError, match="there is no such host"):
        send(notification(), "http://host.invalid/")


def test_an_endless_answer_is_not_read(serve, notification):
    sent = []

    def endless(connection):
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        try:
            while sum(sent) < 100 * MOST_ANSWER:
                sent.append(connection.send(b"x" * 65536))
        except OSError:
            return

    server = serve(endless)
    send(notification(), f"http://127.0.0.1:{server.port}/")
    server.close()
    assert sum(sent) < 100 * MOST_ANSWER


@pytest.mark.parametrize(
    "contact",
    [
        "http:///path",
        "http://host:99999/",
        "http://[::1/",
        "http://host/#colour=blue",
        "http://a b/",
        "http://127.0.0.1:1/#token=a%0d%0aX-Evil: 1",
    ],
)
def test_a_contact_that_cannot_work_is_refused_for_good(notification, contact):
    with pytest.raises(DeliveryError) as caught:
        send(notification(), contact)
    assert caught.value.permanent


def test_a_path_is_sent_as_it_is_meant(httpserver, notification):
    httpserver.expect_request("/hök/a b").respond_with_data("")
    send(notification(), httpserver.url_for("/") + "hök/a b?q=ü")
    assert received(httpserver).path == "/hök/a b"


def test_no_secret_is_logged_even_at_debug_level(httpserver, notification, caplog):
    httpserver.expect_request("/x").respond_with_data("", status=500)
    with caplog.at_level(logging.DEBUG), pytest.raises(DeliveryError):
        send(
            notification(),
            httpserver.url_for("/x").replace("http://", "http://me:${PW}@") + "?k=${HOOK}#secret=${HOOK}",
        )
    ours = "".join(record.getMessage() for record in caplog.records if record.name != "werkzeug")
    assert SECRET not in ours
    assert "pass" not in ours

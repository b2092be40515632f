"""Encrypted connections: only to whom is trusted, and passwords only over these."""

import http.server
import ssl
import threading

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from databox_contracts.errors import DeliveryError
from databox_contracts.notify import Channels, Settings
from databox_contracts.notify.channels import http as exchanges
from databox_contracts.notify.message import render

PASSWORD = "p@ss/word-4711"


@pytest.fixture(scope="module")
def certificate(certificate_pair):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate_pair)
    return certificate_pair[0], context


@pytest.fixture
def trusted(certificate, monkeypatch):
    exchanges._trusted.cache_clear()
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    yield
    exchanges._trusted.cache_clear()


class Box:
    def __init__(self):
        self.mails = []
        self.logins = []

    async def handle_DATA(self, server, session, envelope):  # noqa: N802
        secure = server.transport.get_extra_info("ssl_object") is not None
        self.mails.append((secure, bool(session.authenticated), envelope.rcpt_tos))
        return "250 taken"

    def log_in(self, server, session, envelope, mechanism, auth):
        self.logins.append((auth.login.decode(), auth.password.decode()))
        return AuthResult(success=auth.password.decode() == PASSWORD, handled=False)


class Anywhere(Controller):
    def _trigger_server(self):
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@pytest.fixture
def mail_server():
    started = []

    def start(**facts):
        box = Box()
        one = Anywhere(box, hostname="127.0.0.1", port=0, authenticator=box.log_in, **facts)
        one.start()
        started.append(one)
        return box, one.port

    yield start
    for one in started:
        one.stop()


def send(one, contact, password=PASSWORD):
    settings = Settings(environ={"PW": password}, mail_from="a@example.com", timeout=5.0)
    Channels(settings).send(render(one, settings), contact)


def test_a_mail_goes_encrypted_with_a_login_before_it(certificate, trusted, mail_server, notification):
    box, port = mail_server(ssl_context=certificate[1], auth_require_tls=False)
    send(notification(), f"smtps://me:${{PW}}@localhost:{port}/?to=b@example.com")
    assert box.mails == [(True, True, ["b@example.com"])]
    assert box.logins == [("me", PASSWORD)]


def test_a_connection_is_made_secure_before_the_password(certificate, trusted, mail_server, notification):
    box, port = mail_server(tls_context=certificate[1], require_starttls=True)
    send(notification(), f"smtp://me:${{PW}}@127.0.0.1:{port}/?to=b@example.com")
    send(notification(), f"smtp://127.0.0.1:{port}/?to=b@example.com&tls=require")
    assert box.mails == [(True, True, ["b@example.com"]), (True, False, ["b@example.com"])]
    assert box.logins == [("me", PASSWORD)]


def test_a_wrong_password_is_refused(certificate, trusted, mail_server, notification):
    box, port = mail_server(tls_context=certificate[1], require_starttls=True)
    with pytest.raises(DeliveryError, match="answered 535") as caught:
        send(notification(), f"smtp://me:${{PW}}@localhost:{port}/?to=b@example.com", "wrong-0815")
    assert caught.value.permanent
    assert "0815" not in str(caught.value)
    assert box.mails == []


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
def test_nobody_untrusted_gets_mail_or_password(certificate, mail_server, notification, scheme):
    exchanges._trusted.cache_clear()
    facts = {"ssl_context": certificate[1], "auth_require_tls": False}
    box, port = mail_server(**(facts if scheme == "smtps" else {"tls_context": certificate[1]}))
    with pytest.raises(DeliveryError, match="its certificate is not trusted") as caught:
        send(notification(), f"{scheme}://me:${{PW}}@localhost:{port}/?to=b@example.com")
    assert not caught.value.permanent
    assert (box.mails, box.logins) == ([], [])


class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.keys.append(self.headers["Idempotency-Key"])
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        """Says nothing."""


class Quiet(http.server.HTTPServer):
    def handle_error(self, request, client_address):
        """A handshake that the other side broke off."""


@pytest.fixture
def hook(certificate):
    server = Quiet(("127.0.0.1", 0), Hook)
    server.keys = []
    server.socket = certificate[1].wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(timeout=10)


def test_a_webhook_goes_to_whom_is_trusted(hook, trusted, notification):
    send(notification(), f"https://localhost:{hook.server_address[1]}/hook")
    assert hook.keys == [notification().key]


def test_a_webhook_goes_to_nobody_else(hook, notification):
    exchanges._trusted.cache_clear()
    with pytest.raises(DeliveryError, match="its certificate is not trusted"):
        send(notification(), f"https://localhost:{hook.server_address[1]}/hook")
    assert hook.keys == []

"""Mail through real SMTP servers."""

import socket

import pytest

from databox_contracts.errors import DeliveryError
from databox_contracts.notify import Channels, Settings
from databox_contracts.notify.message import render, render_digest

PASSWORD = "p@ss/wörd-4711"


def settings(port=1, **facts):
    given = {"smtp_url": f"smtp://127.0.0.1:{port}", "mail_from": "contracts@example.com", "timeout": 5.0}
    return Settings(**{**given, "environ": {"PW": PASSWORD}, **facts})


def send(one, contact, made):
    Channels(made).send(render(one, made), contact)


def test_a_mail_is_recognised_by_its_id(mailbox, notification):
    one = notification(title="ünïcode title", facts={"what": ["price ✂ gone"]})
    for contact in ("quant@example.com", "mailto:quant@example.com"):
        send(one, contact, settings(mailbox.port))
    first, second = mailbox.mails
    assert first["Message-ID"] == second["Message-ID"] == f"<{one.key}@example.com>"
    assert first["X-Databox-Key"] == one.key
    assert (first["From"], first["To"]) == ("contracts@example.com", "quant@example.com")
    assert first["Subject"] == "ünïcode title"
    assert first["Auto-Submitted"] == "auto-generated"
    assert "price ✂ gone" in first.get_content()
    assert f"Reference: {one.key}" in first.get_content()
    assert mailbox.envelopes[0] == ("contracts@example.com", ["quant@example.com"])


def test_a_contact_may_name_its_own_server(mailbox, notification):
    made = settings(smtp_url=None, mail_from=None)
    send(notification(), f"smtp://127.0.0.1:{mailbox.port}/?to=a@example.org&from=b@example.net", made)
    assert mailbox.envelopes == [("b@example.net", ["a@example.org"])]


def test_a_digest_names_all_its_keys(mailbox, notification):
    many = [notification(n) for n in range(4)]
    made = settings(mailbox.port)
    Channels(made).send(render_digest(many, made), "quant@example.com")
    assert mailbox.mails[0]["X-Databox-Key"].split() == [one.key for one in many]


def test_headers_cannot_be_injected(mailbox, notification):
    one = notification(title="hello\r\nBcc: evil@example.com\r\n\r\nbody", consumer="x\nTo: evil@example.com")
    send(one, "quant@example.com", settings(mailbox.port))
    assert mailbox.envelopes[0][1] == ["quant@example.com"]
    assert mailbox.mails[0]["Bcc"] is None
    assert mailbox.mails[0]["Subject"] == "hello Bcc: evil@example.com body"


@pytest.mark.parametrize(
    "contact",
    [
        "mailto:a@example.com,evil@example.com",
        "mailto:a@example.com%0d%0aBcc:evil@example.com",
        "mailto:a@example.com%0aRCPT",
        "mailto:<a@example.com>",
        "mailto:a",
        "mailto:",
        "mailto:a@b c",
        "smtp://127.0.0.1:1/",
        "smtp://127.0.0.1:1/?to=a@b%0d%0a",
    ],
)
def test_what_is_not_one_address_is_refused_for_good(notification, contact):
    with pytest.raises(DeliveryError, match="not one mail address") as caught:
        send(notification(), contact, settings())
    assert caught.value.permanent


def test_what_is_not_configured_yet_is_said_and_tried_again(notification):
    for made, named in ((settings(smtp_url=None), "DATABOX_SMTP_URL"), (settings(mail_from=None), "DATABOX_MAIL_FROM")):
        with pytest.raises(DeliveryError, match=named) as caught:
            send(notification(), "a@example.com", made)
        assert not caught.value.permanent
    with pytest.raises(DeliveryError, match="variable NOPE is not set"):
        send(notification(), "a@example.com", settings(smtp_url="smtps://me:${NOPE}@h"))


@pytest.mark.parametrize(
    ("answer", "permanent"), [("451 try later", False), ("421 busy", False), ("550 no", True), ("554 no", True)]
)
def test_the_servers_answer_decides(mailbox, notification, answer, permanent):
    mailbox.answers = [answer]
    with pytest.raises(DeliveryError, match=f"answered {answer[:3]}") as caught:
        send(notification(), "quant@example.com", settings(mailbox.port))
    assert caught.value.permanent is permanent
    assert mailbox.mails == []
    send(notification(), "quant@example.com", settings(mailbox.port))
    assert len(mailbox.mails) == 1


def test_a_recipient_that_is_refused(mailbox, notification):
    async def refuse(server, session, envelope, address, options):
        return "550 no such user"

    mailbox.handle_RCPT = refuse
    with pytest.raises(DeliveryError, match="answered 550 to the recipient") as caught:
        send(notification(), "quant@example.com", settings(mailbox.port))
    assert caught.value.permanent


def test_a_password_never_travels_in_clear_and_is_never_told(mailbox, notification, serve):
    seen = []

    def greet(connection):
        connection.sendall(b"220 hi\r\n")
        while True:
            line = connection.recv(4096)
            if not line:
                return
            seen.append(line)
            connection.sendall(b"250-hi\r\n250 AUTH PLAIN LOGIN\r\n" if line[:4] == b"ehlo" else b"502 no\r\n")

    contact = f"smtp://me:${{PW}}@127.0.0.1:{serve(greet).port}/?to=a@example.com"
    with pytest.raises(DeliveryError, match="cannot do what is asked of it") as caught:
        send(notification(), contact, settings())
    assert not any(b"AUTH" in line.upper() for line in seen)
    assert "4711" not in str(caught.value)


def test_a_mail_that_was_taken_is_not_sent_again_because_the_goodbye_failed(serve, notification):
    def rude(connection):
        reading = connection.makefile("rb")
        connection.sendall(b"220 hi\r\n")
        for line in reading:
            word = line.strip().upper()
            if word == b"DATA":
                connection.sendall(b"354 go\r\n")
                while reading.readline() != b".\r\n":
                    pass
                connection.sendall(b"250 taken\r\n")
            elif word == b"QUIT":
                connection.sendall(b"451 not now\r\n")
            else:
                connection.sendall(b"250 ok\r\n")

    send(notification(), "quant@example.com", settings(serve(rude).port))


def silent(connection):
    while connection.recv(65536):
        pass


def hang_up(connection):
    connection.sendall(b"220 hi\r\n")
    connection.recv(100)
    connection.shutdown(socket.SHUT_RDWR)


def drip(connection):
    import time

    for _ in range(10_000):
        connection.sendall(b"2")
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("behave", "reason"),
    [(silent, "did not answer in time"), (drip, "did not answer in time"), (hang_up, "closed the connection")],
)
def test_a_server_that_is_unwell_is_tried_again(serve, notification, behave, reason):
    with pytest.raises(DeliveryError, match=reason) as caught:
        send(notification(), "quant@example.com", settings(serve(behave).port, timeout=0.4))
    assert not caught.value.permanent


def test_a_server_that_is_down_and_comes_back(mailbox, notification, serve):
    gone = serve(silent)
    gone.close()
    with pytest.raises(DeliveryError, match="nothing listens there"):
        send(notification(), "quant@example.com", settings(gone.port))
    send(notification(), "quant@example.com", settings(mailbox.port))
    assert len(mailbox.mails) == 1

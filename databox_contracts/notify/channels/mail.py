"""`mailto:`, `smtp:` and `smtps:` send mail whose Message-ID is the notification's key."""

from __future__ import annotations

import re
import smtplib
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.headerregistry import Address as MailAddress
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote

from databox_contracts.errors import DeliveryError
from databox_contracts.notify.channels.http import reason_of
from databox_contracts.notify.contacts import Address, resolve
from databox_contracts.notify.message import Message
from databox_contracts.notify.settings import MAIL_FROM, SMTP_URL, Settings

_ADDRESS: Final = re.compile(r"[^@\s<>()\[\]:;,\\\"\x00-\x20\x7f]+@[A-Za-z0-9\u0080-\U0010ffff._-]+")
_PORTS: Final = {"smtp": 25, "smtps": 465}
_TLS_PORT: Final = 587


class MailChannel:
    """One mail to one address, in plain text.

    `mailto:a@b`, or the bare address, goes through the configured server; `smtps://user:${PASSWORD}@host/?to=a@b` names
    its own, and `from=` who writes. On `smtp:` the connection is encrypted when there is a password, on port 587, and
    with `?tls=require`. The header `X-Databox-Key` has the keys of all that a digest holds.
    """

    def __init__(self, settings: Settings, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._settings = settings
        self._clock = clock

    def send(self, message: Message, address: Address) -> None:
        """As `Channel.send`."""
        to, server, sender = self._route(address)
        mail = self._composed(message, to, sender, address.shown)
        try:
            server.take(mail, sender, to, self._settings.timeout)
        except smtplib.SMTPNotSupportedError:
            raise DeliveryError(
                address.shown, "the mail server cannot do what is asked of it (TLS, login or UTF-8)", permanent=True
            ) from None
        except smtplib.SMTPRecipientsRefused as error:
            code = next((code for code, _ in error.recipients.values()), 0)
            raise DeliveryError(
                address.shown, f"the mail server answered {code} to the recipient", permanent=code >= 500
            ) from None
        except smtplib.SMTPResponseException as error:
            # Its text may repeat what it was sent, so the code has to do.
            raise DeliveryError(
                address.shown, f"the mail server answered {error.smtp_code}", permanent=error.smtp_code >= 500
            ) from None
        except smtplib.SMTPServerDisconnected as error:
            # That it did not answer in time is the cause of what smtplib says then.
            cause = error.__context__ if isinstance(error.__context__, TimeoutError) else ConnectionResetError()
            raise DeliveryError(address.shown, f"the mail server: {reason_of(cause)}") from None
        except (OSError, smtplib.SMTPException) as error:
            raise DeliveryError(address.shown, f"the mail server: {reason_of(error)}") from None

    def close(self) -> None:
        """As `Channel.close`."""

    def _route(self, address: Address) -> tuple[str, _Server, str]:
        url = address.split()
        if url.scheme.lower() == "mailto":
            to = unquote(url.path or url.netloc)
            if not self._settings.smtp_url:
                raise DeliveryError(
                    address.shown, "no mail server is configured", hint=f"set {SMTP_URL} to smtp://host or smtps://host"
                )
            through = resolve(self._settings.smtp_url, self._settings.environ)
            server, sender = _server(through.split(), address.shown), self._settings.mail_from
        else:
            query = dict(parse_qsl(url.query))
            to, server = query.get("to", ""), _server(url, address.shown)
            sender = query.get("from") or self._settings.mail_from
        if not sender:
            raise DeliveryError(address.shown, "nobody is named as the sender", hint=f"set {MAIL_FROM} to an address")
        for one in (to, sender):
            if not _ADDRESS.fullmatch(one):
                raise DeliveryError(
                    address.shown,
                    "it is not one mail address",
                    permanent=True,
                    hint="write a@b; several addresses are several contacts",
                )
        return to, server, sender

    def _composed(self, message: Message, to: str, sender: str, name: str) -> EmailMessage:
        domain = sender.rpartition("@")[2]
        mail = EmailMessage(policy=SMTP)
        try:
            mail["From"] = _mailbox(sender)
            mail["To"] = _mailbox(to)
            # `title` is one line without control characters already; the policy refuses anything else.
            mail["Subject"] = message.title
            mail["Date"] = format_datetime(self._clock())
            mail["Message-ID"] = f"<{message.key}@{domain.encode('idna').decode()}>"
            mail["Auto-Submitted"] = "auto-generated"
            mail["X-Databox-Key"] = " ".join(message.keys)
            mail.set_content(message.text)
        except (ValueError, UnicodeError):
            raise DeliveryError(name, "no mail can be made of it", permanent=True, hint="correct the address") from None
        return mail


def _mailbox(address: str) -> MailAddress:
    user, _, domain = address.rpartition("@")
    return MailAddress(username=user, domain=domain)


@dataclass(frozen=True, slots=True)
class _Server:
    """A mail server and how to log in."""

    host: str
    port: int
    implicit_tls: bool
    needs_tls: bool
    user: str
    password: str

    def take(self, mail: EmailMessage, sender: str, to: str, timeout: float) -> None:
        """Hands the mail over; when it returns, the server has it. All of it takes at most four times `timeout`."""
        smtp: list[smtplib.SMTP] = []
        late = threading.Event()
        # Each reply has its own timeout, and a server may send one byte at a time for ever.
        watch = threading.Timer(4 * timeout, _cut, (smtp, late))
        watch.daemon = True
        watch.start()
        try:
            self._connect(smtp, timeout)
            smtp[0].send_message(mail, from_addr=sender, to_addrs=[to])
        except (OSError, smtplib.SMTPException):
            if late.is_set():
                raise TimeoutError from None
            raise
        finally:
            watch.cancel()
            _leave(smtp)

    def _connect(self, smtp: list[smtplib.SMTP], timeout: float) -> None:
        trusted = ssl.create_default_context() if self.implicit_tls or self.needs_tls else None
        if self.implicit_tls:
            smtp.append(smtplib.SMTP_SSL(timeout=timeout, context=trusted))
        else:
            smtp.append(smtplib.SMTP(timeout=timeout))
        # Given to the constructor, the host would be connected to before anybody could cut it off.
        smtp[0]._host = self.host  # type: ignore[attr-defined]
        code, _ = smtp[0].connect(self.host, self.port)
        if code != 220:
            raise smtplib.SMTPConnectError(code, "")
        smtp[0].ehlo_or_helo_if_needed()
        if self.needs_tls and not self.implicit_tls:
            smtp[0].starttls(context=trusted)
            smtp[0].ehlo()
        if self.user:
            smtp[0].login(self.user, self.password)


def _cut(smtp: list[smtplib.SMTP], late: threading.Event) -> None:
    late.set()
    opened = smtp[0].sock if smtp else None
    if opened is not None:
        with suppress(OSError):
            opened.shutdown(socket.SHUT_RDWR)


def _leave(smtp: list[smtplib.SMTP]) -> None:
    """Ends the connection; what the server says to that is nothing about the mail, which it has by now."""
    for one in smtp:
        with suppress(OSError, smtplib.SMTPException):
            one.quit()
        one.close()


def _server(url: SplitResult, name: str) -> _Server:
    scheme = url.scheme.lower()
    try:
        port = url.port
    except ValueError:
        port = None
    if scheme not in _PORTS or not url.hostname:
        raise DeliveryError(
            name, "the mail server's address cannot be used", hint="write it as smtps://user:${PASSWORD}@host"
        )
    user, password = unquote(url.username or ""), unquote(url.password or "")
    port = port or _PORTS[scheme]
    required = dict(parse_qsl(url.query)).get("tls") == "require"
    return _Server(
        url.hostname, port, scheme == "smtps", required or bool(password) or port == _TLS_PORT, user, password
    )

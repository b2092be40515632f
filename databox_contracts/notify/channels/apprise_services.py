"""Slack, PagerDuty, Teams and whatever else apprise reaches, by apprise's own URLs."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import ModuleType
from typing import Any, Final
from urllib.parse import urlencode

from databox_contracts.errors import DeliveryError
from databox_contracts.notify.channels.http import retry_after
from databox_contracts.notify.contacts import Address
from databox_contracts.notify.message import Message
from databox_contracts.notify.settings import Settings
from databox_contracts.notify.ticket_stores import ticket_name
from databox_contracts.rules import Severity

_KINDS: Final = {Severity.ERROR: "failure", Severity.WARNING: "warning", Severity.INFO: "info"}
_METHODS: Final = ("request", "get", "post", "put", "patch", "delete")
_TEMPORARY: Final = (408, 425, 429)

_INCIDENTS: Final = ("pagerduty",)
"""Services of incidents: the ticket is theirs, opened by what is wrong and resolved by what is right again."""


class AppriseChannel:
    """One message to one addressee. The message has the key in its text, for most services have no place for one.

    apprise tells whether a service took it; the status and the `Retry-After` of an answer, which it keeps to itself,
    are noted as its plugins get them. Its retries are off, for the outbox has its own. A URL with several addressees is
    refused: when one of them fails, the others would get a second copy.
    """

    def __init__(self, settings: Settings) -> None:
        self._timeout = settings.timeout
        with warnings.catch_warnings():
            # Its plugins are loaded by the first URL, and one of them uses what Python is about to drop.
            warnings.simplefilter("ignore", DeprecationWarning)
            import apprise

            apprise.Apprise.instantiate("json://localhost", suppress_exceptions=True)

    def send(self, message: Message, address: Address) -> None:
        """As `Channel.send`."""
        import apprise

        with _quiet():
            asset = apprise.AppriseAsset(
                app_id="databox_contracts",
                app_desc="databox_contracts",
                async_mode=False,
                secure_logging=True,
                image_url_mask="",
                image_url_logo="",
            )
            service: Any = apprise.Apprise.instantiate(self._url(message, address), asset=asset)
            if not isinstance(service, apprise.NotifyBase):
                raise DeliveryError(
                    address.shown,
                    "apprise knows no such service, or its URL is incomplete",
                    permanent=True,
                    hint="see apprise's list of services for how it is written",
                )
            if len(service) != 1:
                raise DeliveryError(
                    address.shown,
                    f"the contact has {len(service)} addressees",
                    permanent=True,
                    hint="declare each as a contact of its own",
                )
            markdown = _takes_only_markdown(service)
            noted = _Noted()
            with _watching(sys.modules[type(service).__module__], noted):
                taken = service.notify(
                    title=message.title,
                    body=_fitting(message, markdown, service, address.shown),
                    notify_type=apprise.NotifyType("success" if message.resolves else _KINDS[message.severity]),
                    body_format=apprise.NotifyFormat.MARKDOWN if markdown else apprise.NotifyFormat.TEXT,
                )
        if not taken:
            raise noted.error(address.shown)

    def _url(self, message: Message, address: Address) -> str:
        settings = {"cto": f"{self._timeout:g}", "rto": f"{self._timeout:g}", "overflow": "truncate"}
        if address.scheme in _INCIDENTS:
            settings |= {"dedup": ticket_name(message.first), "action": "map"}
        if address.scheme in ("http", "https"):
            # A service's own address, which takes no settings of apprise.
            return address.url
        return f"{address.url}{'&' if '?' in address.url else '?'}{urlencode(settings)}"

    def close(self) -> None:
        """As `Channel.close`."""


def _takes_only_markdown(service: Any) -> bool:
    # Slack's, for one, is another Markdown, in which the names of columns are shown with backslashes.
    declared = service.notify_format
    formats = declared if isinstance(declared, tuple | list) else (declared,)
    return [str(getattr(one, "value", one)) for one in formats] == ["markdown"]


def _fitting(message: Message, markdown: bool, service: Any, name: str) -> str:
    """The text without its first line, which is the title, as long as the service takes it; its key is always in it."""
    text = (message.markdown if markdown else message.text).partition("\n\n")[2]
    most = int(service.body_maxlen) - (len(message.title) + 2 if int(service.title_maxlen) <= 0 else 0)
    if len(text) <= most:
        return text
    if len(message.notifications) > 1:
        # What would be cut off is news that nobody gets; fewer of them fit.
        raise DeliveryError(name, "the message is longer than the service takes", permanent=True)
    reference = f"…\nReference: {message.key}"
    return text[: max(most - len(reference), 0)] + reference


class _Noted:
    """The last answer that a plugin got and did not like."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.retry_after: float | None = None

    def answer(self, response: Any) -> None:
        self.status = int(response.status_code)
        self.retry_after = retry_after(response.headers.get("Retry-After"), datetime.now(UTC))

    def error(self, name: str) -> DeliveryError:
        if self.status is None:
            return DeliveryError(name, "the service did not take it, or cannot be reached")
        permanent = 400 <= self.status < 500 and self.status not in _TEMPORARY
        return DeliveryError(
            name, f"the service answered {self.status}", permanent=permanent, retry_after=self.retry_after
        )


_current: Final = threading.local()


class _Watched:
    """Stands for `requests` in a plugin of apprise: the same, but answers are noted for the thread that asked."""

    def __init__(self, requests: Any) -> None:
        self._requests = requests

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._requests, name)
        if name not in _METHODS:
            return found

        def asked(*args: Any, **kwargs: Any) -> Any:
            response = found(*args, **kwargs)
            noted: _Noted | None = getattr(_current, "noted", None)
            if noted is not None:
                noted.answer(response)
            return response

        return asked


@contextmanager
def _watching(plugin: ModuleType, noted: _Noted) -> Iterator[None]:
    requests = getattr(plugin, "requests", None)
    if requests is not None and not isinstance(requests, _Watched):
        plugin.requests = _Watched(requests)  # type: ignore[attr-defined]
    _current.noted = noted
    try:
        yield
    finally:
        _current.noted = None


class _NotHere(logging.Filter):
    """Drops what the thread says that is sending: at debug level it is the URL with all that is secret in it."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not getattr(_current, "quiet", False)


_LOGGERS: Final = ("apprise", "urllib3.connectionpool", "urllib3.util.retry", "requests")
_DROP: Final = _NotHere()


@contextmanager
def _quiet() -> Iterator[None]:
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if _DROP not in logger.filters:
            logger.addFilter(_DROP)
    _current.quiet = True
    try:
        yield
    finally:
        _current.quiet = False

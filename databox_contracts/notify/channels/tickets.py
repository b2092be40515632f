"""`ticket+https:` opens one ticket for each contract, rule and value, keeps it up to date, and closes it in the end."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import SplitResult, quote

from databox_contracts.notifications import Notification, TicketStore
from databox_contracts.notify.channels.http import Answer, exchange, refused
from databox_contracts.notify.channels.webhook import authorization, bare, signed
from databox_contracts.notify.contacts import Address
from databox_contracts.notify.message import Message
from databox_contracts.notify.settings import Settings
from databox_contracts.notify.ticket_stores import MemoryTicketStore, ticket_name

_GONE: Final = (404, 410)
_LOG: Final = logging.getLogger(__name__)
_ID: Final = "id"


class TicketChannel:
    """A ticket system by its REST interface, as that of GitHub's issues.

    A new ticket is `POST`ed to the contact's URL: `{"title", "body", "state": "open", "ticket", "notification"}`, where
    `body` is Markdown, `ticket` the ticket's own name (32 hex digits) and `notification` is what a webhook gets. The
    answer's `id` (or what `#id=number` names) is remembered. `PATCH` to the URL, `/` and that id brings it up to date;
    with `"state": "closed"` when it is right again, and then it is forgotten. A ticket that the receiver does not have
    any more (404, 410) is opened anew. What is right again and has no ticket is nothing to send. `Idempotency-Key` is
    the notification's key; `#token=` and `#secret=` are a webhook's. A notification without a ticket opens one of its
    own.
    """

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.time) -> None:
        self._timeout = settings.timeout
        self._clock = clock
        self._store: TicketStore = settings.tickets if settings.tickets is not None else MemoryTicketStore()

    def send(self, message: Message, address: Address) -> None:
        """As `Channel.send`."""
        one = message.first
        ticket = ticket_name(one)
        known = self._store.find(one.contact, ticket)
        if known is None and one.resolves:
            return
        if known is not None:
            answer = self._exchange("PATCH", known, _content(message, ticket), message.key, address)
            if answer.status not in _GONE:
                if not 200 <= answer.status < 300:
                    raise refused(answer, name=address.shown)
                if one.resolves:
                    self._store.drop(one.contact, ticket)
                return
            self._store.drop(one.contact, ticket)
            if one.resolves:
                return
        self._open(message, one, ticket, address)

    def _open(self, message: Message, one: Notification, ticket: str, address: Address) -> None:
        answer = self._exchange("POST", None, _content(message, ticket), message.key, address)
        if not 200 <= answer.status < 300:
            raise refused(answer, name=address.shown)
        key = address.options("secret", "token", "id").get("id", _ID)
        found = answer.json()
        id = found.get(key) if isinstance(found, dict) else None
        if not isinstance(id, str | int) or isinstance(id, bool) or id == "":
            # It is open, so sending it again would open another.
            _LOG.error(
                "%s opened a ticket and answered without %r, so it cannot be brought up to date: name the entry of the "
                "answer that holds its id in the contact, such as #id=number",
                address.shown,
                key,
            )
            return
        kept = self._store.keep(one.contact, ticket, str(id))
        if kept != str(id):
            # Another worker opened it meanwhile, for another consumer with the same desk.
            self._exchange("PATCH", str(id), {**_content(message, ticket), "state": "closed"}, message.key, address)
            self.send(message, address)

    def _exchange(self, method: str, id: str | None, content: dict[str, Any], key: str, address: Address) -> Answer:
        url = address.split()
        options = address.options("secret", "token", "id")
        body = json.dumps(content, ensure_ascii=False, default=str).encode()
        headers = {
            "Accept": "application/json",
            **authorization(url, options.get("token")),
            **signed(key, body, options.get("secret"), int(self._clock()), name=address.shown),
        }
        place = bare(url)._replace(scheme=url.scheme.lower().removeprefix("ticket+"))
        return exchange(method, _below(place, id), body, headers, name=address.shown, timeout=self._timeout)

    def close(self) -> None:
        """As `Channel.close`."""


def _below(url: SplitResult, id: str | None) -> SplitResult:
    return url if id is None else url._replace(path=f"{url.path.rstrip('/')}/{quote(id, safe='')}")


def _content(message: Message, ticket: str) -> dict[str, Any]:
    return {
        "title": message.title,
        "body": message.markdown,
        "state": "closed" if message.resolves else "open",
        "ticket": ticket,
        "notification": message.to_dict(),
    }

"""`http:` and `https:`: a webhook of ours, posted as JSON, recognisable by its key and signed where asked for."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import SplitResult, unquote

from databox_contracts.errors import DeliveryError
from databox_contracts.notify.channels.http import exchange, refused
from databox_contracts.notify.contacts import Address
from databox_contracts.notify.message import Message
from databox_contracts.notify.settings import Settings

_PREFIX: Final = "whsec_"


class WebhookChannel:
    """Posts `Message.to_dict()`. Any status from 200 to 299 is success.

    `Idempotency-Key` and `webhook-id` are the notification's key. With `#secret=${NAME}` in the contact it is signed as
    the Standard Webhooks specification says: `webhook-signature` is `v1,` and the base64 of the HMAC-SHA256 of
    `id.timestamp.body`; a secret that begins with `whsec_` is base64 itself. `#token=${NAME}` is sent as a bearer
    token, user and password of the URL as basic authorization.
    """

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.time) -> None:
        self._timeout = settings.timeout
        self._clock = clock

    def send(self, message: Message, address: Address) -> None:
        """As `Channel.send`."""
        url = address.split()
        options = address.options("secret", "token")
        body = json.dumps(message.to_dict(), ensure_ascii=False, default=str).encode()
        headers = {
            **authorization(url, options.get("token")),
            **signed(message.key, body, options.get("secret"), int(self._clock()), name=address.shown),
        }
        answer = exchange("POST", bare(url), body, headers, name=address.shown, timeout=self._timeout)
        if not 200 <= answer.status < 300:
            raise refused(answer, name=address.shown)

    def close(self) -> None:
        """As `Channel.close`."""


def bare(url: SplitResult) -> SplitResult:
    """The URL without user, password and fragment."""
    return url._replace(netloc=url.netloc.rpartition("@")[2], fragment="")


def authorization(url: SplitResult, token: str | None) -> Mapping[str, str]:
    """The header that says who sends."""
    if token:
        return {"Authorization": f"Bearer {token}"}
    if url.username is None:
        return {}
    pair = f"{unquote(url.username)}:{unquote(url.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def signed(key: str, body: bytes, secret: str | None, timestamp: int, *, name: str) -> Mapping[str, str]:
    """The headers of a JSON body: what it is recognised by, and the signature where there is a secret."""
    headers = {
        "Content-Type": "application/json",
        "Idempotency-Key": key,
        "webhook-id": key,
        "webhook-timestamp": str(timestamp),
    }
    if not secret:
        return headers
    mac = hmac.new(_secret(secret, name), f"{key}.{timestamp}.".encode() + body, hashlib.sha256)
    return {**headers, "webhook-signature": f"v1,{base64.b64encode(mac.digest()).decode()}"}


def _secret(secret: str, name: str) -> bytes:
    if not secret.startswith(_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise DeliveryError(name, f"the secret begins with {_PREFIX} and is no base64", hint="correct it") from None

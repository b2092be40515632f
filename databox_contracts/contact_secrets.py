"""Contacts without a secret in them: a password or a token stands there as `${NAME}`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from databox_contracts.errors import ContactSecretError
from databox_contracts.model import Consumer

_PLACEHOLDER: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")

# What an option is called whose value is a secret, however it is written: `api_key`, `X-Api-Key`, `clientSecret`.
_SETTINGS: Final = re.compile(
    r"(.*[^a-z])?(api|access|routing|integration|hmac|private|account|shared)?[^a-z0-9]?key"
    r"|.*(password|passwd|passphrase|token|secret|credentials?|signature)[0-9]*"
    r"|(.*[^a-z])?(pass|pwd|sig)"
    r"|auth|authorization|bearer|jwt"
)
# Before a secret, in the value of a header.
_SCHEMES_OF_HEADERS: Final = ("", "bearer", "basic", "token")

# As services make them: long, of letters and figures.
_MADE: Final = re.compile(r"(?=[^/]*[A-Za-z])(?=[^/]*[0-9])[A-Za-z0-9_:.~%+=-]{16,}")

# Whoever knows the whole URL may post there: what stands in it is the secret.
_TELLING_SCHEMES: Final = (
    "slack",
    "discord",
    "msteams",
    "workflows",
    "workflow",
    "pagerduty",
    "opsgenie",
    "tgram",
    "telegram",
    "mmost",
    "mmosts",
    "rocket",
    "rockets",
    "gchat",
    "webex",
    "wxteams",
    "twilio",
    "sendgrid",
    "mailgun",
    "pushover",
    "pagertree",
)
_TELLING_HOSTS: Final = (
    "hooks.slack.com",
    "discord.com",
    "discordapp.com",
    "webhook.office.com",
    "chat.googleapis.com",
    "webexapis.com",
    "logic.azure.com",
    "api.powerplatform.com",
)


def refuse_secrets(consumer: str, contacts: Sequence[str]) -> None:
    """Raises `ContactSecretError` for a contact with a secret in it; the text names the consumer, not the secret."""
    for number, contact in enumerate(contacts, 1):
        if (what := _secret_in(contact)) is not None:
            raise ContactSecretError(
                f"contact {number} of consumer {consumer!r} has {what} in it",
                hint="Write it as ${NAME} and set NAME in the environment of whoever sends.",
            )


def contacts_of(consumer: Consumer) -> tuple[str, ...]:
    """All contacts of a consumer, each once, in its order."""
    return tuple(dict.fromkeys(filter(None, (consumer.contact, *consumer.contacts))))


def _secret_in(contact: str) -> str | None:
    # A placeholder is not to be taken for what it stands for, nor to upset the URL.
    plain = _PLACEHOLDER.sub("", contact.strip())
    has_placeholder = plain != contact.strip()
    try:
        parts = urlsplit(plain)
        user, password, host = parts.username, parts.password, (parts.hostname or "").lower()
    except ValueError:
        return None if has_placeholder else "what may be a secret, since it is no URL,"
    if password:
        return "a password"
    for name in _literal_options(parts.query) or _literal_options(parts.fragment):
        return f"the secret {name!r}"
    if user and _MADE.fullmatch(user):
        return "a token"
    known_host = any(host == known or host.endswith(f".{known}") for known in _TELLING_HOSTS)
    if parts.scheme.lower() not in _TELLING_SCHEMES and not known_host:
        return None
    # Beside a placeholder there may be names: of a channel, a chat, a region.
    segments = [*([] if known_host else [parts.netloc]), *parts.path.split("/")]
    made = any(_MADE.fullmatch(part) for segment in segments for part in segment.split("@"))
    return "a token" if made or not has_placeholder else None


def _literal_options(text: str) -> list[str]:
    """The names of those options whose values are secrets, and stand there as they are."""
    return [
        name.strip()
        for name, value in parse_qsl(text)
        if value.strip().lower() not in _SCHEMES_OF_HEADERS and _SETTINGS.fullmatch(_words(name))
    ]


def _words(name: str) -> str:
    """In lower case, with what is before a header's name and between the words of `clientSecret` made plain."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip().lstrip("+-:"))
    return apart.lower()

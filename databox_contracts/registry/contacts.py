"""Contacts without a secret in them: a password or a token stands there as `${NAME}`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from databox_contracts.errors import RegistryError
from databox_contracts.model import Consumer

_PLACEHOLDER: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_SETTINGS: Final = re.compile(
    r"pass(word|wd|phrase)?|pwd|token|secret|(api|access|routing|integration|hmac)?_?-?key|sig(nature)?"
)

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
    """Raises `RegistryError` for a contact that has a secret in it; the text names the consumer, not the secret."""
    for number, contact in enumerate(contacts, 1):
        if (what := _secret_in(contact)) is not None:
            raise RegistryError(
                f"contact {number} of consumer {consumer!r} has {what} in it",
                hint="Write it as ${NAME} and set NAME in the environment of whoever sends.",
            )


def contacts_of(consumer: Consumer) -> tuple[str, ...]:
    """All contacts of a consumer, each once, in its order."""
    return tuple(dict.fromkeys(filter(None, (consumer.contact, *consumer.contacts))))


def _secret_in(contact: str) -> str | None:
    # A placeholder is not to be taken for what it stands for, nor to upset the URL.
    plain = _PLACEHOLDER.sub("", contact)
    has_placeholder = plain != contact
    if "://" not in plain:
        return None
    try:
        parts = urlsplit(plain)
        password, host = parts.password, (parts.hostname or "").lower()
    except ValueError:
        return None if has_placeholder else "what may be a secret, since it is no URL,"
    if password:
        return "a password"
    for name, value in parse_qsl(parts.query, keep_blank_values=False):
        if value and _SETTINGS.fullmatch(name.lower().lstrip("+-:")):
            return f"the secret {name!r}"
    telling = parts.scheme.lower() in _TELLING_SCHEMES or any(
        host == known or host.endswith(f".{known}") for known in _TELLING_HOSTS
    )
    return "a token" if telling and not has_placeholder else None

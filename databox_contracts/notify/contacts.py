"""A contact as declared, and as it is used: secrets are put in at the moment of sending, and nowhere shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, parse_qsl, quote, urlsplit

from databox_contracts.errors import DeliveryError

_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=:)")
_BARE_MAIL: Final = re.compile(r"[^@\s<>:/?#]+@[^@\s<>:/?#]+")
# Of these the host is no secret; with others it may be a token.
_OPEN_HOSTS: Final = ("http", "https", "ticket+http", "ticket+https", "kafka", "kafkas", "smtp", "smtps")


@dataclass(frozen=True, slots=True)
class Address:
    """A contact with its secrets put in; never to be shown. `shown` is the form for people."""

    url: str
    shown: str
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"

    @property
    def scheme(self) -> str:
        """In lower case."""
        return scheme_of(self.url)

    def split(self) -> SplitResult:
        """The parts of the URL. Raises `DeliveryError` for one that is none."""
        try:
            parts = urlsplit(self.url)
            _ = parts.port if "," not in parts.netloc else None
        except ValueError:
            raise DeliveryError(self.shown, "the contact is no URL", permanent=True, hint="correct it") from None
        return parts

    def options(self, *known: str) -> dict[str, str]:
        """The options in the fragment (`#secret=${NAME}&id=number`), which no receiver sees."""
        found = dict(parse_qsl(self.split().fragment, keep_blank_values=True))
        unknown = sorted(found.keys() - set(known))
        if unknown:
            raise DeliveryError(
                self.shown,
                f"the contact has unknown options: {', '.join(unknown)}",
                permanent=True,
                hint=f"known are {', '.join(known)}",
            )
        return found


def scheme_of(contact: str) -> str:
    """The URL's scheme in lower case; `mailto` for a bare address, "" where there is none."""
    if _BARE_MAIL.fullmatch(contact.strip()):
        return "mailto"
    found = _SCHEME.match(contact.strip())
    return found.group().lower() if found else ""


def shown(contact: str) -> str:
    """A contact in a message or a log: without user, password, path and parameters, any of which may be a secret."""
    contact = contact.strip()
    if _VARIABLE.fullmatch(contact):
        return contact
    scheme = scheme_of(contact)
    if scheme in ("mailto", "log"):
        return contact.split("?")[0].split("#")[0] if "//" not in contact else f"{scheme}:"
    if scheme in _OPEN_HOSTS:
        authority = re.split(r"[/?#]", contact.partition("://")[2], maxsplit=1)[0]
        return f"{scheme}://{authority.rpartition('@')[2]}"
    return f"{scheme}://…" if scheme else "a contact without a scheme"


def resolve(contact: str, environ: Mapping[str, str]) -> Address:
    """The contact with its `${NAME}` looked up.

    What stands before the `@` of the host is percent-encoded, as a password there has to be; other values go in as they
    are. Raises `DeliveryError` for a variable that is not set, which names the variable only, and may be set later.
    """
    contact = contact.strip()
    name = shown(contact)
    secrets: list[str] = []
    authority_end = _authority_end(contact)

    def value_of(found: re.Match[str]) -> str:
        variable = found.group(1)
        value = environ.get(variable, "").strip()
        if not value:
            raise DeliveryError(
                name,
                f"the environment variable {variable} is not set",
                hint="set it where notifications are delivered from",
            )
        if not value.isprintable():
            raise DeliveryError(
                name, f"the environment variable {variable} holds more than one line", hint="correct it"
            )
        inside = found.start() < authority_end
        put = quote(value, safe="") if inside else value
        secrets.extend(dict.fromkeys((value, put, quote(value), quote(value, safe=""))))
        return put

    url = _VARIABLE.sub(value_of, contact)
    if _BARE_MAIL.fullmatch(url):
        url = f"mailto:{url}"
    return Address(url, name, tuple(sorted(set(secrets), key=lambda secret: (-len(secret), secret))))


def _authority_end(contact: str) -> int:
    """Where user and password end; 0 where there are none."""
    start = contact.find("://")
    if start < 0:
        return 0
    authority = re.split(r"[/?#]", contact[start + 3 :], maxsplit=1)[0]
    return start + 3 + authority.rfind("@") if "@" in authority else 0


def scrub(text: str, address: Address) -> str:
    """The text without the contact's secrets."""
    for secret in address.secrets:
        text = text.replace(secret, "…")
    return text

"""Whom to ask about a contract: people and channels, from whichever dialect's entries name them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from databox_contracts.model import Contract, Server

__all__ = ["Contact", "contacts", "safe_location", "says_support"]


@dataclass(frozen=True, slots=True)
class Contact:
    """A person or a channel: what it is called, its addresses, and what else is said of it."""

    name: str
    addresses: tuple[str, ...] = ()
    about: str = ""


def contacts(contract: Contract) -> tuple[Contact, ...]:
    """Those the document names beside the team, in its order; entries of an unexpected kind are passed over."""
    return tuple(contact for read in (_odcs, _datacontract, _sections) for contact in read(contract.custom))


def _odcs(custom: Mapping[str, Any]) -> Iterator[Contact]:
    for entry in _list(_mapping(custom.get("$odcs")).get("support")):
        said = _mapping(entry)
        about = [str(said[key]) for key in ("tool", "scope", "description") if said.get(key)]
        channel, url = said.get("channel"), said.get("url")
        if channel or url:
            yield Contact(str(channel or url), (str(url),) if url and channel else (), ", ".join(about))


_SUPPORT: Final = ("channel", "url", "tool", "scope", "description")


def says_support(entries: Any) -> bool:
    """Whether contacts say all of the standard's `support`."""
    return all(isinstance(entry, Mapping) and all(key in _SUPPORT for key in entry) for entry in _list(entries))


def _datacontract(custom: Mapping[str, Any]) -> Iterator[Contact]:
    said = _mapping(_mapping(_mapping(custom.get("$datacontract")).get("info")).get("contact"))
    addresses = [str(said[key]) for key in ("email", "url") if said.get(key)]
    if addresses or said.get("name"):
        yield Contact(str(said.get("name") or addresses.pop(0)), tuple(addresses))


def _sections(custom: Mapping[str, Any]) -> Iterator[Contact]:
    said = _mapping(_mapping(custom.get("$sections")).get("contract"))
    for key, about in (("ownership_email", "owner"), ("on_call_slack", "on call")):
        if said.get(key):
            yield Contact(str(said[key]), (), about)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


# --- where a server's data lies ---------------------------------------------------------------------------------------

_USER: Final = re.compile(r"(?<=//)[^/@\s]*:[^/@\s]*@|(?<=^http://)[^/@\s]*@|(?<=^https://)[^/@\s]*@")
_ORACLE_USER: Final = re.compile(r"(?<=:)[^:/@\s]+/[^@\s]*@")
_PARAMETERS: Final = re.compile(r"[?;#].*=.*", re.DOTALL)


def safe_location(server: Server) -> str | None:
    """The server's location without what may be a secret: user and password, and parameters, for which `…` stands."""
    if server.location is None:
        return None
    location = _PARAMETERS.sub("…", server.location.strip())
    if location.lower().startswith("jdbc:"):
        location = _ORACLE_USER.sub("", location)
    return _USER.sub("", location)

"""Remarks about how people are reached, and how long before a change."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from databox_contracts.errors import Finding, Level
from databox_contracts.formats.durations import DurationError, parse_duration
from databox_contracts.formats.outline import Outline, path_of
from databox_contracts.formats.positions import DataPath

_MAIL: Final = re.compile(r"(?:mailto:)?[^@\s<>]+@[^@\s<>.]+(?:\.[^@\s<>.]+)+")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://)?[^\s/]\S*")
_CHANNEL: Final = re.compile(r"[#@][\w.-]+")
_FROM_ENVIRONMENT: Final = re.compile(r"\$\{[A-Za-z_]\w*\}\S*")
_NAME: Final = re.compile(r"[#@]?[\w.@+-]+")

_HINT: Final = "write an address, a URL, `#channel` or `@handle`"

_Contact = tuple[str, str, DataPath]
"""What it belongs to, the contact as written, and where that stands."""


def is_reachable(contact: str) -> bool:
    """Whether it is a mail address, a URL, a channel or a handle; what begins with a `${NAME}` may be any of these."""
    text = contact.strip()
    return any(form.fullmatch(text) for form in (_MAIL, _URL, _CHANNEL, _FROM_ENVIRONMENT))


def unusable_contacts(outline: Outline) -> Iterator[Finding]:
    """A warning for each contact of consumers, support and team by which nobody can be reached."""
    for what, contact, path in _consumers(outline):
        if not is_reachable(contact):
            message = f"{what} cannot be reached: {contact[:60]!r} is neither an address nor a URL nor a channel"
            yield outline.finding(Level.WARNING, message, _HINT, outline.at(*path))
    source = _SOURCES.get(outline.contract.dialect)
    for what, contact, path in source(outline) if source is not None else ():
        message = f"{what}: nobody is reached by {contact[:60]!r}"
        yield outline.finding(Level.WARNING, message, _HINT, outline.at(*path))


def _consumers(outline: Outline) -> Iterator[_Contact]:
    consumers = outline.contract.consumers
    if not consumers:
        return
    base = path_of(outline.data, "consumers")
    written = _value(outline.data, base) if base is not None else None
    for consumer in consumers:
        path: DataPath = ()
        for at, entry in enumerate(written if isinstance(written, list) else ()):
            if isinstance(entry, dict) and entry.get("name") == consumer.name:
                path = (*(base or ()), at)
        what = f"the consumer {consumer.name!r}"
        if consumer.contact is not None:
            yield what, consumer.contact, (*path, "contact") if path else ()
        for at, contact in enumerate(consumer.contacts):
            yield what, contact, (*path, "contacts", at) if path else ()


def _value(data: Any, path: DataPath) -> Any:
    for step in path:
        data = data[step]
    return data


# --- what the dialects say of support and team, where that is not usable ----------------------------------------------


def _of_standard(outline: Outline) -> Iterator[_Contact]:
    support = _carried(outline, "$odcs").get("support")
    for at, entry in enumerate(support if isinstance(support, list) else ()):
        if not isinstance(entry, dict):
            continue
        url, channel = entry.get("url"), entry.get("channel")
        if isinstance(url, str):
            if not (_MAIL.fullmatch(url.strip()) or _URL.fullmatch(url.strip())):
                yield "the support channel's URL", url, ("support", at, "url")
        elif isinstance(channel, str) and not _is_name(channel):
            yield "the support channel", channel, ("support", at, "channel")
    written = outline.data.get("team")
    base: DataPath = ("team", "members") if isinstance(written, dict) else ("team",)
    for at, member in enumerate(outline.contract.team.members):
        if not _is_name(member.username):
            yield "the team member's username", member.username, (*base, at, "username")


def _of_specification(outline: Outline) -> Iterator[_Contact]:
    info = _carried(outline, "$datacontract").get("info")
    contact = info.get("contact") if isinstance(info, Mapping) else None
    for key, form in (("email", _MAIL), ("url", _URL)):
        written = contact.get(key) if isinstance(contact, Mapping) else None
        if isinstance(written, str) and not form.fullmatch(written.strip()):
            yield f"the contact's {key}", written, ("info", "contact", key)


def _carried(outline: Outline, name: str) -> Mapping[str, Any]:
    found = outline.contract.custom.get(name)
    return found if isinstance(found, Mapping) else {}


def _is_name(text: str) -> bool:
    """Whether it is one word, as user names and channels are, or an address."""
    return _NAME.fullmatch(text.strip()) is not None or is_reachable(text)


_SOURCES: Final[dict[str, Callable[[Outline], Iterator[_Contact]]]] = {
    "odcs": _of_standard,
    "datacontract": _of_specification,
}
"""By dialect; the six-section form's own reader judges its two contacts, and Soda has none."""


def unusable_notice(outline: Outline) -> Iterator[Finding]:
    """An error for a notice period that is no length of time."""
    written = outline.contract.notice_period
    if written is None:
        return
    try:
        parse_duration(written)
    except DurationError as error:
        path = path_of(outline.data, "noticePeriod")
        place = outline.at(*path) if path is not None else None
        yield outline.finding(Level.ERROR, f"the notice period {error.message}", error.hint, place)

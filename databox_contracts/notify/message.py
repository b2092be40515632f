"""What a human reads: what broke, for this consumer, since when, what to do, by when, and where to look."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from databox_contracts.evolution.rendering import markdown_text
from databox_contracts.notifications import Notification
from databox_contracts.notify.settings import Settings
from databox_contracts.rules import Severity

MOST_LINES: Final = 20
MOST_TITLE: Final = 200
MOST_TEXT: Final = 1000

_RANK: Final = {Severity.ERROR: 2, Severity.WARNING: 1, Severity.INFO: 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What a channel sends: one notification, or a digest of several of one consumer's contact.

    `key` is the notification's; a digest has one of its own, and names those of its parts in its text.
    """

    notifications: tuple[Notification, ...]
    key: str
    title: str
    text: str
    markdown: str

    @property
    def first(self) -> Notification:
        """The oldest notification in it, and the only one of what is no digest."""
        return self.notifications[0]

    @property
    def keys(self) -> tuple[str, ...]:
        """What the parts are recognised by."""
        return tuple(one.key for one in self.notifications)

    @property
    def severity(self) -> Severity:
        """The worst of the parts."""
        return max((one.severity for one in self.notifications), key=_RANK.__getitem__)

    @property
    def resolves(self) -> bool:
        """Whether all of it is good news."""
        return all(one.resolves for one in self.notifications)

    def to_dict(self) -> dict[str, Any]:
        """As a webhook posts it."""
        one = self.first
        return {
            "key": self.key,
            "kind": str(one.kind),
            "severity": str(one.severity),
            "consumer": one.consumer,
            "contract": one.contract,
            "event": one.event,
            "title": self.title,
            "text": self.text,
            "markdown": self.markdown,
            "occurred_at": one.occurred_at.isoformat(),
            "ticket": one.ticket,
            "resolves": one.resolves,
            "facts": dict(one.facts),
        }


def render(one: Notification, settings: Settings) -> Message:
    """The message of a single notification."""
    title = plain(one.title, MOST_TITLE)
    parts = list(_parts(one, settings))
    return Message(
        notifications=(one,),
        key=one.key,
        title=title,
        text="\n".join((title, "", *_as_text(parts), f"Reference: {one.key}")),
        markdown="\n".join((f"**{markdown_text(title)}**", "", *_as_markdown(parts), f"Reference: `{one.key}`")),
    )


def render_digest(many: Sequence[Notification], settings: Settings) -> Message:
    """One message of several notifications, oldest first; each is in it whole, with its key."""
    if len(many) == 1:
        return render(many[0], settings)
    contracts = list(dict.fromkeys(plain(one.contract, MOST_TITLE) for one in many))
    about = contracts[0] if len(contracts) == 1 else f"{len(contracts)} contracts"
    title = f"{len(many)} notifications about {about}"[:MOST_TITLE]
    messages = [render(one, settings) for one in many]
    key = hashlib.sha256(json.dumps([one.key for one in many]).encode()).hexdigest()[:32]
    return Message(
        notifications=tuple(many),
        key=key,
        title=title,
        text="\n".join((title, "", "\n\n".join(f"{at}. {one.text}" for at, one in enumerate(messages, 1)))),
        markdown="\n".join((f"**{markdown_text(title)}**", "", "\n\n---\n\n".join(one.markdown for one in messages))),
    )


def _parts(one: Notification, settings: Settings) -> Iterator[tuple[str, list[str]]]:
    facts = one.facts
    heading = "What is right again" if one.resolves else "What broke" if one.severity is Severity.ERROR else "What"
    yield heading, _lines(facts.get("what"))
    yield f"For {plain(one.consumer, MOST_TITLE)}", _lines(facts.get("for_you"))
    yield "Since", [moment(facts.get("since") or one.occurred_at)]
    yield "What to do", _lines(facts.get("todo"))
    yield "By", _lines(facts.get("by"))
    yield "Asset", _lines(facts.get("asset"))
    yield "Partition", _lines(facts.get("partition"))
    yield "Owner", _lines(facts.get("owner"))
    run, contract = run_link(one, settings), contract_link(one, settings)
    yield "Dagster run", [run] if run else _lines(facts.get("run_id"))
    yield "Contract", [contract] if contract else [plain(one.contract, MOST_TITLE)]


def _as_text(parts: Sequence[tuple[str, list[str]]]) -> Iterator[str]:
    for label, lines in parts:
        if len(lines) == 1:
            yield f"{label}: {lines[0]}"
        elif lines:
            yield f"{label}:"
            yield from (f"- {line}" for line in lines)


def _as_markdown(parts: Sequence[tuple[str, list[str]]]) -> Iterator[str]:
    for label, lines in parts:
        written = [line if line.startswith(("https://", "http://")) else markdown_text(line) for line in lines]
        if len(written) == 1:
            yield f"- **{markdown_text(label)}:** {written[0]}"
        elif written:
            yield f"- **{markdown_text(label)}:**"
            yield from (f"  - {line}" for line in written)


def _lines(value: Any) -> list[str]:
    """What a fact says, in lines; of very many the first."""
    if value is None or value == "":
        return []
    values = list(value) if isinstance(value, list | tuple) else [value]
    lines = [line for line in (plain(str(one), MOST_TEXT) for one in values[:MOST_LINES]) if line]
    return [*lines, f"and {len(values) - MOST_LINES} more"] if len(values) > MOST_LINES else lines


def plain(text: str, most: int) -> str:
    """One line without control characters and what reorders a line, of at most so many characters."""
    kept = "".join(" " if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp", "Cs") else char for char in text)
    line = " ".join(kept.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def moment(value: Any) -> str:
    """A time as people read it, in UTC to the minute; a text that is none as it is."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return plain(value, MOST_TITLE)
    if not isinstance(value, datetime):
        return plain(str(value), MOST_TITLE)
    there = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return f"{there.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def run_link(one: Notification, settings: Settings) -> str | None:
    """Where Dagster shows the run, None without a run or without the server's address."""
    run = one.facts.get("run_id")
    if not settings.dagster_url or not run:
        return None
    return f"{settings.dagster_url.rstrip('/')}/runs/{quote(str(run), safe='')}"


def contract_link(one: Notification, settings: Settings) -> str | None:
    """Where the contract is read, None without such an address."""
    where = settings.contracts_url
    if not where:
        return None
    name = quote(one.contract, safe="")
    if "{contract}" not in where:
        return f"{where.rstrip('/')}/{name}"
    version = one.facts.get("to_version") or one.facts.get("version") or "latest"
    return where.replace("{contract}", name).replace("{version}", quote(str(version), safe=""))

"""What was given up: how many messages, since when, for whom, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from databox_contracts.notifications import Notification, Outbox, State
from databox_contracts.notify.contacts import shown


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that was given up: `contact` is as for people, without what may be secret; neither is in `error`."""

    id: str
    consumer: str
    contract: str
    contact: str
    title: str
    occurred_at: datetime
    error: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        facts = {name: getattr(self, name) for name in self.__slots__}
        return {**facts, "occurred_at": self.occurred_at.isoformat()}


@dataclass(frozen=True, slots=True)
class OutboxState:
    """How many messages are in each state, and those that were given up, oldest first; of very many the first."""

    counts: Mapping[State, int]
    letters: tuple[DeadLetter, ...] = ()

    @property
    def dead(self) -> int:
        """How many were given up in all."""
        return self.counts[State.DEAD]

    @property
    def passed(self) -> bool:
        """Whether nothing was given up."""
        return self.dead == 0

    @property
    def oldest(self) -> datetime | None:
        """When that happened which somebody was not told of for the longest time; None where nothing was given up."""
        return min((letter.occurred_at for letter in self.letters), default=None)

    def summary(self) -> str:
        """In one sentence, with the way out."""
        waiting = f"{self.counts[State.WAITING]} waiting and {self.counts[State.SENT]} sent"
        if self.oldest is None:
            return f"No message was given up; {waiting}."
        consumers = dict.fromkeys(letter.consumer for letter in self.letters)
        named = ", ".join(list(consumers)[:5]) + (f" and {len(consumers) - 5} more" if len(consumers) > 5 else "")
        what = "1 message was" if self.dead == 1 else f"{self.dead} messages were"
        return (
            f"{what} given up, for {named}, the oldest about {self.oldest:%Y-%m-%d %H:%M} UTC; {waiting}. "
            "`databox-contracts outbox dead` lists them; when the cause is gone, `outbox retry --all` sends them again."
        )


def outbox_state(outbox: Outbox, *, most: int = 100) -> OutboxState:
    """The state of an outbox with at most so many of what was given up. No secret and no value of a field is in it."""
    found = tuple(_letter(one, error) for one, error in outbox.dead(limit=most))
    counts = dict(outbox.counts())
    # Another worker may have given one up, or somebody sent one again, between the two questions.
    counts[State.DEAD] = max(counts[State.DEAD], len(found)) if found else 0
    return OutboxState(counts, found)


def _letter(one: Notification, error: str) -> DeadLetter:
    return DeadLetter(one.id, one.consumer, one.contract, shown(one.contact), one.title, one.occurred_at, error)

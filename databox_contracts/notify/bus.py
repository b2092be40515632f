"""The bus: whoever subscribed to a schema hears of its breaking changes, wherever the handlers carry them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from databox_contracts.errors import DataboxError
from databox_contracts.evolution.report import MigrationReport
from databox_contracts.model import Consumer
from databox_contracts.notifications import Outbox
from databox_contracts.notify.building import from_report

_LOG: Final = logging.getLogger(__name__)


class Handler(Protocol):
    """Where breaking changes go, besides the terminal."""

    def send(self, report: MigrationReport) -> object:
        """Takes the report of a breaking change. What it raises is reported, and hinders no other handler."""
        ...


def _now() -> datetime:
    return datetime.now(UTC)


class NotificationBus:
    """Tells the subscribers of a schema about its breaking changes; safe changes make no noise.

    Usable alone: it prints one line for each consumer that it tells, and keeps a log. Each handler gets each breaking
    report once, whoever subscribed. `clock` gives the time of the log's entries.
    """

    def __init__(self, handlers: Sequence[Handler] = (), *, clock: Callable[[], datetime] = _now) -> None:
        self._consumers: list[Consumer] = []
        self._handlers: list[Handler] = list(handlers)
        self._log: list[dict[str, Any]] = []
        self._failures: list[tuple[Handler, Exception]] = []
        self._clock = clock

    @property
    def consumers(self) -> tuple[Consumer, ...]:
        """The registered consumers, in order."""
        return tuple(self._consumers)

    @property
    def failures(self) -> tuple[tuple[Handler, Exception], ...]:
        """What handlers raised, in order."""
        return tuple(self._failures)

    def register(self, consumer: Consumer) -> None:
        """Adds a subscriber; the same one again changes nothing."""
        if consumer not in self._consumers:
            self._consumers.append(consumer)

    def add_handler(self, handler: Handler) -> None:
        """Adds a way for reports to go."""
        self._handlers.append(handler)

    def notify(self, report: MigrationReport) -> None:
        """Tells every subscriber of the report's schema, if it is breaking.

        A handler that raises is logged as an error and listed in `failures`; all others still get the report.
        """
        if not report.is_breaking:
            return
        for consumer in self._consumers:
            if report.schema_name in consumer.subscribed_schemas:
                self._log.append(
                    {
                        "consumer": consumer.name,
                        "contact": consumer.contact,
                        "schema": report.schema_name,
                        "from_version": report.old_version,
                        "to_version": report.new_version,
                        "breaking_fields": [change.field_name for change in report.breaking_changes],
                        "timestamp": self._clock().isoformat(),
                    }
                )
                print(f"Notified {consumer.name}: breaking change in '{report.schema_name}'")
        for handler in self._handlers:
            try:
                handler.send(report)
            except Exception as error:
                # One that is down must not keep the news from the others.
                self._failures.append((handler, error))
                _LOG.error(
                    "%s did not take the breaking change in %r: %s",
                    type(handler).__name__,
                    report.schema_name,
                    error if isinstance(error, DataboxError) else type(error).__name__,
                )

    def get_log(self) -> list[dict[str, Any]]:
        """Who was told of what, one entry for each consumer and report, in order."""
        return [dict(entry) for entry in self._log]


@dataclass(frozen=True)
class OutboxHandler:
    """A handler that puts a message for each contact of those concerned into an outbox, for `Delivery` to send.

    `bus` says who subscribed at the time of the report.
    """

    outbox: Outbox
    bus: NotificationBus
    clock: Callable[[], datetime] = _now

    def send(self, report: MigrationReport) -> int:
        """Enqueues; the result is how many messages that were."""
        concerned = [one for one in self.bus.consumers if report.schema_name in one.subscribed_schemas]
        return self.outbox.enqueue(from_report(report, concerned, occurred_at=self.clock()))

"""`deliver`: send what waits in the registry's outbox."""

from __future__ import annotations

import argparse
import logging
import math
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from databox_contracts.cli.registry import add_registry, opened, print_json
from databox_contracts.errors import DataboxError

if TYPE_CHECKING:
    from databox_contracts.notifications import TicketStore
    from databox_contracts.notify import Delivery, Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where the outbox is, and with what it is delivered."""
    parser.add_argument("--once", action="store_true", help="send what is due now and end, for a cron job")
    parser.add_argument("--idle", metavar="S", type=_seconds, default=5.0, help="look again after so many seconds (5)")
    parser.add_argument("--timeout", metavar="S", type=_seconds, default=30.0, help="give a receiver so long (30)")
    parser.add_argument(
        "--lease",
        metavar="S",
        type=_seconds,
        default=120.0,
        help="another worker takes over from one that died after so many seconds (120)",
    )
    parser.add_argument(
        "--digest-from",
        metavar="N",
        type=_number,
        default=5,
        help="send one message when so many wait for one contact (5); 0 for never",
    )
    parser.add_argument("--dagster-url", metavar="URL", help="Dagster's web server, for links ($DATABOX_DAGSTER_URL)")
    parser.add_argument(
        "--contracts-url",
        metavar="URL",
        help="where a contract is read, with {contract} and {version} in it ($DATABOX_CONTRACTS_URL)",
    )
    parser.add_argument(
        "--smtp-url", metavar="URL", help="the mail server, smtps://user:${PASSWORD}@host ($DATABOX_SMTP_URL)"
    )
    parser.add_argument("--mail-from", metavar="ADDRESS", help="who writes the mails ($DATABOX_MAIL_FROM)")
    parser.add_argument("--tickets", metavar="DIR", help="remember open tickets in this directory (in the registry)")
    add_registry(parser)


def run(args: argparse.Namespace) -> int:
    """0 nothing failed, or told to stop; 1 with `--once`: a message was not taken; 2 it could not be done."""
    from databox_contracts.notify import Channels, Delivery

    registry = opened(args)
    with closing(registry):
        outbox: Any = getattr(registry, "outbox", None)
        if outbox is None:
            raise DataboxError(
                "a service does not show its outbox", hint="Name the registry's database with --registry."
            )
        outbox.lease_length = timedelta(seconds=args.lease)
        channels = Channels(_settings(args, _tickets(args, registry)))
        delivery = Delivery(outbox, channels, digest_from=args.digest_from or None)
        with closing(channels), _logged(), _stopped_by_signals(delivery):
            totals = delivery.drain() if args.once else delivery.run(idle=timedelta(seconds=args.idle))
    if args.format == "json":
        print_json({"sent": totals.sent, "failed": totals.failed, "dead": totals.dead})
    else:
        print(f"{totals.sent} sent, {totals.failed} to be tried again, {totals.dead} given up")
    return 1 if args.once and (totals.failed or totals.dead) else 0


def _tickets(args: argparse.Namespace, registry: Any) -> TicketStore:
    """The directory that is named, else the registry's own."""
    from databox_contracts.notify.ticket_stores import DirectoryTicketStore

    if args.tickets:
        return DirectoryTicketStore(args.tickets)
    own: TicketStore = registry.tickets
    return own


def _settings(args: argparse.Namespace, tickets: TicketStore) -> Settings:
    from databox_contracts.notify import Settings

    given = {name: getattr(args, name) for name in ("dagster_url", "contracts_url", "smtp_url", "mail_from")}
    return replace(
        Settings.from_environ(),
        timeout=args.timeout,
        tickets=tickets,
        **{name: value for name, value in given.items() if value},
    )


@contextmanager
def _logged() -> Iterator[None]:
    """Shows our own records on standard error; those of client libraries may hold what is secret."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("databox_contracts")
    level, propagates = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagates


@contextmanager
def _stopped_by_signals(delivery: Delivery) -> Iterator[None]:
    """The first signal ends it after the current message; a second one ends it at once."""
    former: dict[int, Any] = {}

    def stop(number: int, _: object) -> None:
        delivery.stop()
        signal.signal(number, former[number])

    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            former[number] = signal.signal(number, stop)
    except ValueError:
        # Only the main thread may; whoever runs it in another stops it otherwise.
        former.clear()
    try:
        yield
    finally:
        for at, handler in former.items():
            signal.signal(at, handler)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value


def _number(text: str) -> int:
    if not text.isdigit() or len(text) > 4:
        raise argparse.ArgumentTypeError(f"{text!r} is no number")
    return int(text)

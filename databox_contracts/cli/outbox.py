"""`outbox`: which messages wait, which were given up, and how they are tried again."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from databox_contracts.cli.registry import add_registry, opened, print_json
from databox_contracts.errors import DataboxError

if TYPE_CHECKING:
    from databox_contracts.notifications import Notification
    from databox_contracts.registry.outbox import SqlOutbox


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and what each of them takes."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="how many messages are in each state, and the first that wait")
    dead = actions.add_parser("dead", help="the messages that were given up; exit code 1 if there are any")
    retry = actions.add_parser("retry", help="send messages again that were given up")
    prune = actions.add_parser("prune", help="remove messages that were sent long ago; none is ever sent again")
    for action in (listing, dead):
        action.add_argument("--limit", metavar="N", type=_positive, default=100, help="show at most so many (100)")
    retry.add_argument("ids", metavar="ID", nargs="*", help="the message's id in `dead`")
    retry.add_argument("--all", action="store_true", help="all that were given up")
    prune.add_argument("--older-than", metavar="DAYS", type=_positive, default=90, help="sent so many days ago (90)")
    for action in (listing, dead, retry, prune):
        add_registry(action)


def run(args: argparse.Namespace) -> int:
    """0 done; 1 messages were given up, or one to retry is not among them; 2 it could not be done."""
    registry = opened(args)
    with closing(registry):
        outbox = getattr(registry, "outbox", None)
        if outbox is None:
            raise DataboxError(
                "a service does not show its outbox", hint="Name the registry's database with --registry."
            )
        return _ACTIONS[args.action](outbox, args)


def _list(outbox: SqlOutbox, args: argparse.Namespace) -> int:
    counts = {str(state): count for state, count in outbox.counts().items()}
    waiting = outbox.waiting(limit=args.limit)
    if args.format == "json":
        print_json({"counts": counts, "waiting": [_facts(one, error) for one, error in waiting]})
        return 0
    _print_messages(waiting)
    print(", ".join(f"{count} {state}" for state, count in counts.items()))
    return 0


def _dead(outbox: SqlOutbox, args: argparse.Namespace) -> int:
    found = outbox.dead(limit=args.limit)
    if args.format == "json":
        print_json({"dead": [_facts(one, error) for one, error in found]})
    else:
        _print_messages(found)
        print(f"{len(found)} given up" + ("; send again with `outbox retry ID`" if found else ""))
    return 1 if found else 0


def _retry(outbox: SqlOutbox, args: argparse.Namespace) -> int:
    if bool(args.ids) == args.all:
        raise DataboxError("nobody says what is to be sent again", hint="Name ids, or --all.")
    asked = list(dict.fromkeys(args.ids))
    count = 0
    if args.all:
        while batch := [one.id for one, _ in outbox.dead()]:
            count += outbox.retry(batch)
    else:
        count = outbox.retry(asked)
    if args.format == "json":
        print_json({"retried": count})
    else:
        print(f"{count} of {len(asked)} will be sent again" if asked else f"{count} will be sent again")
    return 1 if count < len(asked) else 0


def _prune(outbox: SqlOutbox, args: argparse.Namespace) -> int:
    count = outbox.prune(datetime.now(UTC) - timedelta(days=args.older_than))
    if args.format == "json":
        print_json({"removed": count})
    else:
        print(f"{count} removed")
    return 0


def _facts(one: Notification, error: str | None) -> dict[str, object]:
    return {
        "id": one.id,
        "key": one.key,
        "consumer": one.consumer,
        "contract": one.contract,
        "contact": one.contact,
        "kind": str(one.kind),
        "severity": str(one.severity),
        "title": one.title,
        "occurred_at": one.occurred_at.isoformat(),
        "error": error,
    }


def _print_messages(messages: Sequence[tuple[Notification, str | None]]) -> None:
    for one, error in messages:
        print(f"{one.id}  {one.consumer} ({one.contact}): {one.title}")
        if error:
            print(f"    {error}")


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1 or len(text) > 6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


_ACTIONS: Final[Mapping[str, Callable[[SqlOutbox, argparse.Namespace], int]]] = {
    "list": _list,
    "dead": _dead,
    "retry": _retry,
    "prune": _prune,
}

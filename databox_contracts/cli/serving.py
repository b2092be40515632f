"""`registry serve` and `registry token`: the registry over HTTP, and who may call it."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from databox_contracts.errors import DataboxError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from databox_contracts.gate.gating import GateReport
    from databox_contracts.gate.readers import Reach
    from databox_contracts.registry.api import RegistryApi
    from databox_contracts.registry.store import Registry
    from databox_contracts.service.calls import Question


_PATIENCE: Final = 10.0


def add_serve(parser: argparse.ArgumentParser) -> None:
    """Declare where the service listens."""
    parser.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="where it listens (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8710, help="on which port; 0 for any that is free (8710)")
    parser.add_argument("--port-file", metavar="FILE", type=Path, help="write the port there once calls are answered")
    parser.add_argument(
        "--edges", metavar="FILE", type=Path, action="append", default=[], help="lineage for impact, YAML or JSON"
    )
    parser.add_argument(
        "--calls-per-second",
        metavar="N",
        type=_positive,
        default=20.0,
        help="for each token, with ten times as many in a row; for each address twice of both (20)",
    )
    parser.add_argument("--certificate", metavar="PEM", type=Path, help="serve HTTPS with this certificate")
    parser.add_argument("--key", metavar="PEM", type=Path, help="the certificate's key")
    parser.add_argument(
        "--proxy", metavar="ADDRESS,...", help="believe the X-Forwarded-For of these; it is ignored otherwise"
    )


def serve_registry(registry: RegistryApi, args: argparse.Namespace) -> int:
    """0 when it was told to end; raises where it could not begin."""
    _database_of(registry)
    if (args.key is None) != (args.certificate is None):
        raise DataboxError("--certificate and --key belong together", hint="Name both, or neither.")
    try:
        from databox_contracts.service.application import Settings, build_app
        from databox_contracts.service.calls import Wiring
        from databox_contracts.service.metrics import ServiceMetrics
        from databox_contracts.service.rates import Rate
        from databox_contracts.service.serving import Listening, serve, write_whole
    except ModuleNotFoundError as error:
        raise DataboxError(f"the service needs {error.name}", hint='pip install "databox_contracts[service]"') from None
    from databox_contracts.cli.known import declared_in_files
    from databox_contracts.notify.announcing import announcement, end_announcement
    from databox_contracts.registry.addresses import default_location
    from databox_contracts.registry.store import Registry
    from databox_contracts.telemetry.measures import GATED_CHANGES, GATES, NOTIFICATIONS
    from databox_contracts.telemetry.prometheus import PrometheusMetrics

    measured = PrometheusMetrics(measures=(NOTIFICATIONS, GATES, GATED_CHANGES))

    def judged(question: Question) -> Mapping[str, Any]:
        report = judge(question)
        measured.record_gate(report)
        return report.to_dict()

    listening = Listening(args.host, args.port, args.certificate, args.key, args.proxy)

    def started(url: str) -> None:
        if args.port_file is not None:
            write_whole(args.port_file, url.rpartition(":")[2] + "\n")
        print(f"The registry {own.location} is served at {url}", file=sys.stderr, flush=True)
        if not listening.is_local and listening.certificate is None:
            print(
                "Note that tokens travel readable unless a proxy before it speaks HTTPS.", file=sys.stderr, flush=True
            )

    wiring = Wiring(judged, announcement(), end_announcement(), lineage=declared_in_files((), args.edges)[1])
    rate = Rate(burst=max(1, int(10 * args.calls_per_second)), per_second=args.calls_per_second)
    settings = Settings(by_token=rate, by_address=Rate(2 * rate.burst, 2 * rate.per_second))
    # A caller is told sooner than a command at a terminal that the database is away: it has to make room for others.
    own = Registry.open(args.registry or default_location(os.environ), patience=_PATIENCE)
    metrics = ServiceMetrics(measured.registry, refreshers=[lambda: measured.record_notifications(own.outbox.counts())])
    with own:
        serve(build_app(own, wiring, settings=settings, metrics=metrics), listening, started=started)
    return 0


def judge(question: Question) -> GateReport:
    """The gate's report on the change of one contract."""
    from databox_contracts.gate.gating import Terms, report
    from databox_contracts.gate.pairing import Pair
    from databox_contracts.registry.signing import approval

    old, new = question.old, question.new
    ruling = old or new
    terms = Terms(
        today=datetime.now(UTC).date(),
        policy=question.policy,
        approvals=tuple(approval(one) for one in question.approvals if one.purpose is None),
        consumers={ruling.id: [one.consumer for one in question.consumers]},
        reach=_reach(question),
    )
    # There are no files; the contract's id stands where the gate names one.
    pair = Pair(new.id, old, new, history=question.history)
    labels = (old.version if old is not None else "(not registered)", new.version)
    return report([pair], terms, labels=labels)


def _reach(question: Question) -> Reach:
    """Whom a change reaches, as the gate shows it."""
    from databox_contracts.gate.readers import Reader
    from databox_contracts.registry.places import Place

    def reach(contract: str, dataset: str | None, field: str | None) -> list[Reader]:
        return [
            Reader(one.name, one.owner, one.pin, one.distance, one.path[1:], kind=str(one.kind))
            for one in question.reach(Place(contract, dataset, field))
        ]

    return reach


def add_token(parser: argparse.ArgumentParser) -> None:
    """Declare what is done with which token."""
    parser.add_argument("what", choices=("create", "list", "revoke"), help="create one, list all, or revoke one")
    parser.add_argument("name", metavar="NAME", nargs="?", help="the token's name: who holds it")
    parser.add_argument(
        "--scope", choices=("read", "publish", "admin"), default="read", help="what it allows; each includes the former"
    )
    parser.add_argument("--expires", metavar="DAY", type=_day, help="the first day on which it is worth nothing")


def run_token(registry: RegistryApi, args: argparse.Namespace) -> int:
    """0 done; 1 where there is no such token to revoke."""
    own = _database_of(registry)
    if args.what == "list":
        return _list(own, args)
    if args.name is None:
        raise DataboxError(f"which token is to be {args.what}d?", hint="Give its name.")
    return _create(own, args) if args.what == "create" else _revoke(own, args)


def _create(registry: Registry, args: argparse.Namespace) -> int:
    from databox_contracts.registry.tokens import Scope

    token = registry.tokens.issue(args.name, Scope(args.scope), by=args.by, expires_at=args.expires)
    if args.format == "json":
        _print_json({"name": args.name, "scope": args.scope, "token": token})
        return 0
    # The token alone, so that it can be piped to where secrets are kept.
    print(token)
    print(f"This is {args.name!r} ({args.scope}). It is shown only now.", file=sys.stderr)
    return 0


def _list(registry: Registry, args: argparse.Namespace) -> int:
    rows = [
        {
            "name": one.name,
            "scope": str(one.scope),
            "issued_at": one.issued_at.isoformat(),
            "issued_by": one.issued_by,
            "expires_at": one.expires_at.isoformat() if one.expires_at is not None else None,
            "revoked_at": one.revoked_at.isoformat() if one.revoked_at is not None else None,
        }
        for one in registry.tokens.tokens()
    ]
    if args.format == "json":
        _print_json({"tokens": rows})
        return 0
    for row in rows:
        ends = [
            f"{word} {row[key]}" for word, key in (("expires", "expires_at"), ("revoked", "revoked_at")) if row[key]
        ]
        print(
            "  ".join((str(row["name"]), str(row["scope"]), f"since {row['issued_at']} by {row['issued_by']}", *ends))
        )
    if not rows:
        print("No token was issued.")
    return 0


def _revoke(registry: Registry, args: argparse.Namespace) -> int:
    done = registry.tokens.revoke(args.name, by=args.by)
    if args.format == "json":
        _print_json({"name": args.name, "revoked": done})
    else:
        print(f"{args.name!r} is worth nothing any more." if done else f"No token named {args.name!r} is in use.")
    return 0 if done else 1


def _database_of(registry: RegistryApi) -> Registry:
    from databox_contracts.registry.store import Registry

    if isinstance(registry, Registry):
        return registry
    raise DataboxError(
        "this is done at the registry's database, not through its service",
        hint="Name the file or the database's URL with --registry.",
    )


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return number


def _day(text: str) -> datetime:
    try:
        return datetime.combine(datetime.fromisoformat(text).date(), time(), UTC)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day; write it as 2026-01-31") from None


def _print_json(facts: Mapping[str, Any]) -> None:
    import json

    print(json.dumps(facts, indent=2, ensure_ascii=False))

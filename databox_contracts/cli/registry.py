"""`registry`: publish contracts, look at their versions and consumers, and lead versions to their end."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from databox_contracts.cli import batches, impact, registering, trace
from databox_contracts.cli.announcing import announced_by
from databox_contracts.cli.impact import add_target
from databox_contracts.cli.known import add_known
from databox_contracts.cli.serving import add_serve, add_token, run_token, serve_registry
from databox_contracts.cli.trace import add_trace
from databox_contracts.errors import ConsumersError, ContractConflictError, DataboxError, LifecycleError

if TYPE_CHECKING:
    from databox_contracts.model import Contract
    from databox_contracts.registry.api import RegistryApi
    from databox_contracts.registry.records import StoredVersion


@dataclass(frozen=True)
class Action:
    """One action: its own arguments, and what it does with a registry; it returns the exit code."""

    name: str
    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[RegistryApi, argparse.Namespace], int]
    forms: Sequence[str] = ("text", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and what each of them takes."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action in ACTIONS:
        described = actions.add_parser(action.name, help=action.summary, description=action.summary)
        action.add_arguments(described)
        add_registry(described, action.forms)


def run(args: argparse.Namespace) -> int:
    """0 done; 1 refused: other content under a published version, too early, without consent; 2 not done."""
    action = next(action for action in ACTIONS if action.name == args.action)
    with closing(opened(args)) as registry:
        try:
            return action.run(registry, args)
        except (ConsumersError, ContractConflictError, LifecycleError) as error:
            if args.format == "json":
                print_json({"refused": error.message, "hint": error.hint})
            else:
                print(error)
            return 1


def add_registry(parser: argparse.ArgumentParser, forms: Sequence[str] = ("text", "json")) -> None:
    """Declare which registry is meant, and the form of the output."""
    parser.add_argument(
        "--registry",
        metavar="URL|PATH",
        help="a file, postgresql:// or a service's URL ($DATABOX_REGISTRY, else a file in $DAGSTER_HOME)",
    )
    parser.add_argument("--format", choices=forms, default="text")


def opened(args: argparse.Namespace) -> RegistryApi:
    """The registry that the arguments mean."""
    from databox_contracts.registry.opening import open_registry

    return open_registry(args.registry)


def print_json(facts: Mapping[str, Any]) -> None:
    """Print one JSON document."""
    print(json.dumps(facts, indent=2, ensure_ascii=False))


# --- publish ----------------------------------------------------------------------------------------------------------


def _add_publish(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="+", help="a contract's file, or a folder of them")
    parser.add_argument("--activate", action="store_true", help="publish drafts as active versions")
    _add_by(parser)


def _publish(registry: RegistryApi, args: argparse.Namespace) -> int:
    contracts = [contract for path in args.paths for contract in _loaded(Path(path))]
    if not contracts:
        raise DataboxError(f"there is no contract in {', '.join(args.paths)}", hint="Name files, or another folder.")
    if args.activate:
        drafts = ("draft", "proposed")
        contracts = [
            one.model_copy(update={"status": "active"}) if one.status.lower() in drafts else one for one in contracts
        ]
    done = registry.publish_all(contracts, by=args.by, **announced_by(registry, "notifications", "announce_end"))
    if args.format == "json":
        print_json({"publications": [one.to_dict() for one in done]})
        return 0
    for one in done:
        after = f", after {one.previous}" if one.previous is not None else ""
        told = f", {_count(one.notified, 'notification')}" if one.notified else ""
        print(f"{one.outcome:<9}  {one.stored.contract_id} {one.stored.version} ({one.stored.status}{after}{told})")
    return 0


def _loaded(path: Path) -> Sequence[Contract]:
    from databox_contracts.formats import load_contract, load_contracts

    return load_contracts(path) if path.is_dir() else [load_contract(path)]


# --- list, show, consumers --------------------------------------------------------------------------------------------


def _list(registry: RegistryApi, args: argparse.Namespace) -> int:
    found = registry.contracts() if args.contract is None else registry.versions(args.contract)
    if args.format == "json":
        print_json({"contracts": [one.to_dict() for one in found]})
        return 0
    _print_columns([(one.contract_id, one.version, str(one.status), _dates(one), one.title) for one in found])
    if not found:
        print("No contract is published.")
    return 0


def _dates(one: StoredVersion) -> str:
    days = [("from", one.effective), ("until", one.sunset)]
    return " ".join(f"{word} {day}" for word, day in days if day is not None) or "-"


def _show(registry: RegistryApi, args: argparse.Namespace) -> int:
    found = registry.get(args.contract, args.version)
    if args.format == "json":
        print_json(found.to_dict(content=True))
        return 0
    # Comments, so that what is printed is the contract still.
    dates = f", {_dates(found)}" if _dates(found) != "-" else ""
    print(f"# {found.contract_id} {found.version} is {found.status}{dates}")
    print(f"# published {found.published_at.isoformat()} by {found.published_by}; digest {found.digest}")
    print(found.content, end="" if found.content.endswith("\n") else "\n")
    return 0


def _consumers(registry: RegistryApi, args: argparse.Namespace) -> int:
    found = registry.consumers(args.contract)
    if args.format == "json":
        print_json({"consumers": [one.to_dict() for one in found]})
        return 0
    rows = []
    for one in found:
        consumer = one.consumer
        contacts = ", ".join(dict.fromkeys(filter(None, (consumer.contact, *consumer.contacts))))
        reads = ", ".join((*consumer.datasets, *consumer.fields)) or "all of it"
        rows.append((one.contract_id, consumer.name, consumer.versions or "*", reads, contacts or "-", str(one.origin)))
    _print_columns(rows)
    if not found:
        print("No consumer is registered.")
    return 0


# --- approve, activate, deprecate, retire -----------------------------------------------------------------------------


def _add_approve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("contract", metavar="ID", help="the contract's id")
    parser.add_argument("--consumer", metavar="NAME", required=True, help="on whose behalf")
    parser.add_argument("--version", metavar="V", help="the version that is consented to; without it whichever is next")
    parser.add_argument("--dataset", metavar="NAME", help="for this dataset alone")
    parser.add_argument("--purpose", metavar="NAME", help="consent to a further purpose")
    parser.add_argument("--note", metavar="TEXT", default="", help="what else is to be remembered")
    _add_by(parser)


def _approve(registry: RegistryApi, args: argparse.Namespace) -> int:
    from databox_contracts.registry.database import utc_now
    from databox_contracts.registry.records import StoredApproval

    known = [one.consumer.name for one in registry.consumers(args.contract)]
    given = StoredApproval(
        contract_id=args.contract,
        consumer=args.consumer,
        approver=args.by,
        at=utc_now(),
        dataset=args.dataset,
        version=args.version,
        purpose=args.purpose,
        note=args.note,
    )
    approval = registry.approve(given)
    if args.format == "json":
        print_json({**approval.to_dict(), "consumer_is_registered": args.consumer in known})
        return 0
    what = f"the purpose {approval.purpose}" if approval.purpose else f"version {approval.version or 'that comes next'}"
    print(
        f"{approval.contract_id}: {approval.approver} approved {what} for {approval.consumer} on {approval.at:%Y-%m-%d}"
    )
    if args.consumer not in known:
        names = ", ".join(dict.fromkeys(known)) or "none"
        print(f"Note that {args.consumer!r} is not registered as its consumer (there is: {names}).")
    return 0


def _add_remove_consumer(parser: argparse.ArgumentParser) -> None:
    _add_contract(parser)
    parser.add_argument("consumer", metavar="NAME", help="the consumer's name")
    origins = ("registry", "file", "code", "contract")
    parser.add_argument("--origin", choices=origins, default="registry", help="where it was declared (registry)")
    _add_by(parser)


def _remove_consumer(registry: RegistryApi, args: argparse.Namespace) -> int:
    from databox_contracts.registry.records import Origin

    done = registry.remove_consumer(args.contract, args.consumer, by=args.by, origin=Origin(args.origin))
    if args.format == "json":
        print_json({"removed": done})
    elif done:
        print(f"{args.consumer} is no consumer of {args.contract} any more.")
    else:
        print(f"{args.contract} has no consumer {args.consumer!r} of origin {args.origin}.")
    return 0 if done else 1


def _activate(registry: RegistryApi, args: argparse.Namespace) -> int:
    announced = announced_by(registry, "announce")
    return _printed(registry.activate(args.contract, args.version, by=args.by, **announced), args)


def _add_deprecate(parser: argparse.ArgumentParser) -> None:
    _add_version(parser)
    parser.add_argument(
        "--sunset", metavar="DAY", type=_day, help="the day from which it may be retired (when its notice is over)"
    )


def _deprecate(registry: RegistryApi, args: argparse.Namespace) -> int:
    announced = announced_by(registry, "announce_end")
    return _printed(registry.deprecate(args.contract, args.version, by=args.by, sunset=args.sunset, **announced), args)


def _retire(registry: RegistryApi, args: argparse.Namespace) -> int:
    announced = announced_by(registry, "announce_end")
    return _printed(registry.retire(args.contract, args.version, by=args.by, **announced), args)


def _printed(one: StoredVersion, args: argparse.Namespace) -> int:
    if args.format == "json":
        print_json(one.to_dict())
        return 0
    until = f" and may be retired from {one.sunset}" if one.status == "deprecated" else ""
    print(f"{one.contract_id} {one.version} is {one.status}{until}.")
    return 0


# --- arguments and words ----------------------------------------------------------------------------------------------


def _add_contract(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("contract", metavar="ID", help="the contract's id")


def _add_optional_contract(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("contract", metavar="ID", nargs="?", help="that contract alone, with all its versions")


def _add_show(parser: argparse.ArgumentParser) -> None:
    _add_contract(parser)
    parser.add_argument("--version", metavar="V", help="a version or a range, such as ^2; else the newest active one")


def _add_consumers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("contract", metavar="ID", nargs="?", help="of that contract alone")


def _add_version(parser: argparse.ArgumentParser) -> None:
    _add_contract(parser)
    parser.add_argument("version", metavar="VERSION", help="the version's text")
    _add_by(parser)


def _add_token(parser: argparse.ArgumentParser) -> None:
    add_token(parser)
    _add_by(parser)


def _add_by(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--by", metavar="NAME", default=_user(), help="who does it (the user's name)")


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container's user need not have a name.
        return "unknown"


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day; write it as 2026-01-31") from None


def _print_columns(rows: Iterable[Sequence[str]]) -> None:
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


# --- who is affected --------------------------------------------------------------------------------------------------


def _add_impact(parser: argparse.ArgumentParser) -> None:
    add_target(parser)
    add_known(parser, registry=False)


def _add_register(parser: argparse.ArgumentParser) -> None:
    registering.add_files(parser)
    _add_by(parser)


def _add_trace(parser: argparse.ArgumentParser) -> None:
    add_trace(parser)
    add_known(parser, registry=False)


def _batches(registry: RegistryApi, args: argparse.Namespace) -> int:
    batches.print_listing(batches.require_database(registry), args)
    return 0


ACTIONS: Final = (
    Action(
        "publish", "publish contracts, all or none; what is published already stays as it is", _add_publish, _publish
    ),
    Action("list", "the contracts there are, or all versions of one", _add_optional_contract, _list),
    Action("show", "a published contract in its canonical form", _add_show, _show),
    Action("consumers", "who depends on a contract", _add_consumers, _consumers),
    Action("register", "register the consumers of files", _add_register, registering.run_in),
    Action("remove-consumer", "forget that somebody depends on a contract", _add_remove_consumer, _remove_consumer),
    Action("approve", "store a consumer's consent to a version or a purpose", _add_approve, _approve),
    Action("activate", "make a draft active, or take a deprecation back", _add_version, _activate),
    Action("deprecate", "announce the end of a version", _add_deprecate, _deprecate),
    Action("retire", "end a version whose sunset has come and that no consumer needs", _add_version, _retire),
    Action("serve", "answer calls over HTTP", add_serve, serve_registry),
    Action("token", "create, list and revoke the tokens of those who may call", _add_token, run_token),
    Action("impact", "whom a change reaches", _add_impact, impact.run_in, impact.FORMS),
    Action("batches", "which rows are held in quarantine, by table and reason", batches.add_listing, _batches),
    Action("trace", "who holds personal data, and what of its deletion is done", _add_trace, trace.run_in),
)

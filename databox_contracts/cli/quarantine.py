"""`quarantine`: look at the rows held beside a table, and release those that a corrected contract accepts."""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from databox_contracts.cli.batches import RELEASED, REMOVED, register_batches
from databox_contracts.cli.progress import terminal_progress
from databox_contracts.cli.verify import add_schema_modes, moment, reference, schema_modes
from databox_contracts.errors import ContractViolationError

if TYPE_CHECKING:
    from databox_contracts.spark.quarantine_batches import HeldBatch
    from databox_contracts.spark.replaying import Replay
    from databox_contracts.spark.stores import Place


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and what each of them takes."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="which batches of held rows there are, with counts and no values")
    show = actions.add_parser("show", help="reasons of held rows, and with --contract the rows themselves")
    replay = actions.add_parser("replay", help="judge held rows again; those that keep the contract join the table")
    register = actions.add_parser("register", help="tell a registry which batches are held")
    for action in (listing, show, replay, register):
        action.add_argument(
            "root",
            metavar="ROOT",
            help="the directory that the tables are below; with --place iceberg the catalog's name for pyiceberg, with"
            " iceberg-session the directory that rows are staged in",
        )
        action.add_argument(
            "name",
            metavar="NAME",
            help="the table's name there, such as weather/hourly; for a catalog and Iceberg database.table, for"
            " iceberg-session catalog.namespace.table",
        )
        action.add_argument(
            "--place",
            choices=tuple(_PLACES),
            default="directory",
            help="what the table is: one of directories (the default), of Delta, Iceberg, an Iceberg catalog that Spark"
            " itself knows (iceberg-session), or Spark's catalog",
        )
    for action in (show, replay):
        action.add_argument(
            "--batch",
            metavar="B",
            action="append",
            help="look at this batch alone, by its name in the list; repeatable",
        )
    show.add_argument("--contract", metavar="FILE", help="show values too, but for those that this contract masks")
    show.add_argument("--rows", metavar="N", type=_count, default=10, help="show so many rows of each batch (10)")
    replay.add_argument("--contract", metavar="FILE", required=True, help="the contract as it is now")
    for action in (show, replay):
        action.add_argument("--dataset", metavar="NAME", help="which of its datasets, where it has several")
    replay.add_argument(
        "--scope",
        choices=("table", "partition"),
        default="table",
        help="whether keys are the table's or each partition's (table)",
    )
    replay.add_argument(
        "--reference",
        metavar="NAME=PATH",
        action="append",
        default=[],
        help="the table of a dataset that foreign keys or completeness name, repeatable",
    )
    add_schema_modes(replay)
    replay.add_argument("--master", metavar="URL", default="local[*]", help="Spark master, or sc:// for Spark Connect")
    replay.add_argument(
        "--as-of",
        metavar="TIME",
        type=moment,
        help="what promises about time take for now, in ISO 8601; UTC without a zone",
    )
    replay.add_argument("--timestamp-field", metavar="NAME", help="the time of a row, where a promise names no field")
    for action in (listing, show, replay, register):
        action.add_argument("--format", choices=("text", "json"), default="text")
    where = "a file or postgresql:// URL"
    replay.add_argument("--registry", metavar="URL|PATH", help=f"tell this registry what is still held: {where}")
    register.add_argument(
        "--registry", metavar="URL|PATH", help=f"{where} ($DATABOX_REGISTRY, else a file in $DAGSTER_HOME)"
    )


def run(args: argparse.Namespace) -> int:
    """0 done, and no row that was looked at stays held; 1 some do; 2 it could not be done."""
    return _ACTIONS[args.action](args)


# --- list -------------------------------------------------------------------------------------------------------------


def _list(args: argparse.Namespace) -> int:
    from databox_contracts.spark.quarantine_batches import open_batches

    place = _place(args)
    name = _name(place)
    batches = [_facts(batch) for batch in open_batches(place)]
    if args.format == "json":
        _print_json({"table": name, "rows": sum(one["rows"] for one in batches), "batches": batches})
        return 0
    for one in batches:
        print(_line(one))
    print(f"{name}: {_total(batches)}.")
    return 0


def _facts(batch: HeldBatch) -> dict[str, Any]:
    return {
        "batch": batch.name,
        "rows": batch.rows,
        "reasons": batch.reasons(),
        "contract": batch.facts.get("contract"),
        "contract_version": batch.facts.get("contract_version"),
        "dataset": batch.facts.get("dataset"),
        "run_id": batch.facts.get("run_id"),
        "held_at": batch.facts.get("published_at"),
        "superseded_by": batch.superseded_by,
        "not_replayable": batch.refused,
    }


def _line(one: Mapping[str, Any]) -> str:
    remarks = [one["not_replayable"]] if one["not_replayable"] else []
    if one["superseded_by"]:
        remarks.append(f"version {one['superseded_by']} replaced what its rows were held back from")
    said = f" ({'; '.join(remarks)})" if remarks else ""
    version = f"{one['contract']} {one['contract_version']}"
    return f"{one['batch']}  {_rows(one['rows'])}, run {one['run_id']}, {version}{said}\n{_reasons(one['reasons'])}"


# --- show -------------------------------------------------------------------------------------------------------------


def _show(args: argparse.Namespace) -> int:
    from databox_contracts.formats import load_contract
    from databox_contracts.spark.quarantine_batches import named_batches, open_batches

    place = _place(args)
    found = open_batches(place)
    chosen = named_batches(place, found, args.batch) if args.batch else found
    rows: list[dict[str, Any]] = []
    if args.contract is not None:
        contract = load_contract(args.contract)
        dataset = contract.dataset(args.dataset)
        for batch in chosen:
            rows.extend(_plain(row) for row in batch.shown(contract, dataset, limit=args.rows))
    batches = [_facts(batch) for batch in chosen]
    reasons: Counter[str] = Counter()
    for one in batches:
        reasons.update(one["reasons"])
    if args.format == "json":
        _print_json(
            {
                "table": _name(place),
                "rows_held": sum(one["rows"] for one in batches),
                "reasons": dict(sorted(reasons.items())),
                "batches": [{name: one[name] for name in ("batch", "rows", "reasons")} for one in batches],
                "rows": rows if args.contract is not None else None,
            }
        )
        return 0
    for row in rows:
        hidden = f"  not shown: {', '.join(row['not_shown'])}" if row["not_shown"] else ""
        values = json.dumps(row["values"], ensure_ascii=False)
        print(f"{row['batch']}  {', '.join(row['reasons'])}\n    {values}{hidden}")
    if reasons:
        print(_reasons(reasons))
    hint = "" if args.contract is not None or not batches else " Values are shown with --contract FILE."
    print(f"{_name(place)}: {_total(batches)}.{hint}")
    return 0


# --- replay -----------------------------------------------------------------------------------------------------------


def _replay(args: argparse.Namespace) -> int:
    from databox_contracts.formats import load_contract
    from databox_contracts.spark.failures import SPARK_ERRORS, unreadable
    from databox_contracts.spark.quarantine_batches import named_batches, open_batches
    from databox_contracts.spark.quiet import command_session
    from databox_contracts.spark.references import open_references
    from databox_contracts.spark.replaying import replay

    contract = load_contract(args.contract)
    dataset = contract.dataset(args.dataset)
    references = dict(reference(text) for text in args.reference)
    modes = schema_modes(args, contract, dataset)
    place = _place(args)
    # Before Spark is started, which takes its time.
    named_batches(place, open_batches(place), args.batch or [])
    with terminal_progress() as progress, command_session(args.master) as spark:
        opened = open_references(spark, references, contract)
        try:
            done = replay(
                spark,
                contract,
                dataset.name,
                place=place,
                batches=args.batch,
                scope=args.scope,
                as_of=args.as_of,
                timestamp_field=args.timestamp_field,
                references=opened,
                schema_modes=modes,
                progress=progress,
            )
        except SPARK_ERRORS as error:
            raise unreadable(str(place), error) from error
        except ContractViolationError as error:
            return _refused(args, place, error)
    if args.registry is not None:
        register_batches(place, args.registry, outcome=RELEASED)
    if args.format == "json":
        _print_json(done.to_dict())
    else:
        print(_described(done))
    return 1 if done.rows_held else 0


def _register(args: argparse.Namespace) -> int:
    place = _place(args)
    held, closed = register_batches(place, args.registry, outcome=REMOVED)
    if args.format == "json":
        _print_json({"table": _name(place), "held": held, "closed": closed})
    else:
        gone = f", {closed} not any more" if closed else ""
        print(f"{_name(place)}: {held} {'batch is' if held == 1 else 'batches are'} held{gone}.")
    return 0


def _refused(args: argparse.Namespace, place: Place, error: ContractViolationError) -> int:
    if args.format == "json":
        _print_json({"table": _name(place), "rows_released": 0, "verdict": error.verdict.to_dict()})
    else:
        print(f"{_name(place)}: {error}")
    return 1


def _described(done: Replay) -> str:
    lines = []
    for batch in done.batches:
        if batch.passed_over is not None:
            lines.append(f"{batch.name}  {_rows(batch.rows)}, passed over: {batch.passed_over}")
            continue
        lines.append(f"{batch.name}  {_rows(batch.rows)}: {batch.released} released, {batch.held} held")
        lines.extend(filter(None, [_reasons(batch.reasons or {})]))
    table = f", which has {_rows(done.table_rows)} now" if done.table_rows is not None else ""
    lines.append(
        f"{_name(done.place)} by {done.contract} {done.contract_version}: {done.rows_released} of {_rows(done.rows)}"
        f" released, {done.rows_held} held. Version {done.version}{table}."
    )
    return "\n".join(lines)


# --- words ------------------------------------------------------------------------------------------------------------


def _place(args: argparse.Namespace) -> Place:
    return _PLACES[args.place](args.root, args.name)


def _directory(root: str, name: str) -> Place:
    from databox_contracts.spark.tables import TablePlace

    place = TablePlace(Path(root), name)
    # Spark's process may have another working directory.
    return replace(place, root=place.root.absolute())


def _delta(root: str, name: str) -> Place:
    from databox_contracts.spark.delta_publication import DeltaPlace

    return DeltaPlace(Path(root) / name)


def _iceberg(root: str, name: str) -> Place:
    from databox_contracts.spark.iceberg_publication import named_place

    return named_place(root, name)


def _iceberg_session(root: str, name: str) -> Place:
    from databox_contracts.spark.iceberg_session import SessionIcebergPlace

    return SessionIcebergPlace(name, Path(root))


def _catalog(root: str, name: str) -> Place:
    from databox_contracts.spark.catalog_publication import CatalogPlace

    return CatalogPlace(name, Path(root))


_PLACES: Final[Mapping[str, Callable[[str, str], Place]]] = {
    "directory": _directory,
    "delta": _delta,
    "iceberg": _iceberg,
    "iceberg-session": _iceberg_session,
    "catalog": _catalog,
}


def _name(place: Place) -> str:
    from databox_contracts.spark.stores import table_name

    return table_name(place)


def _rows(count: int) -> str:
    return f"{count} row" if count == 1 else f"{count} rows"


def _total(batches: Iterable[Mapping[str, Any]]) -> str:
    counts = [int(one["rows"]) for one in batches]
    if not counts:
        return "no rows are held"
    return f"{_rows(sum(counts))} held in {len(counts)} {'batch' if len(counts) == 1 else 'batches'}"


def _reasons(reasons: Mapping[str, int]) -> str:
    return "\n".join(f"    {count:>8}  {reason}" for reason, count in sorted(reasons.items()))


def _plain(value: Any) -> Any:
    """A value as JSON has it: what JSON lacks becomes text."""
    match value:
        case dict():
            return {str(name): _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return value.hex()
        case float() if not math.isfinite(value):
            return str(value)
        case None | bool() | int() | float() | str():
            return value
    return str(value)


def _print_json(facts: Mapping[str, Any]) -> None:
    print(json.dumps(facts, indent=2, ensure_ascii=False, default=str))


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if number < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return number


_ACTIONS: Final[Mapping[str, Callable[[argparse.Namespace], int]]] = {
    "list": _list,
    "show": _show,
    "replay": _replay,
    "register": _register,
}

"""`verify`: hold real data against a contract, outside Dagster."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from databox_contracts.cli.progress import terminal_progress
from databox_contracts.errors import DataboxError
from databox_contracts.results import Status, Verdict
from databox_contracts.rules import HasType, Undeclared
from databox_contracts.schema_modes import effective_modes, parse_modes_text

if TYPE_CHECKING:
    from databox_contracts.model import Contract, Dataset, Mode, Server
    from databox_contracts.telemetry.prometheus import PrometheusMetrics

_BY_MODES = (HasType.kind, Undeclared.kind)
_MARKS = {Status.FAILED: "FAILED", Status.NOT_EVALUATED: "NOT EVALUATED", Status.SKIPPED: "skipped"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("contract", metavar="CONTRACT", help="the contract file")
    parser.add_argument("--dataset", metavar="NAME", help="which of its datasets, where it has several")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--data", metavar="PATH", help="the table: a file or a directory")
    where.add_argument("--server", metavar="NAME", help="take path and format from this server of the contract")
    parser.add_argument(
        "--data-format", metavar="FORMAT", help="parquet, orc or csv; guessed from the name if not given"
    )
    parser.add_argument(
        "--option", metavar="KEY=VALUE", action="append", default=[], help="a reader option, repeatable"
    )
    parser.add_argument(
        "--reference",
        metavar="NAME=PATH",
        action="append",
        default=[],
        help="the table of a dataset that foreign keys or completeness name, repeatable",
    )
    add_schema_modes(parser)
    parser.add_argument("--master", metavar="URL", default="local[*]", help="Spark master, or sc:// for Spark Connect")
    parser.add_argument("--samples", metavar="N", type=_count, default=5, help="values shown for each failed rule")
    parser.add_argument(
        "--as-of",
        metavar="TIME",
        type=moment,
        help="what promises about time take for now, in ISO 8601; UTC without a zone",
    )
    parser.add_argument("--timestamp-field", metavar="NAME", help="the time of a row, where a promise names no field")
    parser.add_argument("--explain", action="store_true", help="show for each rule how it was answered, and what from")
    parser.add_argument(
        "--trust-statistics",
        action="store_true",
        help="believe the statistics in the footers of Parquet files on this machine, whoever wrote them",
    )
    parser.add_argument(
        "--metrics-file", metavar="FILE", type=Path, help="write metrics for Prometheus' textfile collector (.prom)"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")


def add_schema_modes(parser: argparse.ArgumentParser) -> None:
    """Declare `--schema-modes`."""
    parser.add_argument(
        "--schema-modes",
        metavar="MODES",
        help="what becomes of data that the contract does not know, before what it says itself: evolve, freeze,"
        " discard_row or discard_value, or some of tables, columns and data_type: columns=freeze,data_type=discard_row",
    )


def schema_modes(args: argparse.Namespace, contract: Contract, dataset: Dataset) -> Mapping[str, Mode]:
    """The modes that were asked for. Raises `DataboxError` for what is none, before Spark is started."""
    found = parse_modes_text(args.schema_modes, whose="--schema-modes") if args.schema_modes is not None else {}
    effective_modes(contract, dataset, run=found)
    return found


def run(args: argparse.Namespace) -> int:
    """0 the contract holds, 1 it is violated, 2 it could not be verified."""
    from databox_contracts.formats import load_contract

    contract = load_contract(args.contract)
    dataset = contract.dataset(args.dataset)
    modes = schema_modes(args, contract, dataset)
    path, data_format = _place(args, contract, dataset)
    metrics = _metrics() if args.metrics_file is not None else None
    verdict, seconds = _verify(args, contract, dataset, path, data_format, modes)
    if metrics is not None:
        metrics.record_verdict(verdict, seconds)
        metrics.write(args.metrics_file)
    if args.format == "json":
        print(verdict.to_json(explain=args.explain))
    else:
        print(explained(verdict) if args.explain else describe(verdict))
    return 0 if verdict.passed else 1


def describe(verdict: Verdict) -> str:
    """The verdict as text: what does not hold first, then one line of numbers."""
    lines = []
    for result in verdict.results:
        if result.status in _MARKS:
            lines.append(f"{_MARKS[result.status]:<13} {result.severity:<8} {result.id}: {result.message}")
            if result.samples:
                lines.append(f"{'':<13} {'':<8} e.g. {', '.join(map(str, result.samples))}")
        elif result.message and result.rule in _BY_MODES:
            lines.append(f"{'note':<13} {'':<8} {result.id}: {result.message}")
    numbers = ", ".join(
        f"{len(verdict.with_status(status))} {word}"
        for status, word in (
            (Status.PASSED, "passed"),
            (Status.FAILED, "failed"),
            (Status.NOT_EVALUATED, "not evaluated"),
            (Status.SKIPPED, "skipped"),
        )
    )
    outcome = "holds" if verdict.passed else "VIOLATED"
    name = f"{verdict.contract} {verdict.version}, dataset {verdict.dataset}"
    settings = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in verdict.settings.items())
    lines.append(f"{name}: {outcome}. {verdict.row_count} rows; rules: {numbers}. Session: {settings}.")
    return "\n".join(lines)


def explained(verdict: Verdict) -> str:
    """The verdict as text, after a line for each rule that says where its answer came from."""
    width = max((len(result.id) for result in verdict.results), default=0)
    lines = [f"{result.id:<{width}}  {result.status:<13}  {result.how}" for result in verdict.results]
    return "\n".join([*lines, "", describe(verdict)])


def _metrics() -> PrometheusMetrics:
    try:
        from databox_contracts.telemetry.prometheus import PrometheusMetrics
    except ModuleNotFoundError as error:
        raise DataboxError(
            f"--metrics-file needs {error.name}", hint='pip install "databox_contracts[telemetry]"'
        ) from None
    return PrometheusMetrics()


def _place(args: argparse.Namespace, contract: Contract, dataset: Dataset) -> tuple[str, str | None]:
    if args.data is not None:
        return args.data, args.data_format
    if args.server is None:
        raise DataboxError("nothing to verify was named.", hint="Give --data PATH or --server NAME.")
    server = _server(args.server, contract)
    location = server.location
    if location is None:
        raise DataboxError(f"server {server.name!r} has neither a path nor a location.", hint="Give --data PATH.")
    written = server.settings.get("format")
    table = location.replace("{model}", dataset.table_name).replace("{schema}", dataset.table_name)
    return table, args.data_format or (str(written) if written is not None else None)


def _server(name: str, contract: Contract) -> Server:
    for server in contract.servers:
        if server.name == name:
            return server
    known = ", ".join(server.name for server in contract.servers) or "none"
    raise DataboxError(f"contract {contract.title!r} has no server {name!r}.", hint=f"Its servers: {known}.")


def _verify(
    args: argparse.Namespace,
    contract: Contract,
    dataset: Dataset,
    path: str,
    data_format: str | None,
    modes: Mapping[str, Mode],
) -> tuple[Verdict, float]:
    """The verdict, and how long it took once there was a session."""
    from databox_contracts.spark.failures import SPARK_ERRORS, unreadable
    from databox_contracts.spark.footers import data_files
    from databox_contracts.spark.quiet import command_session
    from databox_contracts.spark.reading import UNTYPED, guess_format, read_table
    from databox_contracts.spark.references import open_references
    from databox_contracts.spark.verification import verify

    options = dict(_option(text) for text in args.option)
    references = dict(reference(text) for text in args.reference)
    path = _absolute(path)
    chosen = data_format or guess_format(path)
    if args.trust_statistics and (chosen != "parquet" or not Path(path).exists()):
        raise DataboxError(
            f"{path} has no statistics that could be believed.",
            hint="Leave out --trust-statistics, or name Parquet files on this machine.",
        )
    with terminal_progress() as progress, command_session(args.master) as spark:
        opened = open_references(spark, references, contract)
        try:
            df = read_table(spark, path, format=chosen, options=options)
            files = data_files(Path(path)) if args.trust_statistics else None
            began = monotonic()
            verdict = verify(
                df,
                contract,
                dataset.name,
                samples=args.samples,
                untyped=chosen in UNTYPED,
                as_of=args.as_of,
                timestamp_field=args.timestamp_field,
                references=opened,
                trusted_files=files,
                progress=progress,
                schema_modes=modes,
            )
            return verdict, monotonic() - began
        except SPARK_ERRORS as error:
            raise unreadable(path, error) from error


def _option(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise DataboxError(f"--option {text!r} is not KEY=VALUE.", hint="For example --option nullValue=NA.")
    return key, value


def reference(text: str) -> tuple[str, str]:
    """Name and path of a referenced dataset, written as an argument."""
    name, equals, path = text.partition("=")
    if not equals or not name or not path:
        raise DataboxError(
            f"--reference {text!r} is not NAME=PATH.", hint="For example --reference weather.stations=stations.parquet."
        )
    return name, _absolute(path)


def _absolute(path: str) -> str:
    # Spark's process may have another working directory.
    return path if "://" in path else str(Path(path).absolute())


def moment(text: str) -> datetime:
    """A time that was written as an argument."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 2024-05-01T06:00:00Z") from error
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return number

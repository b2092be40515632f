"""`diff`: what changed between two versions of a contract, and whom it breaks."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from databox_contracts.evolution.report import MigrationReport
    from databox_contracts.evolution.table_formats import TableFormat


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the two contracts, the policy and the form of the output."""
    parser.add_argument("old", metavar="OLD", help="the contract as it was, of any dialect")
    parser.add_argument("new", metavar="NEW", help="the contract as it is to be, of any dialect")
    parser.add_argument("--policy", metavar="NAME", help="who judges, instead of the old contract's own policy")
    parser.add_argument(
        "--history", metavar="FILE", action="append", default=[], help="an earlier version, for transitive policies"
    )
    add_table_format(parser)
    parser.add_argument("--format", choices=FORMS, default="text", help="how the report is printed")


def run(args: argparse.Namespace) -> int:
    """0 nothing breaks, 1 something does; a contract that cannot be loaded raises."""
    from databox_contracts.evolution.judging import diff
    from databox_contracts.formats import load_contract

    history = [load_contract(path) for path in args.history]
    chosen = table_format_of(args)
    report = diff(load_contract(args.old), load_contract(args.new), args.policy, history=history, table_format=chosen)
    return printed(report, args.format, args.new)


def add_table_format(parser: argparse.ArgumentParser) -> None:
    """Declares the table format that has a say beside the contract."""
    parser.add_argument("--table-format", choices=("iceberg", "delta"), help="hold the changes against its rules, too")


def table_format_of(args: argparse.Namespace) -> TableFormat | None:
    """The table format that was asked for, or None."""
    from databox_contracts.evolution.table_formats import TableFormat

    return TableFormat(args.table_format) if args.table_format is not None else None


def printed(report: MigrationReport, form: str, file: str) -> int:
    """Prints the report; 0 nothing breaks, 1 something does or the table format refuses it."""
    for line in _RENDERERS[form](report, file):
        print(line)
    refused = report.table_format is not None and bool(report.table_format.refused)
    return 1 if report.is_breaking or refused else 0


def _as_text(report: MigrationReport, file: str) -> Iterator[str]:
    from databox_contracts.evolution.rendering import as_text

    yield from as_text(report)


def _as_json(report: MigrationReport, file: str) -> Iterator[str]:
    yield report.to_json()


def _as_markdown(report: MigrationReport, file: str) -> Iterator[str]:
    from databox_contracts.evolution.rendering import as_markdown

    yield from as_markdown(report)


def _as_github(report: MigrationReport, file: str) -> Iterator[str]:
    from databox_contracts.evolution.rendering import as_github

    yield from as_github(report, file)


_RENDERERS: Final[dict[str, Callable[[MigrationReport, str], Iterator[str]]]] = {
    "text": _as_text,
    "json": _as_json,
    "markdown": _as_markdown,
    "github": _as_github,
}

FORMS: Final = tuple(_RENDERERS)

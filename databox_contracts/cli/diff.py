"""`diff`: what changed between two versions of a contract, and whom it breaks."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from databox_contracts.evolution.report import MigrationReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the two contracts, the policy and the form of the output."""
    parser.add_argument("old", metavar="OLD", help="the contract as it was, of any dialect")
    parser.add_argument("new", metavar="NEW", help="the contract as it is to be, of any dialect")
    parser.add_argument("--policy", metavar="NAME", help="who judges, instead of the old contract's own policy")
    parser.add_argument(
        "--history", metavar="FILE", action="append", default=[], help="an earlier version, for transitive policies"
    )
    parser.add_argument("--format", choices=tuple(_RENDERERS), default="text", help="how the report is printed")


def run(args: argparse.Namespace) -> int:
    """0 nothing breaks, 1 something does; a contract that cannot be loaded raises."""
    from databox_contracts.evolution.judging import diff
    from databox_contracts.formats import load_contract

    history = [load_contract(path) for path in args.history]
    report = diff(load_contract(args.old), load_contract(args.new), args.policy, history=history)
    for line in _RENDERERS[args.format](report, args.new):
        print(line)
    return 1 if report.is_breaking else 0


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

"""`gate`: what a branch changes in its contracts, and whether it may be merged."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from databox_contracts.cli.diff import add_table_format, table_format_of
from databox_contracts.cli.reaching import Readers, add_readers
from databox_contracts.errors import DataboxError

if TYPE_CHECKING:
    from databox_contracts.gate.gating import GateReport, Terms


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the revisions, the folder, what is accepted, and the form of the output."""
    parser.add_argument("--base", metavar="REF", default="origin/main", help="what is compared with (origin/main)")
    parser.add_argument("--head", metavar="REF", default="HEAD", help="what is judged (HEAD)")
    parser.add_argument("--worktree", action="store_true", help="judge the files as they are, committed or not")
    parser.add_argument("--history", metavar="A..B", help="replay the gate over the commits of a range instead")
    parser.add_argument(
        "--contracts", metavar="DIR", type=Path, default=Path("contracts"), help="the folder (contracts)"
    )
    parser.add_argument(
        "--policy", metavar="NAME", help="who judges, instead of each contract's own policy at the base"
    )
    parser.add_argument(
        "--pr-body-file", metavar="FILE", type=Path, help="the pull request's text, with what it accepts"
    )
    parser.add_argument("--accept", metavar="A,B", help="datasets whose breaks are accepted")
    parser.add_argument("--approvals-file", metavar="FILE", type=Path, help="YAML: which consumers agreed to what")
    add_readers(parser)
    parser.add_argument("--warn-until", metavar="DATE", help="let breaks through until that day, at most 90 days")
    add_table_format(parser)
    parser.add_argument("--format", choices=tuple(_RENDERERS), default="text", help="how the report is printed")


def run(args: argparse.Namespace) -> int:
    """0 clean or accepted, 1 a break that nobody accepted; what cannot be judged is 2."""
    from databox_contracts.gate.gating import judge_revisions, revisions

    if args.history is not None:
        return _replay(args)
    before, after = revisions(args.contracts, args.base, None if args.worktree else args.head)
    report = judge_revisions(before, after, _terms(args, Readers.of(args, before, after)))
    for line in _RENDERERS[args.format](report):
        print(line)
    if report.problems:
        return 2
    return 0 if report.clean else 1


def _terms(args: argparse.Namespace, readers: Readers) -> Terms:
    from databox_contracts.gate.acknowledging import VARIABLE, read_acknowledgements
    from databox_contracts.gate.gating import Terms

    body = _text(args.pr_body_file) if args.pr_body_file is not None else None
    return Terms(
        today=date.today(),
        policy=args.policy,
        acknowledgements=read_acknowledgements(args.accept, os.environ.get(VARIABLE), body),
        approvals=(*_approvals(args.approvals_file), *readers.approvals),
        consumers=readers.consumers,
        reach=readers.reach,
        warn_until=_day(args.warn_until),
        table_format=table_format_of(args),
    )


def _replay(args: argparse.Namespace) -> int:
    from databox_contracts.gate.gating import revisions
    from databox_contracts.gate.history import replay

    first, dots, last = args.history.partition("..")
    if not first or not dots or not last or last.startswith("."):
        raise DataboxError(f"{args.history!r} is no range of revisions", hint="Write it as A..B.")
    # Who read what back then is nowhere written: those who declare themselves today are asked.
    today, _ = revisions(args.contracts, last, last)
    entries = list(replay(args.contracts, first, last, _terms(args, Readers.of(args, today, today))))
    if args.format == "json":
        print(json.dumps([entry.to_dict() for entry in entries], indent=2, ensure_ascii=False))
    else:
        for entry in entries:
            for line in entry.lines():
                print(line)
        broken = sum(1 for entry in entries if entry.report is not None and not entry.report.clean)
        print(f"{len(entries)} commits changed contracts, {broken} of them with breaks that nobody accepted")
    return 0


def _approvals(file: Path | None) -> tuple[Any, ...]:
    if file is None:
        return ()
    from databox_contracts.formats.approval_files import load_approvals

    return load_approvals(file)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise DataboxError(f"cannot read {str(file)!r}: {reason}", hint="Name a text file that is there.") from None


def _day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise DataboxError(f"{text!r} is no date", hint="Write it as 2026-01-31.") from None


def _as_text(report: GateReport) -> Iterator[str]:
    from databox_contracts.gate.rendering import as_text

    yield from as_text(report)


def _as_json(report: GateReport) -> Iterator[str]:
    yield json.dumps(report.to_dict(), indent=2, ensure_ascii=False)


def _as_markdown(report: GateReport) -> Iterator[str]:
    from databox_contracts.gate.rendering import as_markdown

    yield from as_markdown(report)


def _as_github(report: GateReport) -> Iterator[str]:
    from databox_contracts.gate.rendering import as_github

    yield from as_github(report)


_RENDERERS: Final[dict[str, Callable[[GateReport], Iterator[str]]]] = {
    "text": _as_text,
    "json": _as_json,
    "markdown": _as_markdown,
    "github": _as_github,
}

"""`lint`: every finding about contract files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from databox_contracts.errors import DataboxError, Level

if TYPE_CHECKING:
    from databox_contracts.errors import Finding


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares paths and the form of the output."""
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a contract file, or a folder of them")
    parser.add_argument("--format", choices=tuple(_RENDERERS), default="text", help="how findings are printed")


def run(args: argparse.Namespace) -> int:
    """0 without errors (warnings and notes are none), 1 with errors; a path that is not there raises."""
    from databox_contracts.formats import examine

    files = list(_files(args.paths))
    findings = [finding for file in files for finding in examine(file)[1]]
    for line in _RENDERERS[args.format](findings, files):
        print(line)
    return 1 if any(finding.level is Level.ERROR for finding in findings) else 0


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    from databox_contracts.formats import contract_files

    for path in paths:
        if not path.exists():
            raise DataboxError(f"there is no {str(path)!r}.", hint="Name a contract file, or a folder of them.")
        if not path.is_dir():
            yield path
            continue
        found = list(contract_files(path))
        if not found:
            raise DataboxError(f"the folder {str(path)!r} holds no .yaml or .yml file.", hint="Name another one.")
        yield from found


def _as_text(findings: Sequence[Finding], files: Sequence[Path]) -> Iterator[str]:
    for finding in findings:
        yield str(finding)
    counted = ", ".join(_plural(count, level) for level, count in _counts(findings).items())
    yield f"{_plural(len(files), 'file')}: {counted}"


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _as_json(findings: Sequence[Finding], files: Sequence[Path]) -> Iterator[str]:
    yield json.dumps(
        {
            "files": len(files),
            **{f"{level}s": count for level, count in _counts(findings).items()},
            "findings": [
                {
                    "file": finding.source,
                    "line": finding.position.line if finding.position else None,
                    "column": finding.position.column if finding.position else None,
                    "severity": str(finding.level),
                    "message": finding.message,
                    "hint": finding.hint,
                    "field": finding.field,
                }
                for finding in findings
            ],
        },
        indent=2,
        ensure_ascii=False,
    )


_GITHUB_LEVELS: Final = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}


def _as_github(findings: Sequence[Finding], files: Sequence[Path]) -> Iterator[str]:
    """Workflow commands, which GitHub shows at the lines of a pull request."""
    for finding in findings:
        place = [f"file={_escaped(finding.source, in_property=True)}"]
        if finding.position is not None:
            place += [f"line={finding.position.line}", f"col={finding.position.column}"]
        message = f"{finding.message} ({finding.hint})" if finding.hint else finding.message
        yield f"::{_GITHUB_LEVELS[finding.level]} {','.join(place)}::{_escaped(message)}"


def _escaped(text: str, *, in_property: bool = False) -> str:
    for char in "%\r\n" + (":," if in_property else ""):
        text = text.replace(char, f"%{ord(char):02X}")
    return text


def _counts(findings: Sequence[Finding]) -> dict[Level, int]:
    return {level: sum(finding.level is level for finding in findings) for level in Level}


_RENDERERS: Final[dict[str, Callable[[Sequence[Finding], Sequence[Path]], Iterator[str]]]] = {
    "text": _as_text,
    "json": _as_json,
    "github": _as_github,
}

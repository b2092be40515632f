"""`lint`: every finding about contract files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from databox_contracts.errors import DataboxError, Level

if TYPE_CHECKING:
    from databox_contracts.errors import Finding, Position
    from databox_contracts.formats.many import Examined


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares paths, the form of the output, and whether Java is asked about patterns."""
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a contract file, or a folder of them")
    parser.add_argument("--format", choices=tuple(_RENDERERS), default="text", help="how findings are printed")
    parser.add_argument("--java", action="store_true", help="compile every pattern in Java too, which starts Spark")


def run(args: argparse.Namespace) -> int:
    """0 without errors (warnings and notes are none), 1 with errors; a path that is not there raises.

    With `--java` a missing Java or Spark raises too, and what cannot be compiled is an error.
    """
    from databox_contracts.formats.many import examine_files

    files = list(_files(args.paths))
    examined = examine_files(files)
    findings = [finding for file in examined for finding in file.findings]
    findings += _repeated(examined)
    if args.java:
        findings += _refused_by_java(examined)
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


# --- what only all files together show --------------------------------------------------------------------------------

_IDENTITY: Final[dict[str, tuple[str, ...]]] = {"soda": ("dataset",), "sections": ("contract", "name")}
"""Where a dialect has a contract's id, if not under `id`."""


def _repeated(examined: Sequence[Examined]) -> Iterator[Finding]:
    """An error for each file that holds the id and the version of another."""
    from databox_contracts.errors import Finding
    from databox_contracts.formats.identity import full_version

    first: dict[tuple[str, str], Path] = {}
    for one in examined:
        if one.identity is None:
            continue
        id_, version = one.identity
        other = first.setdefault((id_, full_version(version)), one.path)
        if other.resolve() == one.path.resolve():
            continue
        position, there = _identity(one.path), _identity(other)
        place = f"{other}:{there.line}:{there.column}" if there is not None else str(other)
        message = f"the contract {id_!r} {version} is that of {place} too"
        yield Finding(str(one.path), Level.ERROR, message, position, "give one of them another id or version")


def _identity(file: Path) -> Position | None:
    """Where a file says which contract it holds; asked only for files that have a finding."""
    from databox_contracts.formats import detect
    from databox_contracts.formats.positions import parse_yaml

    try:
        document = parse_yaml(file.read_text(encoding="utf-8-sig"), str(file))
    except OSError:
        return None
    dialect = detect(document.data)
    return document.position(_IDENTITY.get(dialect.name if dialect is not None else "", ("id",)))


def _refused_by_java(examined: Sequence[Examined]) -> Iterator[Finding]:
    """An error for each pattern that Java does not compile, as it is translated for it."""
    from databox_contracts.errors import Finding
    from databox_contracts.patterns import PatternError, to_java

    translated: dict[str, str] = {}
    places: list[tuple[Path, str, Position | None, str | None]] = []
    for one in examined:
        for pattern, position, field in one.patterns:
            try:
                translated[pattern] = to_java(pattern)
            except PatternError:
                # Which is a finding already.
                continue
            places.append((one.path, pattern, position, field))
    if not places:
        return
    from databox_contracts.spark.quiet import command_session
    from databox_contracts.spark.regexes import refused

    with command_session("local[1]") as spark:
        reasons = refused(spark, list(dict.fromkeys(translated.values())))
    for file, pattern, position, field in places:
        reason = reasons.get(translated[pattern])
        if reason is not None:
            message = f"Java refuses the pattern {pattern[:60]!r}: {reason}"
            yield Finding(str(file), Level.ERROR, message, position, "write it another way", field)


# --- how findings are printed -----------------------------------------------------------------------------------------


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
    from databox_contracts.workflow_commands import workflow_command

    for finding in findings:
        message = f"{finding.message} ({finding.hint})" if finding.hint else finding.message
        yield workflow_command(_GITHUB_LEVELS[finding.level], message, finding.source, finding.position)


def _counts(findings: Sequence[Finding]) -> dict[Level, int]:
    return {level: sum(finding.level is level for finding in findings) for level in Level}


_RENDERERS: Final[dict[str, Callable[[Sequence[Finding], Sequence[Path]], Iterator[str]]]] = {
    "text": _as_text,
    "json": _as_json,
    "github": _as_github,
}

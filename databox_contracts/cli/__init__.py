"""The command line: one module per command, each with its arguments and its exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from importlib import import_module
from importlib.util import find_spec
from typing import Final, Protocol, cast

from databox_contracts.errors import DataboxError


class Exit(IntEnum):
    """What the commands' exit codes mean."""

    HOLDS = 0
    VIOLATED = 1
    COULD_NOT_RUN = 2
    INTERRUPTED = 130


class CommandModule(Protocol):
    """What a module of a command has. `run` imports what it needs itself, so that the others need not load it."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declares the command's arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Runs it; the result is the exit code. A `DataboxError` is printed and means: could not run."""


@dataclass(frozen=True)
class Command:
    """A command's name, its module in this package, and what it does in one line."""

    name: str
    module: str
    summary: str


COMMANDS: Final = (
    Command("lint", "lint", "check contract files; every finding with its file, line and column"),
    Command("show", "show", "print a contract in its canonical form, the same from every dialect"),
    Command("convert", "convert", "write a contract in another dialect; what is lost is listed"),
    Command("diff", "diff", "tell what changed between two versions of a contract, and whom it breaks"),
    Command("generate", "generate", "write a first contract for data, a table, SQL or a schema; guesses are marked"),
    Command("gate", "gate", "tell whether a branch breaks the consumers of its contracts"),
    Command("check-migration", "check_migration", "tell whether a SQL migration breaks the consumers of a contract"),
    Command("consumers", "consumers", "list who reads which contract, and tell who may not"),
    Command("impact", "impact", "tell whom a change of a contract, a dataset or a field reaches"),
    Command("trace", "trace", "tell who holds personal data, and keep a plan of its deletion"),
    Command("verify", "verify", "verify data against a contract"),
    Command("quarantine", "quarantine", "look at held rows; release those that a corrected contract accepts"),
    Command(
        "registry", "registry", "publish contracts; see their versions and consumers, and lead versions to their end"
    ),
    Command("deliver", "deliver", "send what waits in the registry's outbox, until it is told to stop"),
    Command("outbox", "outbox", "look at messages that wait or were given up; send these again"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code: 0 holds, 1 violated, 2 could not run, 130 interrupted."""
    args = _parser().parse_args(argv)
    try:
        code = int(_module(args.command).run(args))
        sys.stdout.flush()
        return code
    except DataboxError as error:
        print(f"databox-contracts: {error}", file=sys.stderr)
        return Exit.COULD_NOT_RUN
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has seen enough; without this the interpreter complains when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.COULD_NOT_RUN


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="databox-contracts",
        description="Data contracts that hold. Exit codes: 0 holds, 1 violated, 2 could not run.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        if find_spec(f"{__name__}.{command.module}") is not None:
            described = commands.add_parser(command.name, help=command.summary, description=command.summary)
            _module(command.name).add_arguments(described)
    return parser


def _module(name: str) -> CommandModule:
    command = next(command for command in COMMANDS if command.name == name)
    return cast("CommandModule", import_module(f"{__name__}.{command.module}"))


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("databox_contracts")
    except PackageNotFoundError:
        return "(not installed)"

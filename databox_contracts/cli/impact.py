"""`impact`: whom a change of a contract, a dataset or a field reaches."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from databox_contracts.cli.known import add_known, known

if TYPE_CHECKING:
    from databox_contracts.cli.known import Known
    from databox_contracts.registry.api import RegistryApi
    from databox_contracts.registry.consumers import Problem
    from databox_contracts.registry.impact import Dependencies, Impact


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the target, where everything is known from, and the form of the output."""
    add_target(parser)
    add_known(parser)
    parser.add_argument("--format", choices=FORMS, default="text", help="how it is printed")


def add_target(parser: argparse.ArgumentParser) -> None:
    """Declare what changes."""
    parser.add_argument("target", metavar="CONTRACT[.DATASET][.FIELD]", help="what changes")


def run(args: argparse.Namespace) -> int:
    """0, whoever is reached; a target that is not there raises."""
    return printed(known(args), args)


def run_in(registry: RegistryApi, args: argparse.Namespace) -> int:
    """As `run`, with what a registry knows."""
    return printed(known(args, registry), args)


def printed(all_known: Known, args: argparse.Namespace) -> int:
    """Print the impact."""
    found, problems = dependencies(all_known)
    for line in _RENDERERS[args.format](found.impact(args.target), problems):
        print(line)
    return 0


def dependencies(all_known: Known) -> tuple[Dependencies, tuple[Problem, ...]]:
    """What depends on what; problems with declarations of consumers are told on the error stream, too."""
    from databox_contracts.registry.consumers import resolve
    from databox_contracts.registry.impact import Dependencies

    resolved = resolve(all_known.contracts, all_known.declarations)
    tell(resolved.problems)
    lineage = all_known.lineage
    made = Dependencies(all_known.contracts, resolved.readings, lineage.edges, assets=lineage.assets)
    return made, resolved.problems


def tell(problems: Iterable[Problem]) -> None:
    """Print problems to the error stream."""
    for problem in problems:
        print(f"databox-contracts: {problem}", file=sys.stderr)


def _as_text(found: Impact, _: tuple[Problem, ...]) -> Iterator[str]:
    from databox_contracts.registry.impact_rendering import as_text

    yield from as_text(found)


def _as_json(found: Impact, problems: tuple[Problem, ...]) -> Iterator[str]:
    facts = {**found.to_dict(), "problems": [problem.to_dict() for problem in problems]}
    yield json.dumps(facts, indent=2, ensure_ascii=False)


def _as_markdown(found: Impact, _: tuple[Problem, ...]) -> Iterator[str]:
    from databox_contracts.registry.impact_rendering import as_markdown

    yield from as_markdown(found)


_RENDERERS: Final[dict[str, Callable[[Impact, tuple[Problem, ...]], Iterator[str]]]] = {
    "text": _as_text,
    "json": _as_json,
    "markdown": _as_markdown,
}

FORMS: Final = tuple(_RENDERERS)

"""`show`: a contract in its canonical form."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from typing import Any, Final


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the contract and the form of the output."""
    parser.add_argument("path", metavar="PATH", help="a contract file of any dialect")
    parser.add_argument("--format", choices=tuple(_RENDERERS), default="text", help="YAML as text, or JSON")


def run(args: argparse.Namespace) -> int:
    """0 shown; a contract that cannot be loaded raises.

    Two documents of the same contract are shown the same, whatever their dialects; nothing of a dialect's own is shown.
    """
    from databox_contracts.formats import load_contract
    from databox_contracts.formats.canonical import canonical

    print(_RENDERERS[args.format](canonical(load_contract(args.path), carried=False)))
    return 0


def _as_text(shown: Mapping[str, Any]) -> str:
    from databox_contracts.formats.emitting import to_yaml

    return to_yaml(shown).rstrip("\n")


def _as_json(shown: Mapping[str, Any]) -> str:
    return json.dumps(shown, indent=2, ensure_ascii=False)


_RENDERERS: Final[dict[str, Callable[[Mapping[str, Any]], str]]] = {"text": _as_text, "json": _as_json}

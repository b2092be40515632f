"""`convert`: a contract in another dialect."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from databox_contracts.errors import DataboxError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the contract, the dialect and where the result goes."""
    parser.add_argument("path", metavar="PATH", help="a contract file of any dialect")
    parser.add_argument(
        "--to", metavar="NAME", required=True, help="the dialect; an unknown name lists those there are"
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write it there instead of printing it")


def run(args: argparse.Namespace) -> int:
    """0 converted without a loss, 1 converted and something was lost, which is listed; what cannot be read raises."""
    from databox_contracts.formats import dump_contract, load_contract, losses

    contract = load_contract(args.path)
    text = dump_contract(contract, args.to)
    lost = losses(contract, args.to)
    if args.output is None:
        print(text, end="")
    else:
        _write(args.output, text)
    for loss in lost:
        print(f"databox-contracts: lost: {loss}", file=sys.stderr)
    return 1 if lost else 0


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataboxError(
            f"cannot write {str(path)!r}: {reason}", hint="Name a file in a folder that exists."
        ) from None

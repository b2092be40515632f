"""`convert`: a contract in another dialect, or as another tool reads it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from databox_contracts.errors import DataboxError

if TYPE_CHECKING:
    from databox_contracts.model import Contract

_FORMATS: Final = ("text", "json")
_SQL: Final = "sql"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the contract, what it becomes, which part of it, and where the result goes."""
    parser.add_argument("path", metavar="PATH", help="a contract file of any dialect")
    parser.add_argument(
        "--to", metavar="NAME", required=True, help="the dialect or target; an unknown name lists those there are"
    )
    parser.add_argument("--dataset", metavar="NAME", help="only this dataset of the contract")
    parser.add_argument("--dialect", metavar="D", help="of SQL; without it, that of the contract's servers")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write it there instead of printing it")
    parser.add_argument("--strict", action="store_true", help="exit 1 when something is lost")
    parser.add_argument("--format", choices=_FORMATS, default="text", help="the result itself, or JSON with the losses")


def run(args: argparse.Namespace) -> int:
    """0 converted; 1 with `--strict` where something was lost, which is listed; what cannot be read raises."""
    from databox_contracts.formats import load_contract

    text, lost = _converted(load_contract(args.path), args.to, args.dataset, args.dialect)
    if args.output is not None:
        _write(args.output, text)
    if args.format == "json":
        print(json.dumps({"to": args.to, "text": text, "losses": lost}, indent=2, ensure_ascii=False))
    elif args.output is None:
        print(text, end="")
    for loss in lost:
        print(f"databox-contracts: lost: {loss}", file=sys.stderr)
    return 1 if lost and args.strict else 0


def _converted(contract: Contract, to: str, dataset: str | None, dialect: str | None) -> tuple[str, list[str]]:
    """The text and what it cannot say, for a dialect as for a target."""
    from databox_contracts.export import EXPORTERS, export
    from databox_contracts.formats import FORMATS, dump_contract, losses

    dialects = [format_.name for format_ in FORMATS if format_.write is not None]
    targets = [exporter.name for exporter in EXPORTERS]
    if to not in (*dialects, *targets):
        known = ", ".join((*dialects, *targets))
        raise DataboxError(f"no contract is converted to {to!r}", hint=f"use one of: {known}")
    if dialect is not None and to != _SQL:
        raise DataboxError(f"{to!r} has no dialects", hint=f"leave out --dialect, or write --to {_SQL}")
    if to in targets:
        exported = export(contract, to, dataset=dataset, dialect=dialect)
        return exported.text, list(exported.losses)
    if dataset is not None:
        contract = contract.model_copy(update={"datasets": (contract.dataset(dataset),)})
    return dump_contract(contract, to), losses(contract, to)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataboxError(
            f"cannot write {str(path)!r}: {reason}", hint="Name a file in a folder that exists."
        ) from None

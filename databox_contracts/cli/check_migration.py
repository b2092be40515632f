"""`check-migration`: what a SQL migration does to the tables of a contract, and whom that breaks."""

from __future__ import annotations

import argparse
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path

from databox_contracts.cli.diff import FORMS, add_table_format, printed, table_format_of
from databox_contracts.errors import DataboxError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the contract, the file, its dialect, who judges, and the form of the output."""
    parser.add_argument("contract", metavar="CONTRACT", help="the contract of the tables, of any dialect")
    parser.add_argument("file", metavar="FILE.sql", help="the migration")
    parser.add_argument("--dialect", metavar="D", help="the SQL's dialect, by sqlglot's name (spark)")
    parser.add_argument("--dataset", metavar="N", help="look at this dataset of the contract alone")
    parser.add_argument("--policy", metavar="P", help="who judges, instead of the contract's own policy")
    add_table_format(parser)
    parser.add_argument("--format", choices=FORMS, default="text", help="how the report is printed")


def run(args: argparse.Namespace) -> int:
    """0 nothing breaks, 1 something does; a statement that cannot be followed raises."""
    from databox_contracts.formats import load_contract
    from databox_contracts.migrations.checking import check_migration

    contract = load_contract(args.contract)
    report = check_migration(
        contract,
        _text(Path(args.file)),
        args.dialect,
        source=args.file,
        dataset=args.dataset,
        policy=args.policy,
        table_format=table_format_of(args),
    )
    return printed(report, args.format, args.file)


def _text(file: Path) -> str:
    """The file's text: UTF-8, or UTF-16 where it says so, as the tools of SQL Server write it."""
    try:
        data = file.read_bytes()
        encoding = "utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"
        return data.decode(encoding)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise DataboxError(f"cannot read {str(file)!r}: {reason}", hint="Name a text file with SQL.") from None

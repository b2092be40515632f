"""`generate`: a first contract, from data or from what describes it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from databox_contracts.errors import ContractError, DataboxError, Level

if TYPE_CHECKING:
    from databox_contracts.inferred import Inferred
    from databox_contracts.model import Dataset, Field
    from databox_contracts.rules import Rule


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--data", metavar="PATH", help="a table: a file or a directory")
    what.add_argument("--table", metavar="NAME", help="a table or view of Spark's catalog")
    what.add_argument("--ddl", metavar="FILE", type=Path, help="SQL that creates tables; no row is looked at")
    what.add_argument(
        "--spark-schema", metavar="FILE", type=Path, help="a Spark schema, as JSON or DDL; no row is looked at"
    )
    parser.add_argument(
        "--data-format", metavar="FORMAT", help="parquet, orc, csv or json; guessed from the name if not given"
    )
    parser.add_argument(
        "--option", metavar="KEY=VALUE", action="append", default=[], help="a reader option, repeatable"
    )
    parser.add_argument("--dialect", metavar="NAME", help="the SQL dialect of --ddl; Spark's if not given")
    parser.add_argument("--master", metavar="URL", default="local[*]", help="Spark master, or sc:// for Spark Connect")
    parser.add_argument("--freshness", metavar="DURATION", help="promise how old the newest time may be, such as 1d")
    parser.add_argument("--id", metavar="ID", help="the contract's id; the dataset's name if not given")
    parser.add_argument("--dataset", metavar="NAME", help="the dataset's name; of several tables of --ddl, which one")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write it there instead of printing it")
    parser.add_argument("--force", action="store_true", help="overwrite that file")


def run(args: argparse.Namespace) -> int:
    """0 written; what cannot be read, or would overwrite a file, raises."""
    output: Path | None = args.output
    if output is not None and output.exists() and not args.force:
        raise DataboxError(f"there is {str(output)!r} already", hint="Name another file, or give --force.")
    inferred = next(make(args) for name, make in _SOURCES.items() if getattr(args, name) is not None)
    text = _checked(inferred)
    if output is None:
        print(text, end="")
        return 0
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataboxError(
            f"cannot write {str(output)!r}: {reason}", hint="Name a file in a folder that exists."
        ) from None
    fields = sum(len(dataset.fields) for dataset in inferred.contract.datasets)
    print(f"databox-contracts: {output}: {fields} fields, {len(inferred.guesses)} guesses to confirm", file=sys.stderr)
    return 0


def _checked(inferred: Inferred) -> str:
    """The text of the contract. Raises where it would not be read without a remark, as for a name that no file has."""
    from databox_contracts.formats import read
    from databox_contracts.formats.guesses import dump_inferred

    text = dump_inferred(inferred)
    bad = [finding for finding in read(text, "the generated contract")[1] if finding.level is not Level.NOTE]
    if bad:
        raise DataboxError(f"no contract can say this: {bad[0].message}", hint=bad[0].hint)
    return text


# --- data -------------------------------------------------------------------------------------------------------------


def _from_data(args: argparse.Namespace) -> Inferred:
    from databox_contracts.spark.sources import profile_file

    path: str = args.data
    if "://" not in path:
        # Spark's process may have another working directory.
        path = str(Path(path).absolute())
    options = dict(_option(text) for text in args.option)
    facts = _facts(args, _stem(path))
    return profile_file(path, format=args.data_format, options=options, master=args.master, **facts)


def _from_table(args: argparse.Namespace) -> Inferred:
    from databox_contracts.spark.sources import profile_table

    name: str = args.table
    return profile_table(name, master=args.master, **_facts(args, name.split(".")[-1].strip("`")))


def _facts(args: argparse.Namespace, usual: str) -> dict[str, Any]:
    from databox_contracts.formats.durations import parse_duration

    name = args.dataset or usual
    freshness = parse_duration(args.freshness) if args.freshness is not None else None
    return {"id": args.id or name, "dataset": name, "freshness": freshness}


def _stem(path: str) -> str:
    """The name of a file without its endings."""
    name = path.rstrip("/").rsplit("/", 1)[-1]
    return name.split(".")[0] or name.strip(".") or "data"


def _option(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise DataboxError(f"--option {text!r} is not KEY=VALUE.", hint="For example --option nullValue=NA.")
    return key, value


# --- descriptions -----------------------------------------------------------------------------------------------------


def _from_ddl(args: argparse.Namespace) -> Inferred:
    from databox_contracts.migrations import datasets_of

    return _described(args, datasets_of(_text(args.ddl), args.dialect, source=str(args.ddl)))


def _from_schema(args: argparse.Namespace) -> Inferred:
    from databox_contracts.migrations import datasets_of
    from databox_contracts.model import Dataset

    path: Path = args.spark_schema
    text = _text(path).strip()
    name = args.dataset or _stem(str(path))
    if text.startswith("{"):
        return _described(args, (Dataset(name=name, fields=_fields_of_json(text, path)),))
    is_type = text.lower().startswith("struct<")
    (dataset,) = datasets_of(f"CREATE TABLE t ({'s ' if is_type else ''}{text}\n)", "spark", source=str(path))
    fields = dataset.fields[0].fields if is_type else dataset.fields
    return _described(args, (dataset.model_copy(update={"name": name, "fields": fields}),))


def _fields_of_json(text: str, path: Path) -> tuple[Field, ...]:
    from databox_contracts.spark.declaring import fields_of_json

    try:
        return fields_of_json(text)
    except DataboxError as error:
        raise ContractError(error.message, hint=error.hint, source=str(path)) from None


def _described(args: argparse.Namespace, datasets: tuple[Dataset, ...]) -> Inferred:
    """A contract of those datasets, or the one that was asked for; only whose data it is, is guessed."""
    from databox_contracts.inferred import Inferred
    from databox_contracts.model import Contract
    from databox_contracts.personal import mark_personal

    if args.freshness is not None:
        raise DataboxError("--freshness needs the rows", hint="Give --data or --table.")
    whole = Contract(id=args.id or args.dataset or datasets[0].name, version="0.1.0", datasets=datasets)
    chosen = (whole.dataset(args.dataset),) if args.dataset is not None else datasets
    known = {dataset.name for dataset in chosen}
    kept = [dataset.model_copy(update={"rules": tuple(_within(dataset, known))}) for dataset in chosen]
    marked = [(dataset, *mark_personal(dataset.name, dataset.fields)) for dataset in kept]
    return Inferred(
        whole.model_copy(
            update={"datasets": tuple(dataset.model_copy(update={"fields": fields}) for dataset, fields, _ in marked)}
        ),
        tuple(guess for _, _, guesses in marked for guess in guesses),
    )


def _within(dataset: Dataset, known: set[str]) -> Iterator[Rule]:
    """The rules of a dataset but for references to tables that are not in the contract, which are named instead."""
    from databox_contracts.rules import ForeignKey

    for rule in dataset.rules:
        if isinstance(rule, ForeignKey) and rule.to not in known:
            what = f"{dataset.name} ({', '.join(rule.fields)}) REFERENCES {rule.to} ({', '.join(rule.to_fields)})"
            print(f"databox-contracts: left out, for it is to a table of another contract: {what}", file=sys.stderr)
        else:
            yield rule


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "it is not UTF-8"
        raise DataboxError(f"cannot read {str(path)!r}: {reason}", hint="Check the path.") from None


_SOURCES: Final[dict[str, Callable[[argparse.Namespace], Inferred]]] = {
    "data": _from_data,
    "table": _from_table,
    "ddl": _from_ddl,
    "spark_schema": _from_schema,
}

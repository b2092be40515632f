"""Reading a table as its reader's contract asks for it, whatever version of it is there."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from pyspark.sql import Column, DataFrame, SparkSession, functions as F

from databox_contracts.errors import (
    ContractViolationError,
    DataboxError,
    ReaderContractError,
    UnreadableTableError,
    VersionPinError,
)
from databox_contracts.model import Contract, Dataset, Mode, SchemaModes
from databox_contracts.plan import build_plan
from databox_contracts.results import Verdict
from databox_contracts.rules import Rule
from databox_contracts.spark.counting import positional
from databox_contracts.spark.failures import SPARK_ERRORS, unreadable
from databox_contracts.spark.given import Given
from databox_contracts.spark.judging import Verification
from databox_contracts.spark.reader_columns import ChangeKind, ReadChange, ReaderColumns, Reading
from databox_contracts.spark.reading import is_dataframe, read_table
from databox_contracts.spark.tables import TablePlace, read_published
from databox_contracts.spark.versions import MANIFEST
from databox_contracts.version_ranges import VersionRange
from databox_contracts.versions import Version

ReadMode: TypeAlias = Literal["upgrade", "fail", "permissive"]

_LOG: Final = logging.getLogger("databox_contracts.spark")


@dataclass(frozen=True, slots=True)
class ReadReport:
    """What a reader got: the version of the contract that the table was published under, and what differs from what
    the reader asks for.

    `table_contract` and `table_version` are None where the table does not say. `left_out` are the kinds of rules about
    fields that the reader did not select. `verdict` is None unless the data was verified. `warnings` are sentences.
    """

    contract: str
    table_contract: str | None
    table_version: str | None
    changes: tuple[ReadChange, ...]
    left_out: tuple[str, ...] = ()
    verdict: Verdict | None = None
    warnings: tuple[str, ...] = ()


def read_with_contract(
    source: SparkSession | DataFrame,
    contract: Contract,
    dataset: str | None = None,
    *,
    place: TablePlace | Path | str | None = None,
    fields: Sequence[str] | None = None,
    version_range: str | None = None,
    table_version: str | None = None,
    mode: ReadMode = "upgrade",
    verify_data: bool = False,
    samples: int = 5,
    as_of: datetime | None = None,
    timestamp_field: str | None = None,
    references: Mapping[str, DataFrame] | None = None,
    on_report: Callable[[ReadReport], None] | None = None,
) -> DataFrame:
    """Open a table as a reader's contract describes it: its columns, in its order, of its types.

    `contract` is the reader's own, or the producer's with the `fields` that the reader needs. The table is a DataFrame,
    or what a session finds at `place`: a published table, a path (a `Path`, or a text with a slash), else a table of
    the catalog. Columns that the reader does not ask for are left out in every mode.

    - "upgrade" reads a table that keeps every value: an optional field that is missing is null, a narrower number is
      widened, a field is found by its column, its name or its former name (`renamedFrom`). Else it raises.
    - "fail" raises for each of these differences too.
    - "permissive" reads what is there. A value that does not fit is null; the rows are counted, in one pass.

    `version_range` (`^2`, `~1.4`, `>=1.2,<2`) is held against the contract version that the table was published under,
    or against `table_version`. A table that says none raises with "fail" and is a warning else. With `verify_data` the
    rules of the reader's fields are held against its rows, and a violation raises unless the mode is "permissive" or
    the contract is in its grace period. `as_of`, `timestamp_field` and `references` are those of `verify`.

    `on_report` is told what differed; differences are logged as warnings as well. Raises `ReaderContractError`,
    `VersionPinError`, `ContractViolationError`, `VersionRangeError`, `UnreadableTableError`.
    """
    if mode not in get_args(ReadMode):
        raise DataboxError(f"the reading mode is {mode!r}", hint=f"Use one of {', '.join(get_args(ReadMode))}.")
    wanted = _Wanted.of(contract, contract.dataset(dataset), fields)
    table, facts, name = _open(source, place)
    version = table_version if table_version is not None else facts.get("contract_version")
    warnings = _check_version(contract, name, version_range, version, mode)
    read = _project(table, wanted.dataset)
    changes = [change for reading in read.readings for change in reading.changes]
    refused = [one for one in changes if mode != "permissive" and (mode == "fail" or not one.compatible)]
    if refused:
        raise ReaderContractError(
            name,
            [one.message for one in refused],
            contract=contract.id,
            dataset=wanted.dataset.name,
            fields=[one.field for one in refused],
            hint=_way_out(mode, refused),
        )
    changes = _with_losses(read, changes)
    verdict = None
    if verify_data:
        verdict = wanted.verify(read, Given.at(as_of, timestamp_field, references), samples)
    if mode == "permissive":
        warnings += [_in_words(one) for one in changes]
    if wanted.left_out and verify_data:
        warnings.append(f"not verified, being about fields that are not read: {', '.join(wanted.left_out)}")
    if verdict is not None and not verdict.passed and not _must_raise(contract, mode, as_of):
        warnings.append(verdict.summary())
    for warning in warnings:
        _LOG.warning("%s: %s: %s", contract.id, name, warning)
    if on_report is not None:
        on_report(
            ReadReport(
                contract=contract.id,
                table_contract=facts.get("contract"),
                table_version=version,
                changes=tuple(changes),
                left_out=wanted.left_out,
                verdict=verdict,
                warnings=tuple(warnings),
            )
        )
    if verdict is not None and not verdict.passed and _must_raise(contract, mode, as_of):
        raise ContractViolationError(verdict)
    return read.df


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a reader asks for; `selected` where that is a part of somebody else's dataset."""

    contract: Contract
    dataset: Dataset
    selected: bool
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, contract: Contract, dataset: Dataset, fields: Sequence[str] | None) -> _Wanted:
        if fields is None:
            return cls(contract, dataset, selected=False)
        known = {one.name: one for one in dataset.fields}
        unknown = [name for name in fields if name not in known]
        if unknown or not fields:
            raise ReaderContractError(
                dataset.name,
                [f"the contract has no field {name}" for name in unknown] or ["no field is asked for"],
                contract=contract.id,
                dataset=dataset.name,
                fields=unknown,
                hint=f"name some of: {', '.join(known)}",
            )
        chosen = tuple(known[name] for name in dict.fromkeys(fields))
        kept = [rule for rule in dataset.rules if _about(rule) <= {one.name for one in chosen}]
        reader = dataset.model_copy(update={"fields": chosen, "rules": tuple(kept)})
        left_out = tuple(
            f"{rule.name or rule.kind} ({', '.join(sorted(_about(rule)))})"
            for rule in dataset.rules
            if rule not in kept
        )
        return cls(contract, reader, selected=True, left_out=left_out)

    def verify(self, read: _Projection, given: Given, samples: int) -> Verdict:
        """Hold what is read against its rules.

        Conditions of the producer's may be about columns that are not read, so these are looked at too.
        """
        dataset = self.dataset
        df = read.df
        if self.selected and read.others:
            modes = (dataset.modes or SchemaModes()).model_copy(update={"columns": Mode.EVOLVE})
            dataset = dataset.model_copy(update={"modes": modes})
            df = read.view.select(*read.chosen, *read.others)
        return Verification(df, build_plan(self.contract, dataset), given=given).verdict(samples=samples)


def _about(rule: Rule) -> frozenset[str]:
    """The top-level fields that a rule names."""
    named = [*getattr(rule, "fields", ()), getattr(rule, "element", None), getattr(rule, "arrival_field", None)]
    return frozenset(str(name).split(".")[0] for name in named if name is not None)


def _open(
    source: SparkSession | DataFrame, place: TablePlace | Path | str | None
) -> tuple[DataFrame, dict[str, Any], str]:
    """The table, what its manifest says, and how messages name it."""
    if is_dataframe(source):
        if place is not None:
            raise DataboxError("there is a DataFrame and a place to read", hint="Give a Spark session or no `place`.")
        return source, {}, "the DataFrame"
    assert not isinstance(source, DataFrame)
    if place is None:
        raise DataboxError("there is nothing to read", hint="Give `place`, or a DataFrame in place of the session.")
    if isinstance(place, TablePlace):
        return _open_published(source, place)
    if isinstance(place, Path) or "/" in place:
        path = Path(place)
        local = path.resolve() if path.exists() else None
        # The version that a link leads to now, and the manifest of that one.
        df = read_table(source, str(local if local is not None else place))
        return df, _manifest(local / MANIFEST) if local is not None else {}, str(place)
    try:
        df = source.table(place)
        df.schema  # noqa: B018  (over Connect a missing table is noticed only here)
    except SPARK_ERRORS as error:
        raise unreadable(place, error) from error
    return df, {}, place


def _open_published(spark: SparkSession, place: TablePlace) -> tuple[DataFrame, dict[str, Any], str]:
    for _ in range(10):
        before = place.current_version()
        df = read_published(spark, place)
        current = place.current_version()
        if before == current or before is None:
            facts = _manifest((place.versions / current if current is not None else place.link) / MANIFEST)
            if place.current_version() == current:
                return df, facts, str(place.link)
    raise UnreadableTableError(str(place.link), "it is published again and again while it is opened")


def _manifest(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _check_version(
    contract: Contract, table: str, version_range: str | None, version: str | None, mode: ReadMode
) -> list[str]:
    """Warnings about the version. Raises `VersionPinError`."""
    if version_range is None:
        return []
    pin = VersionRange.parse(version_range)
    known = Version.parse(version) if version is not None else None
    if known is not None:
        if not pin.allows(known):
            hint = "read a table of such a version, or move the reader to the newer one"
            raise VersionPinError(table, str(pin), version, contract=contract.id, hint=hint)
        return []
    if mode == "fail":
        hint = "publish it with `publish`, give `table_version`, or leave out the range"
        raise VersionPinError(table, str(pin), version, contract=contract.id, hint=hint)
    said = f"its version {version!r} is no semantic version" if version is not None else "it does not say its version"
    return [f"the reader needs version {pin}, and {said}"]


@dataclass(frozen=True, slots=True)
class _Projection:
    """The reader's columns, the view of the table that they are of, how each was found, and the other columns."""

    view: DataFrame
    readings: list[Reading]
    chosen: list[Column]
    others: list[Column]

    @property
    def df(self) -> DataFrame:
        """What the reader gets."""
        return self.view.select(*self.chosen)


def _project(table: DataFrame, dataset: Dataset) -> _Projection:
    sensitive = str(table.sparkSession.conf.get("spark.sql.caseSensitive")) == "true"
    columns = ReaderColumns(table, case_sensitive=sensitive)
    view = table.toDF(*(positional(at) for at in range(len(table.columns))))
    readings = [columns.read(field, view, positional) for field in dataset.fields]
    chosen = [reading.column.alias(one.column) for reading, one in zip(readings, dataset.fields, strict=True)]
    taken = {name.lower() for one in dataset.fields for name in (one.column, one.name)}
    names = [name.lower() for name in table.columns]
    rest = [
        view[positional(at)].alias(name)
        for at, name in enumerate(table.columns)
        if name.lower() not in taken and names.count(name.lower()) == 1
    ]
    return _Projection(view, readings, chosen, rest)


def _with_losses(read: _Projection, changes: Sequence[ReadChange]) -> list[ReadChange]:
    """The changes with the numbers of rows of which a value is lost; one job where any can be."""
    losses = [loss for reading in read.readings for loss in reading.losses]
    if not losses:
        return list(changes)
    row = read.view.agg(*(F.count_if(lost).alias(f"m{at}") for at, (_, lost) in enumerate(losses))).collect()[0]
    found = {name: int(row[at]) for at, (name, _) in enumerate(losses)}
    lossy = (ChangeKind.CONVERTED, ChangeKind.INCOMPATIBLE)
    return [replace(one, lost_rows=found[one.field]) if one.kind in lossy else one for one in changes]


def _in_words(change: ReadChange) -> str:
    if not change.lost_rows:
        return change.message
    return f"{change.message}; in {change.lost_rows} rows its value does not fit and is null"


def _way_out(mode: ReadMode, refused: Sequence[ReadChange]) -> str:
    if mode == "fail" and all(one.compatible for one in refused):
        return "read it in the mode 'upgrade', which loses no value"
    return "have the table published with these fields, change the reader's contract, or read in the mode 'permissive'"


def _must_raise(contract: Contract, mode: ReadMode, as_of: datetime | None) -> bool:
    return mode != "permissive" and not contract.enforcement.only_warns(Given.at(as_of).as_of.date())

"""The writer of Soda contracts: one dataset, in the words of the generation that it was read from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from databox_contracts.errors import ContractError, DataboxError, Level
from databox_contracts.formats.emitting import to_yaml
from databox_contracts.formats.governing import written_consumers
from databox_contracts.formats.identity import check_table_name
from databox_contracts.formats.odcs_types import logical_name
from databox_contracts.formats.positions import parse_yaml
from databox_contracts.formats.reading import Report, Section
from databox_contracts.formats.remarks import remarks
from databox_contracts.formats.soda import (
    DOCUMENT,
    DOCUMENTATION,
    EARLY,
    FILTERS,
    GENERATION,
    NO_VERSION,
    SCHEDULES,
    UNCHECKED,
    implied_modes,
    read,
)
from databox_contracts.formats.soda_subjects import MISSING_KEYS, VALIDITY_KEYS
from databox_contracts.formats.soda_types import SPELLING, meant, spelled, whole_type
from databox_contracts.formats.soda_writer_checks import Place, check_of
from databox_contracts.formats.soda_writer_places import Checks, promise
from databox_contracts.formats.soda_writer_words import FIRST, SECOND, Said
from databox_contracts.model import Contract, Dataset, Field, Mode, SchemaModes
from databox_contracts.rules import ForeignKey, PrimaryKey, Required, Rule, Unique


def write(contract: Contract) -> str:
    """The contract as YAML; what Soda has no word for is left out.

    Tables and columns go by the names that they have in the warehouse. Raises `DataboxError` for a contract of several
    datasets or of none, for a Soda contract is about one, and for a table whose name Soda cannot write.
    """
    dataset = _only(contract)
    text = to_yaml(_Writer(contract, dataset, carried=True).document())
    if _is_readable(text):
        return text
    # What is carried beside the model may be anybody's; it is no reason for a document that cannot be read.
    return to_yaml(_Writer(contract, dataset, carried=False).document())


def _only(contract: Contract) -> Dataset:
    names = [dataset.name for dataset in contract.datasets]
    if not names:
        raise DataboxError(
            f"contract {contract.title!r} has no dataset, and a Soda contract is about one", hint="declare a dataset"
        )
    if len(names) > 1:
        raise DataboxError(
            f"contract {contract.title!r} has {len(names)} datasets, and a Soda contract is about one",
            hint=f"choose one with --dataset: {', '.join(names)}",
        )
    return contract.datasets[0]


def _is_readable(text: str) -> bool:
    try:
        report = Report(parse_yaml(text, ""))
    except ContractError:
        return False
    contract = read(report)
    if contract is None or report.has_errors:
        return False
    return not any(finding.level is Level.ERROR for finding in remarks(contract, ""))


# --- names ------------------------------------------------------------------------------------------------------------

# What a server calls the parts of a table's qualified name, from the outside in.
_PREFIXES: Final = (("catalog", "project", "database"), ("schema", "dataset"))


def _qualified(contract: Contract, dataset: Dataset) -> str:
    """The dataset's name as Soda has it, source first: the contract's id where it is one, else that of a server."""
    table = dataset.table_name
    section = Section(Report(parse_yaml(to_yaml({"dataset": table}), "")), (), {"dataset": table})
    if "${" in table or not check_table_name(section, table, "dataset"):
        raise DataboxError(f"Soda cannot write the table name {table[:60]!r}", hint="rename the table")
    if contract.id.rsplit("/", 1)[-1].strip() == table.strip():
        return contract.id
    for server in contract.servers:
        parts = [next((str(server.settings[key]) for key in keys if key in server.settings), "") for keys in _PREFIXES]
        if any(parts):
            return "/".join([server.name, *(part for part in parts if part), table])
    return "/".join(part for part in (contract.id, table) if part.strip())


def _columns(fields: Iterable[Field], name: str = "", column: str = "") -> Iterator[tuple[str, str]]:
    """The dotted name of each field, through objects, and that of its column."""
    for field in fields:
        yield f"{name}{field.name}", f"{column}{field.column}"
        yield from _columns(field.fields, f"{name}{field.name}.", f"{column}{field.column}.")


# --- the document -----------------------------------------------------------------------------------------------------


def _carried(element: Contract | Dataset | Field) -> Mapping[str, Any]:
    found = element.custom.get(DOCUMENT)
    return found if isinstance(found, Mapping) else {}


def _taken(carried: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: carried[key] for key in keys if key in carried}


class _Column:
    """A column that is written: its entry, its checks, and those of its promises that nothing says yet."""

    def __init__(self, field: Field, carried: Mapping[str, Any]) -> None:
        self.field = field
        self.carried = carried
        whole = whole_type(field)
        kept = _taken(carried, *SPELLING)
        self.spelling = kept if kept and meant(kept) == whole else spelled(whole)
        self.left = Counter(promise(rule) for rule in field.rules)
        self.early: dict[str, Any] = {}
        for key, kind in EARLY.items():
            if carried.get(key) is True and self.left[promise(kind())] > 0:
                self.left[promise(kind())] -= 1
                self.early[key] = True

    @property
    def config(self) -> dict[str, Any]:
        """What the column says for all its checks."""
        return _taken(self.carried, *MISSING_KEYS, *VALIDITY_KEYS)

    def entry(self, checks: Checks) -> dict[str, Any]:
        """The column's entry in the document."""
        found = {
            "name": self.field.column,
            **self.spelling,
            "description": self.field.description or None,
            "optional": True if self.carried.get("optional") is True else None,
            **self.early,
            **self.config,
            "checks": checks.entries or None,
        }
        return {key: value for key, value in found.items() if value is not None}


class _Writer:
    """One document; without `carried`, as if the contract had never been one of Soda's."""

    def __init__(self, contract: Contract, dataset: Dataset, *, carried: bool) -> None:
        self._contract, self._dataset, self._takes = contract, dataset, carried
        self._beside = _carried(contract) if carried else {}
        self._beside_table = _carried(dataset) if carried else {}
        self._generation = FIRST if self._beside.get(GENERATION) == 1 else SECOND
        self._qualified = _qualified(contract, dataset)
        written: dict[str, Field] = {}
        for field in dataset.fields:
            if field.column.strip():
                written.setdefault(field.column, field)
        self._columns = [_Column(field, _carried(field) if carried else {}) for field in written.values()]
        names = tuple(written)
        self._place = Place(contract.id, self._qualified, dataset.table_name, dict(_columns(dataset.fields)), names)
        self._fields = tuple(Field(name=one.field.column, type=meant(one.spelling)) for one in self._columns)
        modes = dataset.modes or SchemaModes()
        self._modes = SchemaModes(columns=Mode.EVOLVE if modes.columns is Mode.EVOLVE else Mode.FREEZE)

    def document(self) -> dict[str, Any]:
        """The entries of the document in order."""
        contract, dataset = self._contract, self._dataset
        checks = [self._checks(column) for column in self._columns]
        of_table = self._checks(None)
        self._gather(checks, of_table)
        found = {
            "dataset": self._qualified,
            "version": contract.version if contract.version.strip() and contract.version != NO_VERSION else None,
            "description": dataset.description or contract.description or None,
            "owner": contract.owner,
            **_taken(self._beside, *DOCUMENTATION, *SCHEDULES),
            **_taken(self._beside_table, *FILTERS),
            "columns": [column.entry(its) for column, its in zip(self._columns, checks, strict=True)],
            "checks": self._with_schema(of_table, checks) or None,
            "consumers": written_consumers(one for one in contract.consumers if one.name.strip()) or None,
        }
        return {key: value for key, value in found.items() if value is not None}

    def _checks(self, column: _Column | None) -> Checks:
        filters = [text for key in FILTERS if isinstance(text := self._beside_table.get(key), str)]
        place = self._place
        if column is not None:
            kind = logical_name(None, meant(column.spelling))
            place = replace(place, column=column.field.column, kind=kind)
        config = column.config if column is not None else {}
        return Checks(place, self._generation, self._fields, self._modes, filters[0] if filters else None, config)

    def _gather(self, checks: list[Checks], of_table: Checks) -> None:
        """First the checks that the document came with, then one for each promise that they do not make."""
        left = Counter(promise(rule) for rule in self._dataset.rules)
        for column, its in zip(self._columns, checks, strict=True):
            its.keep(column.carried.get("checks"), column.left, left)
        of_table.keep(self._beside_table.get("checks"), Counter(), left)
        others = list(_remaining(self._dataset.rules, left))
        moved = [self._at_columns(rule) for rule in others]
        said: list[Said] = []
        for column, its in zip(self._columns, checks, strict=True):
            promised = list(_remaining(column.field.rules, column.left))
            promised += [rule for found in moved for name, rule in found if name == column.field.name]
            found = [check for rule in promised if (check := check_of(rule, its.place)) is not None]
            its.add(check for check in found if not check.of_table)
            said += [check for check in found if check.of_table]
        staying = [rule for rule, found in zip(others, moved, strict=True) if not _is_whole(rule, found)]
        said += [check for rule in staying if (check := check_of(rule, of_table.place)) is not None]
        of_table.add(check for check in said if check.of_table)

    def _at_columns(self, rule: Rule) -> list[tuple[str, Rule]]:
        """What of a rule about the table is a column's to Soda, and of which."""
        if not isinstance(rule, ForeignKey | PrimaryKey):
            return []
        fields = [column.field for column in self._columns if column.field.name in rule.fields]
        if isinstance(rule, ForeignKey):
            return [(field.name, rule) for field in fields] if len(rule.fields) == 1 else []
        found: list[tuple[str, Rule]] = [(field.name, Required()) for field in fields if not field.required]
        if len(rule.fields) == 1:
            found += [(field.name, Unique(name=rule.name, severity=rule.severity)) for field in fields]
        return found

    def _with_schema(self, of_table: Checks, checks: list[Checks]) -> list[Any]:
        """The table's checks, with one of the schema where what the columns may be would not be known without."""
        entries = of_table.entries
        if of_table.modes is not None:
            return entries
        former = any("type" in check for its in (of_table, *checks) for check in its.entries)
        # To Soda itself, no type is checked where no such check is.
        typed = any(column.spelling for column in self._columns) and self._beside_table.get(UNCHECKED) is not False
        evolves = self._modes.columns is Mode.EVOLVE
        if implied_modes(former=former) == self._modes and not (evolves and typed):
            return entries
        settings = {"allow_extra_columns": True} if evolves else {}
        settings["allow_other_column_order"] = True
        if self._generation == FIRST:
            return [{"type": "schema", **settings}, *entries]
        return [{"schema": settings}, *entries]


def _remaining(rules: Iterable[Rule], left: Counter[str]) -> Iterator[Rule]:
    for rule in rules:
        if left[promise(rule)] > 0:
            left[promise(rule)] -= 1
            yield rule


def _is_whole(rule: Rule, at_columns: list[tuple[str, Rule]]) -> bool:
    """Whether the columns say all of it."""
    return any(isinstance(found, ForeignKey | Unique) for _, found in at_columns)

"""A contract laid out flat for remarks about it: each field and each rule with its place, and what was said before."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from databox_contracts.datatypes import Family
from databox_contracts.errors import Finding, Level, Position
from databox_contracts.formats.positions import DataPath
from databox_contracts.formats.reading import Report
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.rules import Rule


@dataclass(frozen=True, slots=True)
class Placed:
    """A rule where it stands: `name` is the dotted name of what it is about, `field` the field that holds it.

    The rule of a dataset has no field, and as its name those that it names itself.
    """

    dataset: Dataset
    rule: Rule
    name: str | None
    field: Field | None

    @property
    def position(self) -> Position | None:
        """The rule's own place, else that of what it is about."""
        about = self.field if self.field is not None and self.field.position is not None else self.dataset
        return self.rule.position or about.position


class Outline:
    """A contract, its fields and rules in declaration order; `report` is its reader's, None where nobody read it."""

    def __init__(self, contract: Contract, source: str, report: Report | None = None) -> None:
        self.contract = contract
        self.source = source
        self._report = report
        self.fields = [
            placed
            for dataset in contract.datasets
            for field in dataset.fields
            for placed in _with_parts(dataset, field.name, field)
        ]
        self.rules = list(_rules(contract, self.fields))
        self._names: dict[str, Names] = {}

    def finding(
        self, level: Level, message: str, hint: str | None, position: Position | None, field: str | None = None
    ) -> Finding:
        """One remark."""
        return Finding(self.source, level, message, position, hint, field)

    def at(self, *path: str | int) -> Position | None:
        """Where that entry of the document stands; None without a document."""
        return None if self._report is None else self._report.document.position(path)

    @property
    def data(self) -> Mapping[str, object]:
        """The document's data; empty without one."""
        return {} if self._report is None else self._report.document.data

    def names(self, dataset: Dataset) -> Names:
        """What rules may call the fields of a dataset."""
        if dataset.name not in self._names:
            self._names[dataset.name] = Names(dataset)
        return self._names[dataset.name]

    def said(self, *words: str, field: str | None = None, about: Position | None = None) -> bool:
        """Whether the reader has a warning or an error with all those words.

        Only those about `field` count where it is given, and with `about`, the place of a rule, those between it and
        the next rule: a reader places what it says at the very entry.
        """
        return any(
            all(word in found.message for word in words)
            and (field is None or found.field == field)
            and (about is None or (found.position is not None and self._entry(found.position) == self._entry(about)))
            for found in self._complaints
        )

    @cached_property
    def _complaints(self) -> list[Finding]:
        found = self._report.findings if self._report is not None else []
        return [finding for finding in found if finding.level is not Level.NOTE]

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        return sorted({_line(placed.rule.position) for placed in self.rules if placed.rule.position is not None})

    def _entry(self, position: Position) -> int:
        """Which rule's entry the place is in."""
        return bisect_right(self._places, _line(position))


def _line(position: Position) -> tuple[int, int]:
    return position.line, position.column


def _with_parts(dataset: Dataset, name: str, field: Field) -> Iterator[tuple[Dataset, str, Field]]:
    yield dataset, name, field
    if field.fields:
        for part in field.fields:
            yield from _with_parts(dataset, f"{name}.{part.name}", part)
    if field.item is not None:
        # The fields of an array's objects read as the array's own: `items.sku`, as in the ids of checks.
        yield from _with_parts(dataset, name, field.item)
    for part_or_none in (field.key, field.value):
        if part_or_none is not None:
            yield from _with_parts(dataset, f"{name}.{part_or_none.name}", part_or_none)


def _rules(contract: Contract, fields: Sequence[tuple[Dataset, str, Field]]) -> Iterator[Placed]:
    at = 0
    for dataset in contract.datasets:
        while at < len(fields) and fields[at][0] is dataset:
            _, name, field = fields[at]
            for rule in field.rules:
                yield Placed(dataset, rule, name, field)
            at += 1
        for rule in dataset.rules:
            yield Placed(dataset, rule, ", ".join(getattr(rule, "fields", ())) or None, None)


class Names:
    """What rules may call the fields of a dataset: as the contract or as the table has them, in any case.

    Below a field that declares no parts anything may be, and in a dataset that declares no fields too.
    """

    def __init__(self, dataset: Dataset) -> None:
        self.declared = [field.name for field in dataset.fields]
        self._fields: dict[str, Field] = {}
        self._open: list[str] = []
        self._add("", dataset.fields)

    def __contains__(self, dotted: str) -> bool:
        name = dotted.casefold()
        return not self.declared or name in self._fields or name.startswith(tuple(self._open))

    def find(self, dotted: str) -> Field | None:
        """The field of that name, if it is declared."""
        return self._fields.get(dotted.casefold())

    def _add(self, before: str, fields: Sequence[Field]) -> None:
        for field in fields:
            for own in dict.fromkeys((field.name.casefold(), field.column.casefold())):
                self._fields.setdefault(before + own, field)
                inner = field
                while inner.item is not None:
                    inner = inner.item
                if inner.fields:
                    self._add(f"{before}{own}.", inner.fields)
                elif inner.type is None or inner.type.family in _OPEN:
                    self._open.append(f"{before}{own}.")


_OPEN = (Family.OBJECT, Family.MAP, Family.VARIANT, Family.ARRAY)


def path_of(data: Mapping[str, object], name: str) -> DataPath | None:
    """Where the custom property of that name has its value in a document of the standard, or the entry in another."""
    entries = data.get("customProperties")
    for at, entry in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(entry, dict) and entry.get("property") == name:
            return ("customProperties", at, "value")
    header = data.get("contract")
    if name in data:
        return (name,)
    return ("contract", name) if isinstance(header, dict) and name in header else None

"""Lists of checks that are read as what they were written for: the reader itself is asked, check by check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from databox_contracts.errors import ContractError, Level
from databox_contracts.formats.bounds import check_ranges
from databox_contracts.formats.canonical import canonical
from databox_contracts.formats.emitting import to_yaml
from databox_contracts.formats.positions import parse_yaml
from databox_contracts.formats.reading import Report, Section
from databox_contracts.formats.remarks import remarks
from databox_contracts.formats.soda_checks import read_checks
from databox_contracts.formats.soda_subjects import Subject, Table
from databox_contracts.formats.soda_writer_checks import Place
from databox_contracts.formats.soda_writer_words import Said, entry_of, grouped, together
from databox_contracts.model import Contract, Dataset, Field, SchemaModes
from databox_contracts.rules import Rule


def promise(rule: Rule) -> str:
    """What a rule promises and Soda has words for, the same for the same promise however its numbers are spelled."""
    bare = replace(rule, description="", dimension=None, custom={}, position=None)
    for fact in ("sql", "condition"):
        if hasattr(bare, fact):
            # Where a line of SQL ends is not kept by every dialect.
            changed: dict[str, Any] = {fact: " ".join(getattr(bare, fact).split())}
            bare = replace(bare, **changed)
    one = Contract(id="", version="", datasets=(Dataset(name="", rules=(bare,)),))
    return repr(canonical(one)["datasets"][0]["rules"][0])


@dataclass(frozen=True)
class Meaning:
    """What a list of checks is read as: the promises about its column, those about the table, the columns' modes.

    `lossy` is whether the reader keeps the list itself, because the promises are not all that it says.
    """

    own: Counter[str]
    table: Counter[str]
    modes: SchemaModes | None
    lossy: bool = False


class Checks:
    """The checks of a column, or of the table, as they are gathered.

    `fields` are all columns of the table with their types, `modes` what the table may have beside them; `filter_` is
    the condition that all checks are about, and `config` what the column says for all of its own.
    """

    def __init__(
        self,
        place: Place,
        generation: int,
        fields: tuple[Field, ...],
        modes: SchemaModes,
        filter_: str | None,
        config: Mapping[str, Any],
    ) -> None:
        self.place = place
        self.entries: list[Any] = []
        self._generation = generation
        self._dataset = Dataset(name=place.table, fields=fields, modes=modes)
        self._filter = filter_
        self._config = config
        self._meaning = Meaning(Counter(), Counter(), None)

    @property
    def modes(self) -> SchemaModes | None:
        """What a `schema` check among them says."""
        return self._meaning.modes

    def keep(self, carried: Any, own: Counter[str], table: Counter[str]) -> None:
        """Takes the checks that the document came with, those that still are what is promised, and crosses that off."""
        if not isinstance(carried, list):
            return
        whole, modes = self._read(carried), self._dataset.modes
        all_hold = whole is not None and _within(whole, own, table, modes)
        for some in [carried] if all_hold else [[one] for one in carried]:
            found = self._read([*self.entries, *some])
            if found is None or not _within(found, own + self._meaning.own, table + self._meaning.table, modes):
                continue
            own.subtract(found.own - self._meaning.own)
            table.subtract(found.table - self._meaning.table)
            self.entries.extend(some)
            self._meaning = found

    def add(self, checks: Iterable[Said]) -> None:
        """Adds each of the checks that is read, among the others, as what it means; any other is left out."""
        groups = grouped(checks)
        wanted = [check for group in groups if (check := together(group)) is not None]
        if wanted and not self._try(wanted, exactly=True):
            for group, check in zip(groups, wanted, strict=True):
                if not self._try([check]) and len(group) > 1:
                    for one in group:
                        self._try([one])

    def _try(self, checks: list[Said], *, exactly: bool = False) -> bool:
        """Takes the checks if they are read as what they mean; `exactly`: only if nothing is kept beside it."""
        entries = list(self.entries)
        for check in checks:
            entries.append(entry_of(check, self._generation, entries))
        added = Counter(promise(rule) for check in checks for rule in check.means)
        wanted = self._meaning.own + self._meaning.table + added
        # What is missing is no invalid value for the checks behind the one that says so.
        missing = next((at for at, entry in enumerate(self.entries) if _is_about_missing(entry)), None)
        possible = [entries]
        if missing is not None:
            possible.append([*self.entries[:missing], *entries[len(self.entries) :], *self.entries[missing:]])
        attempts = [(attempt, self._read(attempt)) for attempt in possible]
        read = [(attempt, found) for attempt, found in attempts if found is not None]
        held = [(attempt, found) for attempt, found in read if found.own + found.table == wanted]
        held.sort(key=lambda one: one[1].lossy)
        if not held or (exactly and held[0][1].lossy and not self._meaning.lossy):
            return False
        self.entries, self._meaning = held[0]
        return True

    def _read(self, entries: list[Any]) -> Meaning | None:
        """What the entries are read as; None where there is an error in them."""
        try:
            report = Report(parse_yaml(to_yaml({**self._config, "checks": entries}), ""))
        except ContractError:
            return None
        place = self.place
        section = Section(report, (), report.document.data, place.column)
        table = Table(place.table, place.names, self._filter)
        subject = Subject(table, place.column, section if place.column is not None else None, place.kind)
        read_checks(section, subject)
        check_ranges(section, subject.rules, subject.kind)
        if report.has_errors or self._contradicts(subject.rules, table.rules):
            return None
        own, of_table = (Counter(map(promise, found)) for found in (subject.rules, table.rules))
        return Meaning(own, of_table, table.modes, subject.lossy)

    def _contradicts(self, own: list[Rule], of_table: list[Rule]) -> bool:
        """Whether there would be an error about the rules in a contract of them alone."""
        dataset = self._dataset.model_copy(
            update={
                "rules": tuple(of_table),
                "fields": tuple(
                    field.model_copy(update={"rules": tuple(own)}) if field.name == self.place.column else field
                    for field in self._dataset.fields
                ),
            }
        )
        contract = Contract(id="", version="", datasets=(dataset,))
        return any(finding.level is Level.ERROR for finding in remarks(contract, ""))


def _is_about_missing(entry: Any) -> bool:
    return isinstance(entry, Mapping) and ("missing" in entry or "missing" in str(entry.get("type")))


def _within(found: Meaning, own: Counter[str], table: Counter[str], modes: SchemaModes | None) -> bool:
    return found.own <= own and found.table <= table and found.modes in (None, modes)

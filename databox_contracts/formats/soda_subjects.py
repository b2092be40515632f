"""What a list of Soda checks is about, and one check of it, however it is spelled."""

from __future__ import annotations

from dataclasses import dataclass, field as attribute
from typing import Any, Final

from databox_contracts.formats.odcs_options import unenforced
from databox_contracts.formats.reading import Section
from databox_contracts.formats.soda_limits import Held, Limits, read_limits
from databox_contracts.model import SchemaModes
from databox_contracts.rules import NO_ROWS, NotEnforced, Rule, Scalar, Threshold, Unit

MISSING_KEYS: Final = ("missing_values", "missing_format", "missing_regex", "missing_regex_sql")
VALIDITY_KEYS: Final = (
    "valid_values",
    "valid_format",
    "valid_regex",
    "valid_regex_sql",
    "valid_min",
    "valid_max",
    "valid_length",
    "valid_min_length",
    "valid_max_length",
    "valid_reference_data",
    "valid_values_reference_data",
    "valid_values_column",
    "invalid_values",
    "invalid_format",
    "invalid_regex",
    "invalid_regex_sql",
)
"""What a value may be; on a check, or on its column for all checks there that say nothing themselves."""


@dataclass
class Table:
    """The dataset that the checks are about, and what they say about it as a whole."""

    name: str
    columns: tuple[str, ...]
    filter: str | None = None
    rules: list[Rule] = attribute(default_factory=list)
    modes: SchemaModes | None = None


@dataclass
class Subject:
    """What a list of checks is about: a column of the table, or the table where `section` is None."""

    table: Table
    column: str | None = None
    section: Section | None = None
    kind: str | None = None
    missing: tuple[Scalar, ...] = ()
    rules: list[Rule] = attribute(default_factory=list)
    # How many checks of each kind have been read.
    counts: dict[str, int] = attribute(default_factory=dict)
    # Whether a rule of ours does not say all that the check did.
    lossy: bool = False


@dataclass(frozen=True)
class Check:
    """One check, however it is spelled."""

    section: Section
    subject: Subject
    facts: dict[str, Any]
    unit: Unit | None = None
    argument: str | None = None

    def limits(self, default: Threshold | None = NO_ROWS) -> Limits:
        return read_limits(self.section, default, self.unit)

    def unenforced(self, reason: str, *steps: str | int) -> NotEnforced:
        facts = {key: value for key, value in self.facts.items() if key != "position"}
        return unenforced(self.section, reason, *steps, **facts)

    def sql(self, held: Held) -> dict[str, Any]:
        return {**self.facts, "severity": held.severity}


def holder_of(check: Check, keys: tuple[str, ...]) -> Section:
    """Where the check's configuration stands: in itself, or else in its column."""
    column = check.subject.section
    own = any(key in check.section.data for key in keys)
    return check.section if own or column is None else column


def needs_column(check: Check) -> bool:
    """Whether the check stands at a column; an error if not."""
    if check.subject.column is None:
        check.section.error("this check is about one column", "move it to the checks of that column")
        check.section.carried(*check.section.data)
    return check.subject.column is not None

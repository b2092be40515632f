"""What is to be said of a contract once it is read, in whatever dialect, and what no schema of a dialect can see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from databox_contracts.errors import Finding, Level
from databox_contracts.formats.outline import Outline
from databox_contracts.formats.reading import Report
from databox_contracts.formats.remarks_contacts import unusable_contacts, unusable_notice
from databox_contracts.formats.remarks_evolution import unknown_evolution, unusable_lifecycle
from databox_contracts.formats.remarks_names import (
    broken_references,
    repeated_names,
    undeclared_names,
    unfit_clocks,
)
from databox_contracts.formats.remarks_nulls import contradicted_requirements, required_as_a_shortcut
from databox_contracts.formats.remarks_patterns import unsound_patterns
from databox_contracts.formats.remarks_sql import unknown_columns
from databox_contracts.formats.remarks_values import empty_ranges, impossible_values
from databox_contracts.model import Contract

MANY_RULES: Final = 150


def remarks(contract: Contract, source: str, report: Report | None = None) -> Iterator[Finding]:
    """Findings about a contract, kind by kind and each in declaration order; `source` is what they call the document.

    `report` is that of the document's reader: what stands in it already is not said again, and it knows the lines of
    what the model has no line for.
    """
    outline = Outline(contract, source, report)
    for remark in REMARKS:
        yield from remark(outline)


def carried_rules(outline: Outline) -> Iterator[Finding]:
    """A note for each promise that this version only carries."""
    for placed in outline.rules:
        sentence = placed.rule.unenforced
        if sentence is not None:
            position = placed.rule.position or placed.dataset.position
            yield outline.finding(Level.NOTE, sentence, None, position, placed.name)


def many_rules(outline: Outline) -> Iterator[Finding]:
    """A note on a contract with more rules than anybody looks after."""
    count = len(outline.rules)
    if count > MANY_RULES:
        message = f"the contract holds {count} rules, more than {MANY_RULES}, and each of them has to be looked after"
        hint = "keep those that somebody would act on, or split it into several contracts"
        yield outline.finding(Level.NOTE, message, hint, outline.contract.datasets[0].position)


REMARKS: Final[tuple[Callable[[Outline], Iterator[Finding]], ...]] = (
    carried_rules,
    impossible_values,
    empty_ranges,
    unsound_patterns,
    repeated_names,
    undeclared_names,
    unfit_clocks,
    broken_references,
    unknown_columns,
    contradicted_requirements,
    required_as_a_shortcut,
    unusable_contacts,
    unusable_notice,
    unknown_evolution,
    unusable_lifecycle,
    many_rules,
)
"""Every remark; each looks at the whole contract."""

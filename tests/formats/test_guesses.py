"""Every guess is a comment where it is about something, whatever the document looks like there."""

from __future__ import annotations

import re

import pytest

from databox_contracts import rules
from databox_contracts.formats import dump_contract, read
from databox_contracts.formats.canonical import canonical
from databox_contracts.formats.guesses import dump_inferred
from databox_contracts.inferred import PERSONAL, REMARK, TYPE, Guess, Inferred
from databox_contracts.rules import Operator, Threshold
from databox_contracts.testing import build_contract, build_field

FIELDS = (
    build_field("id", "int", rules.Required(), rules.Minimum(limit=0), rules.Enum(values=(1, 2))),
    build_field("o", "struct<a: int>"),
    build_field("items", "array<struct<sku: string>>"),
    build_field("m", "map<string, double>"),
    build_field("mail", "string", pii=True),
)
CONTRACT = build_contract(
    *FIELDS,
    rules=(rules.PrimaryKey(fields=("id",)), rules.RowCount(threshold=Threshold(Operator.GREATER_THAN, 0))),
)

# What is guessed, and the line that tells: with a comment behind it, or below one.
PLACES = [
    ((("id",), TYPE), "        logicalType: integer  # guess: why"),
    ((("id",), "required"), "        required: true  # guess: why"),
    ((("id",), "minimum"), "          minimum: 0  # guess: why"),
    ((("id",), "enum"), "        enum:  # guess: why"),
    ((("id",), "primary_key"), "        primaryKey: true  # guess: why"),
    ((("id",), REMARK), "      # guess: why\n      - name: id\n"),
    ((("id",), "no such kind"), "      - name: id  # guess: why"),
    ((("o", "a"), TYPE), "            logicalType: integer  # guess: why"),
    ((("items", "item", "sku"), TYPE), "              logicalType: string  # guess: why"),
    ((("m", "value"), TYPE), "            logicalType: number  # guess: why"),
    ((("m", "key"), TYPE), "            logicalType: string  # guess: why"),
    ((("mail",), PERSONAL), "          - property: pii  # guess: why"),
    (((), "row_count"), "      - metric: rowCount  # guess: why"),
    (((), REMARK), "  # guess: why\n  - name: t\n"),
]


@pytest.mark.parametrize(("what", "line"), PLACES)
def test_a_guess_stands_where_it_is_about_something(what: tuple[tuple[str, ...], str], line: str) -> None:
    text = dump_inferred(Inferred(CONTRACT, (Guess("t", *what, "why"),)))
    assert line in text
    assert text.count("# guess") == 1
    assert re.sub(r"\n +# guess: why(?=\n)|  # guess: why", "", text) == dump_contract(CONTRACT)


def test_without_guesses_it_is_what_convert_writes() -> None:
    assert dump_inferred(Inferred(CONTRACT)) == dump_contract(CONTRACT)


def test_several_guesses_and_long_ones_are_read_as_the_same_contract() -> None:
    guesses = [Guess("t", field, about, "why " * 40) for (field, about), _ in PLACES]
    guesses += [Guess("t", field, about, "line\nbreak: # {") for (field, about), _ in PLACES]
    text = dump_inferred(Inferred(CONTRACT, tuple(guesses)))
    contract, findings = read(text)
    assert contract is not None
    assert [finding for finding in findings if finding.level != "note"] == []
    assert canonical(contract, carried=False) == canonical(CONTRACT, carried=False)
    assert text.count("# guess: ") == len(guesses)


def test_a_text_of_several_lines_stays_whole() -> None:
    contract = build_contract(build_field("a", "string", rules.Pattern(pattern="a " * 100), description="x\ny"))
    guesses = tuple(Guess("t", ("a",), about, "why") for about in ("pattern", TYPE))
    found, _ = read(dump_inferred(Inferred(contract, guesses)))
    assert found is not None
    assert canonical(found, carried=False) == canonical(contract, carried=False)

"""The vectors are after those of JSON Schema; each format also refuses the empty text, and any end but its own.

Where the versions of its test suite disagree, the stricter one is followed: `087.10.0.1` is no address, since many
programs would read another number in it. A `uri` may have such a host all the same, which is a name to RFC 3986.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from databox_contracts import rules
from databox_contracts.formats.odcs_options import FORMATS as WRITTEN
from databox_contracts.row_rules import is_judged, keeps
from databox_contracts.rules import KNOWN_FORMATS
from databox_contracts.text_formats import FORMATS

VECTORS = json.loads((Path(__file__).parent / "cases" / "text_formats" / "vectors.json").read_text(encoding="utf-8"))
ENDS = ("\n", "\r\n", " ", "\u2028", "\x00")


def test_all_formats_that_can_be_written_are_evaluated_and_have_vectors():
    assert tuple(FORMATS) == KNOWN_FORMATS == WRITTEN == tuple(VECTORS)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_tells_texts_apart(name):
    rule = rules.Format(format=name)
    good, bad = VECTORS[name]["valid"], VECTORS[name]["invalid"]
    assert is_judged(rule)
    assert [text for text in good if not keeps(rule, text)] == []
    assert [text for text in ("", *ENDS, *bad, *(good[0] + end for end in ENDS)) if keeps(rule, text)] == []

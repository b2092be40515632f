"""What a text looks like: a number, a date, an address. One expression tells, and one number sums up a column.

The expressions are SQL text: built of PySpark's columns, they would cost a call into Java for each operator.
"""

from __future__ import annotations

from enum import IntFlag
from typing import Final

MOST_DIGITS: Final = 17
"""Significant digits that a double keeps; a text with more of them is an exact number."""
LARGEST_SCALE: Final = 18
MOST_EXACT_DIGITS: Final = 38


class Kind(IntFlag):
    """What a text is; the kinds of all texts of a column are added up. `TRAILING_ZERO` is seen beside a number."""

    OTHER = 1
    INTEGER = 2
    NUMBER = 4
    EXPONENT = 8
    EXACT = 16
    BOOLEAN = 32
    DATE = 64
    LOCAL_TIME = 128
    ZONED_TIME = 256
    UUID = 512
    EMAIL = 1024
    URI = 2048
    IPV4 = 4096
    IPV6 = 8192
    TRAILING_ZERO = 16384


NOTHING: Final = Kind(0)
"""Of a column without a text."""

PLAIN: Final = Kind.INTEGER | Kind.NUMBER | Kind.EXACT
"""Numbers that are written without an exponent."""

FORMATS: Final = {
    Kind.UUID: "uuid",
    Kind.EMAIL: "email",
    Kind.URI: "uri",
    Kind.IPV4: "ipv4",
    Kind.IPV6: "ipv6",
}
"""The kinds of text that a contract has a format for."""

# `\z` and not `$`, which forgives a trailing line feed. A number with leading zeros, a plus or spaces is a code.
_INTEGER: Final = r"\A(?:0|-?[1-9][0-9]*)\z"
_PLAIN: Final = r"\A-?(?:0|[1-9][0-9]*)?\.[0-9]+\z"
_EXPONENT: Final = r"\A-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?[eE][-+]?[0-9]+\z"
_DATE: Final = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}\z"
_MOMENT: Final = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
_ZONE: Final = r"(?:Z|[-+][0-9]{2}:[0-9]{2})"
_HEX: Final = "[0123456789abcdefABCDEF]"
_UUID: Final = rf"\A{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}\z"

# Narrower than the standards of the formats, so that what is taken for one is one to whoever checks it.
_LABEL: Final = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_EMAIL: Final = rf"\A[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*@(?:{_LABEL}\.)+[A-Za-z]{{2,}}\z"
_SCHEME: Final = "(?:https?|ftp|s3a?|gs|abfss?|hdfs)"
_URI: Final = rf"\A{_SCHEME}://{_LABEL}(?:\.{_LABEL})*(?::[0-9]{{1,5}})?(?:/[A-Za-z0-9._~!$&()*+,;=:@/-]*)?\z"
_OCTET: Final = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4: Final = rf"\A{_OCTET}(?:\.{_OCTET}){{3}}\z"
_IPV6: Final = rf"\A(?:{_HEX}{{1,4}}:){{7}}{_HEX}{{1,4}}\z"

_FORMAT: Final = f"""CASE
    WHEN length(%t) = 36 AND %t RLIKE r'{_UUID}' THEN {Kind.UUID:d}
    WHEN contains(%t, '@') AND %t RLIKE r'{_EMAIL}' THEN {Kind.EMAIL:d}
    WHEN contains(%t, '://') AND %t RLIKE r'{_URI}' THEN {Kind.URI:d}
    WHEN length(%t) BETWEEN 7 AND 15 AND %t RLIKE r'{_IPV4}' THEN {Kind.IPV4:d}
    WHEN contains(%t, ':') AND %t RLIKE r'{_IPV6}' THEN {Kind.IPV6:d}
    ELSE {Kind.OTHER:d} END"""

_FEW_DIGITS: Final = rf"""(length(%t) <= {MOST_DIGITS}
        OR length(regexp_replace(%t, r'\A-?[0.]*|\.|[eE].*', '')) <= {MOST_DIGITS})"""
_FITS_EXACT: Final = f"""length(%t) - instr(%t, '.') <= {LARGEST_SCALE}
        AND instr(%t, '.') - 1 <= {MOST_EXACT_DIGITS - LARGEST_SCALE}"""

# A type only where it holds all that the text says.
_VALUE: Final = rf"""CASE
    WHEN %t RLIKE r'{_INTEGER}' THEN if(try_cast(%t AS bigint) IS NOT NULL, {Kind.INTEGER:d}, NULL)
    WHEN %t RLIKE r'{_PLAIN}' THEN CASE
        WHEN {_FEW_DIGITS} THEN {Kind.NUMBER:d} + if(endswith(%t, '0'), {Kind.TRAILING_ZERO:d}, 0)
        WHEN {_FITS_EXACT} THEN {Kind.EXACT:d} END
    WHEN %t RLIKE r'{_DATE}' THEN if(try_cast(%t AS date) IS NOT NULL, {Kind.DATE:d}, NULL)
    WHEN %t RLIKE r'{_MOMENT}\z' THEN if(try_cast(%t AS timestamp_ntz) IS NOT NULL, {Kind.LOCAL_TIME:d}, NULL)
    WHEN %t RLIKE r'{_MOMENT}{_ZONE}\z' THEN if(try_cast(%t AS timestamp) IS NOT NULL, {Kind.ZONED_TIME:d}, NULL)
    WHEN %t RLIKE r'{_EXPONENT}' AND {_FEW_DIGITS} AND abs(try_cast(%t AS double)) < double('Infinity')
        THEN {Kind.EXPONENT:d} END"""

# Most texts are told apart by their first character, before any pattern is tried.
_UNTYPED: Final = f"""CASE
    WHEN left(%t, 1) IN ('-', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9') THEN coalesce({_VALUE}, {_FORMAT})
    WHEN lower(%t) IN ('true', 'false') THEN {Kind.BOOLEAN:d}
    WHEN %t = 'NaN' THEN {Kind.EXPONENT:d}
    ELSE {_FORMAT} END"""


def kind_sql(text: str, untyped: str) -> str:
    """The kind of a text, null for null; where `untyped` is true, it may be a number, a moment or a truth value."""
    kind = f"CASE WHEN {untyped} THEN {_UNTYPED} ELSE {_FORMAT} END".replace("%t", text)
    return f"CASE WHEN {text} IS NOT NULL THEN {kind} END"


_OF_KIND: Final = {
    "integer": ("try_cast(%t AS bigint)", Kind.INTEGER),
    "number": ("try_cast(%t AS double)", Kind.INTEGER | Kind.NUMBER | Kind.EXPONENT),
    "local": ("try_cast(%t AS timestamp_ntz)", Kind.DATE | Kind.LOCAL_TIME),
    "zoned": ("unix_micros(try_cast(%t AS timestamp))", Kind.ZONED_TIME),
    "fraction": ("if(contains(%t, '.'), length(%t) - instr(%t, '.'), 0)", PLAIN),
    "whole": ("if(contains(%t, '.'), instr(%t, '.') - 1, length(%t))", PLAIN),
}


def value_sql(text: str, kind: str) -> dict[str, str]:
    """What a text stands for, by name, each null for texts of another kind.

    `fraction` and `whole` count the characters behind and before the point of a number, its sign among them.
    """
    return {
        name: f"CASE WHEN {kind} & {kinds:d} != 0 THEN {value.replace('%t', text)} END"
        for name, (value, kinds) in _OF_KIND.items()
    }

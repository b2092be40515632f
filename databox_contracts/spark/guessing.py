"""From what was counted to what a contract may promise: types of texts, what is never null, bounds, lengths, formats.

Everything here is a guess, and none of it is about the values of personal data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import isfinite
from struct import pack, unpack
from typing import Final

from databox_contracts.datatypes import DataType, Family
from databox_contracts.rules import Format, Limit, Maximum, MaxLength, Minimum, MinLength, Required, Rule
from databox_contracts.spark.profile_facts import Facts
from databox_contracts.spark.text_kinds import FORMATS, LARGEST_SCALE, MOST_EXACT_DIGITS, PLAIN, Kind

FEWEST_ROWS: Final = 10
"""With fewer values than these, what they have in common is taken for chance."""
MOST_ENUM_VALUES: Final = 20
LONGEST_ENUM_VALUE: Final = 50
ROWS_PER_ENUM_VALUE: Final = 10
"""A list of allowed values is guessed where each stands for so many rows on average."""

# Formats that are about a person as a rule.
PERSONAL_FORMATS: Final = {
    "email": "every value is an e-mail address",
    "ipv4": "every value is a network address",
    "ipv6": "every value is a network address",
}

# The newest moment of a table moves on with every load, so that a bound on it would fail the next one.
_BOUNDED_ABOVE: Final = (Family.INTEGER, Family.NUMBER, Family.DECIMAL)
_MOMENTS: Final = (Family.DATE, Family.TIMESTAMP)
_NUMBERS: Final = Kind.INTEGER | Kind.NUMBER | Kind.EXPONENT
# A decimal of so many digits is the double's shortest text.
_DIGITS_OF_A_DOUBLE: Final = 15
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_TYPE_OF: Final = {
    Kind.BOOLEAN: (DataType(Family.BOOLEAN), "true or false"),
    Kind.DATE: (DataType(Family.DATE), "a date"),
    Kind.LOCAL_TIME: (DataType(Family.TIMESTAMP, zone=False), "a time without a zone"),
    Kind.ZONED_TIME: (DataType(Family.TIMESTAMP, zone=True), "a time with a zone"),
}


@dataclass(frozen=True, slots=True)
class GuessedRule:
    """A rule that the data keeps, and why it may be one."""

    rule: Rule
    reason: str


def guess_type(facts: Facts) -> tuple[DataType, str] | None:
    """What the texts of a column stand for, and how that is known; None where they are just text.

    Every text is a value of the type, and the type loses nothing of any.
    """
    if not facts.leaf.untyped or not facts.present:
        return None
    every = f"every one of {_values(facts)} is"
    kinds = facts.kinds & ~Kind.TRAILING_ZERO
    if kinds in _TYPE_OF:
        type_, what = _TYPE_OF[kinds]
        return type_, f"{every} {what}"
    if kinds == Kind.INTEGER:
        low, high = Decimal(facts.low_integer or 0), Decimal(facts.high_integer or 0)
        bits = 32 if low >= -(2**31) and high < 2**31 else 64
        return DataType(Family.INTEGER, bits=bits), f"{every} an integer of {bits} bits"
    if _only(kinds, PLAIN):
        exact = _exact_type(facts)
        if exact is not None:
            return exact, f"{every} a number with at most {exact.scale} fraction digits"
    if _only(kinds, _NUMBERS):
        return DataType(Family.NUMBER, bits=64), f"{every} a number"
    return None


def _only(kinds: Kind, allowed: Kind) -> bool:
    return bool(kinds) and kinds | allowed == allowed


def _exact_type(facts: Facts) -> DataType | None:
    """A decimal where a double cannot hold all digits, or where they are written as amounts of money are."""
    scale = facts.most_fraction_digits
    if facts.kinds & Kind.EXACT:
        if scale <= LARGEST_SCALE and facts.most_integer_digits + scale <= MOST_EXACT_DIGITS:
            return DataType(Family.DECIMAL, precision=MOST_EXACT_DIGITS, scale=scale)
        return None
    # Nobody who prints doubles writes 2.50: a trailing zero says that the number of digits is fixed.
    fixed = facts.fewest_fraction_digits == scale >= 2 and facts.kinds & Kind.TRAILING_ZERO
    if not fixed or facts.present < FEWEST_ROWS:
        return None
    precision = 18 if facts.most_integer_digits + scale <= 18 else MOST_EXACT_DIGITS
    return DataType(Family.DECIMAL, precision=precision, scale=scale)


def guess_format(facts: Facts) -> str | None:
    """The format that every text of a column has, None if there is none or there are few."""
    return FORMATS.get(facts.kinds) if facts.present >= FEWEST_ROWS else None


def guess_rules(facts: Facts, type_: DataType | None, *, masked: bool) -> Iterator[GuessedRule]:
    """What a column of that type keeps, in the order in which contracts say it; of a masked one, no values."""
    if facts.rows >= FEWEST_ROWS and facts.present == facts.rows:
        yield GuessedRule(Required(), f"none of {facts.rows} values is null")
    if type_ is None or facts.present < FEWEST_ROWS:
        return
    if type_.family is Family.STRING:
        yield from _about_text(facts, type_, masked=masked)
    elif not masked:
        yield from _bounds(facts, type_)


def _about_text(facts: Facts, type_: DataType, *, masked: bool) -> Iterator[GuessedRule]:
    format_ = guess_format(facts)
    if format_ is not None:
        yield GuessedRule(Format(format=format_), f"every one of {_values(facts)} has the format {format_}")
    elif not masked and facts.longest and (type_.length is None or facts.longest < type_.length):
        longest = facts.longest
        if facts.shortest == longest:
            yield GuessedRule(MinLength(length=longest), f"every one of {_values(facts)} has {longest} characters")
        yield GuessedRule(MaxLength(length=longest), f"the longest of {_values(facts)}")


def _bounds(facts: Facts, type_: DataType) -> Iterator[GuessedRule]:
    low, high = limits(facts, type_)
    if low is not None:
        newest = f"; the newest is {high}" if high is not None and type_.family in _MOMENTS else ""
        word = "oldest" if type_.family in _MOMENTS else "least"
        yield GuessedRule(Minimum(limit=low), f"the {word} of {_values(facts)}{newest}")
    if high is not None and type_.family in _BOUNDED_ABOVE:
        yield GuessedRule(Maximum(limit=high), f"the greatest of {_values(facts)}")


def limits(facts: Facts, type_: DataType) -> tuple[Limit | None, Limit | None]:
    """The least and the greatest value of a column of that type; None where a contract cannot say it."""
    match type_.family:
        case Family.INTEGER:
            return _number(facts.low_integer), _number(facts.high_integer)
        case Family.DECIMAL if not facts.leaf.untyped:
            return _number(facts.low_exact), _number(facts.high_exact)
        case Family.DECIMAL if facts.most_integer_digits + facts.most_fraction_digits <= _DIGITS_OF_A_DOUBLE:
            return _number(facts.low_number), _number(facts.high_number)
        case Family.NUMBER if facts.nans == 0:
            shortest = _shortest if type_.bits == 32 else _number
            return shortest(facts.low_number), shortest(facts.high_number)
        case Family.DATE:
            return _moment(facts.low_local, 10), _moment(facts.high_local, 10)
        case Family.TIMESTAMP if type_.zone:
            return _instant(facts.low_zoned), _instant(facts.high_zoned)
        case Family.TIMESTAMP:
            return _moment(facts.low_local), _moment(facts.high_local)
    return None, None


def _number(written: str | None) -> int | float | Decimal | None:
    exact = Decimal(written) if written is not None else None
    if exact is None or not exact.is_finite():
        return None
    if exact == exact.to_integral_value() and abs(exact) < 10**18:
        return int(exact)
    return exact.normalize() if -6 <= exact.adjusted() < 18 else float(exact)


def _shortest(written: str | None) -> int | float | Decimal | None:
    """A number of 32 bits, which was written with the digits of 64, with those that are enough to tell it."""
    if written is None or not isfinite(float(written)):
        return None
    exact = unpack("f", pack("f", float(written)))
    digits = next(n for n in range(6, 18) if unpack("f", pack("f", float(f"{float(written):.{n}g}"))) == exact)
    return _number(f"{float(written):.{digits}g}")


def _moment(written: str | None, length: int | None = None) -> str | None:
    """A moment in ISO 8601; None beyond the years that have four digits."""
    try:
        return datetime.fromisoformat(written).isoformat()[:length] if written is not None else None
    except ValueError:
        return None


def _instant(micros: str | None) -> str | None:
    try:
        moment = _EPOCH + timedelta(microseconds=int(micros)) if micros is not None else None
    except OverflowError:
        return None
    return moment.isoformat().replace("+00:00", "Z") if moment is not None else None


def _values(facts: Facts) -> str:
    return f"{facts.present} value{'' if facts.present == 1 else 's'}"


def may_be_enum(facts: Facts, type_: DataType | None) -> bool:
    """Whether a text has so few values that it is worth collecting them; their number is an estimate."""
    return (
        type_ is not None
        and type_.family is Family.STRING
        and 0 < facts.distinct <= MOST_ENUM_VALUES + MOST_ENUM_VALUES // 4
        and facts.present >= FEWEST_ROWS
        and facts.longest <= LONGEST_ENUM_VALUE
        and guess_format(facts) is None
    )


def is_enum(facts: Facts, values: int) -> bool:
    """Whether that many different values are few enough to be all there are."""
    return 0 < values <= MOST_ENUM_VALUES and values * ROWS_PER_ENUM_VALUE <= facts.present

"""Which type changes keep every value: one literal table for each policy that asks."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final, TypeAlias

from databox_contracts.datatypes import DataType, Family

Test: TypeAlias = Callable[[DataType, DataType], bool]
"""Whether a change from the first type to the second one, of the families a row names, is a widening."""

Row: TypeAlias = tuple[Family, Family, Test]


class Widening(StrEnum):
    """The tables there are."""

    NONE = "none"
    SODA = "soda"
    NUMERIC = "numeric"
    REGISTRY = "registry"
    ICEBERG = "iceberg"
    DELTA = "delta"


def _any(old: DataType, new: DataType) -> bool:
    return True


def _wider(old: DataType, new: DataType) -> bool:
    """Both widths are known and the new one is not smaller."""
    return old.bits is not None and new.bits is not None and old.bits <= new.bits


def _wider_decimal(old: DataType, new: DataType) -> bool:
    """Neither integer nor fraction digits get fewer."""
    if old.precision is None or new.precision is None:
        return False
    old_scale, new_scale = old.scale or 0, new.scale or 0
    return old_scale <= new_scale and old.precision - old_scale <= new.precision - new_scale


def _more_precise(old: DataType, new: DataType) -> bool:
    """More digits of the same scale."""
    if old.precision is None or new.precision is None:
        return False
    return (old.scale or 0) == (new.scale or 0) and old.precision <= new.precision


# The digits of the largest value of an integer of that width.
_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 19}


def _holds_the_integer(old: DataType, new: DataType) -> bool:
    digits = _DIGITS.get(old.bits or 0)
    return digits is not None and new.precision is not None and new.precision - (new.scale or 0) >= digits


def _exact_in_floating_point(old: DataType, new: DataType) -> bool:
    """Every value of the integer is one of the floating-point type: 53 bits of a double, 24 of a float."""
    return old.bits is not None and new.bits is not None and old.bits < {32: 24, 64: 53}[new.bits]


def _of_bits(old: int, new: int) -> Test:
    return lambda had, has: (had.bits, has.bits) == (old, new)


# Delta asks for at least these integer digits, whatever the integer holds.
_DELTA_DIGITS: Final = {8: 10, 16: 10, 32: 10, 64: 20}


def _delta_decimal(old: DataType, new: DataType) -> bool:
    digits = _DELTA_DIGITS.get(old.bits or 0)
    return digits is not None and new.precision is not None and new.precision - (new.scale or 0) >= digits


def _small_to_double(old: DataType, new: DataType) -> bool:
    return old.bits in (8, 16, 32) and new.bits == 64


def _shorter_to_longer(old: DataType, new: DataType) -> bool:
    return new.length is None or (old.length is not None and old.length <= new.length)


_TO_TIMESTAMP: Final = (Family.DATE, Family.TIMESTAMP, _any)
_INTEGERS: Final = (Family.INTEGER, Family.INTEGER, _wider)
_FLOATS: Final = (Family.NUMBER, Family.NUMBER, _wider)

TABLES: Final[dict[Widening, tuple[Row, ...]]] = {
    Widening.NONE: (),
    # The four families of the schema gate of Soda contracts: integer widths, integer to any numeric type, any text to
    # any other text, date to timestamp.
    Widening.SODA: (
        _INTEGERS,
        (Family.INTEGER, Family.NUMBER, _any),
        (Family.INTEGER, Family.DECIMAL, _any),
        (Family.STRING, Family.STRING, _any),
        _TO_TIMESTAMP,
    ),
    # Every old value is a new one, unchanged.
    Widening.NUMERIC: (
        _INTEGERS,
        _FLOATS,
        (Family.DECIMAL, Family.DECIMAL, _wider_decimal),
        (Family.INTEGER, Family.DECIMAL, _holds_the_integer),
        (Family.INTEGER, Family.NUMBER, _exact_in_floating_point),
        (Family.STRING, Family.STRING, _shorter_to_longer),
    ),
    # Avro's promotions, which schema registries judge by, and what is no change to Avro.
    Widening.REGISTRY: (
        _INTEGERS,
        _FLOATS,
        (Family.INTEGER, Family.NUMBER, _any),
        (Family.STRING, Family.BINARY, _any),
        (Family.BINARY, Family.STRING, _any),
        (Family.STRING, Family.STRING, _shorter_to_longer),
    ),
    # Iceberg's type promotion; what it has no own type for (8 and 16 bits, lengths) is no change to it.
    Widening.ICEBERG: (
        _INTEGERS,
        (Family.NUMBER, Family.NUMBER, _of_bits(32, 64)),
        (Family.DECIMAL, Family.DECIMAL, _more_precise),
        (Family.STRING, Family.STRING, _any),
    ),
    # Delta's type widening.
    Widening.DELTA: (
        _INTEGERS,
        (Family.INTEGER, Family.NUMBER, _small_to_double),
        (Family.INTEGER, Family.DECIMAL, _delta_decimal),
        (Family.NUMBER, Family.NUMBER, _of_bits(32, 64)),
        (Family.DECIMAL, Family.DECIMAL, _wider_decimal),
        (Family.DATE, Family.TIMESTAMP, lambda old, new: new.zone is False),
        (Family.STRING, Family.STRING, _any),
    ),
}


def widens(old: DataType | None, new: DataType | None, table: Widening) -> bool:
    """Whether the table has the change as a widening, at this level of a nested type.

    A type that is not declared never widens, nor is widened to. What arrays, maps and objects contain is judged on its
    own.
    """
    if old is None or new is None:
        return False
    return any((old.family, new.family) == (had, has) and test(old, new) for had, has, test in TABLES[table])

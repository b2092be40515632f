"""The default of a field as the JSON that Avro writes for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from databox_contracts.datatypes import Family
from databox_contracts.model import Field

NO_DEFAULT: Final = object()
"""What stands for no default; null is one."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def avro_default(field: Field, written: Any) -> Any:
    """The default for the written type, `NO_DEFAULT` where the field has none or it is no value of that type."""
    value = field.default
    convert = _CONVERTERS.get(_kind(written))
    if value is None or convert is None or field.type is None or field.type.family in _AS_TEXT:
        return NO_DEFAULT
    try:
        return convert(value, written)
    except (ValueError, TypeError, InvalidOperation, OverflowError):
        return NO_DEFAULT


# Written as something that they are not.
_AS_TEXT: Final = (Family.VARIANT,)


def _kind(written: Any) -> str:
    if isinstance(written, dict):
        return str(written.get("logicalType", written["type"]))
    return str(written)


def _whole(bits: int) -> Callable[[Any, Any], int]:
    def convert(value: Any, written: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise ValueError
        return value

    return convert


def _number(value: Any, written: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not Decimal(str(value)).is_finite():
        raise ValueError
    return float(value)


def _text(value: Any, written: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _symbol(value: Any, written: Any) -> str:
    if value not in written["symbols"]:
        raise ValueError
    return str(value)


def _flag(value: Any, written: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _decimal(value: Any, written: Any) -> str:
    """The unscaled number as big-endian bytes, each one a character."""
    if isinstance(value, bool):
        raise TypeError
    exact = Decimal(str(value)).scaleb(written["scale"])
    if exact != exact.to_integral_value() or len(str(abs(int(exact)))) > written["precision"]:
        raise ValueError
    unscaled = int(exact)
    length = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
    return unscaled.to_bytes(length, "big", signed=True).decode("latin-1")


def _days(value: Any, written: Any) -> int:
    day = value if isinstance(value, date) and not isinstance(value, datetime) else date.fromisoformat(str(value))
    return (day - _EPOCH.date()).days


def _micros(value: Any, written: Any) -> int:
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    since = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _micros_of_day(value: Any, written: Any) -> int:
    at = value if isinstance(value, time) else time.fromisoformat(str(value))
    if at.tzinfo is not None:
        raise ValueError
    return ((at.hour * 60 + at.minute) * 60 + at.second) * 1_000_000 + at.microsecond


def _empty(kind: type) -> Callable[[Any, Any], Any]:
    def convert(value: Any, written: Any) -> Any:
        # What is in it would have to be converted too, and is hardly ever said.
        if not isinstance(value, kind) or value:
            raise ValueError
        return value

    return convert


# By the logical type, else the type.
_CONVERTERS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "boolean": _flag,
    "int": _whole(32),
    "long": _whole(64),
    "float": _number,
    "double": _number,
    "string": _text,
    "uuid": _text,
    "enum": _symbol,
    "decimal": _decimal,
    "date": _days,
    "timestamp-micros": _micros,
    "local-timestamp-micros": _micros,
    "time-micros": _micros_of_day,
    "array": _empty(list),
    "map": _empty(dict),
}

"""What differs between the versions of PySpark that the engine runs on, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import Column, functions as F
from pyspark.sql.types import DataType

if TYPE_CHECKING:
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.types import VariantType
else:
    try:
        from pyspark.sql.connect.client.retries import DefaultPolicy
    except ImportError:  # PySpark 3.5

        class DefaultPolicy:
            """Retries cannot be set there."""

    try:
        from pyspark.sql.types import VariantType
    except ImportError:  # PySpark 3.5

        class VariantType(DataType):
            """No column has this type."""


__all__ = ["DefaultPolicy", "VariantType", "condition_of", "try_cast", "try_mod"]


def try_cast(value: Column, target: DataType) -> Column:
    """The cast, null where the value does not fit. On PySpark 3.5 that is so while ANSI mode is off, its default."""
    return value.try_cast(target) if hasattr(Column, "try_cast") else value.cast(target)


def try_mod(value: Column, divisor: Column) -> Column:
    """The remainder, null where the divisor is zero."""
    return F.try_mod(value, divisor) if hasattr(F, "try_mod") else value % divisor


def condition_of(error: PySparkException) -> str | None:
    """The name Spark gives to an error, with its subclass."""
    return error.getCondition() if hasattr(error, "getCondition") else error.getErrorClass()

"""What differs between the versions of PySpark that the engine runs on, 3.5 to 4.x, in one place."""

from __future__ import annotations

from typing import Final

from pyspark import __version__
from pyspark.errors import PySparkException
from pyspark.sql import Column, functions as F, types
from pyspark.sql.types import DataType as SparkType

from databox_contracts.errors import SparkUnavailableError

VARIANT: Final[type[SparkType] | None] = getattr(types, "VariantType", None)
"""The type of variants; PySpark 3.5 has none, and no such columns."""

_HAS_TRY_CAST: Final = hasattr(Column, "try_cast")


def try_cast(value: Column, target: SparkType) -> Column:
    """The value as that type, null where it is none, whatever the session's ANSI mode is."""
    if _HAS_TRY_CAST:
        return value.try_cast(target)
    # SQL has had it before the Python API, and only there a value without a name can be cast: as a lambda's variable.
    cast = F.expr(f"v -> try_cast(v AS {target.simpleString()})")
    return F.call_function("transform", F.array(value), cast).getItem(0)


def error_condition(error: PySparkException) -> str | None:
    """The name that Spark gives to an error, such as `PATH_NOT_FOUND`; None where it gives none."""
    name: str | None = error.getCondition() if hasattr(error, "getCondition") else error.getErrorClass()
    return name


def require_connect() -> None:
    """Raises `SparkUnavailableError` where this PySpark brings no Spark Connect that the engine could use."""
    if int(__version__.split(".")[0]) < 4:
        raise SparkUnavailableError(
            f"PySpark {__version__} brings no Spark Connect server.",
            hint="Use PySpark 4, or a classic session of this process.",
        )

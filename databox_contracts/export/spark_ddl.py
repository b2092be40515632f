"""A Spark schema as DDL text, as `spark.read.schema(...)` and `StructType.fromDDL` take it."""

from __future__ import annotations

from typing import Final

from databox_contracts.datatypes import Family
from databox_contracts.export.losses import Place, columns, losses
from databox_contracts.export.spark_types import WORDS, judge_required, scalar, table_name_losses, type_losses
from databox_contracts.export.targets import Exported, Target
from databox_contracts.rules import Rule

_PARTS: Final = ("item", "value")


def export_spark_ddl(target: Target) -> Exported:
    """The columns of one dataset, one to a line: name, type, `NOT NULL` and comment, also inside objects.

    Parts of the primary key are not null. The key of a map never is.
    """
    (dataset,) = target.datasets
    lines = (_column(place, separator=" ") for place in columns(target.contract, dataset))
    lost = losses(
        target, WORDS, judge=_judge, attributes=_attribute, more=[*table_name_losses(target), *type_losses(target)]
    )
    return Exported(",\n".join(lines) + "\n", lost)


def _judge(rule: Rule, place: Place) -> str | None:
    if rule.kind == "required" and place.part == "key":
        return None
    return judge_required(rule, place, unsayable=_PARTS)


def _attribute(name: str, place: Place) -> str | None:
    return f"Spark's DDL has no comments on the {place.part}s of arrays and maps" if place.part is not None else None


def _column(place: Place, separator: str) -> str:
    assert place.field is not None
    parts = [f"{identifier(place.field.column)}{separator}{_type(place)}"]
    if place.required:
        parts.append("NOT NULL")
    if place.field.description.strip():
        parts.append(f"COMMENT {literal(place.field.description.strip())}")
    return " ".join(parts)


def _type(place: Place | None) -> str:
    type_ = place.field.type if place is not None and place.field is not None else None
    if place is None or type_ is None:
        return scalar(None)[0]
    match type_.family:
        case Family.ARRAY:
            return f"ARRAY<{_type(place.holds('item'))}>"
        case Family.MAP:
            return f"MAP<{_type(place.holds('key'))}, {_type(place.holds('value'))}>"
        case Family.OBJECT:
            return f"STRUCT<{', '.join(_column(part, separator=': ') for part in place.fields)}>"
    return scalar(type_)[0]


def identifier(name: str) -> str:
    """The name in back-ticks, which it cannot leave."""
    return f"`{name.replace('`', '``')}`"


# Spark reads backslashes in literals.
_ESCAPES: Final = str.maketrans({"\\": r"\\", "'": r"\'", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\0": r"\0"})


def literal(text: str) -> str:
    """The text in quotes, which it cannot leave."""
    return f"'{text.translate(_ESCAPES)}'"

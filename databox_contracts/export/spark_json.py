"""A Spark schema as JSON, as `StructType.fromJson` reads it."""

from __future__ import annotations

from typing import Any

from databox_contracts.datatypes import Family
from databox_contracts.export.json_text import to_json
from databox_contracts.export.losses import Place, columns, losses
from databox_contracts.export.spark_types import WORDS, judge_required, scalar, table_name_losses, type_losses
from databox_contracts.export.targets import Exported, Target
from databox_contracts.rules import Rule


def export_spark_json(target: Target) -> Exported:
    """The columns of one dataset with `nullable`, and the description as the comment in their metadata.

    Parts of the primary key are not null; `containsNull` says the same of the items of arrays and the values of maps.
    """
    (dataset,) = target.datasets
    schema = {"type": "struct", "fields": [_column(place) for place in columns(target.contract, dataset)]}
    lost = losses(
        target, WORDS, judge=_judge, attributes=_attribute, more=[*table_name_losses(target), *type_losses(target)]
    )
    return Exported(to_json(schema) + "\n", lost)


def _judge(rule: Rule, place: Place) -> str | None:
    # The key of a map never is null.
    return judge_required(rule, place, unsayable=())


def _attribute(name: str, place: Place) -> str | None:
    return f"Spark has no comments on the {place.part}s of arrays and maps" if place.part is not None else None


def _column(place: Place) -> dict[str, Any]:
    assert place.field is not None
    comment = place.field.description.strip()
    return {
        "name": place.field.column,
        "type": _type(place),
        "nullable": not place.required,
        "metadata": {"comment": comment} if comment else {},
    }


def _type(place: Place | None) -> Any:
    type_ = place.field.type if place is not None and place.field is not None else None
    if place is None or type_ is None:
        return scalar(None)[1]
    match type_.family:
        case Family.ARRAY:
            item = place.holds("item")
            return {"type": "array", "elementType": _type(item), "containsNull": _may_be_null(item)}
        case Family.MAP:
            value = place.holds("value")
            return {
                "type": "map",
                "keyType": _type(place.holds("key")),
                "valueType": _type(value),
                "valueContainsNull": _may_be_null(value),
            }
        case Family.OBJECT:
            return {"type": "struct", "fields": [_column(part) for part in place.fields]}
    return scalar(type_)[1]


def _may_be_null(place: Place | None) -> bool:
    return place is None or not place.required

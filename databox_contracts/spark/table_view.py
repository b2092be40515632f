"""A table looked at by the positions of its columns, and where in it the paths of a contract lead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, functions as F
from pyspark.sql.types import DataType as SparkType, StringType, StructField, StructType

from databox_contracts.model import Field
from databox_contracts.plan import Check, Hop, Path, Plan
from databox_contracts.spark.casting import cast_text, spark_type_of
from databox_contracts.spark.collations import by_code_points
from databox_contracts.spark.counting import positional
from databox_contracts.spark.inside import is_inside, values_at, values_together
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.schema import Location, Missing, locate

_SETTINGS: Final = {
    "time_zone": "spark.sql.session.timeZone",
    "ansi": "spark.sql.ansi.enabled",
    "case_sensitive": "spark.sql.caseSensitive",
}


class TableView:
    """A table under names by position: whatever its own are (dots, quotes, keywords, two of one name), they cannot be
    mistaken in an expression.

    With `untyped`, texts are cast as the contract declares them, which `texts` says by position; the text itself stays
    beside, under `text_of`. `settings` are those of the session.
    """

    def __init__(self, df: DataFrame, plan: Plan, *, untyped: bool = False) -> None:
        self.plan = plan
        self.schema = df.schema
        self.names = df.columns
        self.settings = _settings(df)
        self.case_sensitive = self.settings["case_sensitive"] == "true"
        self.view = df.toDF(*(positional(at) for at in range(len(self.schema.fields))))
        self.texts: dict[int, SparkType] = {}
        if untyped:
            self._cast_texts()

    @property
    def table(self) -> DataFrame:
        """The table under its own names, texts cast as the contract says."""
        return self.view.select(*(positional(at) for at in range(len(self.names)))).toDF(*self.names)

    def locate(self, path: Path) -> Location:
        """Where a path leads. Raises `NotEvaluableError` for one that leads nowhere."""
        found = locate(self.schema, path, case_sensitive=self.case_sensitive)
        if isinstance(found, Missing):
            raise NotEvaluableError(found.reason)
        return found

    def single(self, path: Path, name: str) -> tuple[Column, SparkType]:
        """A column that has one value in each row, and its type."""
        found = self.locate(path)
        column = self.view[positional(found.column)]
        for step in found.steps:
            if not isinstance(step, str):
                raise NotEvaluableError(f"{name} is inside an array or a map, which is no part of a row's key")
            column = column.getField(step)
        return column, found.type

    def key_values(self, check: Check, beside: Sequence[Column] = ()) -> Column | None:
        """The values of a key that is inside an array or a map, as one array; None for other keys.

        Where it has several parts, or there are parts `beside` them that belong to the row, they are objects of these.
        Raises `NotEvaluableError` for one that is not there, and where its parts are in different arrays.
        """
        if not any(is_inside(path) for path in check.keys):
            return None
        found = [self.locate(path) for path in check.keys]
        if len(found) == 1 and not beside:
            values = values_at(self.view[positional(found[0].column)], found[0].steps)
        else:
            values = values_together(self.view, [(positional(one.column), one.steps) for one in found], beside)
        return by_code_points(values, self.view.select(values).schema.fields[0].dataType)

    def key_items(self, check: Check, beside: Sequence[Column] = ()) -> DataFrame | None:
        """As `key_values`, each value a row of the column `k0`, or its parts of `k0`, `k1` and so on."""
        values = self.key_values(check, beside)
        if values is None:
            return None
        return item_parts(self.view.select(F.explode(values).alias("one")), len(check.keys) + len(beside))

    def conceals(self, path: Path) -> bool:
        """Whether values there must not be shown."""
        pii_class, level = self.plan.contract.governance.pii_class, self.plan.dataset.fields
        field: Field | None = None
        for step in path:
            if isinstance(step, Hop):
                field = getattr(field, step.value, None)
            else:
                field = next((one for one in level if one.column == step), None)
            if field is None:
                return pii_class is not None
            if field.conceals(pii_class):
                return True
            level = field.fields
        return False

    def key_columns(self, check: Check) -> list[Column]:
        """The parts of a key as columns of the view. Raises `NotEvaluableError` for a part that is not there."""
        return [self.single(path, name)[0] for name, path in zip(check.key_names, check.keys, strict=True)]

    def _cast_texts(self) -> None:
        """Give text columns their declared types; the text itself stays beside, for what the cast loses."""
        casts: dict[str, Column] = {}
        fields = list(self.schema.fields)
        for field in self.plan.dataset.fields:
            found = locate(self.schema, (field.column,), case_sensitive=self.case_sensitive)
            target = spark_type_of(field.type) if field.type is not None else None
            if isinstance(found, Missing) or target is None or not isinstance(found.type, StringType):
                continue
            text = self.view[positional(found.column)]
            casts[text_of(found.column)] = text
            casts[positional(found.column)] = cast_text(text, target)
            fields[found.column] = StructField(fields[found.column].name, target)
            self.texts[found.column] = target
        if casts:
            self.view = self.view.withColumns(casts)
            self.schema = StructType(fields)


def item_parts(rows: DataFrame, parts: int, *, keep: Sequence[str] = (), prefix: str = "k") -> DataFrame:
    """The values of a key, `one` in each row, as so many columns `k0`, `k1` …, after those that are to be kept."""
    one = F.col("one")
    found = [one] if parts == 1 else [one.getField(f"k{at}") for at in range(parts)]
    return rows.select(*keep, *(part.alias(f"{prefix}{at}") for at, part in enumerate(found)))


def text_of(at: int) -> str:
    """The name of the text that the column at that position was cast from."""
    return f"t{at}"


def _settings(df: DataFrame) -> Mapping[str, str]:
    conf = df.sparkSession.conf
    return {name: str(conf.get(key)) for name, key in _SETTINGS.items()}

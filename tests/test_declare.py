"""Contracts as Python classes: what an annotation promises, and rows held against it without Spark."""

import dataclasses
import enum
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal, NewType, NotRequired, Optional, TypedDict
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, SecretStr, field_validator, model_validator

import databox_contracts as dbc
from databox_contracts import ContractBase, SchemaRegistry, ValidationError, contract, rules, validate_data
from databox_contracts.datatypes import DataType, Family
from databox_contracts.declare import contract_of
from databox_contracts.errors import ContractError, UnknownDatasetError
from databox_contracts.model import Mode, SchemaModes
from databox_contracts.plan import build_plan
from databox_contracts.pydantic_models import DEFAULT_MODES, EXTRA_OF_MODE
from databox_contracts.testing import build_contract, build_field


@pytest.fixture(autouse=True)
def _isolated():
    with SchemaRegistry.isolated():
        yield


def field_of(annotation: Any):
    """The field `x` of a class that annotates it so."""
    made = type("Made", (ContractBase,), {"__annotations__": {"x": annotation}, "__module__": __name__})
    return contract_of(made).dataset().fields[0]


# --- classes ----------------------------------------------------------------------------------------------------------


def test_a_class_registers_itself_and_is_the_same_contract_as_a_file():
    class TradeSchemaV1(ContractBase):
        """Trades of a day."""

        __version__ = "1.0.0"
        symbol: str
        price: float
        volume: int
        exchange: str

    found = SchemaRegistry.get_latest("TradeSchemaV1")
    assert found == dbc.SchemaVersion(
        "TradeSchemaV1", "1.0.0", {"symbol": str, "price": float, "volume": int, "exchange": str}
    )
    made = contract_of(TradeSchemaV1)
    assert (made.id, made.version, made.dialect, made.findings) == ("TradeSchemaV1", "1.0.0", "python", ())
    dataset = made.dataset()
    assert (dataset.name, dataset.description, dataset.modes) == ("TradeSchemaV1", "Trades of a day.", None)
    assert [(field.name, str(field.type), field.required) for field in dataset.fields] == [
        ("symbol", "string", True),
        ("price", "number", True),
        ("volume", "integer", True),
        ("exchange", "string", True),
    ]
    assert build_plan(made, dataset).checks[0].id == "TradeSchemaV1.symbol.present"
    assert contract_of(TradeSchemaV1) is made
    assert SchemaRegistry.list_schemas() == ["TradeSchemaV1"]


def test_private_names_and_class_variables_are_no_fields():
    class One(ContractBase):
        table: ClassVar[str] = "x"
        symbol: str
        _internal: str = ""
        __hidden: int = 0
        note = "not annotated"

    assert list(SchemaRegistry.get_latest("One").fields) == ["symbol"]


def test_fields_are_inherited_first_and_can_be_narrowed():
    class Base(ContractBase):
        id: int
        at: datetime

    class Sub(Base):
        __version__ = "2.0.0"
        note: str | None
        id: str

    fields = contract_of(Sub).dataset().fields
    assert [(field.name, str(field.type)) for field in fields] == [
        ("id", "string"),
        ("at", "timestamp"),
        ("note", "string"),
    ]
    assert SchemaRegistry.get_latest("Sub").version == "2.0.0"
    assert SchemaRegistry.get_latest("Base").version == "1.0.0"


def test_a_class_defined_again_replaces_itself():
    def define(annotation):
        return type("Again", (ContractBase,), {"__annotations__": {"x": annotation}, "__module__": __name__})

    define(int)
    define(str)
    assert [found.fields for found in SchemaRegistry.get_history("Again")] == [{"x": str}]


def test_a_base_without_fields_is_no_schema():
    class Helpers(ContractBase):
        def own(self) -> None: ...

    class Real(Helpers):
        x: int

    assert SchemaRegistry.list_schemas() == ["Real"]
    with pytest.raises(ContractError, match="declares no field"):
        contract_of(Helpers)


def test_the_decorator_with_and_without_parentheses():
    @contract
    class Bare:
        x: int

    @contract()
    class Empty:
        x: int

    @contract("2.0.0", name="Named", owner="desk")
    class Versioned:
        x: int

    assert [SchemaRegistry.get_latest(name).version for name in ("Bare", "Empty", "Named")] == [
        "1.0.0",
        "1.0.0",
        "2.0.0",
    ]
    assert Bare.validate({"x": 1}).is_valid
    assert not Empty.validate({"x": "1"})
    made = contract_of(Versioned)
    assert (made.id, made.version, made.owner, made.dataset().name) == ("Named", "2.0.0", "desk", "Named")


@pytest.mark.parametrize("wrong", [1, 1.0, [], None.__class__.__call__])
def test_the_decorator_refuses_what_is_no_version(wrong):
    with pytest.raises(ContractError, match="takes a version"):
        contract(wrong)


def test_the_decorator_is_for_classes():
    with pytest.raises(ContractError, match="for classes"):
        contract("1.0.0")(lambda: None)


def test_annotations_that_are_text_see_the_names_around_the_class():
    class Leg(ContractBase):
        sku: str

    class Order(ContractBase):
        legs: "list[Leg]"

    assert contract_of(Order).dataset().fields[0].item.fields[0].name == "sku"
    with pytest.raises(ContractError, match="cannot be resolved") as caught:
        type("Broken", (ContractBase,), {"__annotations__": {"x": "Nowhere"}, "__module__": __name__})
    assert caught.value.hint == "define or import the type before the class"


def test_a_version_that_is_no_text_is_refused():
    with pytest.raises(ContractError, match="must be text, not 1"):
        type("Bad", (ContractBase,), {"__annotations__": {"x": int}, "__version__": 1, "__module__": __name__})


# --- annotations ------------------------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(ContractBase):
    x: float
    y: float | None


class Typed(TypedDict):
    a: int
    b: NotRequired[str]


@dataclasses.dataclass
class Data:
    a: int
    b: str = "x"


REQUIRED = rules.Required()
Symbol = NewType("Symbol", str)

ANNOTATIONS = [
    (str, "string", (REQUIRED,)),
    (bool, "boolean", (REQUIRED,)),
    (int, "integer", (REQUIRED,)),
    (float, "number", (REQUIRED,)),
    (int | float, "number", (REQUIRED,)),
    (Decimal, "decimal", (REQUIRED,)),
    (datetime, "timestamp", (REQUIRED,)),
    (date, "date", (REQUIRED,)),
    (time, "time", (REQUIRED,)),
    (bytes, "binary", (REQUIRED,)),
    (UUID, "string", (REQUIRED, rules.Format(format="uuid"))),
    (Symbol, "string", (REQUIRED,)),
    (Any, "None", ()),
    (Optional[str], "string", ()),  # noqa: UP045
    (str | None, "string", ()),
    (Literal["a", "b"], "string", (REQUIRED, rules.Enum(values=("a", "b")))),
    (Literal[0, 1] | None, "integer", (rules.Enum(values=(0, 1)),)),
    (Colour, "string", (REQUIRED, rules.Enum(values=("red", "blue")))),
    (list, "array", (REQUIRED,)),
    (list[int], "array", (REQUIRED,)),
    (set[int], "array", (REQUIRED, rules.UniqueItems())),
    (tuple[int, int], "array", (REQUIRED, rules.MinItems(count=2), rules.MaxItems(count=2))),
    (tuple[int, ...], "array", (REQUIRED,)),
    (dict, "map", (REQUIRED,)),
    (Mapping[str, int], "map", (REQUIRED,)),
    (Point, "object", (REQUIRED,)),
    (Typed, "object", (REQUIRED,)),
    (Data, "object", (REQUIRED,)),
    (Annotated[int, rules.Minimum(limit=0)], "integer", (REQUIRED, rules.Minimum(limit=0))),
    (Annotated[int, DataType(Family.INTEGER, bits=64)], "integer(64)", (REQUIRED,)),
    (Annotated[int, Field(ge=0, lt=5)], "integer", (REQUIRED, rules.Minimum(limit=0), rules.ExclusiveMaximum(limit=5))),
    (Annotated[str, Field(pattern="^a$")], "string", (REQUIRED, rules.Pattern(pattern="^a$"))),
    (
        Annotated[str, Field(min_length=0, max_length=3)],
        "string",
        (REQUIRED, rules.MinLength(length=0), rules.MaxLength(length=3)),
    ),
    (Annotated[list[int], Field(min_length=1)], "array", (REQUIRED, rules.MinItems(count=1))),
    (Annotated[date, Field(ge=date(2026, 1, 31))], "date", (REQUIRED, rules.Minimum(limit="2026-01-31"))),
    (PositiveInt, "integer", (REQUIRED, rules.ExclusiveMinimum(limit=0))),
    (Annotated[Decimal, Field(decimal_places=2, max_digits=10)], "decimal(10, 2)", (REQUIRED,)),
    (Annotated[Decimal, Field(decimal_places=2)], "decimal", (REQUIRED, rules.MultipleOf(divisor=Decimal("0.01")))),
]


@pytest.mark.parametrize(("annotation", "type_", "expected"), ANNOTATIONS, ids=[str(row[0]) for row in ANNOTATIONS])
def test_what_an_annotation_promises(annotation, type_, expected):
    field = field_of(annotation)
    assert (str(field.type), field.rules) == (type_, expected)


def test_the_parts_of_nested_annotations():
    field = field_of(dict[str, list[Point | None]])
    assert (str(field.key.type), str(field.value.type)) == ("string", "array")
    item = field.value.item
    assert (item.required, [(part.name, part.required) for part in item.fields]) == (False, [("x", True), ("y", False)])


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (int | str, "several types (int | str)"),
        (complex, "the type complex, which no column can have"),
        (Literal["a", 1], "not all texts"),
        (tuple[int, str], "different types"),
        (type(None) | dict[str, complex], "'x.value' has the type complex"),
        (Annotated[str, Field(pattern="(")], "closed"),
    ],
)
def test_an_annotation_that_no_column_can_have_is_refused(annotation, message):
    with pytest.raises(ContractError) as caught:
        field_of(annotation)
    assert message in str(caught.value)
    assert caught.value.hint
    assert caught.value.field is not None


def test_a_class_that_contains_itself_is_refused():
    with pytest.raises(ContractError, match="cannot nest without end"):

        class Node(ContractBase):
            children: "list[Node]"


# --- rows -------------------------------------------------------------------------------------------------------------


class Trade(ContractBase):
    symbol: str
    price: float
    volume: int
    note: str | None
    legs: list[Point]
    tags: dict[str, int]
    side: Literal["buy", "sell"] = "buy"


GOOD = {"symbol": "A", "price": 1.5, "volume": 0, "note": None, "legs": [], "tags": {}}

ROWS = [
    ({}, []),
    ({"price": 182}, []),
    ({"side": "sell"}, []),
    ({"legs": [{"x": 1, "y": None}], "tags": {"a": 0}}, []),
    ({"legs": ({"x": 1, "y": 2.5},)}, []),
    ({"price": "one"}, [("price", "type")]),
    ({"price": True}, [("price", "type")]),
    ({"volume": True}, [("volume", "type")]),
    ({"volume": 99.5}, [("volume", "type")]),
    ({"volume": None}, [("volume", "required")]),
    ({"symbol": b"A"}, [("symbol", "type")]),
    ({"side": "hold"}, [("side", "enum")]),
    ({"legs": "ab"}, [("legs", "type")]),
    (
        {"legs": [{"x": 1, "y": 2}, {"x": "1"}, None]},
        [("legs[1].x", "type"), ("legs[1].y", "missing"), ("legs[2]", "required")],
    ),
    ({"tags": {"a": "1", 2: 2}}, [("tags.value[0]", "type"), ("tags.key[1]", "type")]),
]


@pytest.mark.parametrize(("change", "expected"), ROWS, ids=[str(change) for change, _ in ROWS])
def test_a_row(change, expected):
    result = Trade.validate(GOOD | change)
    assert [(error.field_name, error.rule) for error in result.errors] == expected
    assert result.is_valid is (expected == [])
    assert result.warnings == []


def test_missing_fields_are_errors_and_extra_ones_warnings():
    result = Trade.validate({"symbol": "A", "new": 1})
    assert [error.field_name for error in result.errors] == ["price", "volume", "note", "legs", "tags"]
    assert {error.rule for error in result.errors} == {"missing"}
    (warning,) = result.warnings
    assert (warning.field_name, warning.rule, warning.severity) == ("new", "undeclared", dbc.Severity.WARNING)
    assert "new" in warning.message


def test_an_error_has_its_facts_and_keeps_the_value_out_of_its_text():
    (error,) = Trade.validate(GOOD | {"price": "secret"}).errors
    assert isinstance(error, ValidationError)
    assert (error.field_name, error.expected, error.received, error.value, error.row) == (
        "price",
        "number",
        "str",
        "secret",
        None,
    )
    assert str(error) == "the field 'price' must be a number, not str"


def test_the_summary():
    assert Trade.validate(GOOD).summary() == "valid: 0 errors, 0 warnings"
    assert Trade.validate(GOOD | {"volume": "x", "extra": 1}).summary() == (
        "not valid: 1 error, 1 warning\n"
        "  error: the field 'volume' must be an integer, not str\n"
        "  warning: the field 'extra' is not declared"
    )


def test_an_invalid_result_is_false_and_can_be_raised():
    good, bad = Trade.validate(GOOD), Trade.validate({})
    assert good
    assert not bad
    good.raise_if_invalid()
    with pytest.raises(ValidationError, match="'symbol' is missing"):
        bad.raise_if_invalid()


@pytest.mark.parametrize("row", [None, 1, "text", b"x"])
def test_what_is_no_row_is_an_error(row):
    (error,) = Trade.validate(row).errors
    assert error.rule == "type"


def test_many_rows_are_named_by_number():
    result = validate_data([GOOD, GOOD | {"volume": None}, {}], Trade)
    assert result.errors[0].row == 1
    assert str(result.errors[0]) == "row 1: the field 'volume' is null"
    assert {error.row for error in result.errors} == {1, 2}
    assert validate_data([], Trade).is_valid
    assert validate_data(iter([GOOD]), Trade).is_valid


@pytest.mark.parametrize(
    "against", [Trade, contract_of(Trade), dbc.SchemaVersion("t", "1.0.0", {"a": int}), {"a": int}], ids=str
)
def test_rows_are_held_against_anything_that_declares_fields(against):
    assert not validate_data({"a": "x"}, against).is_valid


def test_a_contract_of_a_file_serves_as_well():
    made = build_contract(
        build_field("n", "tinyint", rules.Minimum(limit=0)),
        build_field("d", "decimal(4, 2)"),
        build_field("s", "varchar(3)", rules.Pattern(pattern="^a.$")),
        rules=(rules.RowCount(threshold=rules.NO_ROWS),),
    )
    row = {"n": 127, "d": Decimal("12.34"), "s": "ab"}
    result = validate_data(row, made)
    assert result.is_valid
    assert result.not_checked == ["row_count"]
    for change in ({"n": 128}, {"n": -1}, {"d": Decimal("1.234")}, {"d": Decimal(123)}, {"s": "abcd"}, {"s": "ab\n"}):
        assert len(validate_data(row | change, made).errors) == 1, change


def test_a_contract_of_several_datasets_needs_a_name():
    made = build_contract(build_field("a", "int"))
    two = made.model_copy(update={"datasets": (*made.datasets, made.datasets[0].model_copy(update={"name": "u"}))})
    with pytest.raises(UnknownDatasetError):
        validate_data({"a": 1}, two)
    assert validate_data({"a": 1}, two, "u").is_valid


def test_values_of_concealed_fields_are_in_no_error():
    made = build_contract(build_field("a", "int", pii=True))
    (error,) = validate_data({"a": "secret"}, made).errors
    assert error.value is None
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (rules.Minimum(limit=0), 0, -1),
        (rules.Maximum(limit=0), 0, float("nan")),
        (rules.ExclusiveMinimum(limit=Decimal("0.1")), 0.2, 0.1),
        (rules.ExclusiveMaximum(limit=1), Decimal("0.9"), 1),
        (rules.Minimum(limit="2026-01-31"), date(2026, 1, 31), date(2026, 1, 30)),
        (rules.Maximum(limit="2026-01-31T12:00:00Z"), datetime(2026, 1, 31, 12), datetime(2026, 1, 31, 12, 1)),
        (rules.MultipleOf(divisor=0.1), 0.3, 0.35),
        (rules.Enum(values=(1,)), 1, True),
        (rules.Enum(values=("",)), "", "a"),
        (rules.MinLength(length=1), "a", ""),
        (rules.MaxItems(count=0), [], [1]),
        (rules.UniqueItems(), [{"a": 1}, {"a": 2}], [{"a": 1}, {"a": 1}]),
        (rules.Pattern(pattern=r"^\d$"), "1", "1\n"),
        (rules.Pattern(pattern=r"(?<y>a)\u{62}"), "xab", "xb"),
        (rules.Format(format="uuid"), "2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d", "2c5ea4c0"),
    ],
)
def test_a_rule_on_one_value(rule, good, bad):
    made = build_contract(build_field("x", None, rule))
    assert validate_data({"x": good}, made).is_valid
    assert [error.rule for error in validate_data({"x": bad}, made).errors] == [rule.kind]
    assert validate_data({"x": None}, made).is_valid


# --- Pydantic ---------------------------------------------------------------------------------------------------------


class Address(BaseModel):
    city: str = Field(min_length=1)


class Person(BaseModel):
    """A person."""

    id: PositiveInt = Field(description="the key", examples=[1])
    kind: Literal["a", "b"] = "a"
    home: Address | None = None
    born: date = Field(alias="birthday")
    token: SecretStr


def test_a_model_is_a_contract():
    made = contract_of(Person)
    assert (made.id, made.version, made.findings) == ("Person", "1.0.0", ())
    dataset = made.dataset()
    assert (dataset.modes, dataset.description) == (DEFAULT_MODES, "A person.")
    key, kind, home, born, token = dataset.fields
    assert (key.description, key.examples, key.rules) == (
        "the key",
        (1,),
        (REQUIRED, rules.ExclusiveMinimum(limit=0)),
    )
    assert (kind.default, kind.rules) == ("a", (REQUIRED, rules.Enum(values=("a", "b"))))
    assert (home.required, home.fields[0].rules) == (False, (REQUIRED, rules.MinLength(length=1)))
    assert (born.name, born.column) == ("born", "birthday")
    assert token.pii is True


def test_rows_are_held_against_a_model_without_converting_them():
    row = {"id": 1, "birthday": date(2000, 1, 1), "token": "x"}
    assert validate_data(row, Person).is_valid
    assert [error.field_name for error in validate_data(row | {"id": "1", "home": {"city": ""}}, Person).errors] == [
        "id",
        "home.city",
    ]
    assert validate_data(Address(city="x"), Address).is_valid


@pytest.mark.parametrize(
    ("extra", "mode"),
    [("allow", Mode.EVOLVE), ("forbid", Mode.FREEZE), ("ignore", Mode.DISCARD_VALUE), (None, Mode.DISCARD_VALUE)],
)
def test_extra_is_the_columns_mode(extra, mode):
    class Model(BaseModel):
        model_config = ConfigDict() if extra is None else ConfigDict(extra=extra)
        x: int

    assert contract_of(Model).dataset().modes == SchemaModes(tables=Mode.EVOLVE, columns=mode, data_type=Mode.FREEZE)


def test_the_columns_mode_is_an_extra():
    assert EXTRA_OF_MODE == {
        Mode.EVOLVE: "allow",
        Mode.FREEZE: "forbid",
        Mode.DISCARD_VALUE: "ignore",
        Mode.DISCARD_ROW: "forbid",
    }


def test_what_only_pydantic_runs_is_reported():
    class Model(BaseModel):
        x: int

        @field_validator("x")
        @classmethod
        def check_x(cls, value: int) -> int:
            return value

        @model_validator(mode="after")
        def check_all(self) -> "Model":
            return self

    made = contract_of(Model)
    assert [finding.message for finding in made.findings] == [
        "not enforced: the validator 'check_x' of the model, which runs in Python only",
        "not enforced: the validator 'check_all' of the model, which runs in Python only",
    ]
    assert [rule.kind for rule in made.dataset().rules] == ["not_enforced", "not_enforced"]


def test_a_model_can_be_decorated():
    @contract("3.0.0")
    class Model(BaseModel):
        x: int

    assert SchemaRegistry.get_latest("Model").fields == {"x": int}
    assert contract_of(Model).version == "3.0.0"


def test_a_default_is_kept_where_it_is_a_plain_value():
    class Model(BaseModel):
        a: Colour = Colour.RED
        b: list[int] = []
        c: int = 0
        d: str | None = None
        e: list[int] = Field(default_factory=list)

    class Plain(ContractBase):
        a: Colour = Colour.RED
        b: list[int] = []  # noqa: RUF012
        c: int = 0

    assert [field.default for field in contract_of(Model).dataset().fields] == ["red", None, 0, None, None]
    assert [field.default for field in contract_of(Plain).dataset().fields] == ["red", None, 0]
    assert validate_data({}, Model).is_valid
    assert Plain.validate({}).is_valid

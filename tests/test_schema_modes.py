"""How modes are written, and whose word holds."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from databox_contracts.datatypes import parse_type
from databox_contracts.declare import contract_of
from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract, Mode, SchemaModes
from databox_contracts.schema_modes import (
    collision,
    effective_modes,
    expanded,
    is_incomplete,
    is_model,
    is_variant_of,
    narrowed,
    parse_modes,
    parse_modes_text,
    variant_name,
)
from databox_contracts.testing import build_contract, build_field

FROZEN = {"tables": "freeze", "columns": "freeze", "data_type": "freeze"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, {}),
        ({}, {}),
        ("freeze", FROZEN),
        (Mode.FREEZE, FROZEN),
        ({"data_type": "discard_row", "tables": "evolve"}, {"tables": "evolve", "data_type": "discard_row"}),
        ({"columns": None}, {}),
        (SchemaModes(), {"tables": "evolve", "columns": "freeze", "data_type": "freeze"}),
    ],
)
def test_a_word_or_a_mapping(given: Any, expected: dict[str, str]) -> None:
    assert parse_modes(given) == expected
    assert list(parse_modes(given)) == list(expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("frozen", "schema_modes is 'frozen'. Use one of evolve, freeze, discard_row, discard_value."),
        ("", "schema_modes is ''. Use one of evolve, freeze, discard_row, discard_value."),
        ({"rows": "freeze"}, "schema_modes names 'rows', for which there is no mode. Name some of tables, columns,"),
        ({"columns": 1}, "schema_modes: columns is '1'. Use one of"),
        (["freeze"], "schema_modes is list, and has to be a word or a mapping. Write one of evolve,"),
    ],
)
def test_what_is_no_mode_is_refused(given: Any, message: str) -> None:
    with pytest.raises(DataboxError) as error:
        parse_modes(given)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" freeze ", FROZEN),
        ("columns=evolve,data_type: discard_value", {"columns": "evolve", "data_type": "discard_value"}),
        ('{"columns": "freeze"}', {"columns": "freeze"}),
    ],
)
def test_modes_in_a_line(text: str, expected: dict[str, str]) -> None:
    assert parse_modes_text(text) == expected


@pytest.mark.parametrize("text", ["", "columns", "columns=evolve,columns=freeze", "{", "columns=evolve;", "a=freeze"])
def test_a_line_that_is_no_modes_is_refused(text: str) -> None:
    with pytest.raises(DataboxError, match="the tag t"):
        parse_modes_text(text, whose="the tag t")


def test_the_narrower_setting_wins_for_each_entity() -> None:
    wide = {"columns": "freeze", "data_type": "freeze"}
    assert narrowed(wide, {"columns": "evolve"}) == {"columns": "evolve", "data_type": "freeze"}
    contract = build_contract(build_field("a", "int"))
    found = effective_modes(
        contract,
        contract.dataset(),
        code_location={"tables": "freeze", "columns": "discard_row", "data_type": "discard_row"},
        asset={"columns": "evolve", "data_type": "evolve"},
        run={"data_type": "discard_value"},
    )
    assert expanded(found) == {"tables": "freeze", "columns": "evolve", "data_type": "discard_value"}
    assert expanded(effective_modes(contract, contract.dataset(), asset={"columns": "evolve"}, run="freeze")) == FROZEN


def test_what_nobody_sets_is_the_contracts_own() -> None:
    contract = build_contract(build_field("a", "int"))
    dataset = contract.dataset()
    assert effective_modes(contract, dataset) == SchemaModes()
    own = dataset.model_copy(update={"modes": SchemaModes(columns=Mode.DISCARD_ROW, data_type=Mode.EVOLVE)})
    assert expanded(effective_modes(contract, own, asset={"columns": "freeze"})) == {
        "tables": "evolve",
        "columns": "freeze",
        "data_type": "evolve",
    }


class Plain(BaseModel):
    a: int


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int


@pytest.mark.parametrize(("model", "columns"), [(Plain, "discard_value"), (Open, "evolve"), (Closed, "freeze")])
def test_a_pydantic_model_has_modes_of_its_own(model: type, columns: str) -> None:
    contract = contract_of(model)
    dataset = contract.dataset()
    assert is_model(dataset)
    assert expanded(effective_modes(contract, dataset)) == {
        "tables": "evolve",
        "columns": columns,
        "data_type": "freeze",
    }
    assert effective_modes(contract, dataset, run={"columns": "discard_row"}).columns is Mode.DISCARD_ROW


@pytest.mark.parametrize("given", ["discard_value", {"data_type": "discard_value"}])
def test_a_pydantic_model_does_not_take_values_that_are_discarded(given: Any) -> None:
    contract = contract_of(Plain)
    with pytest.raises(DataboxError, match=r"data_type: discard_value is not for Plain, a Pydantic model.*discard_row"):
        effective_modes(contract, contract.dataset(), asset=given)
    effective_modes(contract, contract.dataset(), asset=given, run={"data_type": "freeze"})


@pytest.mark.parametrize(
    ("contract", "expected"),
    [
        (build_contract(), True),
        (build_contract(build_field("a")), True),
        (build_contract(build_field("a", "int"), build_field("o", "struct<b: int>")), False),
        (contract_of(Plain), False),
    ],
)
def test_which_tables_take_columns_on_their_first_load(contract: Contract, expected: bool) -> None:
    assert is_incomplete(contract.dataset()) is expected


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        ("string", "id__v_string"),
        ("bigint", "id__v_integer_64"),
        ("decimal(10, 2)", "id__v_decimal_10_2"),
        ("timestamp_ntz", "id__v_timestamp_ntz"),
        ("array<string>", "id__v_array_string"),
        ("struct<a: int>", "id__v_object"),
    ],
)
def test_the_names_of_variants(type_: str, name: str) -> None:
    assert variant_name("id", parse_type(type_), "") == name
    assert is_variant_of(name, "id", case_sensitive=True)
    assert is_variant_of(name.upper(), "Id", case_sensitive=False)
    assert not is_variant_of(name, "i", case_sensitive=True)


def test_names_that_are_one_to_spark() -> None:
    assert collision(["a", "b", "A"], case_sensitive=False) == ("a", "A")
    assert collision(["a", "b", "A"], case_sensitive=True) is None
    assert collision([], case_sensitive=False) is None

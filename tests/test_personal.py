from __future__ import annotations

import pytest

from databox_contracts.personal import mark_personal, personal_hint
from databox_contracts.testing import build_field

NAMES = [
    ("name", "a name of a person"),
    ("Name", "a name of a person"),
    ("first_name", "a name of a person"),
    ("firstName", "a name of a person"),
    ("customer name", "a name of a person"),
    ("LastName", "a name of a person"),
    ("surname", "a name of a person"),
    ("email", "an e-mail address"),
    ("e_mail", "an e-mail address"),
    ("contactEmail", "an e-mail address"),
    ("EMAIL_HASH", "an e-mail address"),
    ("phone_number", "a phone number"),
    ("SSN", "a national identity number"),
    ("ip", "a network address"),
    ("clientIPAddress", "a network address"),
    ("date_of_birth", "a date of birth"),
    ("dob", "a date of birth"),
    ("ship.address", "a postal address"),
    ("iban", "a bank account"),
    ("file_name", None),
    ("product_name", None),
    ("airport_name", None),
    ("filename", None),
    ("hostname", None),
    ("ship", None),
    ("tip", None),
    ("description", None),
    ("carrier", None),
    ("telemetry", None),
    ("", None),
    ("ä€", None),
]


@pytest.mark.parametrize(("name", "hint"), NAMES)
def test_a_name_tells_what_it_may_hold(name: str, hint: str | None) -> None:
    assert personal_hint(name) == hint


def test_fields_are_marked_at_every_depth_and_what_says_no_is_left() -> None:
    fields = (
        build_field("email", "string"),
        build_field("phone", "string", pii=False),
        build_field("orders", "array<struct<id: int, address: struct<street: string>>>"),
        build_field("m", "map<string, struct<name: string>>"),
        build_field("key", "string"),
    )
    marked, guesses = mark_personal("t", fields)
    assert [(guess.field, guess.reason) for guess in guesses] == [
        (("email",), "the name suggests an e-mail address"),
        (("orders", "item", "address"), "the name suggests a postal address"),
        (("m", "value", "name"), "the name suggests a name of a person"),
    ]
    assert [field.pii for field in marked] == [True, False, None, None, None]
    item = marked[2].item
    assert item is not None
    assert [field.pii for field in item.fields] == [None, True]
    assert item.fields[1].fields[0].pii is None


def test_without_a_hint_nothing_changes() -> None:
    fields = (build_field("a", "int"),)
    assert mark_personal("t", fields) == (fields, ())

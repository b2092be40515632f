"""Which columns look like personal data, by their names; a guess, for somebody to confirm."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from databox_contracts.inferred import PERSONAL, Guess
from databox_contracts.model import Field

# Words that stand together anywhere in a column's name, and what they tell.
_WORDS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("an e-mail address", ("email", "e mail", "mail address", "mailaddress", "emailaddress")),
    ("a phone number", ("phone", "telephone", "tel", "mobile", "cellphone", "msisdn", "fax")),
    ("a national identity number", ("ssn", "social security", "national id", "passport", "tax id", "nino")),
    ("a bank account", ("iban", "bank account", "account holder", "sort code")),
    ("a payment card", ("credit card", "card number", "cardnumber", "cvv", "cvc")),
    ("a network address", ("ip", "ip address", "ipaddress", "ip addr", "ipv4", "ipv6", "mac address", "device id")),
    ("a date of birth", ("birth", "birthday", "birthdate", "dob", "date of birth")),
    (
        "a postal address",
        ("address", "street", "house number", "postcode", "postal code", "zip", "zipcode"),
    ),
    ("a name of a person", ("surname", "firstname", "lastname", "fullname", "forename", "username", "login")),
    ("a special category of data", ("gender", "sex", "religion", "ethnicity", "diagnosis")),
    ("a secret", ("password", "passwd", "secret")),
)

# `name` alone, or of somebody; the name of a product or a file is no person's.
_PEOPLE: Final = (
    *("first", "last", "middle", "full", "given", "family", "nick", "display", "user", "customer", "client", "contact"),
    *("person", "people", "employee", "patient", "passenger", "driver", "owner", "holder", "cardholder", "recipient"),
    *("sender", "author", "student", "member", "guest", "applicant"),
)


def personal_hint(name: str) -> str | None:
    """What the column's name suggests that it holds of a person, such as `a phone number`; None if nothing."""
    words = _split(name)
    together = f" {' '.join(words)} "
    for meaning, known in _WORDS:
        if any(f" {word} " in together for word in known):
            return meaning
    for before, word in zip(("", *words), words, strict=False):
        if word in ("name", "names") and (len(words) == 1 or before in _PEOPLE):
            return "a name of a person"
    return None


def _split(name: str) -> list[str]:
    spaced = re.sub(r"([a-z0-9])([A-Z])|([A-Z]+)([A-Z][a-z])", r"\1\3 \2\4", name)
    return re.findall(r"[^\W_]+", spaced.lower())


def mark_personal(dataset: str, fields: tuple[Field, ...]) -> tuple[tuple[Field, ...], tuple[Guess, ...]]:
    """The fields with `pii` where a name suggests it, at every depth, and a guess for each.

    What is inside such a field is covered by it. A field that says `pii` itself is left as it is.
    """
    guesses: list[Guess] = []
    marked = tuple(_marked(field, (field.name,), dataset, guesses) for field in fields)
    return marked, tuple(guesses)


def _marked(field: Field, path: tuple[str, ...], dataset: str, guesses: list[Guess]) -> Field:
    if field.pii is not None:
        return field
    hint = personal_hint(field.name) if not _is_part(path) else None
    if hint is not None:
        guesses.append(Guess(dataset, path, PERSONAL, f"the name suggests {hint}"))
        return field.model_copy(update={"pii": True})
    inside = dict(_parts(field, path, dataset, guesses))
    return field.model_copy(update=inside) if inside else field


def _parts(
    field: Field, path: tuple[str, ...], dataset: str, guesses: list[Guess]
) -> Iterator[tuple[str, tuple[Field, ...] | Field]]:
    if field.fields:
        yield "fields", tuple(_marked(part, (*path, part.name), dataset, guesses) for part in field.fields)
    for name in ("item", "key", "value"):
        part = getattr(field, name)
        if part is not None:
            yield name, _marked(part, (*path, name), dataset, guesses)


def _is_part(path: tuple[str, ...]) -> bool:
    """Whether the way ends inside an array or a map, where there are no names of the author's."""
    return len(path) > 1 and path[-1] in ("item", "key", "value")

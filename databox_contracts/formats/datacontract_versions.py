"""Which version of the Data Contract Specification a document speaks, and which one its models need."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from databox_contracts.formats.reading import Section

NEWEST: Final = "1.2.0"
VERSION: Final = "dataContractSpecification"

_READ_VERSION: Final = re.compile(r"0\.9\.3|1\.[0-2](?:\.\d+)?")

# What readers of an older version would not hold the data to.
_ENTRIES_SINCE: Final = {
    "quality": (1, 1),
    "primaryKey": (1, 1),
    "keys": (1, 1),
    "values": (1, 1),
    "additionalFields": (1, 2),
}
_TYPES_SINCE: Final = {"map": (1, 1), "time": (1, 2), "variant": (1, 2), "json": (1, 2)}


def carried_version(section: Section) -> dict[str, str]:
    """The version that the document speaks, where it is not the one that is written in any case.

    An older one that lacks what the models say is not carried, which is a note.
    """
    written = section.report.document.text((VERSION,))
    section.raw(VERSION)
    if written is None:
        section.warning(
            f"the contract has no {VERSION!r} and is read as {NEWEST}",
            f"write `{VERSION}: {NEWEST}`",
        )
        return {}
    if not _READ_VERSION.fullmatch(written):
        section.warning(
            f"the specification's version {written[:40]!r} is not known and is read as {NEWEST}",
            "0.9.3 to 1.2.x are",
            VERSION,
        )
    elif (lacking := what_it_lacks(written, section.data.get("models"))) is not None:
        section.note(f"{lacking!r} is newer than {written} and is read as in {NEWEST}", None, VERSION)
        return {}
    return {VERSION: written} if written != NEWEST else {}


def what_it_lacks(version: str, models: Any) -> str | None:
    """The first word of the models that a version does not have; a version that is not known has them all."""
    if not _READ_VERSION.fullmatch(version):
        return None
    spoken = tuple(int(part) for part in version.split(".")[:2])
    if spoken >= max(*_ENTRIES_SINCE.values(), *_TYPES_SINCE.values()) or not isinstance(models, Mapping):
        return None
    return next((word for model in models.values() for word, since in _words(model) if spoken < since), None)


def before_1_1(version: str) -> bool:
    """Whether the version has `primary` and `example` for what later ones call `primaryKey` and `examples`."""
    return version.startswith(("0.", "1.0"))


def _words(element: Any) -> Iterator[tuple[str, tuple[int, int]]]:
    """The words of a model or field, and of what is inside, that not every version has."""
    if not isinstance(element, Mapping):
        return
    yield from ((key, since) for key, since in _ENTRIES_SINCE.items() if element.get(key) is not None)
    type_ = element.get("type")
    if isinstance(type_, str) and type_.strip().lower() in _TYPES_SINCE:
        yield type_, _TYPES_SINCE[type_.strip().lower()]
    fields = element.get("fields")
    for part in (*(fields.values() if isinstance(fields, Mapping) else ()), element.get("items")):
        yield from _words(part)
    for key in ("keys", "values"):
        yield from _words(element.get(key))

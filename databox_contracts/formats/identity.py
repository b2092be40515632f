"""What every dialect says in words of its own: a version, a table's name, what the data is for."""

from __future__ import annotations

import re
from typing import Final

from databox_contracts.formats.reading import Section, nearest

_SEMANTIC: Final = re.compile(
    r"(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){2}(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_SHORT: Final = re.compile(r"(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*))?")


def read_version(section: Section, what: str, *, only_text: bool = False) -> str | None:
    """The entry `version` as it was written (`3.10` is not 3.1); `what` has it, for the error where it is missing.

    A warning says so where it is no semantic version, and where other readers of YAML see another number in it;
    `only_text` is for a dialect in which a version is text, so that any number is one too many.
    """
    data = section.raw("version")
    written = section.report.document.text((*section.path, "version"))
    if written is None or not written.strip():
        return section.needed("version", what)
    is_short = _SHORT.fullmatch(written) is not None
    if not is_short and not _SEMANTIC.fullmatch(written):
        section.warning(f"the version {written!r} is not a semantic version", "write 1.2.3", "version")
    elif not isinstance(data, str) and (only_text or str(data) != written):
        section.warning(
            f"other readers of YAML see the number {data} as the version", f'write `"{written}"`', "version"
        )
    elif is_short:
        section.note(f"the version {written} means {full_version(written)}", None, "version")
    return written


def full_version(version: str) -> str:
    """The version with all its three numbers where it has only the first: `3.2` is 3.2.0."""
    return version + ".0" * (2 - version.count(".")) if _SHORT.fullmatch(version) else version


def is_table_name(name: str) -> bool:
    """Whether the name may become that of a directory."""
    return not _unsafe(name) and name.strip() not in ("", ".")


def _unsafe(name: str) -> list[str]:
    control = ["a control character"] if any(not char.isprintable() for char in name) else []
    return [part for part in ("..", "/", "\\") if part in name] + control


def check_table_name(section: Section, name: str, *steps: str | int) -> bool:
    """Whether the name may become that of a directory; an error if not."""
    if is_table_name(name):
        return True
    unsafe = _unsafe(name)
    what = f"may not hold {' or '.join(unsafe)}" if unsafe else "is not one"
    section.error(
        f"the name {name[:60]!r} {what}: it names a directory", "use letters, digits, '_', '-' and single dots", *steps
    )
    return False


def joined_description(purpose: str | None, usage: str | None, limitations: str | None) -> str:
    """One text of what the data is, what it is for and what it is not for, as every dialect's contract has it."""
    texts = (purpose, usage and f"Usage: {usage}", limitations and f"Limitations: {limitations}")
    return "\n\n".join(text.strip() for text in texts if text)


def extensions(section: Section, *known: str) -> dict[str, object]:
    """The entries that nobody has asked for, where the dialect allows any: kept, and each a finding.

    One that looks like a known word is a warning, for it was probably meant to be that.
    """
    asked = {*known, *(section.report.asked.get(section.path, ()))}
    found: dict[str, object] = {}
    for key in [key for key in section.data if key not in asked]:
        near = nearest(key, asked)
        if near is not None:
            section.warning(f"the unknown key {key!r} is ignored", f"did you mean {near!r}?", key)
        else:
            section.note(f"the extension {key!r} is kept and not enforced", None, key)
        found[key] = section.data[key]
        section.raw(key)
    return found

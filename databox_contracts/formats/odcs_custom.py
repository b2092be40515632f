"""`customProperties`: what the standard has no word for, and the few of them that change what is enforced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from databox_contracts.formats.governing import (
    MODE_KEYS,
    consumers_of,
    enforcement_of,
    mode_of,
    modes_of,
    written_consumers,
)
from databox_contracts.formats.reading import Section, described
from databox_contracts.model import (
    Consumer,
    Contract,
    Dataset,
    Enforcement,
    Evolution,
    Field,
    Governance,
    SchemaModes,
)

DOCUMENT: Final = "$odcs"
"""The name under which `custom` carries the standard's own entries that the model has no place for."""

_DOCUMENTATION: Final = ("id", "description", "vendor")

# What is written and says nothing.
_NOTHING: Final[tuple[Any, ...]] = ("", [], {})

_Element = Contract | Dataset | Field


@dataclass(frozen=True)
class Word:
    """A custom property that means something: the elements it is read from, and its value for one of them.

    `value` gives None where the element says nothing of the kind. It is absent where the property is a default for the
    parts of an element, which say it themselves when they are written.
    """

    name: str
    of: tuple[type[_Element], ...]
    value: Callable[[Any], Any] | None = None


_EVOLUTION: Final = {
    "policy": "policy",
    "allowed": "allowed",
    "disallowed": "disallowed",
    "deprecationWindowDays": "deprecation_window_days",
    "signOff": "sign_off",
}
_GOVERNANCE: Final = {
    "purposes": "purposes",
    "read": "read",
    "write": "write",
    "retentionDays": "retention_days",
    "closed": "closed",
}


def _said(model: Any, names: Mapping[str, str]) -> dict[str, Any] | None:
    found = {key: getattr(model, name) for key, name in names.items()}
    return {
        key: value for key, value in found.items() if value is not None and value != () and value is not False
    } or None


def _enforcement(contract: Contract) -> dict[str, Any] | None:
    names = {"mode": "mode", "until": "until"}
    return _said(contract.enforcement, names) if contract.enforcement != Enforcement() else None


def _evolution(contract: Contract) -> dict[str, Any] | None:
    # A block that says nothing is not the same as none: it chooses the dialect's own default.
    return None if contract.evolution is None else _said(contract.evolution, _EVOLUTION) or {}


def _consumers(contract: Contract) -> list[Any] | None:
    return written_consumers(contract.consumers) or None


def _modes(dataset: Dataset) -> dict[str, str] | None:
    modes = dataset.modes
    return None if modes is None else {key: getattr(modes, key).value for key in MODE_KEYS}


WORDS: Final = (
    Word("owner", (Contract,), lambda contract: contract.owner),
    Word("piiClass", (Contract,), lambda contract: contract.governance.pii_class),
    Word("governance", (Contract,), lambda contract: _said(contract.governance, _GOVERNANCE)),
    Word("consumers", (Contract,), _consumers),
    Word("evolution", (Contract,), _evolution),
    Word("noticePeriod", (Contract,), lambda contract: contract.notice_period),
    Word("enforcement", (Contract,), _enforcement),
    Word("schemaModes", (Dataset,), _modes),
    Word("schemaModes", (Contract,)),
    Word("pii", (Field,), lambda field: field.pii),
    Word("pii", (Contract, Dataset)),
    Word("piiClass", (Field,)),
    Word("semantics", (Field,), lambda field: field.semantics or None),
    Word("default", (Field,), lambda field: field.default),
)
"""What the standard has no word for and contracts say: the names under which `customProperties` carry it."""

# Words that say something of the contract's own, and must not be thought to hold where they do nothing.
_ONLY_OF: Final = ("piiClass", "governance", "consumers", "evolution", "noticePeriod", "enforcement", "schemaModes")


def written_words(element: _Element) -> dict[str, Any]:
    """The custom properties that say what the model holds of an element, in the order of `WORDS`."""
    found = {
        word.name: word.value(element) for word in WORDS if word.value is not None and isinstance(element, word.of)
    }
    return {name: value for name, value in found.items() if value is not None}


class CustomProperties:
    """The custom properties of one element by name, each with the section that it stands in."""

    def __init__(self, owner: Section, of: type[_Element]) -> None:
        self._sections: dict[str, Section] = {}
        self._documentation: dict[str, dict[str, Any]] = {}
        self._of = of
        self._taken: set[str] = set()
        for section in owner.sections("customProperties"):
            name = section.needed("property", "a custom property")
            section.raw("value")
            documentation = section.carried(*_DOCUMENTATION)
            section.close()
            if name is None:
                continue
            if name in self._sections:
                section.error(f"the custom property {name!r} stands here again", "remove one", "property")
                continue
            self._sections[name] = section
            if documentation:
                self._documentation[name] = documentation
        for name in _ONLY_OF if self._sections else ():
            place = self.holder(name)
            if place is not None and not any(word.name == name and of in word.of for word in WORDS):
                where = "contract" if of is Field or name != "schemaModes" else "schema object"
                place.warning(
                    f"{name!r} has no effect here", f"write it in the customProperties of the {where}", "property"
                )

    def rest(self, carried: Mapping[str, Any]) -> dict[str, Any]:
        """Every property that has not become a part of the model, and its value as written.

        With `carried`, what else the element says that the model has no place for, under `DOCUMENT`.
        """
        if not carried and not self._sections:
            return {}
        found = {name: section.data.get("value") for name, section in self._sections.items() if name not in self._taken}
        known = {**carried, "customProperties": self._documentation}
        known = {name: value for name, value in known.items() if value not in _NOTHING}
        return {**found, **({DOCUMENT: known} if known else {})}

    def take(self, name: str) -> Section | None:
        """As `holder`, for a property that the model has a place for, so that it needs no other."""
        section = self.holder(name)
        if section is not None and any(
            word.name == name and word.value is not None and self._of in word.of for word in WORDS
        ):
            self._taken.add(name)
        return section

    def holder(self, name: str) -> Section | None:
        """The section whose `value` is the property's, where it has one."""
        section = self._sections.get(name)
        return section if section is not None and section.data.get("value") is not None else None

    def text(self, name: str) -> str | None:
        """The property as text."""
        section = self.take(name)
        return section.text("value") if section is not None else None

    def prose(self, name: str) -> str:
        """The property where it is text; of another kind it is somebody else's of that name."""
        section = self.holder(name)
        return (self.text(name) or "") if section is not None and isinstance(section.data["value"], str) else ""

    def value(self, name: str) -> Any:
        """The property as it is."""
        section = self.take(name)
        return section.data["value"] if section is not None else None

    def mapping(self, name: str) -> Section | None:
        """The property as a mapping; another kind of value is somebody else's property of that name, and a warning."""
        return self._of_kind(name, dict, "a mapping")

    def entries(self, name: str) -> Iterator[Section]:
        """The property as a list of mappings; another kind of value is somebody else's, and a warning."""
        section = self._of_kind(name, list, "a list")
        return iter(()) if section is None else section.sections("value")

    def _of_kind(self, name: str, kind: type, described_as: str) -> Section | None:
        section = self.holder(name)
        if section is None:
            return None
        if not isinstance(section.data["value"], kind):
            shown = described(section.data["value"])
            section.warning(f"{name!r} has no effect: it must be {described_as}, not {shown}", None, "value")
            return None
        self.take(name)
        return section.section("value") if kind is dict else section

    def flag(self, name: str) -> bool | None:
        """The property as true or false. It decides what may be shown, so anything unclear is an error."""
        section = self.take(name)
        if section is None:
            return None
        written = section.written("value")
        if written is not None and written.strip().lower() in ("true", "false"):
            return written.strip().lower() == "true"
        shown = described(section.data["value"])
        section.error(f"{name!r} must be true or false, not {shown}", "write `value: true`", "value")
        return None


def read_modes(properties: CustomProperties) -> SchemaModes | None:
    """`schemaModes`: one word for all three, or a word each for `tables`, `columns` and `data_type`."""
    holder = properties.take("schemaModes")
    if holder is not None:
        return modes_of(holder, "value")
    alone = properties.holder("columns")
    mode = mode_of(alone, "value") if alone is not None else None
    return SchemaModes(columns=mode) if mode is not None else None


def read_enforcement(properties: CustomProperties) -> Enforcement:
    """`enforcement: {mode, until}`: a grace period, which has to end."""
    holder = properties.take("enforcement")
    return enforcement_of(holder.section("value") if holder is not None else None)


def read_consumers(properties: CustomProperties) -> tuple[Consumer, ...]:
    """`consumers`: who reads the data, each with a name."""
    return consumers_of(properties.entries("consumers"))


def read_evolution(properties: CustomProperties) -> Evolution | None:
    """`evolution`: what changes the contract allows itself."""
    section = properties.mapping("evolution")
    if section is None:
        return None
    found = Evolution(
        policy=section.text("policy"),
        allowed=section.texts("allowed"),
        disallowed=section.texts("disallowed"),
        deprecation_window_days=section.count("deprecationWindowDays"),
        sign_off=section.text("signOff"),
    )
    section.close()
    return found


def read_governance(properties: CustomProperties) -> Governance:
    """`governance` and `piiClass`: who may hold the data, for what and how long."""
    pii_class = properties.text("piiClass")
    section = properties.mapping("governance")
    if section is None:
        return Governance(pii_class=pii_class)
    found = Governance(
        pii_class=pii_class,
        purposes=section.texts("purposes"),
        read=section.texts("read"),
        write=section.texts("write"),
        retention_days=section.count("retentionDays"),
        closed=section.flag("closed") or False,
    )
    section.close({"piiClass": "write it as a custom property of its own"})
    return found

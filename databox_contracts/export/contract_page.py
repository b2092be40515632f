"""A contract as a page: what it promises about which data, who owns and reads it, and how it may change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from databox_contracts.export import cells
from databox_contracts.export.contacts import contacts, safe_location, says_support
from databox_contracts.export.dataset_section import dataset_section, hides_values
from databox_contracts.export.losses import Loss, Place, Words, losses, places
from databox_contracts.export.page import (
    Anchors,
    Block,
    Cell,
    Items,
    Line,
    Page,
    Prose,
    Section,
    linked,
    listed,
    prose,
)
from databox_contracts.export.targets import Target
from databox_contracts.export.wording import SENTENCES
from databox_contracts.model import Consumer, Contract, Dataset, Enforcement, Evolution, Field
from databox_contracts.rules import NotEnforced

__all__ = ["contract_page", "left_out"]

HISTORY: Final = ("changelog", "history")
"""Custom properties that tell the contract's history, where one does."""


def contract_page(target: Target) -> Page:
    """The page of those datasets of a contract; the same contract always gives the same page.

    Values of fields that are personal or classified are not on it, nor are connection details of servers.
    """
    contract, anchors = target.contract, Anchors()
    found: tuple[tuple[str, Iterable[Block]], ...] = (
        ("Ownership", _ownership(contract)),
        ("Consumers", _consumers(contract)),
        ("Evolution", _evolution(contract.evolution)),
        ("Governance", _governance(contract)),
        ("Servers", _servers(contract)),
        ("Custom properties", _custom(contract)),
        ("History", _history(contract)),
    )
    parts = [(title, tuple(blocks)) for title, blocks in found]
    sections = [
        *(dataset_section(contract, dataset, anchors) for dataset in target.datasets),
        *(Section(title, anchors.named(title.lower().replace(" ", "-")), blocks) for title, blocks in parts if blocks),
    ]
    return Page(f"{contract.title} {contract.version}", tuple(_lead(target)), tuple(sections))


# --- what the contract is ---------------------------------------------------------------------------------------------


def _lead(target: Target) -> Iterator[Block]:
    contract = target.contract
    yield cells.facts(
        "The contract",
        {
            "Id": cells.code(contract.id),
            "Name": cells.text(contract.name),
            "Version": cells.code(contract.version),
            "Status": cells.text(contract.status),
            "Domain": cells.text(contract.domain),
            "Owner": cells.address(contract.owning_team),
            "Contacts": _contacts(contract),
            "Tags": listed(contract.tags),
            "Notice period": cells.text(contract.notice_period),
            "Enforcement": _enforcement(contract.enforcement),
        },
    )
    if contract.description.strip():
        yield Prose(prose(contract.description))
    if not target.datasets:
        yield Prose((("The contract declares no dataset.",),))


def _contacts(contract: Contract) -> Cell:
    return tuple(
        (
            linked(one.name),
            *(span for address in one.addresses for span in (", ", linked(address))),
            *((f" ({one.about})",) if one.about else ()),
        )
        for one in contacts(contract)
    )


def _enforcement(enforcement: Enforcement) -> Cell:
    if enforcement == Enforcement():
        return ()
    until = f" until {enforcement.until.isoformat()}" if enforcement.until is not None else ""
    return cells.text(f"violations {'only warn' if enforcement.mode == 'warn' else enforcement.mode}{until}")


# --- people, rules of the house and places ----------------------------------------------------------------------------


def _ownership(contract: Contract) -> Iterator[Block]:
    team = contract.team
    found = {
        "Owner": cells.address(contract.owner),
        "Team": cells.address(team.name),
        "About the team": cells.text(team.description),
    }
    if any(found.values()):
        yield cells.facts("Who owns the contract", found)
    if team.members:
        rows = (
            (
                cells.address(member.username),
                cells.text(member.name),
                cells.text(member.role),
                cells.text(member.date_out),
            )
            for member in team.members
        )
        yield cells.table("Members of the team", ("Member", "Name", "Role", "Left on"), rows)


def _consumers(contract: Contract) -> Iterator[Block]:
    columns = ("Consumer", "Owner", "Contacts", "Reads", "Versions", "Purpose", "Criticality")
    if contract.consumers:
        yield cells.table("Who reads the data", columns, (_consumer(consumer) for consumer in contract.consumers))


def _consumer(consumer: Consumer) -> tuple[Cell, ...]:
    return (
        cells.text(consumer.name),
        cells.address(consumer.owner),
        listed([*([consumer.contact] if consumer.contact else []), *consumer.contacts]),
        tuple(_reads(consumer)),
        cells.code(consumer.versions),
        (*cells.text(consumer.purpose), *cells.text(consumer.justification)),
        cells.text(consumer.criticality),
    )


def _reads(consumer: Consumer) -> Iterator[Line]:
    for what, names in (
        ("datasets: ", consumer.datasets),
        ("fields: ", consumer.fields),
        ("makes: ", consumer.assets),
    ):
        for line in cells.codes(names):
            yield (what, *line)


def _evolution(evolution: Evolution | None) -> Iterator[Block]:
    if evolution is not None:
        yield cells.facts(
            "How the contract may change",
            {
                "Policy": cells.code(evolution.policy) or cells.text("not named, so the default applies"),
                "Allowed changes": cells.codes(evolution.allowed),
                "Changes not allowed": cells.codes(evolution.disallowed),
                "Deprecation window": _days(evolution.deprecation_window_days),
                "Sign-off": cells.text(evolution.sign_off),
            },
        )


def _governance(contract: Contract) -> Iterator[Block]:
    governance = contract.governance
    found = {
        "Class of personal data": cells.text(governance.pii_class),
        "Retention": _days(governance.retention_days),
        "Purposes": listed(governance.purposes),
        "Other consumers": cells.text("none: only those declared here may read it") if governance.closed else (),
        "May read": listed(governance.read),
        "May write": listed(governance.write),
    }
    if any(found.values()):
        yield cells.facts("Who may hold the data, for what and how long", found)


def _days(count: int | None) -> Cell:
    return cells.text(f"{count} day{'' if count == 1 else 's'}") if count is not None else ()


def _servers(contract: Contract) -> Iterator[Block]:
    rows = [
        (
            cells.text(server.name),
            cells.text(server.type),
            cells.text(server.environment),
            cells.code(safe_location(server)),
        )
        for server in contract.servers
    ]
    if rows:
        yield cells.table("Where the data lies", ("Server", "Type", "Environment", "Location"), rows)


# --- the document's own properties, and history -----------------------------------------------------------------------


def _custom(contract: Contract) -> Iterator[Block]:
    yield from cells.custom_facts("Custom properties of the contract", contract.custom, _told(contract))


def _told(contract: Contract) -> tuple[str, ...]:
    """The custom property that the history is made from."""
    return tuple(name for name in HISTORY if contract.custom.get(name))[:1]


def _history(contract: Contract) -> Iterator[Block]:
    caption = "Changes of the contract"
    for name in _told(contract):
        entries = contract.custom[name]
        if isinstance(entries, Mapping):
            yield cells.facts(caption, {str(key): cells.value(value) for key, value in entries.items()})
        elif isinstance(entries, list) and all(isinstance(entry, Mapping) and entry for entry in entries):
            columns = tuple(dict.fromkeys(key for entry in entries for key in entry))
            rows = (tuple(cells.value(entry.get(column)) for column in columns) for entry in entries)
            yield cells.table(caption, tuple(str(column).capitalize() for column in columns), rows)
        else:
            told = [cells.value(entry) for entry in (entries if isinstance(entries, list) else [entries])]
            yield Items(tuple(line for cell in told for line in cell))


# --- what is not on the page ------------------------------------------------------------------------------------------

_WORDS: Final = Words(
    title="a page",
    rules=tuple(kind.kind for kind in SENTENCES),
    beside=("severity", "name", "description", "dimension", "custom"),
    # Of custom properties those that are not a dialect's own are shown; `left_out` names the others.
    field=tuple(Field.model_fields),
    dataset=tuple(Dataset.model_fields),
    contract=tuple(Contract.model_fields),
)
_REASON: Final = "a page has no words for it"


def left_out(target: Target) -> tuple[str, ...]:
    """What of the contract its page does not say: settings of servers, and what only a dialect has words for."""
    contract = target.contract
    found = [f"{what} of the contract: {_REASON}" for what in _of_a_dialect(contract.custom)]
    for server in contract.servers:
        beside = [key for key in server.settings if key not in ("path", "location")]
        beside += ["description"] if server.description else []
        if beside:
            found.append(f"{', '.join(beside)} of the server {server.name}: settings may hold secrets")
    more = [
        Loss(what, place, _REASON)
        for place in places(target)
        for what in (*_of_a_dialect(*_carried(place)), *_beside_rules(target, place))
    ]
    return (*found, *losses(target, _WORDS, more=more))


def _carried(place: Place) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    return (place.field.custom, _SPELLING) if place.field is not None else (place.dataset.custom, ())


def _beside_rules(target: Target, place: Place) -> Iterator[str]:
    hidden = place.masked or (place.field is None and hides_values(target.contract, place.dataset))
    for rule in place.rules:
        # What is not enforced is shown as it was written.
        if rule.custom and (hidden or not isinstance(rule, NotEnforced)):
            yield f"the further entries of `{rule.kind}`"


# How a document spells a type, which the page says in its own words.
_SPELLING: Final = ("logicalType", "physicalType")


def _of_a_dialect(custom: Mapping[str, Any], said: tuple[str, ...] = ()) -> Iterator[str]:
    for name, value in custom.items():
        if not name.startswith("$") or not value:
            continue
        if not isinstance(value, Mapping):
            yield f"what only {name[1:]} says"
        elif keys := [str(key) for key in value if key not in said and not _is_shown(name, key, value[key])]:
            yield f"what only {name[1:]} says ({', '.join(keys)})"


_PROSE: Final = ("purpose", "usage", "limitations")


def _is_shown(dialect: str, key: str, value: Any) -> bool:
    """Whether the page has it all the same: contacts, and a description that is one text of several."""
    if dialect == "$odcs" and key == "description" and isinstance(value, Mapping):
        return all(part in _PROSE for part in value)
    return dialect == "$odcs" and key == "support" and says_support(value)

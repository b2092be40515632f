"""dbt: the YAML of models with enforced contracts, constraints, data tests and descriptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from databox_contracts.export.dbt_tests import Constraint, Model, Said, Test, say
from databox_contracts.export.dbt_text import (
    data_type,
    inert,
    inert_data,
    is_in_key,
    is_plain_name,
    legal_name,
)
from databox_contracts.export.losses import Loss, Place, Words, columns, losses, places
from databox_contracts.export.sql_dialects import abilities, chosen_dialect
from databox_contracts.export.sql_types import type_doubts
from databox_contracts.export.targets import Exported, Target
from databox_contracts.formats.emitting import to_yaml
from databox_contracts.model import Contract, Dataset
from databox_contracts.rules import Rule, Severity

__all__ = ["export_dbt"]

_HEAD: Final = "# For dbt 1.10.5 or later.\n"
# A test is a file by its name.
_LONGEST_NAME: Final = 120
_PACKAGE: Final = "# Tests of dbt_utils need the package dbt-labs/dbt_utils in packages.yml.\n"


def export_dbt(target: Target) -> Exported:
    """One model for each dataset. `target.dialect` is the warehouse's SQL; without it that of the contract's servers.

    Allowed values of fields that may not be shown are not in it. Texts of the contract stay texts where dbt would
    render them. Raises `DataboxError` for a dialect nobody knows.
    """
    models = _models(target)
    data = {
        "version": 2,
        "models": [
            _model(target.contract, dataset, model) for dataset, model in zip(target.datasets, models, strict=True)
        ],
    }
    text = to_yaml(data)
    return Exported(_HEAD + (_PACKAGE if "dbt_utils." in text else "") + text, _losses(target, models))


def _models(target: Target) -> tuple[Model, ...]:
    contract = target.contract
    dialect = chosen_dialect(target.dialect, (server.type for server in contract.servers))
    names = _names(contract.datasets)
    found = {dataset.name: _columns(contract, dataset) for dataset in contract.datasets}
    known = {dataset.name: (name, found[dataset.name]) for dataset, name in zip(contract.datasets, names, strict=True)}
    by_table = {dataset.table_name: known[dataset.name] for dataset in contract.datasets}
    by_contract = {f"{contract.id}.{name}": one for name, one in known.items()}
    models = {**by_contract, **by_table, **known}
    return tuple(
        Model(known[dataset.name][0], found[dataset.name], dialect, _is_typed(found[dataset.name], dialect), models)
        for dataset in target.datasets
    )


def _names(datasets: Iterable[Dataset]) -> tuple[str, ...]:
    taken: list[str] = []
    return tuple(_free(dataset.name, taken) for dataset in datasets)


def _columns(contract: Contract, dataset: Dataset) -> dict[str, Place]:
    return {place.name: place for place in columns(contract, dataset)}


def _is_typed(found: Mapping[str, Place], dialect: str) -> bool:
    # dbt holds a model to a contract only when it knows the type of every column.
    return bool(found) and all(data_type(place, dialect) is not None for place in found.values())


# --- models and columns -----------------------------------------------------------------------------------------------


def _model(contract: Contract, dataset: Dataset, model: Model) -> dict[str, Any]:
    said = _gathered(dataset, model)
    config = {
        "contract": {"enforced": model.enforced},
        "alias": dataset.table_name if _needs_alias(dataset, model) else None,
        "tags": inert_data(dataset.tags),
        "meta": inert_data(_meta(contract, dataset)),
    }
    return _filled(
        {
            "name": model.name,
            "description": inert(dataset.description.strip()),
            "config": _filled(config),
            "constraints": said.constraints(None),
            "data_tests": said.tests(None),
            "columns": [_column(place, model, said) for place in model.columns.values()],
        }
    )


def _needs_alias(dataset: Dataset, model: Model) -> bool:
    return dataset.table_name != model.name and is_plain_name(dataset.table_name)


def _meta(contract: Contract, dataset: Dataset) -> dict[str, Any]:
    governance = contract.governance
    promised = {
        "id": contract.id,
        "name": contract.name,
        "version": contract.version,
        "status": contract.status,
        "domain": contract.domain,
        "owner": contract.owning_team,
        "tags": list(contract.tags),
        "dataset": dataset.name,
        "business_name": dataset.business_name,
        "pii_class": governance.pii_class,
        "retention_days": governance.retention_days,
        "purposes": list(governance.purposes),
        "read": list(governance.read),
        "write": list(governance.write),
    }
    return {"data_contract": _filled(promised)}


def _column(place: Place, model: Model, said: _Gathered) -> dict[str, Any]:
    field = place.field
    assert field is not None
    meta = {
        "name": field.name if field.column != field.name else None,
        "business_name": field.business_name,
        "semantics": field.semantics.strip(),
        "pii": field.pii,
        "classification": field.classification,
        "deprecated": True if field.deprecated else None,
    }
    config = _filled({"tags": inert_data(field.tags), "meta": inert_data(_filled(meta))})
    return _filled(
        {
            "name": inert(field.column),
            "quote": None if is_plain_name(field.column) else True,
            "data_type": _shown_type(place, model),
            "description": inert(field.description.strip()),
            "config": config,
            "constraints": said.constraints(place.name),
            "data_tests": said.tests(place.name),
        }
    )


def _shown_type(place: Place, model: Model) -> str | None:
    type_ = data_type(place, model.dialect)
    return inert(type_) if type_ is not None else None


def _filled(found: Mapping[str, Any]) -> dict[str, Any]:
    # False and 0 say something.
    return {key: value for key, value in found.items() if value is not None and value not in ("", [], (), {})}


# --- tests and constraints --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Told:
    test: Test
    rule: Rule
    place: Place


class _Gathered:
    """The tests and constraints of a model by column, each once, in the order of the rules that they say."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._tests: dict[tuple[str | None, str, str], _Told] = {}
        self._constraints: dict[str | None, list[dict[str, Any]]] = {}

    def add(self, said: Said, rule: Rule, place: Place) -> None:
        """Takes what a rule becomes; of two equal tests the one that does more than warn stays."""
        for test in said.tests:
            key = (test.column, test.name, repr((test.arguments, test.config)))
            other = self._tests.get(key)
            if other is None or (other.rule.severity is not Severity.ERROR and rule.severity is Severity.ERROR):
                self._tests[key] = _Told(test, rule, place)
        for constraint in said.constraints:
            entry = _constraint(constraint)
            entries = self._constraints.setdefault(constraint.column, [])
            if entry not in entries:
                entries.append(entry)

    def constraints(self, column: str | None) -> list[dict[str, Any]]:
        """The entries of `constraints`."""
        return self._constraints.get(column, [])

    def tests(self, column: str | None) -> list[Any]:
        """The entries of `data_tests`; those with arguments have names, which dbt cannot always tell apart."""
        taken: list[str] = []
        entries = []
        for told in self._tests.values():
            test, rule = told.test, told.rule
            if test.column != column:
                continue
            config = {**({} if rule.severity is Severity.ERROR else {"severity": "warn"}), **test.config}
            named = bool(test.arguments or config)
            about = (told.place.name,) if told.place.field is not None else getattr(rule, "fields", ())
            name = _free("_".join((self._model.name, *about, rule.kind)), taken)
            properties = _filled(
                {
                    "name": name if named else None,
                    "description": inert(rule.description.strip()),
                    "arguments": dict(test.arguments),
                    "config": config,
                }
            )
            entries.append({test.name: properties} if properties else test.name)
        return entries


def _gathered(dataset: Dataset, model: Model) -> _Gathered:
    gathered = _Gathered(model)
    for place in (*model.columns.values(), Place(dataset, None, dataset.name)):
        for rule in place.rules:
            said = say(rule, place, model)
            if isinstance(said, Said):
                gathered.add(said, rule, place)
    return gathered


def _constraint(constraint: Constraint) -> dict[str, Any]:
    return {"type": constraint.type, **constraint.facts}


def _free(name: str, taken: list[str]) -> str:
    base = chosen = legal_name(name)[:_LONGEST_NAME]
    count = 1
    while chosen in taken:
        count += 1
        chosen = f"{base}_{count}"
    taken.append(chosen)
    return chosen


# --- what dbt does not say --------------------------------------------------------------------------------------------

_WORDS: Final = Words(
    title="dbt",
    beside=("severity", "description"),
    field=(
        "column_name",
        "description",
        "semantics",
        "business_name",
        "pii",
        "classification",
        "tags",
        "deprecated",
    ),
    dataset=("physical_name", "description", "business_name", "tags"),
    contract=("id", "version", "name", "status", "domain", "owner", "tags", "governance"),
)


def _losses(target: Target, models: tuple[Model, ...]) -> tuple[str, ...]:
    by_name = {dataset.name: model for dataset, model in zip(target.datasets, models, strict=True)}

    def judge(rule: Rule, place: Place) -> str | None:
        said = say(rule, place, by_name[place.dataset.name])
        return said if isinstance(said, str) else None

    def attributes(name: str, place: Place) -> str | None:
        if place.field is not None:
            return "dbt describes whole columns" if place.depth else None
        model = by_name[place.dataset.name]
        unplaced = name == "physical_name" and place.dataset.table_name != model.name
        if unplaced and not _needs_alias(place.dataset, model):
            return "dbt places tables by its own schemas"
        return None

    more = [loss for place in places(target) for loss in _doubts(place, by_name[place.dataset.name])]
    return losses(target, _WORDS, judge=judge, attributes=attributes, more=more)


def _doubts(place: Place, model: Model) -> Iterator[Loss]:
    field = place.field
    if field is None:
        if not model.enforced:
            yield Loss(
                "the enforced contract", place, "dbt holds a model to one where it knows the type of every column"
            )
        if place.dataset.name != model.name:
            yield Loss("the name", place, f"written as {model.name}")
        return
    if place.depth:
        return
    if data_type(place, model.dialect) is None:
        yield Loss("the type", place, "the contract leaves it, or what it holds, open; a model has none for it")
        return
    for what, reason in type_doubts(place, model.dialect, abilities(model.dialect), in_key=is_in_key(place)):
        yield Loss(what, place, reason)

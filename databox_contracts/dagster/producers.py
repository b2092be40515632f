"""Whether producers let assets read what these consume, asked when the code location is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import dagster as dg

from databox_contracts.approvals import Approval
from databox_contracts.dagster.consumption import CONSUMES_METADATA, Consumes, read_consumes
from databox_contracts.dagster.declared import declared_step
from databox_contracts.dagster.loading import load_once
from databox_contracts.dagster.metadata import CONTRACT_METADATA, metadata_path, metadata_value
from databox_contracts.dagster.steps import ContractStep
from databox_contracts.declarations import Declaration, declared_by
from databox_contracts.errors import ConsumersError, Level, UnknownPlaceError
from databox_contracts.model import Consumer, Contract
from databox_contracts.registry.consumer_checks import check_consumers, require_consumers
from databox_contracts.registry.places import Places

ApprovalsGiven: TypeAlias = "Iterable[Approval] | str | Path | None"
ContractsGiven: TypeAlias = "Iterable[Contract | str | Path] | Contract | str | Path"

_ENDINGS: Final = (".yaml", ".yml")


def require_producers(step: ContractStep, consumes: Mapping[str, Consumes], approvals: ApprovalsGiven) -> None:
    """Hold what a step consumes against the producers' contracts that lie in the same folder of contracts.

    Raises `ConsumersError`, which names producer, consumer, version and field.
    """
    if not consumes:
        return
    beside = {name: _beside(step.tables[0].contract.source, name) for name in consumes}
    producers = {name: contract for name, contract in beside.items() if contract is not None}
    if producers:
        known = {name: consumes[name] for name in producers}
        declared = list(_declarations(step, known, producers))
        found = check_consumers(_once(producers.values()), declared, read_approvals(approvals)).problems
        # What is wrong with other consumers is told where these are.
        own = {one.consumer.name for one in declared}
        errors = [one for one in found if one.level is Level.ERROR and one.consumer in own]
        if errors:
            raise ConsumersError(errors)


def validate_consumers(
    defs: dg.Definitions,
    contracts: ContractsGiven = (),
    *,
    consumers: Iterable[Declaration] = (),
    approvals: ApprovalsGiven = None,
) -> dg.Definitions:
    """The definitions, if every asset among them may read what it consumes.

    Producers are the contracts of the assets, and `contracts`: contracts, their files, or folders of them. `consumers`
    are declarations from elsewhere, `approvals` stored consents or their file. An asset consumes what `consumes` of its
    decorator or of its metadata says. Raises `ConsumersError`, which has a line for each problem with producer,
    consumer, version and field.
    """
    assets = list(defs.assets or ())
    producers = _once([*_contracts_of(assets), *read_contracts(contracts)])
    require_consumers(producers, [*_declared(assets, producers), *consumers], read_approvals(approvals))
    return defs


def read_contracts(given: ContractsGiven) -> list[Contract]:
    """Contracts, those of files, and all of folders, in order. Raises `ContractError` for what is none."""
    from databox_contracts.formats import contract_files

    found: list[Contract] = []
    for item in [given] if isinstance(given, Contract | str | Path) else given:
        if isinstance(item, Contract):
            found.append(item)
        elif Path(item).is_dir():
            found += [load_once(path) for path in contract_files(Path(item))]
        else:
            found.append(load_once(Path(item)))
    return found


def read_approvals(given: ApprovalsGiven) -> Sequence[Approval]:
    """Stored consents, or those of a file."""
    if given is None:
        return ()
    if isinstance(given, str | Path):
        from databox_contracts.formats.approval_files import load_approvals

        return load_approvals(given)
    return tuple(given)


# --- consumers --------------------------------------------------------------------------------------------------------


def _declared(assets: Iterable[Any], producers: Sequence[Contract]) -> Iterator[Declaration]:
    """What the assets of a code location say that they consume."""
    places = Places(producers)
    seen: set[int] = set()
    for asset in assets:
        step = declared_step(asset)
        if step is not None:
            if id(step) not in seen:
                seen.add(id(step))
                named = {name: _named(name, places) for name in step.consumed}
                yield from _declarations(step, step.consumed, named)
            continue
        for spec in _specs(asset):
            said = metadata_value(spec.metadata, CONSUMES_METADATA)
            key = spec.key.to_user_string()
            for name, consumed in read_consumes(said).items():
                consumer = _consumer((key,), None, consumed, _named(name, places))
                yield from declared_by({name: consumed.versions}, consumer, f"the asset {key}")


def _declarations(
    step: ContractStep, consumes: Mapping[str, Consumes], producers: Mapping[str, Contract | None]
) -> Iterator[Declaration]:
    code = step.function.__code__
    keys = tuple(table.name for table in step.tables)
    owner = step.tables[0].contract.owning_team
    for name, consumed in consumes.items():
        consumer = _consumer(keys, owner, consumed, producers[name])
        yield from declared_by({name: consumed.versions}, consumer, f"{code.co_filename}:{code.co_firstlineno}")


def _consumer(keys: tuple[str, ...], owner: str | None, consumed: Consumes, producer: Contract | None) -> Consumer:
    """The reader under the name that its producer knows the asset by, else under its key."""
    known = producer.consumers if producer is not None else ()
    called = next((one for one in known if set(one.assets) & set(keys)), None)
    return Consumer(
        called.name if called is not None else keys[0],
        # Who owns a consumer that the contract declares is said there.
        owner=owner if called is None else None,
        fields=consumed.fields,
        purpose=consumed.purpose,
        justification=consumed.justification,
        assets=keys,
    )


# --- producers --------------------------------------------------------------------------------------------------------


def _contracts_of(assets: Iterable[Any]) -> Iterator[Contract]:
    for asset in assets:
        step = declared_step(asset)
        if step is not None:
            yield from (table.contract for table in step.tables)
            continue
        for spec in _specs(asset):
            path = metadata_path(spec.metadata, CONTRACT_METADATA)
            if path is not None and Path(path).is_file():
                yield load_once(Path(path))


def _specs(asset: Any) -> list[dg.AssetSpec]:
    if isinstance(asset, dg.AssetsDefinition):
        return list(asset.specs)
    return [asset] if isinstance(asset, dg.AssetSpec) else []


def _once(contracts: Iterable[Contract]) -> list[Contract]:
    return list({(contract.id, contract.version): contract for contract in contracts}.values())


def _named(name: str, places: Places) -> Contract | None:
    try:
        found = places.find(name)
    except UnknownPlaceError:
        return None
    return places.versions(found.contract)[0]


def _beside(source: str | None, name: str) -> Contract | None:
    """The contract of a dataset, `weather.hourly`, in the folder that another one is of: `weather/hourly.yaml`."""
    if source is None:
        return None
    *domain, dataset = name.replace("/", ".").split(".")
    here = Path(source).resolve().parent
    places = [root.joinpath(*domain, dataset) for root in (here.parent, here)] + [here / dataset]
    for place in places:
        for ending in _ENDINGS:
            path = place.with_name(f"{place.name}{ending}")
            if path.is_file():
                contract = load_once(path)
                if _named(name, Places([contract])) is not None:
                    return contract
    return None

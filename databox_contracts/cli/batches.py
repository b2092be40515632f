"""What the registry is told of held rows, and tells of them: which batches there are, never a row."""

from __future__ import annotations

import argparse
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from databox_contracts.errors import DataboxError

if TYPE_CHECKING:
    from databox_contracts.registry.api import RegistryApi
    from databox_contracts.registry.held_batches import StoredBatch
    from databox_contracts.registry.store import Registry
    from databox_contracts.spark.quarantine_batches import HeldBatch
    from databox_contracts.spark.stores import Place

REMOVED: Final = "removed"
RELEASED: Final = "released"


def register_batches(place: Place, location: str | None, *, outcome: str) -> tuple[int, int]:
    """Tell a registry which batches are held beside a table now; how many are, and how many are not any more.

    Raises `DataboxError` for a service, which keeps no batches, and for a registry that does not answer.
    """
    from databox_contracts.registry.opening import open_registry
    from databox_contracts.spark.quarantine_batches import open_batches

    held = [_stored(batch, place) for batch in open_batches(place)]
    with closing(open_registry(location)) as registry:
        closed = require_database(registry).batches.settle(str(place), held, outcome=outcome)
    return len(held), len(closed)


def require_database(registry: RegistryApi) -> Registry:
    """The registry's database. Raises `DataboxError` for a service, which keeps no batches."""
    from databox_contracts.registry.store import Registry

    if isinstance(registry, Registry):
        return registry
    raise DataboxError("a service keeps no batches", hint="Name the registry's file or its postgresql:// URL.")


def listed(batch: StoredBatch) -> dict[str, Any]:
    """A batch as JSON data."""
    return {
        "batch": batch.id,
        "contract": batch.contract,
        "version": batch.version,
        "dataset": batch.dataset,
        "place": batch.place,
        "run_id": batch.run_id,
        "rows": batch.held,
        "reasons": dict(sorted(batch.reasons.items())),
        "held_at": batch.held_at.isoformat(),
        "outcome": batch.outcome,
        "closed_at": batch.closed_at.isoformat() if batch.closed_at is not None else None,
    }


def add_listing(parser: argparse.ArgumentParser) -> None:
    """Declare what the list of batches takes."""
    parser.add_argument("contract", metavar="ID", nargs="?", help="of that contract alone")
    parser.add_argument("--closed", action="store_true", help="those too that are not held any more")


def print_listing(registry: Registry, args: argparse.Namespace) -> None:
    """Print the batches that the arguments ask for."""
    import json

    found = [listed(batch) for batch in registry.batches.batches(args.contract, closed=args.closed)]
    if args.format == "json":
        print(json.dumps({"batches": found}, indent=2, ensure_ascii=False))
        return
    for one in found:
        ended = f", {one['outcome']} {one['closed_at']}" if one["outcome"] is not None else ""
        rows = f"{one['rows']} row{'' if one['rows'] == 1 else 's'}"
        print(f"{one['batch']}  {rows} of {one['contract']} {one['version']}, run {one['run_id']}{ended}")
        for reason, count in one["reasons"].items():
            print(f"    {count:>8}  {reason}")
    if not found:
        print("no rows are held.")


def _stored(batch: HeldBatch, place: Place) -> StoredBatch:
    from databox_contracts.registry.held_batches import StoredBatch

    facts = batch.facts
    at = datetime.fromisoformat(facts["published_at"])
    return StoredBatch(
        id=f"{place}#{batch.name}",
        contract=facts["contract"],
        version=facts["contract_version"],
        dataset=facts["dataset"],
        place=str(place),
        run_id=facts["run_id"],
        held=batch.rows,
        held_at=at if at.tzinfo is not None else at.replace(tzinfo=UTC),
        reasons=batch.reasons(),
    )

"""A check that fails while messages to consumers lie in the outbox as given up."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import dagster as dg

from databox_contracts.dagster.contracted_tables import AssetOrKey, only_key
from databox_contracts.errors import DataboxError
from databox_contracts.notifications import State

if TYPE_CHECKING:
    from databox_contracts.notify.dead_letters import OutboxState
    from databox_contracts.registry.store import Registry

_MOST_SHOWN: Final = 20
_COLUMNS: Final = ("consumer", "contract", "title", "error", "id")


def build_outbox_check(
    registry: str | os.PathLike[str] | None = None,
    *,
    asset: AssetOrKey,
    name: str = "outbox_has_no_dead_letters",
    severity: Literal["error", "warn"] = "error",
    most: int = 0,
) -> dg.AssetChecksDefinition:
    """A check on `asset` that fails while more than `most` messages are given up in the registry's outbox.

    `registry` is its file or `postgresql://` URL, None for `DATABOX_REGISTRY` or the file in `DAGSTER_HOME`; it is
    opened when the check runs. The asset is any that fits, such as `dg.AssetSpec("databox_outbox")`, which has to be
    among the definitions. It blocks nothing. A registry that does not answer is an error of the run, not a failed
    check. Raises `DataboxError` for a service's URL, which shows nobody its outbox, and for an unknown severity.
    """
    from databox_contracts.registry.addresses import is_service

    if registry is not None and is_service(os.fspath(registry)):
        raise DataboxError(
            "a service does not show its outbox", hint="Name the registry's file or its postgresql:// URL."
        )
    levels = {"error": dg.AssetCheckSeverity.ERROR, "warn": dg.AssetCheckSeverity.WARN}
    if severity not in levels:
        raise DataboxError(f"unknown severity {severity!r} of the outbox's check", hint="Use one of error, warn.")

    # Dagster looks for a function, and at its annotations, which must not be texts it cannot resolve.
    def compute():  # type: ignore[no-untyped-def]
        return _result(registry, most, levels[severity])

    described = dg.asset_check(
        asset=only_key(asset, "asset"),
        name=name,
        description="Every message to a consumer of data was taken by its receiver, or is still to be tried again.",
    )
    return described(compute)


def _result(location: str | os.PathLike[str] | None, most: int, severity: dg.AssetCheckSeverity) -> dg.AssetCheckResult:
    from databox_contracts.notify.dead_letters import outbox_state

    try:
        with closing(_opened(location)) as registry:
            state = outbox_state(registry.outbox)
            place = registry.location
    except DataboxError as error:
        raise dg.Failure(f"The outbox cannot be looked at: {error}") from None
    return dg.AssetCheckResult(
        passed=state.dead <= most,
        severity=severity,
        description=state.summary(),
        metadata={"registry": place, **_metadata(state)},
    )


def _opened(location: str | os.PathLike[str] | None) -> Registry:
    from databox_contracts.registry.addresses import default_location, is_service
    from databox_contracts.registry.store import Registry

    where = location if location is not None else default_location(os.environ)
    if isinstance(where, Path) or not is_service(os.fspath(where)):
        return Registry.open(where)
    raise DataboxError("a service does not show its outbox", hint="Name the registry's file or its postgresql:// URL.")


def _metadata(state: OutboxState) -> dict[str, Any]:
    facts: dict[str, Any] = {str(one): state.counts[one] for one in State}
    if state.oldest is None:
        return facts
    facts["oldest"] = dg.MetadataValue.timestamp(state.oldest)
    columns = [dg.TableColumn(column, "string") for column in _COLUMNS]
    rows = [
        dg.TableRecord({column: letter.to_dict()[column] for column in _COLUMNS})
        for letter in state.letters[:_MOST_SHOWN]
    ]
    facts["dead_letters"] = dg.MetadataValue.table(rows, schema=dg.TableSchema(columns))
    return facts

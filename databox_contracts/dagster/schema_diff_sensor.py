"""The sensor that sees new versions of contracts, publishes them and shows what they break."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import dagster as dg

from databox_contracts.dagster.code_location import CodeLocation, look_around
from databox_contracts.dagster.compatibility import COMPATIBILITY
from databox_contracts.dagster.registry_resources import ContractRegistryResource
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.dagster.version_watch import CONTRACT_TAG, VERSION_TAG, VersionWatch
from databox_contracts.dagster.watch_state import Cursor, WatchState
from databox_contracts.errors import DataboxError

if TYPE_CHECKING:
    from databox_contracts.registry.store import Registry

SCHEMA_DIFF_INTERVAL: Final = 30
"""Seconds between ticks: an edited contract is seen within a minute, and looking costs some milliseconds."""

USUAL_SECONDS: Final = 25.0
_NOWHERE: Final = CodeLocation(frozenset(), {}, {}, {}, "")


def build_schema_diff_sensor(
    contracts: str | os.PathLike[str] | None = "contracts",
    *,
    name: str = "contract_schema_diff",
    check_name: str = COMPATIBILITY,
    translator: ContractTranslator | None = None,
    request_verification: bool = False,
    registry_resource_key: str = "registry",
    seconds: float = USUAL_SECONDS,
    minimum_interval_seconds: int = SCHEMA_DIFF_INTERVAL,
    default_status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.RUNNING,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> dg.SensorDefinition:
    """A sensor that watches a folder of contracts and the registry for new versions.

    A version that is new in the folder `contracts` (None: only the registry is watched) is published to the registry of
    `registry_resource_key`; in the same transaction the messages to its consumers enter the outbox, which
    `build_delivery_sensor` sends. For every new version, wherever it was published, the result of the check
    `check_name` is recorded on the assets of this code location: red where it breaks who read the version before, green
    with the table of changes where it does not. The checks are those of `build_compatibility_checks`, which needs
    the same folder, `check_name` and `translator`; the sensor says so where one lacks.

    A file that is no contract, a version that is published already with other content, a missing consent, and a second
    contract of one asset are reported once, as a failed result where the asset is known, and stop no other; each is
    taken up when it is mended. With `request_verification` a run of the checks of the contract's assets, of those made
    of them and of the consumers' is requested, as soon as the code location has the version (it is its code that says
    what is checked); tables in partitions are left out.

    A tick looks at the files' times only, and reads what changed; after `seconds` it leaves the rest to the next. What
    it knows is kept in the registry; the cursor may be reset at any time. A tick that is killed is repeated: a version
    is published once and each message enqueued once; a result may be recorded a second time. When the registry does
    not answer, the tick fails, and nothing is lost. The sensor is RUNNING from the start, since a forgotten switch
    would leave every change unseen, and it writes to the registry alone. Raises `DataboxError` for a folder that is
    not there.
    """
    folder = None if contracts is None else Path(os.path.abspath(contracts))
    if folder is not None and not folder.is_dir():
        raise DataboxError(
            f"there is no folder of contracts {str(folder)!r}",
            hint='Name the folder, such as Path(__file__).parent / "contracts"; None watches the registry alone.',
        )
    using = translator if translator is not None else ContractTranslator()
    tick = Tick(folder, name, check_name, using, request_verification, seconds, clock)

    @dg.sensor(
        name=name,
        description="Publishes new versions of contracts, and shows on their assets what they change for readers.",
        minimum_interval_seconds=minimum_interval_seconds,
        default_status=default_status,
        required_resource_keys={registry_resource_key},
        asset_selection=dg.AssetSelection.all_asset_checks() if request_verification else None,
    )
    def watch(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        found = ContractRegistryResource.among(context.resources, registry_resource_key)
        with closing(found.open_database()) as registry:
            return tick.run(context, registry)

    return watch


@dataclass(frozen=True, slots=True)
class Tick:
    """What the sensor does each time."""

    folder: Path | None
    name: str
    check_name: str
    translator: ContractTranslator
    verify: bool
    seconds: float
    clock: Callable[[], datetime]

    def run(self, context: dg.SensorEvaluationContext, registry: Registry) -> dg.SensorResult:
        """Look, and where anything may have changed, see what."""
        from databox_contracts.dagster.watched_folder import Look, look_at

        end = time.monotonic() + self.seconds
        around = look_around(context.repository_def) if context.repository_def is not None else _NOWHERE
        look = look_at(self.folder, self.clock()) if self.folder is not None else Look({}, "none")
        before = Cursor.of_text(context.cursor)
        # Whatever is written while this tick works makes another revision, which the next tick sees.
        now = Cursor(look.fingerprint, registry.revision(), around.fingerprint)
        if now.sees_the_same(before):
            return _result(f"nothing changed in {self._where(len(look.files))}", now)
        position = position_name(context, self.name)
        kept = registry.position(position)
        watch = VersionWatch(
            registry,
            WatchState.of_data(kept),
            around,
            check_name=self.check_name,
            translator=self.translator,
            by=f"dagster sensor {self.name}",
            verify=self.verify,
            end=end,
            clock=self.clock,
            # At once, before it is noted as recorded: a tick that is killed in between records it again.
            record=context.instance.report_runless_asset_event,
        )
        if self.folder is not None:
            watch.take_files(self.folder, look)
        watch.judge_versions(definitions_changed=around.fingerprint != before.definitions)
        requests = list(watch.requests(before.requested))
        for error in watch.errors:
            context.log.error(error)
        if not registry.advance(position, watch.state.to_data(), replacing=kept):
            return _result("another tick of this sensor was quicker; the next one looks again", before)
        asked = tuple((request.tags[CONTRACT_TAG], request.tags[VERSION_TAG]) for request in requests)
        after = replace(now if watch.finished else Cursor(), requested=asked)
        return _result(watch.summary(), after, requests)

    def _where(self, count: int) -> str:
        if self.folder is None:
            return "the registry"
        return f"{count} file{'' if count == 1 else 's'} of {self.folder.name} and in the registry"


def position_name(context: dg.SensorEvaluationContext, name: str) -> str:
    """Under which name a sensor keeps its place in the registry: that of its code location and its own."""
    origin = context.code_location_origin
    location = origin.location_name if origin is not None else context.repository_name or ""
    return f"dagster/{location}/{name}"


def _result(said: str, cursor: Cursor, requests: Sequence[dg.RunRequest] = ()) -> dg.SensorResult:
    if requests:
        return dg.SensorResult(run_requests=list(requests), cursor=cursor.to_text())
    return dg.SensorResult(skip_reason=said, cursor=cursor.to_text())

"""A schedule that samples contracted tables and records what drifted as the result of a check."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias, get_args

import dagster as dg

from databox_contracts.baselines import BaselineStore, DirectoryBaselineStore
from databox_contracts.contact_secrets import refuse_secrets
from databox_contracts.dagster.contracted_tables import AssetOrKey, ContractOrPath, Load
from databox_contracts.dagster.drift_messages import Told
from databox_contracts.dagster.drift_sampling import UPDATE_BASELINE_TAG, Sampling
from databox_contracts.dagster.registries import RegistryGiven, require_database
from databox_contracts.dagster.scheduling import scheduled
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.dagster.watching import watched_tables, watching_check
from databox_contracts.dagster.wording import contract_text
from databox_contracts.drift import DriftThresholds
from databox_contracts.errors import DataboxError
from databox_contracts.schema_modes import ModesGiven, parse_modes

BaselinesGiven: TypeAlias = "BaselineStore | str | os.PathLike[str] | None"


def build_drift_schedule(
    contracts: ContractOrPath | Iterable[ContractOrPath],
    cron: str | Sequence[str],
    *,
    name: str = "contract_drift",
    check_name: str = "contract_drift",
    timezone: str | None = None,
    default_status: dg.DefaultScheduleStatus = dg.DefaultScheduleStatus.STOPPED,
    dataset: str | None = None,
    asset_key: AssetOrKey | None = None,
    assets: Iterable[AssetOrKey] | None = None,
    translator: ContractTranslator | None = None,
    location: str | Path | None = None,
    data_format: str | None = None,
    options: Mapping[str, str] | None = None,
    load: Load | None = None,
    spark_resource_key: str = "spark",
    io_manager_key: str = "io_manager",
    baselines: BaselinesGiven = None,
    registry: RegistryGiven = None,
    notify: Sequence[Told] = ("owner",),
    owner_contacts: Sequence[str] = (),
    quarantine: str | Path | None = None,
    rows: int = 100_000,
    files: int = 32,
    thresholds: DriftThresholds | None = None,
    ignore: Sequence[str] = (),
    timestamp_field: str | None = None,
    schema_modes: ModesGiven = None,
    samples: int = 5,
    tags: Mapping[str, str] | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    op_tags: Mapping[str, Any] | None = None,
    pool: str | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> dg.Definitions:
    """Definitions that sample contracted tables by a cron schedule: a check per table, a job `name` and its schedule.

    Merge them with those of the assets: `dg.Definitions.merge(defs, build_drift_schedule("contracts", "0 * * * *"))`.
    `contracts` are contracts, their files, or folders of them. The tables are found as `build_contract_checks` finds
    them, which says what `dataset`, `asset_key`, `assets`, `translator`, `location`, `data_format`, `options`, `load`
    and the resource keys are. `cron` is in the time zone `timezone`, UTC if None. As every schedule of Dagster's it is
    stopped until somebody starts it, or `default_status` says otherwise. Every tick is a run of its own.

    A sampling (`spark.sample_drift`, whose arguments `rows`, `files`, `thresholds`, `ignore`, `timestamp_field` and
    `samples` are) holds recent rows against the contract and the baseline. The first one pins the baseline, which stays
    until a run with the tag `databox/update_baseline: "true"` accepts the tables as they are. Columns that the
    `schema_modes` let evolve are no drift; they go before those of the `ContractIOManager` and of the contract.

    The check `check_name` fails where something drifted, with a table of what, how much, since when and where; it is an
    error where a finding is one, else a warning, and blocks nothing. Dagster runs it with the other checks of the
    asset, too, when somebody materializes it with all of them. Values of fields that must not be shown are in none of
    it.

    `baselines` is a `BaselineStore`, a directory, or None for the registry. `registry` is its file or `postgresql://`
    URL, anything with an `open()`, or None for `DATABOX_REGISTRY` or the file in `DAGSTER_HOME`; it is opened in the
    run. `notify` names who is told, through its outbox, once for each drift while the baseline stands, and when it is
    gone: the `owner` of the contract, at `owner_contacts` or the e-mail addresses that the contract names, and its
    `consumers`; nobody, if empty. With `quarantine`, a directory, rows that drifted are copied there, to a directory
    for each asset.

    A table that cannot be read, or a registry that does not answer, is an error of the run, not a failed check. Raises
    `ContractError` for a contract that cannot be used, `ContactSecretError` for a contact with a secret in it,
    `DataboxError` for arguments that make no sense.
    """
    unknown = [one for one in notify if one not in get_args(Told)]
    if unknown or isinstance(notify, str):
        raise DataboxError(
            f"notify names {notify if isinstance(notify, str) else unknown[0]!r}",
            hint='Give a list of "owner", "consumers" or both, or an empty one.',
        )
    if rows < 1 or files < 1:
        raise DataboxError(f"a sample of {rows} rows of {files} files", hint="Ask for at least one of each.")
    if baselines is None or notify:
        require_database(registry)
    refuse_secrets("the owner", owner_contacts)
    tables = watched_tables(
        contracts,
        dataset=dataset,
        asset_key=asset_key,
        assets=assets,
        translator=translator,
        location=location,
        data_format=data_format,
        options=options,
        load=load,
        spark_resource_key=spark_resource_key,
        io_manager_key=io_manager_key,
    )
    sampling = Sampling(
        check_name=check_name,
        baselines=DirectoryBaselineStore(Path(baselines)) if isinstance(baselines, str | os.PathLike) else baselines,
        registry=registry,
        notify=tuple(notify),
        owner_contacts=tuple(owner_contacts),
        quarantine=Path(quarantine) if quarantine is not None else None,
        schema_modes=parse_modes(schema_modes),
        arguments={
            "rows": rows,
            "files": files,
            "thresholds": thresholds,
            "ignore": tuple(ignore),
            "timestamp_field": timestamp_field,
            "samples": samples,
        },
        clock=clock,
    )
    checks = [
        watching_check(
            table,
            check_name,
            sampling.compute(table),
            description=f"Recent rows keep contract {contract_text(table.contract)}, and look like the baseline. To"
            f' accept what drifted, run this check with the tag {UPDATE_BASELINE_TAG}: "true".',
            retry_policy=retry_policy,
            op_tags=op_tags,
            pool=pool,
        )
        for table in tables
    ]
    return scheduled(
        checks,
        name=name,
        cron=cron,
        timezone=timezone,
        default_status=default_status,
        description="Samples contracted tables: do they keep their contracts, and look as they used to?",
        tags=tags,
    )

"""Checks with the job and the schedule that run them, as definitions that fit together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dagster as dg

from databox_contracts.errors import DataboxError


def scheduled(
    checks: Sequence[dg.AssetChecksDefinition],
    *,
    name: str,
    cron: str | Sequence[str],
    timezone: str | None,
    default_status: dg.DefaultScheduleStatus,
    description: str,
    tags: Mapping[str, str] | None,
) -> dg.Definitions:
    """The checks, a job of that name that runs all of them, and its schedule `<name>_schedule`.

    Each tick is one run, without a run key: a key would be taken for a repetition for ever. Raises `DataboxError` for a
    name, a cron expression or a time zone that Dagster does not take.
    """
    try:
        job = dg.define_asset_job(
            name, selection=dg.AssetSelection.checks(*checks), description=description, tags=dict(tags or {})
        )
        schedule = dg.ScheduleDefinition(
            name=f"{name}_schedule",
            job=job,
            cron_schedule=cron,
            execution_timezone=timezone,
            default_status=default_status,
            description=description,
        )
    except (dg.DagsterInvalidDefinitionError, dg.DagsterInvariantViolationError) as error:
        raise DataboxError(
            f"the schedule {name!r} cannot be made: {error}",
            hint='A cron expression is such as "0 6 * * *", a time zone such as "Europe/Berlin".',
        ) from None
    return dg.Definitions(asset_checks=list(checks), jobs=[job], schedules=[schedule])

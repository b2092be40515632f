"""Baselines of drift and what was seen, in the registry's database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from databox_contracts.baselines import sighted, without_values
from databox_contracts.drift import DriftKey, Sighting
from databox_contracts.errors import BaselineError, RegistryError
from databox_contracts.profiles import Baseline
from databox_contracts.registry.database import Database
from databox_contracts.registry.schema import BASELINES, SIGHTINGS
from databox_contracts.registry.statements import insert_missing, put
from databox_contracts.registry.texts import named


class SqlBaselineStore:
    """A `BaselineStore` that all hosts share. Its errors are `BaselineError`s."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock

    def get(self, contract: str, dataset: str) -> Baseline | None:
        """As `BaselineStore.get`."""
        with _as_baseline_errors():
            _checked(contract, dataset)
            return self._database.read(lambda connection: _read(connection, contract, dataset))

    def put(self, baseline: Baseline, *, replacing: Baseline | None) -> Baseline:
        """As `BaselineStore.put`."""
        row = {
            "contract": baseline.contract,
            "dataset": baseline.dataset,
            "baseline": baseline.id,
            "revision": baseline.revision,
            "document": baseline.to_dict(),
            "pinned_at": self._clock(),
        }

        def work(connection: Connection) -> Baseline:
            if replacing is None:
                insert_missing(connection, BASELINES, [row])
            key = (BASELINES.c.contract == baseline.contract) & (BASELINES.c.dataset == baseline.dataset)
            found: Any = connection.execute(select(BASELINES).where(key).with_for_update()).one_or_none()
            pinned = _readable(found)
            mine = (baseline.id, baseline.revision)
            if pinned is not None and (
                replacing is None or (pinned.id, pinned.revision) not in (_mark(replacing), mine)
            ):
                return pinned
            put(connection, BASELINES, row)
            return baseline

        with _as_baseline_errors():
            _checked(baseline.contract, baseline.dataset)
            return self._database.write(work)

    def see(
        self, baseline: str, contract: str, dataset: str, keys: Sequence[DriftKey], *, at: str
    ) -> Mapping[str, Sighting]:
        """As `BaselineStore.see`."""
        place = {"contract": contract, "dataset": dataset, "baseline": baseline}

        def work(connection: Connection) -> dict[str, Sighting]:
            insert_missing(connection, SIGHTINGS, [{**place, "seen": {}}])
            known = _sightings(
                connection.execute(select(SIGHTINGS.c.seen).filter_by(**place).with_for_update()).scalar()
            )
            after = sighted(known, keys, at)
            if after != known:
                put(connection, SIGHTINGS, {**place, "seen": {text: asdict(seen) for text, seen in after.items()}})
            return {key.text: after[key.text] for key in keys}

        with _as_baseline_errors():
            _checked(contract, dataset, baseline)
            return self._database.write(work)

    def forget_values(self, contract: str, dataset: str, fields: Sequence[str]) -> None:
        """As `BaselineStore.forget_values`."""

        def work(connection: Connection) -> None:
            place = {"contract": contract, "dataset": dataset}
            rows = connection.execute(select(SIGHTINGS).filter_by(**place).order_by("baseline").with_for_update()).all()
            for row in rows:
                left = without_values(_sightings(row.seen), fields)
                seen = {text: asdict(one) for text, one in left.items()}
                put(connection, SIGHTINGS, {**place, "baseline": row.baseline, "seen": seen})

        with _as_baseline_errors():
            _checked(contract, dataset)
            self._database.write(work)


def _read(connection: Connection, contract: str, dataset: str) -> Baseline | None:
    key = (BASELINES.c.contract == contract) & (BASELINES.c.dataset == dataset)
    found = connection.execute(select(BASELINES.c.document).where(key)).scalar()
    return Baseline.from_dict(found) if found is not None else None


def _readable(row: Any) -> Baseline | None:
    try:
        return Baseline.from_dict(row.document) if row is not None else None
    except (BaselineError, AttributeError):
        # Nobody can compare with it, so the one that is put takes its place.
        return None


def _mark(baseline: Baseline) -> tuple[str, int]:
    return baseline.id, baseline.revision


def _sightings(found: Any) -> dict[str, Sighting]:
    try:
        return {text: Sighting(**seen) for text, seen in (found or {}).items()}
    except (TypeError, AttributeError) as error:
        raise BaselineError("what was seen to drift cannot be read", hint="Accept a new baseline.") from error


def _checked(*names: str) -> None:
    for name in names:
        named("a name of the baseline's place", name)


@contextmanager
def _as_baseline_errors() -> Iterator[None]:
    try:
        yield
    except RegistryError as error:
        raise BaselineError(error.message, hint=error.hint) from error

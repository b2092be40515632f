"""One table held against one plan: all counts from one pass, keys from one more, samples only where rules failed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Final

from pyspark.sql import DataFrame

from databox_contracts.errors import DataboxError
from databox_contracts.plan import Check
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import RowCount, Scope
from databox_contracts.spark import outcomes
from databox_contracts.spark.counting import Measured, RowCheck
from databox_contracts.spark.failures import SPARK_ERRORS, in_words, unlogged
from databox_contracts.spark.hashing import hashing
from databox_contracts.spark.keys import Key, confirmed, find_all_duplicates
from databox_contracts.spark.known import Decided
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.preparing import Preparation
from databox_contracts.spark.progress import Steps
from databox_contracts.spark.queries import query_result
from databox_contracts.spark.references import matched_results
from databox_contracts.spark.running import chunked, run_counts
from databox_contracts.spark.scans import reads_by_column
from databox_contracts.spark.showing import samples_of

COUNTING: Final = "counting rows"
KEYS: Final = "comparing keys"
REFERENCES: Final = "looking keys up"
QUERIES: Final = "running queries"
SAMPLES: Final = "collecting samples"
"""The steps of a verification, as its progress names them; the last one is taken only where a rule failed."""


class Verification(Preparation):
    """One table held against one plan."""

    steps = Steps(None, ())

    def verdict(self, *, samples: int = 5) -> Verdict:
        """Run what is left to run: no job for what is known already. Errors of Spark pass through."""
        self.steps = Steps(self.given.progress, self._steps())
        decided, open_because = self._take_known()
        keys = self._keys_to_compare(samples)
        # With nothing to count there is no job to hash them beside.
        beside = [key for _, key in keys] if self.counted or self.measured else []
        with hashing(beside, self.known.rows) as hashed:
            rows, found = self._rows_and_counts()
            colliding = hashed(rows)
        for check, known in decided:
            result = outcomes.counted(check, known.count, rows)
            shown = known.samples[:samples] if result.status is Status.FAILED else ()
            self.answer(replace(result, samples=shown), known.how)
        for counted in self.counted:
            scanned = scan_of(self, counted, open_because.get(counted.check.id, ""))
            self.answer(outcomes.counted(counted.check, int(found[counted.check.id][0]), rows), scanned)
        for measured in self.measured:
            self.answer(measured.answer(found[measured.check.id]), scan_of(self, measured))
        for source, group in self.exploded.values():
            self._measure_apart(source, group)
        for check in self.plan.of(Scope.AGGREGATE):
            if isinstance(check.rule, RowCount):
                self.answer(outcomes.row_count(check, rows), self.known.source if self.known.rows == rows else SCAN)
        self._judge_keys(keys, colliding, rows, samples)
        self._judge_references(rows, samples)
        for check in self.plan.of(Scope.QUERY):
            if check.id not in self.answers:
                with self.steps.step(QUERIES):
                    self.answer(query_result(check, self.table, self.plan), "a query of its own")
        self._add_samples(samples)
        return Verdict(
            contract=self.plan.contract.id,
            version=self.plan.contract.version,
            dataset=self.plan.dataset.name,
            row_count=rows,
            results=tuple(self.answers[check.id] for check in self.plan.checks),
            settings=self.settings,
        )

    def counts(self, ids: Collection[str], *, how: str, samples: int) -> dict[str, Decided]:
        """How many rows break each of these rules that count rows, with values of theirs; one that fails is left out.

        Each row must be one too many, as for those that `held_by` names. Errors of Spark pass through.
        """
        self.counted = [counted for counted in self.counted if counted.check.id in ids]
        self.measured, self.misfits = [], []
        rows, found = self._count()
        for counted in self.counted:
            self.answer(outcomes.counted(counted.check, int(found[counted.check.id][0]), rows))
        self._add_samples(samples)
        results = [self.answers[counted.check.id] for counted in self.counted]
        return {result.id: Decided(result.failed_count or 0, how, result.samples) for result in results}

    def _steps(self) -> list[str]:
        asked = {
            COUNTING: True,
            KEYS: bool(self.plan.keys),
            REFERENCES: bool(self.matchings or self.late),
            QUERIES: bool(self.plan.of(Scope.QUERY)),
            SAMPLES: True,
        }
        return [step for step, wanted in asked.items() if wanted]

    # --- counts -------------------------------------------------------------------------------------------------------

    def _take_known(self) -> tuple[list[tuple[Check, Decided]], dict[str, str]]:
        """Answer what is known, leave the rest to be counted, and say why it is left."""
        decided: list[tuple[Check, Decided]] = []
        open_because: dict[str, str] = {}
        for counted in tuple(self.counted):
            known = self.known.count(counted, self.given.as_of)
            if isinstance(known, Decided):
                decided.append((counted.check, known))
                self.counted.remove(counted)
            elif self.known.statistics is not None:
                open_because[counted.check.id] = known
        for measured in tuple(self.measured):
            aggregates = self.known.aggregates(measured)
            if aggregates is not None:
                self.answer(measured.answer(aggregates), self.known.source)
                self.measured.remove(measured)
        return decided, open_because

    def _rows_and_counts(self) -> tuple[int, Mapping[str, Sequence[Any]]]:
        known = self.known.rows
        if known is not None and not self.counted and not self.measured:
            return known, {}
        rows, found = self._count()
        if known is not None and known != rows:
            raise DataboxError(
                f"the table has {rows} rows, and the statistics of its files say {known}.",
                hint="Do not write to the files while they are verified, or do not ask for their statistics.",
            )
        return rows, found

    def _count(self) -> tuple[int, Mapping[str, Sequence[Any]]]:
        """The number of rows, and what was aggregated for each check; those that end their job are not evaluated."""
        checks = [*self.counted, *self.measured]
        chunks = chunked(checks)
        if len(chunks) > 1 and not reads_by_column(self.view):
            chunks = [checks]
        parts = len(chunks) if len(chunks) > 1 else 0
        with self.steps.step(COUNTING, parts=parts):
            counts = run_counts(self.view, chunks, part_done=lambda: self.steps.part_done(COUNTING))
        self.counted = [counted for counted in self.counted if counted.check.id not in counts.refused]
        for check in self.plan.checks:
            if check.id in counts.refused:
                self.answer(outcomes.not_evaluated(check, f"it fails on a row: {counts.refused[check.id]}"))
        return counts.rows, counts.found

    def _measure_apart(self, source: DataFrame, group: Sequence[Measured]) -> None:
        """Answer aggregates over rows that are not the table's."""
        columns = [column for measured in group for column in measured.columns]
        with self.steps.step(COUNTING):
            row = source.agg(*(column.alias(f"m{at}") for at, column in enumerate(columns))).collect()[0]
        at = 0
        for measured in group:
            found = row[at : at + len(measured.columns)]
            self.answer(measured.answer(found), f"a scan of its own, of all values of {measured.check.field}")
            at += len(measured.columns)

    # --- keys and references ------------------------------------------------------------------------------------------

    def _keys_to_compare(self, samples: int) -> list[tuple[Check, Key]]:
        """The keys of rows that are not known to be free of repeats; one that is nowhere is answered."""
        found = []
        for check in self.plan.keys:
            try:
                if check.id in self.answers or self.key_items(check) is not None:
                    continue
                key = Key(self.view, self.key_columns(check), samples=0 if check.masked else samples)
            except NotEvaluableError as reason:
                self.answer(outcomes.not_evaluated(check, str(reason)))
                continue
            if self.known.has_no_repeats(check.id) is None:
                found.append((check, key))
        return found

    def _judge_keys(
        self, keys: Sequence[tuple[Check, Key]], colliding: Sequence[Sequence[int]] | None, rows: int, samples: int
    ) -> None:
        for check in self.plan.keys:
            if check.id in self.answers:
                continue
            items = self.key_items(check)
            known = self.known.has_no_repeats(check.id)
            if items is not None:
                self.answer(
                    self._items_result(check, items, 0 if check.masked else samples), "hashes of all its values"
                )
            elif known is not None:
                self.answer(outcomes.repeated(check, 0, 0, (), rows), known.how)
        if not keys:
            return
        with self.steps.step(KEYS):
            if colliding is None:
                found = find_all_duplicates([key for _, key in keys], rows=rows)
            else:
                pairs = zip(keys, colliding, strict=True)
                found = [confirmed(key.keyed, hashes, samples=key.samples) for (_, key), hashes in pairs]
        for (check, _), duplicates in zip(keys, found, strict=True):
            result = outcomes.repeated(check, duplicates.surplus_rows, duplicates.keys, duplicates.samples, rows)
            self.answer(result, f"hashes of the key ({', '.join(check.key_names)})")

    def _items_result(self, check: Check, items: DataFrame, samples: int) -> CheckResult:
        """The result of a key inside an array or a map, each of whose values has its parts in a row of `items`."""
        with self.steps.step(KEYS):
            key = Key(items, [items[name] for name in items.columns], samples=samples)
            count = items.where(" and ".join(f"{name} is not null" for name in items.columns)).count()
            found = find_all_duplicates([key], rows=count)[0]
        return outcomes.repeated(check, found.surplus_rows, found.keys, found.samples, count, counted_in="values")

    def _judge_references(self, rows: int, samples: int) -> None:
        if self.matchings:
            with self.steps.step(REFERENCES):
                for result in matched_results(self.view, self.matchings, rows, samples=samples):
                    self.answer(result, "a join with the keys of the reference")
        for check in self.plan.of(Scope.REFERENCE):
            if check.id in self.late:
                with self.steps.step(REFERENCES):
                    self.answer(self._late_result(check, samples), "the rows of each period")

    def _late_result(self, check: Check, samples: int) -> CheckResult:
        try:
            with unlogged():
                return self.late[check.id](samples)
        except NotEvaluableError as reason:
            return outcomes.not_evaluated(check, str(reason))
        except SPARK_ERRORS as error:
            return outcomes.not_evaluated(check, f"comparing with what is expected fails: {in_words(error)}")

    # --- samples ------------------------------------------------------------------------------------------------------

    def _add_samples(self, samples: int) -> None:
        failed = [
            counted
            for counted in (*self.counted, *self.misfits)
            if self.answers[counted.check.id].status is Status.FAILED
            and not counted.check.masked
            and counted.offending(self.view) is not None
        ]
        if samples <= 0:
            return
        broken = {one.check.id: self.answers[one.check.id].failed_count or 0 for one in failed}
        with self.steps.step(SAMPLES) if failed else nullcontext():
            shown = samples_of(self.view, failed, broken, samples)
        for id_, values in shown.items():
            result = self.answers[id_]
            self.answer(replace(result, samples=values), result.how)


SCAN: Final = "the scan"


def scan_of(prepared: Preparation, check: RowCheck | Measured, because: str = "") -> str:
    """How the scan answers a check, in the words of `verify --explain`: from which column, and why not without it."""
    location = getattr(check, "location", None)
    about = f"{SCAN}, of {prepared.names[location.column]}" if location is not None else f"{SCAN}, of several columns"
    return f"{about}: {because}" if because else about

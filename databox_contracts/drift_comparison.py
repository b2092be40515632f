"""A field's profile against its baseline; a difference counts beyond what chance gives for samples of these sizes.

The population stability index is the sum over all bins of (a - b) * ln(a / b), where a and b are the shares of the bin
in the sample and in the baseline; `psi_smoothing` is added to every count, so that an empty bin has a share. Of two
samples of the same data it is (bins - 1) * (1 / n + 1 / m) on average; that is added to the thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from databox_contracts.drift import DriftFinding, DriftThresholds
from databox_contracts.profiles import FieldProfile
from databox_contracts.rules import Severity

_LEVELS: Final = ("0.1", "0.5", "0.9")
_STANDARD_ERRORS: Final = 3.0


def stability_index(sample: Sequence[int], baseline: Sequence[int], *, smoothing: float) -> float:
    """The population stability index of two counts of the same bins; neither is empty."""
    n = sum(sample) + smoothing * len(sample)
    m = sum(baseline) + smoothing * len(baseline)
    shares = (((a + smoothing) / n, (b + smoothing) / m) for a, b in zip(sample, baseline, strict=True))
    return math.fsum((a - b) * math.log(a / b) for a, b in shares)


def compare_field(
    now: FieldProfile, then: FieldProfile, thresholds: DriftThresholds, places: Mapping[str, str | None]
) -> Iterator[DriftFinding | str]:
    """What differs, and sentences about what was not compared. `places` is where each value is seen first."""
    if now.type != then.type:
        yield f"{now.field} was {then.type} in the baseline and is {now.type}: not compared"
        return
    if not now.rows or not then.rows:
        yield f"{now.field} has no values in the {'sample' if not now.rows else 'baseline'}: not compared"
        return
    comparison = _Comparison(now, then, thresholds, places)
    yield from comparison.rates()
    yield from comparison.distinct()
    if now.masked or then.masked:
        if not now.masked:
            yield f"{now.field} was masked in the baseline: its values are not compared"
        return
    yield from comparison.values()
    yield from comparison.distribution()
    yield from comparison.quantiles()


@dataclass(frozen=True, slots=True)
class _Comparison:
    now: FieldProfile
    then: FieldProfile
    limits: DriftThresholds
    places: Mapping[str, str | None]

    def rates(self) -> Iterator[DriftFinding]:
        now, then = self.now, self.then
        yield from self._rate("null_rate", "null", now.nulls, then.nulls)
        if not now.masked and not then.masked:
            yield from self._rate("not_finite", "NaN or infinite", now.not_finite, then.not_finite)

    def _rate(self, kind: str, words: str, count: int, before: int) -> Iterator[DriftFinding]:
        n, m = self.now.rows, self.then.rows
        share, expected = count / n, before / m
        pooled = (count + before) / (n + m)
        error = math.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
        if abs(share - expected) < self.limits.null_rate or abs(share - expected) <= _STANDARD_ERRORS * error:
            return
        yield DriftFinding(
            kind=kind,
            field=self.now.field,
            severity=Severity.WARNING,
            message=f"{_percent(share)} of {self.now.field} are {words}, {_percent(expected)} in the baseline",
            count=count,
            share=share,
            observed=share,
            expected=expected,
        )

    def distinct(self) -> Iterator[DriftFinding | str]:
        """Without regard to which values; where these are compared themselves, that says more."""
        now, then = self.now, self.then
        listed = now.values is not None and then.values is not None
        if now.distinct is None or then.distinct is None or listed or min(now.present, then.present) == 0:
            return
        if then.values is not None and now.distinct > len(then.values):
            yield self._distinct()
            return
        if min(now.present, then.present) < self.limits.fewest:
            yield f"{now.field}: too few values to compare how many are different"
            return
        few, many = sorted((now.distinct, then.distinct))
        if many < self.limits.distinct * few:
            return
        # The larger sample of the same data has more different values, at most as many times more as it is larger.
        larger = now if now.present > then.present else then
        if (larger.distinct == many) and many < self.limits.distinct * few * larger.present / min(
            now.present, then.present
        ):
            yield f"{now.field}: samples of {now.present} and {then.present} values: how many differ was not compared"
            return
        yield self._distinct()

    def _distinct(self) -> DriftFinding:
        now, then = self.now, self.then
        return DriftFinding(
            kind="distinct",
            field=now.field,
            severity=Severity.WARNING,
            message=f"{now.field} has {now.distinct} different values, {then.distinct} in the baseline",
            observed=now.distinct,
            expected=then.distinct,
        )

    def values(self) -> Iterator[DriftFinding]:
        if self.now.values is None or self.then.values is None:
            return
        present, before = self.now.present, self.then.present
        for value, count in self.now.values.items():
            # A field without a value has not said yet which it has.
            if value in self.then.values or not before:
                continue
            yield DriftFinding(
                kind="new_value",
                field=self.now.field,
                severity=Severity.WARNING,
                message=f"{self.now.field} has a value that the baseline does not have, {count} times",
                value=value,
                count=count,
                share=count / present,
                place=self.places.get(value),
            )
        for value, count in self.then.values.items():
            expected = count / before * present if before else 0.0
            if value in self.now.values or expected < self.limits.vanished:
                continue
            yield DriftFinding(
                kind="vanished_value",
                field=self.now.field,
                severity=Severity.WARNING,
                message=f"{self.now.field} lacks a value of which {expected:.0f} rows were to be expected",
                value=value,
                count=0,
                share=0.0,
                observed=0,
                expected=expected,
            )

    def distribution(self) -> Iterator[DriftFinding]:
        counts = self._bins()
        if counts is None or not sum(counts[0]) or not sum(counts[1]):
            return
        index = stability_index(*counts, smoothing=self.limits.psi_smoothing)
        chance = (len(counts[0]) - 1) * (1 / sum(counts[0]) + 1 / sum(counts[1]))
        severity, limit = Severity.ERROR, self.limits.psi_major
        if index < limit + chance:
            severity, limit = Severity.WARNING, self.limits.psi_moderate
        if index < limit + chance:
            return
        yield DriftFinding(
            kind="distribution",
            field=self.now.field,
            severity=severity,
            message=f"{self.now.field} is distributed otherwise: the population stability index is {index:.3g}, of "
            f"which chance explains {chance:.2g}; the limit is {limit:g}",
            observed=index,
            expected=limit + chance,
        )

    def _bins(self) -> tuple[list[int], list[int]] | None:
        now, then = self.now, self.then
        if now.values is not None and then.values is not None:
            names = list(then.values)
            other = sum(count for value, count in now.values.items() if value not in then.values)
            return [*(now.values.get(name, 0) for name in names), other], [*then.values.values(), 0]
        if then.bins and len(now.bins) == len(then.bins) and now.edges == then.edges:
            return list(now.bins), list(then.bins)
        return None

    def quantiles(self) -> Iterator[DriftFinding]:
        now, then = self.now.quantiles, self.then.quantiles
        if not now or not then or min(sum(self.now.bins), sum(self.then.bins)) < self.limits.fewest:
            return
        spread = then["0.95"] - then["0.05"]
        for level in _LEVELS:
            moved = now[level] - then[level]
            if moved == 0 or abs(moved) < self.limits.quantile * spread:
                continue
            # A quantile is a value of a row, so it is in the facts and not in the text.
            by = f"moved by {abs(moved) / spread:.2g} of its usual range" if spread else "moved, it was always the same"
            yield DriftFinding(
                kind="quantile",
                field=self.now.field,
                severity=Severity.WARNING,
                rule=level,
                message=f"the {float(level):.0%} quantile of {self.now.field} {by}",
                observed=now[level],
                expected=then[level],
            )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"

"""Where baselines of drift are kept, and since when each drift is seen."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote

from databox_contracts.drift import DriftKey, Sighting
from databox_contracts.errors import BaselineError
from databox_contracts.profiles import Baseline

_LONGEST_NAME: Final = 120


class BaselineStore(Protocol):
    """Keeps one pinned baseline for each dataset of a contract, and what was seen to drift from it."""

    def get(self, contract: str, dataset: str) -> Baseline | None:
        """The pinned baseline, None where there is none yet. Raises `BaselineError` where it cannot be read."""
        ...

    def put(self, baseline: Baseline, *, replacing: Baseline | None) -> Baseline:
        """Pin it in place of `replacing` (None: where there is none) and return what is pinned now.

        Where another process pinned one meanwhile, that stays and is returned.
        """
        ...

    def see(
        self, baseline: str, contract: str, dataset: str, keys: Sequence[DriftKey], *, at: str
    ) -> Mapping[str, Sighting]:
        """Note that a sampling at that time (ISO 8601, UTC) saw these drifts from the baseline of that id.

        Returns when each was seen, this time included, by the text of its key. A sampling that is noted again, or one
        older than the last that is noted, does not count once more.
        """
        ...

    def forget_values(self, contract: str, dataset: str, fields: Sequence[str]) -> None:
        """Remove the values of fields that are masked from now on from all that was seen; times and counts stay."""
        ...


def sighted(known: Mapping[str, Sighting], keys: Sequence[DriftKey], at: str) -> dict[str, Sighting]:
    """What is known of all drifts after a sampling at that time; the texts of the keys are in ascending order."""
    after = dict(known)
    for key in keys:
        before = after.get(key.text)
        if before is None:
            after[key.text] = Sighting(first_seen=at, last_seen=at, times=1)
        elif at > before.last_seen:
            after[key.text] = Sighting(first_seen=before.first_seen, last_seen=at, times=before.times + 1)
    return dict(sorted(after.items()))


def without_values(known: Mapping[str, Sighting], fields: Sequence[str]) -> dict[str, Sighting]:
    """The same without the values of those fields: what was seen of several is one from the first to the last time."""
    kept: dict[str, Sighting] = {}
    for text, seen in known.items():
        kind, field, rule, value = json.loads(text)
        if field in fields and value is not None:
            text = DriftKey(kind=kind, field=field, rule=rule).text
        one = kept.get(text, seen)
        kept[text] = Sighting(
            first_seen=min(one.first_seen, seen.first_seen),
            last_seen=max(one.last_seen, seen.last_seen),
            times=max(one.times, seen.times),
        )
    return dict(sorted(kept.items()))


class DirectoryBaselineStore:
    """A `BaselineStore` of JSON files in a directory of a local file system, safe for several processes.

    Below it is a directory for each contract and dataset with `baseline.json` and a file `seen-<baseline>.json`. They
    hold values of fields that are not masked. Every file is replaced by one rename.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def get(self, contract: str, dataset: str) -> Baseline | None:
        """As `BaselineStore.get`."""
        file = self._home(contract, dataset) / "baseline.json"
        try:
            text = file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise _unusable(file, error) from error
        try:
            return Baseline.from_json(text)
        except BaselineError as error:
            raise BaselineError(f"{file}: {error.message}", hint=error.hint) from error

    def put(self, baseline: Baseline, *, replacing: Baseline | None) -> Baseline:
        """As `BaselineStore.put`."""
        with self._locked(baseline.contract, baseline.dataset) as home:
            pinned = self._readable(baseline.contract, baseline.dataset)
            if pinned is not None and (replacing is None or _mark(pinned) != _mark(replacing)):
                return pinned
            _write(home / "baseline.json", baseline.to_json())
        return baseline

    def _readable(self, contract: str, dataset: str) -> Baseline | None:
        try:
            return self.get(contract, dataset)
        except BaselineError:
            # Nobody can compare with it, so the one that is put takes its place.
            return None

    def see(
        self, baseline: str, contract: str, dataset: str, keys: Sequence[DriftKey], *, at: str
    ) -> Mapping[str, Sighting]:
        """As `BaselineStore.see`."""
        with self._locked(contract, dataset) as home:
            file = home / f"seen-{baseline}.json"
            known = _sightings(file)
            after = sighted(known, keys, at)
            if after != known:
                _write_sightings(file, after)
        return {key.text: after[key.text] for key in keys}

    def forget_values(self, contract: str, dataset: str, fields: Sequence[str]) -> None:
        """As `BaselineStore.forget_values`."""
        with self._locked(contract, dataset) as home:
            for file in sorted(home.glob("seen-*.json")):
                _write_sightings(file, without_values(_sightings(file), fields))

    def _home(self, contract: str, dataset: str) -> Path:
        return self.path / _safe(contract) / _safe(dataset)

    @contextmanager
    def _locked(self, contract: str, dataset: str) -> Iterator[Path]:
        home = self._home(contract, dataset)
        try:
            home.mkdir(parents=True, exist_ok=True)
            with open(home / "lock", "a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield home
        except OSError as error:
            raise _unusable(home, error) from error


def _safe(name: str) -> str:
    """A name as one part of a path: no two names share one."""
    quoted = quote(name, safe=" ") or "%"
    if quoted.startswith("."):
        quoted = f"%2E{quoted[1:]}"
    if len(quoted) <= _LONGEST_NAME:
        return quoted
    return f"{quoted[:80]}%-{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def _mark(baseline: Baseline) -> tuple[str, int]:
    return baseline.id, baseline.revision


def _sightings(file: Path) -> dict[str, Sighting]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {text: Sighting(**seen) for text, seen in found.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError) as error:
        raise _unusable(file, error) from error


def _write_sightings(file: Path, known: Mapping[str, Sighting]) -> None:
    _write(file, json.dumps({text: asdict(seen) for text, seen in known.items()}, ensure_ascii=False, indent=1))


def _write(file: Path, text: str) -> None:
    partial = file.with_name(f"{file.name}.part")
    with open(partial, "w", encoding="utf-8") as writing:
        writing.write(text)
        writing.flush()
        os.fsync(writing.fileno())
    os.replace(partial, file)


def _unusable(path: Path, error: Exception) -> BaselineError:
    reason = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
    return BaselineError(f"cannot use {path}: {reason}", hint="Make it readable and writable, or remove it.")

"""Directories of held rows beside a table: which of them a publish replaces, and how a replay puts what stays there."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from databox_contracts.spark.home_files import read_json, write_json

MANIFEST: Final = "_databox.json"
"""In every version and every batch of held rows: what it is. Spark does not read names that begin with `_`."""
PUBLISHED: Final = "_published"
"""In every version that readers have seen; its time is when that was."""
SUPERSEDED: Final = "_superseded"
"""In every batch of held rows whose publish a later one replaced; it says which."""


def batches(quarantine: Path) -> list[Path]:
    """All batches, oldest first."""
    return sorted(quarantine.glob("batch=*")) if quarantine.is_dir() else []


def drop_older(quarantine: Path, facts: Mapping[str, Any], *, keep: Path | None) -> None:
    """Remove what the same run held when it published the same rows before, a retry: it is held again."""
    for batch in batches(quarantine):
        older = read_json(batch / MANIFEST)
        if batch != keep and older.get("run_id") == facts["run_id"] and _replaces(facts, older):
            shutil.rmtree(batch, ignore_errors=True)


def mark_superseded(quarantine: Path, facts: Mapping[str, Any]) -> None:
    """Note at all batches whose publish the newest version replaced that it did; `facts` are that version's."""
    if "replaced" not in facts:
        return
    for batch in batches(quarantine):
        older, marker = read_json(batch / MANIFEST), batch / SUPERSEDED
        # Copies of rows, and rows that were held back from something else, are no part of what was replaced.
        ours = older.get("version") not in (None, facts["version"])
        if ours and _replaces(facts, older) and not marker.exists():
            write_json(marker, {"version": facts["version"]})


def complete_rest(rest: Path, replayed: Mapping[str, Mapping[str, Any] | None], quarantine: Path) -> dict[str, bool]:
    """Make what stays of replayed batches batches, each in its directory; says of each whether any of it stays."""
    rest.mkdir(exist_ok=True)
    for name, facts in replayed.items():
        if facts is not None:
            write_json(rest / name / MANIFEST, dict(facts))
            (rest / name / PUBLISHED).touch()
            marker = quarantine / name / SUPERSEDED
            if marker.exists():
                shutil.copy2(marker, rest / name / SUPERSEDED)
    return {name: facts is not None for name, facts in replayed.items()}


def put_in_place(rest: Path | None, batch: Path, staging: Path) -> None:
    """Replace a batch by its rest, which is gone from its own place if that was done before a kill."""
    if rest is not None and not rest.is_dir():
        return
    if batch.is_dir():
        # Out of sight at once: a batch that is half removed would be taken for a whole one.
        staging.mkdir(exist_ok=True)
        gone = staging / f"gone-{secrets.token_hex(4)}"
        os.rename(batch, gone)
        shutil.rmtree(gone, ignore_errors=True)
    if rest is not None:
        os.rename(rest, batch)


def _replaces(facts: Mapping[str, Any], older: Mapping[str, Any]) -> bool:
    """Whether a publish wrote again what an older one did: `replaced` lists partitions, and is None for the table."""
    now = facts.get("replaced")
    then = older.get("replaced") or ()
    return now is None or (bool(then) and all(partition in now for partition in then))

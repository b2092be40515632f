"""What a stream remembers beside Spark's checkpoint: which batch it is at, what is published, and its reports."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from databox_contracts.errors import PublicationError
from databox_contracts.spark.home_files import write_json
from databox_contracts.spark.stream_reports import BatchReport

HOME: Final = "databox"
KEEP_REPORTS: Final = 1000


@dataclass(frozen=True, slots=True)
class Progress:
    """The batch a stream is at: written down before the batch is published, and again, `done`, afterwards.

    `version` is the one it was to become, `before` the one that readers saw then. Times are the newest of the stream
    without and with this batch, in microseconds since 1970.
    """

    batch: int
    version: str | None
    before: str | None
    newest_before: int | None = None
    newest: int | None = None
    done: bool = False


class StreamJournal:
    """The files of one stream, in a directory of the checkpoint's; it is as old as the checkpoint, and goes with it."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint
        self.home = checkpoint / HOME

    def open(self, facts: Mapping[str, Any]) -> str:
        """The stream's id, a new one for a new checkpoint.

        `facts` are what must be the same on every start. Raises `PublicationError` where they are not, and where
        Spark's part of the checkpoint is not the one that this journal is about.
        """
        known = _read(self.home / "stream.json")
        planned = self._last_planned()
        if known is None:
            if planned is not None:
                raise PublicationError(
                    str(self.checkpoint),
                    "the checkpoint is that of a query without a contract",
                    hint="Name a checkpoint of its own for this stream.",
                )
            self.home.mkdir(parents=True, exist_ok=True)
            known = {"id": secrets.token_hex(8), **facts}
            write_json(self.home / "stream.json", known)
        for name, value in facts.items():
            if known.get(name) != value:
                raise PublicationError(
                    str(self.checkpoint),
                    f"the checkpoint was made with {name} {known.get(name)!r}, and now it is {value!r}",
                    hint="Start with a new checkpoint.",
                )
        progress = self.progress()
        if progress is not None and (planned is None or planned < progress.batch):
            raise PublicationError(
                str(self.checkpoint),
                f"the stream has come to batch {progress.batch}, and Spark's part of the checkpoint has not",
                hint="Remove the whole checkpoint to start again, or bring back the part that is missing.",
            )
        self.clear_failure()
        return str(known["id"])

    def progress(self) -> Progress | None:
        """Where the stream is, None before its first batch."""
        found = _read(self.home / "progress.json")
        return Progress(**found) if found is not None else None

    def intend(self, progress: Progress, report: BatchReport) -> None:
        """Write down what is about to be published."""
        folder = self.home / "reports"
        folder.mkdir(exist_ok=True)
        write_json(folder / f"{report.batch:012}.json", report.to_dict())
        write_json(self.home / "progress.json", asdict(progress))
        for old in sorted(folder.glob("*.json"))[:-KEEP_REPORTS]:
            old.unlink(missing_ok=True)

    def finish(self, progress: Progress) -> None:
        """Write down that it is published."""
        write_json(self.home / "progress.json", asdict(replace(progress, done=True)))

    def reports(self) -> list[BatchReport]:
        """The reports of the batches that are complete, the latest `KEEP_REPORTS` of them, in order."""
        progress = self.progress()
        if progress is None:
            return []
        last = progress.batch if progress.done else progress.batch - 1
        found = [_read(path) for path in sorted((self.home / "reports").glob("*.json"))]
        return [BatchReport.from_dict(one) for one in found if one is not None and one["batch"] <= last]

    def report(self, batch: int) -> BatchReport:
        """The report of a batch that was written down."""
        found = _read(self.home / "reports" / f"{batch:012}.json")
        assert found is not None
        return BatchReport.from_dict(found)

    # A batch may run in another process than the one that started the stream.

    def fail(self, message: str) -> None:
        """Leave word of why the stream stops."""
        write_json(self.home / "failure.json", {"message": message})

    def failure(self) -> str | None:
        """Why the stream stopped, None where it did not say."""
        found = _read(self.home / "failure.json")
        return str(found["message"]) if found is not None else None

    def clear_failure(self) -> None:
        """Forget why it stopped, since it starts again."""
        (self.home / "failure.json").unlink(missing_ok=True)

    def _last_planned(self) -> int | None:
        """The last batch that Spark has planned, None for a checkpoint that it has not begun."""
        folder = self.checkpoint / "offsets"
        found = [int(path.name) for path in folder.iterdir() if path.name.isdigit()] if folder.is_dir() else []
        return max(found, default=None)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise PublicationError(str(path), "the file is damaged", hint="Start with a new checkpoint.") from error
    return found if isinstance(found, dict) else None

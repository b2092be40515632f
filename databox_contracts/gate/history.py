"""The gate replayed over commits that were made: each break, and whether and how it was accepted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from databox_contracts.errors import DataboxError
from databox_contracts.gate.acknowledging import read_acknowledgements
from databox_contracts.gate.gating import GateReport, Terms, folder_in, judge_revisions
from databox_contracts.gate.git import Commit, Repository
from databox_contracts.gate.rendering import as_text
from databox_contracts.gate.revisions import Revision, blobs_of


@dataclass(frozen=True)
class Replayed:
    """One commit that changed contracts: what the gate says of it, or why it could not be judged."""

    commit: str
    subject: str
    report: GateReport | None
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The entry as plain data."""
        report = self.report.to_dict() if self.report is not None else None
        return {"commit": self.commit, "subject": self.subject, "error": self.error, "report": report}

    def lines(self) -> Iterator[str]:
        """The entry for a terminal; commits that break nobody are one line."""
        breaks = self.report is not None and (self.report.breaking or self.report.acknowledged or self.report.problems)
        state = "" if breaks else ": not judged" if self.report is None else ": breaks nobody"
        yield f"{self.commit[:12]} {self.subject}{state}"
        if self.error is not None:
            yield f"  {self.error}"
        if breaks and self.report is not None:
            yield from (f"  {line}" for line in as_text(self.report))


def replay(folder: Path, first: str, last: str, terms: Terms) -> Iterator[Replayed]:
    """The commits after `first` up to `last` that changed contract files, the oldest first, each against the last one.

    What a commit's message accepts counts as a pull request's text does, and notice is counted from the commit's day.
    A commit that cannot be judged is told, and the next one goes on.
    """
    repository = Repository.around(folder if folder.is_dir() else Path())
    inside = folder_in(repository, folder)
    before = repository.commit(first)
    commits = repository.commits(before, repository.commit(last))
    names = {commit: repository.files(commit, inside) for commit in (before, *(commit.name for commit in commits))}
    contents = blobs_of(repository, names.values())
    for commit in commits:
        if names[commit.name] != names[before]:
            revisions = [
                Revision(at[:12], {path: contents[name] for path, name in names[at].items()})
                for at in (before, commit.name)
            ]
            yield _judged(commit, revisions[0], revisions[1], terms)
        before = commit.name


def _judged(commit: Commit, before: Revision, after: Revision, terms: Terms) -> Replayed:
    subject = commit.message.partition("\n")[0]
    try:
        found = read_acknowledgements(None, None, commit.message)
        tokens = {**terms.acknowledgements.tokens, **dict.fromkeys(found.tokens, "the commit's message")}
        accepted = replace(terms.acknowledgements, tokens=tokens, claims=found.claims)
        then = replace(terms, today=commit.day, acknowledgements=accepted, warn_until=None)
        return Replayed(commit.name, subject, judge_revisions(before, after, then))
    except DataboxError as error:
        return Replayed(commit.name, subject, None, str(error))

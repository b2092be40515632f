"""Files of a git repository at a revision, read with a constant number of git processes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from databox_contracts.errors import DataboxError

_SECONDS: Final = 120
_SUFFIXES: Final = (".yaml", ".yml")


class GitError(DataboxError):
    """Git is not there, this is no repository, or it has no such revision."""


@dataclass(frozen=True)
class Commit:
    """A commit's full name, the day it was made, and its message."""

    name: str
    day: date
    message: str


@dataclass(frozen=True)
class Repository:
    """A working copy; `root` is its top folder."""

    root: Path

    @classmethod
    def around(cls, place: Path) -> Repository:
        """The repository that a folder lies in. Raises `GitError` where there is none."""
        if not place.is_dir():
            raise GitError(f"there is no folder {str(place)!r}", hint="Name a folder inside a git repository.")
        done = _git(place, ["rev-parse", "--show-toplevel"])
        if done.returncode != 0:
            # It may well be one that git refuses to look at, because it is somebody else's.
            reason = _said(done).removeprefix("fatal: ")
            raise GitError(f"{str(place)!r} is not in a git repository ({reason})", hint="Run the gate where it is.")
        return cls(Path(os.fsdecode(done.stdout).rstrip("\n")))

    def commit(self, revision: str) -> str:
        """The full name of the commit that a revision means. Raises `GitError` for one that is not there."""
        if revision.startswith("-"):
            raise GitError(f"{revision!r} is no revision", hint="Name a branch, a tag or a commit.")
        done = _git(self.root, ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"])
        if done.returncode != 0:
            hint = "Fetch it, or name a branch, a tag or a commit that is there."
            raise GitError(f"there is no revision {revision!r}", hint=self._shallow_hint() or hint)
        return done.stdout.decode().strip()

    def merge_base(self, base: str, head: str) -> str:
        """The commit where the two went apart. Raises `GitError` where git knows none, as in a shallow clone."""
        done = _git(self.root, ["merge-base", base, head])
        if done.returncode != 0:
            raise GitError(
                f"{base[:12]} and {head[:12]} have no common commit here",
                hint=self._shallow_hint() or "Name a base that this branch comes from.",
            )
        return done.stdout.decode().split("\n")[0]

    def files(self, commit: str, folder: str) -> dict[str, str]:
        """The names of the blobs of all YAML files below a folder of the repository, by their paths from its root."""
        command = ["ls-tree", "-r", "-z", "--full-tree", commit]
        done = _git(self.root, [*command, "--", folder] if folder else command)
        if done.returncode != 0:
            raise GitError(f"git cannot list {folder!r} at {commit[:12]}: {_said(done)}", hint="Check the revision.")
        found: dict[str, str] = {}
        for entry in done.stdout.split(b"\0"):
            about, _, path = entry.partition(b"\t")
            mode, _, rest = about.partition(b" ")
            # A link or another repository is no contract.
            if mode in (b"100644", b"100755"):
                name = os.fsdecode(path)
                if name.lower().endswith(_SUFFIXES) and not any(part.startswith(".") for part in name.split("/")):
                    found[name] = rest.partition(b" ")[2].decode()
        return dict(sorted(found.items()))

    def blobs(self, names: Iterable[str]) -> dict[str, bytes]:
        """The contents of blobs, by their names, all from one process."""
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return {}
        done = _git(self.root, ["cat-file", "--batch"], "\n".join(wanted).encode() + b"\n")
        if done.returncode != 0:
            raise GitError(f"git cannot read its files: {_said(done)}", hint="Check the repository with `git fsck`.")
        found: dict[str, bytes] = {}
        at, output = 0, done.stdout
        for name in wanted:
            end = output.index(b"\n", at)
            header = output[at:end].split(b" ")
            if len(header) != 3:
                raise GitError(
                    f"git does not have the file {name} here",
                    hint=self._shallow_hint() or "Fetch the whole repository, without a filter.",
                )
            size = int(header[2])
            found[name] = output[end + 1 : end + 1 + size]
            at = end + 1 + size + 1
        return found

    def commits(self, first: str, last: str) -> list[Commit]:
        """The commits after `first` up to `last`, the oldest first; of what was merged only the merge."""
        done = _git(self.root, ["log", "--first-parent", "--reverse", "-z", "--format=%H %cs %B", f"{first}..{last}"])
        if done.returncode != 0:
            raise GitError(f"git cannot tell the history {first[:12]}..{last[:12]}: {_said(done)}")
        entries = (entry.decode("utf-8", "replace").split(" ", 2) for entry in done.stdout.split(b"\0") if entry)
        return [Commit(name, date.fromisoformat(day), message) for name, day, message in entries]

    def _shallow_hint(self) -> str | None:
        done = _git(self.root, ["rev-parse", "--is-shallow-repository"])
        if done.stdout.strip() != b"true":
            return None
        return "This clone is shallow: fetch its whole history (`fetch-depth: 0`, or `git fetch --unshallow`)."


def _git(place: Path, arguments: Sequence[str], given: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    # Paths are data here, never patterns; what git says is not for translation; it may not ask anybody anything.
    environment = {**os.environ, "GIT_LITERAL_PATHSPECS": "1", "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    command = ["git", "-C", str(place), *arguments]
    try:
        return subprocess.run(
            command,
            input=given,
            stdin=None if given is not None else subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            env=environment,
            check=False,
        )
    except FileNotFoundError:
        raise GitError("git is not installed", hint="Install it; the gate compares revisions.") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git {arguments[0]} took more than {_SECONDS} s", hint="Try again.") from None


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    return done.stderr.decode("utf-8", "replace").strip().partition("\n")[0] or f"exit {done.returncode}"

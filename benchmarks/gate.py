"""How long `gate` takes over 1,000 contracts in git, by how many of them changed.

Each figure is the median of three runs of a process of its own, start included. The contracts are the examples of this
repository over and over, each with its own id.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lint import COUNT, ROUNDS, example_texts

CHANGED = (0, 10, 100)


def main() -> None:
    """Prints a line for each number of changed contracts."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "contracts")
        folder.mkdir()
        texts = example_texts()
        for number, text in enumerate(texts):
            folder.joinpath(f"c{number:04}.yaml").write_text(text)
        _git(place, "init", "-q", "-b", "main")
        _git(place, "add", "-A")
        _commit(place)
        _git(place, "checkout", "-q", "-b", "branch")
        for changed in CHANGED:
            for number in range(changed):
                text = texts[number].replace("required: true", "required: false", 1)
                folder.joinpath(f"c{number:04}.yaml").write_text(text)
            _git(place, "add", "-A")
            _commit(place)
            print(f"{COUNT} contracts, {changed} of them changed: gate {_seconds(place):.2f} s")


def _seconds(place: str) -> float:
    command = [sys.executable, "-m", "databox_contracts", "gate", "--base", "main"]
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        done = subprocess.run(command, cwd=place, stdout=subprocess.DEVNULL, check=False)
        taken.append(time.perf_counter() - start)
        if done.returncode == 2:
            raise SystemExit("the gate could not run")
    return statistics.median(taken)


def _commit(place: str) -> None:
    _git(
        place, "-c", "user.name=benchmark", "-c", "user.email=x@example.com", "commit", "-q", "--allow-empty", "-m", "x"
    )


def _git(place: str, *arguments: str) -> None:
    subprocess.run(["git", "-C", place, *arguments], check=True)


if __name__ == "__main__":
    main()

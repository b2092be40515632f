"""A registry on each database, with a clock that tests move."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from databox_contracts.registry.store import Registry


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, **length: float) -> None:
        self.now += timedelta(**length)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry(database_url: str, clock: Clock) -> Iterator[Registry]:
    with Registry.open(database_url, clock=clock, lease_length=timedelta(minutes=2)) as opened:
        yield opened


# Imports once and forks; the children wait until all are there.
FORKS = """
import json, os, sys
from datetime import UTC, datetime, timedelta
from databox_contracts.errors import DataboxError
from databox_contracts.notifications import EventKind, Failed, Notification, State
from databox_contracts.registry.store import Registry
from databox_contracts.rules import Severity
from databox_contracts.testing import build_contract, build_field
from databox_contracts.model import Consumer

url, count, arguments = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])

def say(**facts):
    os.write(1, (json.dumps(facts) + "\\n").encode())

def contract(version, *fields, **facts):
    built = [build_field(name, "string") for name in fields or ("a",)]
    return build_contract(*built, version=version, **{"id": "c", "status": "active", **facts})

def message(event, consumer="quant"):
    return Notification(consumer=consumer, contract="c", event=event, kind=EventKind.RUN, severity=Severity.ERROR,
        contact=f"mailto:{consumer}@example.com", title=event, occurred_at=datetime(2026, 3, 1, tzinfo=UTC))

def work(number):
    WORK

starting, gate = os.pipe()
children = []
for number in range(count):
    if (child := os.fork()) == 0:
        os.close(gate)
        os.read(starting, 1)
        status = 1
        try:
            work(number)
            status = 0
        finally:
            if status:
                import traceback
                traceback.print_exc()
            os._exit(status)
    children.append(child)
os.close(gate)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""

Forked = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def forked(database_url: str) -> Forked:
    """Runs a piece of code in several processes at once on the registry `url`; what they `say`, in order of time.

    `number` counts the processes, `arguments` are given along.
    """

    def run(code: str, count: int, **arguments: Any) -> list[dict[str, Any]]:
        work = FORKS.replace("    WORK", "".join(f"    {line}\n" for line in code.strip().splitlines()))
        done = subprocess.run(
            [sys.executable, "-c", work, database_url, str(count), json.dumps(arguments)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run

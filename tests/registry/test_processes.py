"""Several processes at once, and processes that are killed: one winner, all or nothing, nobody told twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from databox_contracts.notifications import State
from databox_contracts.registry.store import Registry


def test_eight_processes_publish_the_same_and_different_versions(registry: Registry, forked: Any) -> None:
    code = """
with Registry.open(url) as registry:
    for version in range(1, 5):
        for given in (contract(f"{version}.0.0", f"field_{number}"), contract(f"{version}.0.{number + 1}")):
            told = [message(f"{given.version} by {number}")]
            try:
                done = registry.publish(given, by=f"p{number}", notifications=told)
                say(version=given.version, outcome=str(done.outcome), digest=done.stored.digest, by=number)
            except DataboxError as error:
                say(version=given.version, outcome=type(error).__name__, published=error.published, by=number)
"""
    said = forked(code, 8)
    stored = {one.version: one for one in registry.versions("c")}
    assert len(stored) == 4 * 9
    for version in range(1, 5):
        common = [one for one in said if one["version"] == f"{version}.0.0"]
        assert sorted(one["outcome"] for one in common) == ["ContractConflictError"] * 7 + ["published"]
        (winner,) = (one for one in common if one["outcome"] == "published")
        kept = stored[f"{version}.0.0"]
        assert (kept.digest, kept.published_by) == (winner["digest"], f"p{winner['by']}")
        assert {one["published"] for one in common if "published" in one} == {winner["digest"]}
        for number in range(8):
            assert stored[f"{version}.0.{number + 1}"].published_by == f"p{number}"
    # Only who won has somebody told.
    assert registry.outbox.counts()[State.WAITING] == 4 * 9
    told = [one.event for one, _ in registry.outbox.waiting()]
    assert len(set(told)) == 4 * 9
    assert {event.split()[0] for event in told} == set(stored)


def test_eight_processes_publish_the_same_folder(registry: Registry, forked: Any) -> None:
    code = """
with Registry.open(url) as registry:
    order = [contract("1.0.0", id=f"c{one}") for one in range(20)]
    done = registry.publish_all(order if number % 2 else order[::-1], by=f"p{number}")
    say(new=sorted(one.stored.contract_id for one in done if one.outcome == "published"))
"""
    said = forked(code, 8)
    assert sorted(len(one["new"]) for one in said) == [0] * 7 + [20]
    assert len(registry.contracts()) == 20


DRAIN = """
with Registry.open(url) as registry:
    while lease := registry.outbox.lease(f"w{number}", limit=arguments["limit"]):
        say(began=lease.token, lane=lease.consumer, by=number)
        for item in lease.items:
            say(sent=item.notification.event, lane=lease.consumer, by=number)
        say(ended=lease.token, lane=lease.consumer, by=number)
        if not registry.outbox.settle(lease, sent=[item.notification.id for item in lease.items]):
            raise AssertionError("lost the lease")
"""

FILL = """
with Registry.open(url) as registry:
    for start in range(0, arguments["messages"], 1000):
        several = range(start, min(start + 1000, arguments["messages"]))
        registry.outbox.enqueue([message(f"{one:06}", f"consumer {one % arguments['consumers']}") for one in several])
"""


@pytest.mark.parametrize(
    ("messages", "consumers", "workers"),
    [
        (600, 20, 2),
        pytest.param(10_000, 200, 2, marks=pytest.mark.full),
        pytest.param(4_000, 5, 8, marks=pytest.mark.full),
    ],
)
def test_workers_drain_the_outbox_in_order_and_send_nothing_twice(
    registry: Registry, forked: Any, messages: int, consumers: int, workers: int
) -> None:
    forked(FILL, 1, messages=messages, consumers=consumers)
    said = forked(DRAIN, workers, limit=7)
    sent: dict[str, list[str]] = {}
    held: dict[str, str] = {}
    for one in said:
        if "began" in one:
            assert one["lane"] not in held
            held[one["lane"]] = one["began"]
        elif "ended" in one:
            assert held.pop(one["lane"]) == one["ended"]
        else:
            sent.setdefault(one["lane"], []).append(one["sent"])
    assert len(sent) == consumers
    for number in range(consumers):
        assert sent[f"consumer {number}"] == [f"{one:06}" for one in range(number, messages, consumers)]
    assert registry.outbox.counts() == {State.WAITING: 0, State.SENT: messages, State.DEAD: 0}


def test_messages_that_come_while_others_are_sent_are_sent_too(registry: Registry, forked: Any) -> None:
    code = """
with Registry.open(url) as registry:
    if number < 2:
        for one in range(40):
            registry.outbox.enqueue([message(f"{number}-{one:03}", f"consumer {one % 3}")])
        say(filled=number)
    else:
        idle = 0
        while idle < 80:
            lease = registry.outbox.lease(f"w{number}", limit=5)
            if lease is None:
                idle += 1
                import time; time.sleep(0.005)
                continue
            idle = 0
            for item in lease.items:
                say(sent=item.notification.event, lane=lease.consumer)
            registry.outbox.settle(lease, sent=[item.notification.id for item in lease.items])
"""
    said = forked(code, 4)
    events = [one["sent"] for one in said if "sent" in one]
    assert sorted(events) == sorted(f"{number}-{one:03}" for number in range(2) for one in range(40))
    for lane in range(3):
        for number in range(2):
            own = [
                one["sent"]
                for one in said
                if one.get("lane") == f"consumer {lane}" and one["sent"].startswith(f"{number}-")
            ]
            assert own == sorted(own)
    assert registry.outbox.counts()[State.WAITING] == 0


def test_a_position_is_moved_by_one_reader_at_a_time(registry: Registry, forked: Any) -> None:
    code = """
with Registry.open(url) as registry:
    for turn in range(12):
        while True:
            at = registry.position("runs")
            after = (at or 0) + 1
            # Nobody else can make this of it.
            if registry.advance("runs", after, replacing=at, notifications=[message(f"{after} by {number}")]):
                break
"""
    # Two that move it to the same value both succeed, by intention: so they have to move by different lengths.
    forked(code.replace("(at or 0) + 1", "(at or 0) + 1 + number / 10"), 4)
    told = [one.event for one, _ in registry.outbox.waiting()]
    assert len(told) == 48
    assert registry.position("runs") == pytest.approx(48 + 12 * (0.1 + 0.2 + 0.3))


KILLED = """
import sys
from datetime import UTC, datetime
from databox_contracts.notifications import EventKind, Notification
from databox_contracts.registry.store import Registry
from databox_contracts.rules import Severity
from databox_contracts.testing import build_contract, build_field

registry = Registry.open(sys.argv[1])
print("ready", flush=True)
turn = int(sys.argv[2])
while True:
    turn += 1
    several, told = [], []
    for n in range(30):
        facts = dict(id=f"c{n}", version=f"{turn}.0.0", status="active")
        several.append(build_contract(build_field("a", "int"), **facts))
        told.append(Notification(consumer=f"x{n}", contract=f"c{n}", event=str(turn), kind=EventKind.VERSION,
            severity=Severity.ERROR, contact="log:", title="t", occurred_at=datetime(2026, 3, 1, tzinfo=UTC)))
    registry.publish_all(several, by="killed", notifications=told)
    registry.advance("turn", turn)
    print("turned", flush=True)
"""


STATE = """
SELECT (SELECT count(*) FROM databox_versions) AS published, (SELECT count(*) FROM databox_outbox) AS told,
    (SELECT count(*) FROM databox_contracts) AS contracts,
    (SELECT count(DISTINCT version) FROM databox_versions) AS versions,
    (SELECT value FROM databox_positions WHERE name = 'turn') AS position
"""


@pytest.mark.parametrize("rounds", [2, pytest.param(25, marks=pytest.mark.full)])
def test_a_process_that_is_killed_while_it_publishes_leaves_all_or_nothing(
    registry: Registry, database_url: str, rounds: int
) -> None:
    chance = random.Random(6)
    turn = 0
    for _ in range(rounds):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, database_url, str(turn)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if turn == 0:
            assert process.stdout.readline() == "turned\n"
        time.sleep(chance.uniform(0.05, 0.4))
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(timeout=30) == -signal.SIGKILL
        process.stdout.close()
        # One statement sees one state: the server may only now be doing what the process asked for last.
        row = registry._database.read(lambda connection: connection.exec_driver_sql(STATE).one())
        turn = row.published // 30
        assert tuple(row)[:4] == (30 * turn, 30 * turn, 30 if turn else 0, turn)
        assert row.position in (None, str(turn), str(turn - 1))
    assert turn > 0


FORKED_LATER = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
from databox_contracts.registry.store import Registry
from databox_contracts.testing import build_contract, build_field

registry = Registry.open(sys.argv[1])

def publish(number):
    registry.publish(build_contract(build_field("a", "int"), id=f"c{number}", version="1.0.0", status="active"), by="x")

with ThreadPoolExecutor(6) as pool:
    list(pool.map(publish, range(12)))
children = []
for number in range(100, 103):
    if (child := os.fork()) == 0:
        status = 1
        try:
            publish(number)
            assert len(registry.contracts()) >= 13
            status = 0
        finally:
            os._exit(status)
    children.append(child)
publish(200)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
publish(201)
print(codes, len(registry.contracts()))
"""


def test_a_registry_is_shared_by_threads_and_outlives_a_fork(registry: Registry, database_url: str) -> None:
    command = [sys.executable, "-c", FORKED_LATER, database_url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("[0, 0, 0] 17\n", "")
    assert len(registry.contracts()) == 17

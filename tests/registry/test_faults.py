"""A database that is locked, stopped and started again, or full of somebody's bad will."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect

from databox_contracts.errors import RegistryError, RegistryUnavailableError
from databox_contracts.model import Consumer
from databox_contracts.notifications import EventKind, Failed, Notification, State
from databox_contracts.registry.addresses import read_address
from databox_contracts.registry.database import Database
from databox_contracts.registry.deletion_plans import StoredPlan, StoredStep
from databox_contracts.registry.records import Origin, Outcome, StoredApproval
from databox_contracts.registry.schema import METADATA
from databox_contracts.registry.store import Registry
from databox_contracts.registry.tokens import Scope
from databox_contracts.rules import Severity
from databox_contracts.testing import build_contract, build_field

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

HOLD = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute(sys.argv[2])
print("locked", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
print("free", flush=True)
"""


def contract(version: str = "1.0.0", **facts: Any) -> Any:
    return build_contract(build_field("a", "int"), version=version, **{"id": "c", "status": "active", **facts})


def message(event: str, **facts: Any) -> Notification:
    return Notification(
        **{
            "consumer": "quant",
            "contract": "c",
            "event": event,
            "kind": EventKind.RUN,
            "severity": Severity.ERROR,
            "contact": "mailto:q@example.com",
            "title": event,
            "occurred_at": NOW,
            **facts,
        }
    )


@contextmanager
def locking(file: Path, statement: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(file), statement], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_file_that_another_process_holds_locked_is_waited_for_and_then_given_up(tmp_path: Path) -> None:
    file = tmp_path / "r.db"
    with Registry.open(file, patience=0.3) as registry, Registry.open(file, patience=60) as patient:
        registry.publish(contract(), by="ci")
        with locking(file, "BEGIN IMMEDIATE") as process:
            with pytest.raises(RegistryUnavailableError, match=r"r\.db does not answer: database is locked") as error:
                registry.publish(contract("2.0.0"), by="ci")
            assert "Another process holds its file locked" in str(error.value)
            # Who only reads does not wait.
            assert [one.version for one in registry.versions("c")] == ["1.0.0"]
            assert registry.outbox.lease("w") is None
            assert process.stdin is not None
            threading.Timer(0.5, lambda: (process.stdin.write("\n"), process.stdin.flush())).start()  # type: ignore[union-attr]
            assert patient.publish(contract("2.0.0"), by="ci").outcome is Outcome.PUBLISHED
        # A lock dies with its process.
        with locking(file, "BEGIN EXCLUSIVE"):
            pass
        assert registry.publish(contract("3.0.0"), by="ci").outcome is Outcome.PUBLISHED


def test_a_registry_is_opened_while_its_file_is_locked(tmp_path: Path) -> None:
    file = tmp_path / "r.db"
    Registry.open(file).close()
    with locking(file, "BEGIN IMMEDIATE"), Registry.open(file, patience=0.3) as registry:
        assert registry.contracts() == []


def test_a_table_that_another_session_holds_locked_is_waited_for_and_then_given_up(postgresql: Any) -> None:
    import psycopg

    url = postgresql.new_database()
    with Registry.open(url, patience=0.3) as registry, Registry.open(url, patience=60) as patient:
        registry.check()
        with psycopg.connect(url) as other:
            other.execute("LOCK TABLE databox_contracts")
            with pytest.raises(RegistryUnavailableError, match="canceling statement due to lock timeout"):
                registry.publish(contract(), by="ci")
            timer = threading.Timer(0.5, other.rollback)
            timer.start()
            assert patient.publish(contract(), by="ci").outcome is Outcome.PUBLISHED
            timer.join()


def test_a_session_that_the_server_ends_is_begun_again(postgresql: Any) -> None:
    import psycopg

    url = postgresql.new_database()
    with Registry.open(url) as registry, psycopg.connect(url, autocommit=True) as other:
        registry.publish(contract(), by="ci")
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND datname = current_database()"
        )
        assert registry.publish(contract("2.0.0"), by="ci").outcome is Outcome.PUBLISHED


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "r.db"
    Registry.open(file).close()
    connection = sqlite3.connect(file)
    connection.execute("DROP TABLE databox_outbox")
    connection.close()
    with Registry.open(file) as registry, pytest.raises(RegistryError, match=r"r\.db cannot be used: no such table"):
        registry.outbox.enqueue([message("1")])


def test_a_server_is_stopped_and_started_between_calls_and_during_them(stoppable_postgresql: Any) -> None:
    url = stoppable_postgresql.new_database()
    with Registry.open(url) as registry, Registry.open(url, patience=0.5) as hasty:
        registry.publish(contract("1.0.0"), by="ci")
        hasty.check()
        stoppable_postgresql.stop()
        with pytest.raises(RegistryUnavailableError, match="See that the server runs"):
            hasty.publish(contract("2.0.0"), by="ci")
        with pytest.raises(RegistryUnavailableError):
            Registry.open(url, patience=0.2)
        stoppable_postgresql.start()
        # The pool's connections are dead: nobody has to know.
        assert [one.version for one in hasty.versions("c")] == ["1.0.0"]
        assert registry.publish(contract("2.0.0"), by="ci").outcome is Outcome.PUBLISHED

        published: list[str] = []
        leases: list[list[str]] = []
        failures: list[BaseException] = []
        done = threading.Event()

        def publish() -> None:
            try:
                number = 2
                while not done.is_set():
                    number += 1
                    version = f"{number}.0.0"
                    result = registry.publish(contract(version), by="ci", notifications=[message(version)])
                    assert result.outcome is Outcome.PUBLISHED
                    published.append(version)
            except BaseException as error:
                failures.append(error)

        def send() -> None:
            try:
                while not done.is_set():
                    if (lease := registry.outbox.lease("w", limit=3)) is not None:
                        leases.append([one.notification.event for one in lease.items])
                        registry.outbox.settle(lease, sent=[one.notification.id for one in lease.items])
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=publish), threading.Thread(target=send)]
        for thread in threads:
            thread.start()
        for mode in ("fast", "immediate", "fast"):
            had = len(published)
            deadline = time.monotonic() + 60
            while len(published) < had + 3 and time.monotonic() < deadline and not failures:
                time.sleep(0.01)
            stoppable_postgresql.stop(mode)
            stoppable_postgresql.start()
        done.set()
        for thread in threads:
            thread.join(timeout=90)
        assert failures == []
        assert [one.version for one in registry.versions("c")] == ["1.0.0", "2.0.0", *published]
        while (lease := registry.outbox.lease("w")) is not None:
            leases.append([one.notification.event for one in lease.items])
            registry.outbox.settle(lease, sent=[one.notification.id for one in lease.items])
        assert registry.outbox.counts() == {State.WAITING: 0, State.SENT: len(published), State.DEAD: 0}
        assert list(dict.fromkeys(event for events in leases for event in events)) == published
        assert len(published) >= 9


def test_a_wrong_password_is_said_at_once_and_not_shown(stoppable_postgresql: Any) -> None:
    import psycopg

    url = stoppable_postgresql.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE ann LOGIN PASSWORD 'right-w0rd'")
        connection.execute("GRANT ALL ON SCHEMA test_1 TO ann")
    rules = stoppable_postgresql.server.pgdata / "pg_hba.conf"
    rules.write_text("local all all scram-sha-256\n")
    stoppable_postgresql.stop()
    stoppable_postgresql.start()
    # It would wait for a server that is away.
    for place, words in (
        ("ann:hunter2@/postgres", "password authentication failed"),
        ("ann:right-w0rd@/nowhere", "does not exist"),
    ):
        with pytest.raises(RegistryError, match=f"cannot be used: .*{words}") as error:
            Registry.open(url.replace("postgres:@/postgres", place), patience=100_000)
        assert "hunter2" not in str(error.value)
        assert "right-w0rd" not in str(error.value)
    with Registry.open(url.replace("postgres:@/postgres", "ann:right-w0rd@/postgres")) as registry:
        registry.publish(contract(), by="ci")
        assert "right-w0rd" not in registry.location
        assert "right-w0rd" not in repr(vars(registry)) + repr(registry.check())


def test_names_may_be_as_long_as_they_are_allowed_to_be(registry: Registry) -> None:
    chance = random.Random(1)
    one, two, three = ("".join(chance.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=800)) for _ in range(3))
    registry.publish(contract(one, id=two), by=three, notifications=[message(one, consumer=two, contract=three)])
    registry.register(one, Consumer(name=two), by=three)
    registry.baselines.see(one, two, three, [], at="2026-03-01")
    assert registry.get(two, one).version == one


def test_a_call_that_meets_a_stopped_server_waits_for_it(stoppable_postgresql: Any) -> None:
    url = stoppable_postgresql.new_database()
    with Registry.open(url, patience=60) as registry:
        stoppable_postgresql.stop()
        starting = threading.Timer(0.5, stoppable_postgresql.start)
        starting.start()
        assert registry.publish(contract(), by="ci").outcome is Outcome.PUBLISHED
        starting.join()


@pytest.mark.parametrize("commits", [0, 1], ids=["before the commit", "after the commit"])
def test_an_answer_that_is_lost_with_the_connection_changes_nothing(
    database_url: str, monkeypatch: pytest.MonkeyPatch, commits: int
) -> None:
    """The transaction is repeated although it was committed, and says what it said the first time."""
    from sqlalchemy.exc import OperationalError

    if "sqlite" in database_url or database_url.endswith(".db"):
        lost: Exception = sqlite3.OperationalError("database is locked")
    else:
        import psycopg

        lost = psycopg.OperationalError("the connection is lost")
    original = Database._run
    failed: list[str] = []

    def run(self: Database, work: Any, *, writes: bool) -> Any:
        if not writes or not armed:
            return original(self, work, writes=writes)
        armed.clear()
        failed.append("once")

        def first(connection: Any) -> Any:
            work(connection)
            if commits:
                connection.commit()
            raise OperationalError("COMMIT", None, lost)

        calls = iter([first])
        return original(self, lambda connection: next(calls, work)(connection), writes=writes)

    armed = [True]
    with Registry.open(database_url) as registry:
        monkeypatch.setattr(Database, "_run", run)
        results: list[Any] = []
        for call in (
            lambda: registry.publish(contract(), by="ci", notifications=[message("1"), message("2")]),
            lambda: registry.register("c", Consumer(name="q"), by="ci").consumer.name,
            lambda: registry.outbox.lease("w", limit=1),
            lambda: registry.advance("p", 1, replacing=None, notifications=[message("3")]),
            lambda: registry.tokens.issue("t", Scope.READ, by="ci")[:4],
            lambda: registry.deprecate("c", "1.0.0", by="ci"),
        ):
            armed[:] = [True]
            results.append(call())
        assert len(failed) == 6
        publication, name, lease, advanced, token, deprecated = results
        assert (publication.outcome, name, advanced, token) == (Outcome.PUBLISHED, "q", True, "dbx_")
        assert [one.notification for one in lease.items] == [message("1")]
        assert registry.outbox.settle(lease, sent=[message("1").id]) is True
        assert deprecated.status == "deprecated"
        assert registry.outbox.counts() == {State.WAITING: 2, State.SENT: 1, State.DEAD: 0}
        assert [one.action for one in registry.audit()] == ["publish", "register q", "issue token", "deprecate"]


NASTY = (
    "'; DROP TABLE databox_versions; --",
    "x' OR '1'='1",
    '"; DELETE FROM databox_outbox; --',
    "%s %(id)s :id {text} $1 ? \\",
    "Robert'); DROP TABLE databox_contracts;--",
    "line\nbreak\r\n\theader: x",
    "\u202eü\N{SNOWMAN}",
)


@pytest.mark.parametrize("text", NASTY)
def test_a_text_is_a_text_and_no_statement(registry: Registry, text: str) -> None:
    registry.publish(build_contract(build_field("a", "int"), id="c2", status="active"), by="ci")
    consumer = Consumer(name=text, owner=text, contact=text, purpose=text, justification=text)
    given = build_contract(build_field("a", "int"), id=f"a{text}a", version=f"a{text}a", status="active", name=text)
    done = registry.publish(given, by=text, notifications=[message(text, consumer=text, contact=text, title=text)])
    id_, version = done.stored.contract_id, done.stored.version
    assert (id_, done.stored.published_by) == (f"a{text}a", text)
    assert registry.get(id_, version) == registry.get(id_) == done.stored
    assert registry.register(id_, consumer, by=text, origin=Origin.FILE).consumer == consumer
    approval = StoredApproval(
        contract_id=id_, consumer=text, approver=text, at=NOW, dataset=text, version=text, purpose=text, note=text
    )
    assert registry.approve(approval) == approval
    assert registry.approvals(id_) == [approval]
    assert registry.advance(text, {text: text})
    assert registry.position(text) == {text: text}
    assert registry.deprecate(id_, version, by=text).status == "deprecated"
    lease = registry.outbox.lease(text)
    assert lease is not None
    assert lease.items[0].notification.title == text
    registry.outbox.settle(lease, failed={lease.items[0].notification.id: Failed(error=text, retry_at=None)})
    assert registry.outbox.retry([text]) == 0
    assert [error for _, error in registry.outbox.dead()] == [text]
    registry.tokens.issue(text, Scope.READ, by=text)
    assert registry.tokens.revoke(text, by=text)
    plan = StoredPlan(
        id=text, contract_id=id_, field=text, made_at=NOW, made_by=text, facts={text: text},
        steps=(StoredStep(number=1, title=text),),
    )  # fmt: skip
    registry.plans.save(plan)
    assert registry.plans.tick(text, 1, by=text, note=text).is_done
    assert registry.baselines.get(text, text) is None
    assert registry.remove_consumer(id_, text, by=text, origin=Origin.FILE)
    assert {one.who for one in registry.audit(id_)} == {text}
    assert [one.contract_id for one in registry.contracts()] == sorted([id_, "c2"])


def test_no_secret_is_in_the_database_or_in_an_error(database_url: str, tmp_path: Path, capfd: Any) -> None:
    marks = ["hunter2", "T0KENPART", "dbx_"]
    told: list[str] = []
    with Registry.open(database_url) as registry:
        token = registry.tokens.issue("ci", Scope.ADMIN, by="ann")
        for contact in (
            "mailto://u:hunter2@example.com",
            "https://hooks.slack.com/services/T0/B0/T0KENPART",
            "https://example.com/?password=hunter2",
        ):
            consumer = Consumer(name="quant", contact=contact)
            for call in (
                lambda c=consumer: registry.register("c", c, by="ann"),
                lambda c=consumer: registry.publish(contract(consumers=(c,)), by="ann"),
                lambda c=contact: registry.outbox.enqueue([message("1", contact=c)]),
                lambda c=contact: registry.advance("p", 1, notifications=[message("1", contact=c)]),
            ):
                with pytest.raises(RegistryError) as error:
                    call()
                told.append(str(error.value))
        registry.register("c", Consumer(name="q", contact="slack://${T0}/${T1}/${T2}"), by="ann")
        registry.publish(contract(), by="ann")
        assert registry.tokens.recognise(token) is not None
    dump = dumped(database_url)
    # All that is in it is seen: the consumer's contact is there as it was declared.
    assert "slack://${T0}/${T1}/${T2}" in dump
    out, err = capfd.readouterr()
    for mark in [*marks, token]:
        assert mark not in dump
        assert mark not in "".join(told) + out + err
    for file in tmp_path.glob("registry.db*"):
        assert not [mark for mark in [*marks, token] if mark.encode() in file.read_bytes()]


def test_values_that_are_masked_from_now_on_leave_the_file(tmp_path: Path) -> None:
    from databox_contracts.drift import DriftKey

    file = tmp_path / "r.db"
    with Registry.open(file) as registry:
        key = DriftKey(kind="new_value", field="email", value='"marked-value"')
        registry.baselines.see("b", "c", "t", [key], at="2026-03-01")
        registry.baselines.forget_values("c", "t", ["email"])
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    for one in tmp_path.iterdir():
        assert b"marked-value" not in one.read_bytes()


def dumped(database_url: str) -> str:
    """Everything in all tables."""
    database = Database(read_address(database_url))
    names = inspect(database.engine).get_table_names()
    assert sorted(names) == sorted(METADATA.tables)
    rows = {
        name: [
            list(map(str, row))
            for row in database.read(lambda c, n=name: c.exec_driver_sql(f"SELECT * FROM {n}").all())
        ]
        for name in names
    }
    database.close()
    return json.dumps(rows, ensure_ascii=False)

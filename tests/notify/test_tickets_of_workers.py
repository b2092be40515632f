"""Several workers, one registry, one desk: one open ticket for one contract, rule and value."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from databox_contracts.notifications import State
from databox_contracts.notify import Channels, Delivery, Settings
from databox_contracts.registry.store import Registry


class Desk:
    """Numbers its tickets from several connections at once, and waits for `together` of them before it answers."""

    def __init__(self, httpserver, together=1):
        self.tickets = {}
        self._lock = threading.Lock()
        self._opening = threading.Barrier(together)
        httpserver.expect_request("/issues", method="POST").respond_with_handler(self.open)
        for number in range(1, 50):
            httpserver.expect_request(f"/issues/{number}", method="PATCH").respond_with_handler(self.update)

    def open(self, request):
        self._opening.wait(10)
        content = json.loads(request.data)
        with self._lock:
            number = len(self.tickets) + 1
            self.tickets[number] = [content["ticket"], content["state"]]
        return Response(json.dumps({"id": number}), status=201)

    def update(self, request):
        number = int(request.path.rpartition("/")[2])
        with self._lock:
            self.tickets[number][1] = json.loads(request.data)["state"]
        return Response("{}")

    def open_ones(self):
        return sorted(name for name, state in self.tickets.values() if state == "open")


@pytest.fixture
def server():
    with HTTPServer(threaded=True) as serving:
        yield serving


def work(url, count):
    """So many workers, each with connections of its own, until nothing waits any more."""

    def run(_):
        with Registry.open(url) as registry:
            channels = Channels(Settings(environ={}, tickets=registry.tickets, timeout=20.0))
            delivery = Delivery(registry.outbox, channels)
            while registry.outbox.counts()[State.WAITING]:
                delivery.drain()
            channels.close()

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(run, range(count)))


@pytest.fixture
def registry(database_url):
    with Registry.open(database_url) as opened:
        yield opened


def test_the_lease_keeps_workers_from_opening_two(registry, database_url, server, notification):
    desk = Desk(server)
    contact = "ticket+" + server.url_for("/issues")
    rules = [f'["trades","rule {number}",null]' for number in range(3)]
    many = [notification(n, contact=contact, ticket=rules[n % 3]) for n in range(12)]
    assert registry.outbox.enqueue(many) == 12
    work(database_url, 3)
    assert len(desk.tickets) == len(set(desk.open_ones())) == 3
    assert registry.outbox.counts() == {State.WAITING: 0, State.SENT: 12, State.DEAD: 0}
    resolving = [notification(20 + n, contact=contact, ticket=rules[n], resolves=True) for n in range(3)]
    registry.outbox.enqueue(resolving)
    work(database_url, 3)
    assert (len(desk.tickets), desk.open_ones()) == (3, [])
    # What is closed is forgotten: the next time it is another ticket.
    registry.outbox.enqueue([notification(30, contact=contact, ticket=rules[0])])
    work(database_url, 1)
    assert (len(desk.tickets), len(desk.open_ones())) == (4, 1)


def test_of_two_that_were_opened_for_two_consumers_at_once_one_is_closed(registry, database_url, server, notification):
    """Each has a lease of its own, and nobody can ask a desk to open a ticket only if there is none."""
    desk = Desk(server, together=2)
    contact = "ticket+" + server.url_for("/issues")
    ticket = '["trades","rule",null]'
    registry.outbox.enqueue([notification(1, contact=contact, ticket=ticket, consumer=name) for name in ("a", "b")])
    work(database_url, 2)
    assert len(desk.tickets) == 2
    assert len(desk.open_ones()) == 1
    name = desk.open_ones()[0]
    (kept,) = [str(number) for number, (_, state) in desk.tickets.items() if state == "open"]
    assert registry.tickets.find(contact, name) == kept


@pytest.mark.parametrize("id", ["7", "ünï\ud800\0", "x" * 5000])
def test_any_id_of_any_receiver_is_remembered(registry, id):
    contact = "ticket+https://h/" + "y" * 5000 + "${TOKEN}"
    assert registry.tickets.find(contact, "t") is None
    assert registry.tickets.keep(contact, "t", id) == id
    assert registry.tickets.keep(contact, "t", "another") == id
    assert registry.tickets.find(contact, "t") == id
    assert registry.tickets.find(contact, "u") is None
    registry.tickets.drop(contact, "t")
    registry.tickets.drop(contact, "t")
    assert registry.tickets.find(contact, "t") is None

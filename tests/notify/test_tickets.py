"""One ticket for what is wrong: opened, brought up to date, closed."""

import json

import pytest
from werkzeug import Response

from databox_contracts.errors import DeliveryError
from databox_contracts.notify import Channels, Settings
from databox_contracts.notify.message import render
from databox_contracts.notify.ticket_stores import DirectoryTicketStore, MemoryTicketStore, ticket_name
from databox_contracts.registry.store import Registry

TICKET = '["trades","t.price.maximum",null]'


class Desk:
    """A ticket system: numbers its tickets, and forgets those it is told to."""

    def __init__(self, httpserver, entry="id"):
        self.entry = entry
        self.tickets = {}
        self.calls = []
        self.status = None
        httpserver.expect_request("/issues", method="POST").respond_with_handler(self.open)
        for number in range(1, 5):
            httpserver.expect_request(f"/issues/{number}", method="PATCH").respond_with_handler(self.update)

    def open(self, request):
        self.calls.append(("open", request.headers["Idempotency-Key"]))
        if self.status:
            return Response(status=self.status)
        number = len(self.tickets) + 1
        self.tickets[number] = json.loads(request.data)
        return Response(json.dumps({self.entry: number, "node": "x"}), status=201)

    def update(self, request):
        number = int(request.path.rpartition("/")[2])
        self.calls.append(("update", request.headers["Idempotency-Key"]))
        if self.status or number not in self.tickets:
            return Response(status=self.status or 404)
        self.tickets[number] = json.loads(request.data)
        return Response("{}")


def in_registry(request, url):
    registry = Registry.open(url)
    request.addfinalizer(registry.close)
    return registry.tickets


STORES = {
    "memory": lambda request, path: MemoryTicketStore(),
    "directory": lambda request, path: DirectoryTicketStore(path / "tickets"),
    "sqlite": lambda request, path: in_registry(request, path / "registry.db"),
    "postgresql": lambda request, path: in_registry(request, request.getfixturevalue("postgresql").new_database()),
}


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    return STORES[request.param](request, tmp_path)


@pytest.fixture
def desk(httpserver):
    return Desk(httpserver)


@pytest.fixture
def tell(httpserver, notification, store):
    contact = "ticket+" + httpserver.url_for("/issues") + "#token=${TOKEN}"
    settings = Settings(environ={"TOKEN": "s3cret"}, tickets=store, timeout=5.0)
    channels = Channels(settings)

    def told(number, **facts):
        one = notification(number, contact=contact, **{"ticket": TICKET, **facts})
        channels.send(render(one, settings), one.contact)
        return one

    return told


def test_a_ticket_is_opened_once_updated_and_closed(desk, tell):
    first = tell(1, title="price too high")
    tell(2, title="price still too high")
    assert list(desk.tickets) == [1]
    assert (desk.tickets[1]["title"], desk.tickets[1]["state"]) == ("price still too high", "open")
    assert desk.tickets[1]["ticket"] == ticket_name(first)
    assert desk.tickets[1]["notification"]["contract"] == "trades"
    assert desk.tickets[1]["body"].startswith("**price still too high**")
    tell(3, title="price holds again", resolves=True)
    assert desk.tickets[1]["state"] == "closed"
    assert [call for call, _ in desk.calls] == ["open", "update", "update"]
    tell(4, title="price too high")
    assert (list(desk.tickets), desk.tickets[2]["state"]) == ([1, 2], "open")


def test_each_rule_has_its_own(desk, tell):
    tell(1)
    tell(2, ticket='["trades","t.volume.minimum",null]')
    tell(3, ticket=None)
    tell(4, ticket=None)
    assert list(desk.tickets) == [1, 2, 3, 4]


def test_consumers_who_have_one_desk_have_one_ticket_there(desk, tell):
    tell(1)
    tell(1, consumer="Risk")
    tell(2, resolves=True)
    tell(2, consumer="Risk", resolves=True)
    assert list(desk.tickets) == [1]
    assert desk.tickets[1]["state"] == "closed"
    assert [call for call, _ in desk.calls] == ["open", "update", "update"]


def test_two_workers_that_open_it_at_once_leave_one_open(desk, tell, store, monkeypatch):
    tell(1)
    find = store.find
    answers = [None]
    monkeypatch.setattr(store, "find", lambda *place: answers.pop() if answers else find(*place))
    tell(2, consumer="Risk", title="the later one")
    assert {number: ticket["state"] for number, ticket in desk.tickets.items()} == {1: "open", 2: "closed"}
    assert desk.tickets[1]["title"] == "the later one"


def test_what_is_right_again_without_a_ticket_is_nothing_to_send(desk, tell):
    tell(1, resolves=True)
    assert desk.calls == []


def test_a_ticket_that_somebody_removed_is_opened_anew(desk, tell):
    tell(1)
    desk.tickets = {2: {}}
    tell(2)
    assert [call for call, _ in desk.calls] == ["open", "update", "open"]


def test_a_removed_ticket_needs_no_closing(desk, tell):
    tell(1)
    desk.tickets = {}
    tell(2, resolves=True)
    tell(3, resolves=True)
    assert [call for call, _ in desk.calls] == ["open", "update"]


def test_a_desk_that_is_down_loses_nothing(desk, tell):
    desk.status = 503
    with pytest.raises(DeliveryError, match="answered 503"):
        tell(1)
    desk.status = None
    tell(1)
    desk.status = 500
    with pytest.raises(DeliveryError, match="answered 500"):
        tell(2, resolves=True)
    desk.status = None
    tell(2, resolves=True)
    assert desk.tickets[1]["state"] == "closed"


def test_the_id_may_have_another_name(httpserver, notification, caplog):
    desk = Desk(httpserver, "number")
    settings = Settings(environ={})
    channels = Channels(settings)
    contact = "ticket+" + httpserver.url_for("/issues")
    one = notification(contact=contact + "#id=number", ticket=TICKET)
    channels.send(render(one, settings), one.contact)
    channels.send(render(one, settings), one.contact)
    assert [call for call, _ in desk.calls] == ["open", "update"]
    other = notification(contact=contact, ticket=TICKET)
    channels.send(render(other, settings), contact)
    assert len(desk.tickets) == 2
    assert "answered without 'id', so it cannot be brought up to date" in caplog.text


def test_no_secret_is_in_the_store(desk, tell, tmp_path):
    tell(1)
    found = b"".join(path.read_bytes() + path.name.encode() for path in tmp_path.rglob("*") if path.is_file())
    assert b"s3cret" not in found


def test_a_directory_that_cannot_be_used_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    store = DirectoryTicketStore(tmp_path / "file")
    from databox_contracts.errors import DataboxError

    with pytest.raises(DataboxError, match="cannot use"):
        store.keep("c", "t", "1")

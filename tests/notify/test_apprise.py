"""What apprise sends for us, to real receivers."""

import json
import logging

import pytest

from databox_contracts.errors import DeliveryError
from databox_contracts.notify import Channels, Settings
from databox_contracts.notify.channels import apprise_services
from databox_contracts.notify.message import render, render_digest
from databox_contracts.notify.ticket_stores import ticket_name

SECRET = "topsecret4711"
SETTINGS = Settings(environ={"TOKEN": SECRET}, timeout=2.0)


def send(one, contact):
    Channels(SETTINGS).send(render(one, SETTINGS), contact)


def place(httpserver, path="/x"):
    return httpserver.url_for(path).removeprefix("http://")


def test_the_key_is_in_the_text(httpserver, notification):
    httpserver.expect_request("/x").respond_with_data("")
    one = notification()
    send(one, f"json://{place(httpserver)}")
    sent = json.loads(httpserver.log[0][0].data)
    assert sent["title"] == "trade 1 is broken"
    assert one.key in sent["message"]
    assert sent["type"] == "failure"
    send(notification(resolves=True), f"json://{place(httpserver)}")
    assert json.loads(httpserver.log[1][0].data)["type"] == "success"


@pytest.mark.parametrize(
    ("status", "headers", "permanent", "asked"),
    [
        (429, {"Retry-After": "30"}, False, 30.0),
        (500, {}, False, None),
        (503, {"Retry-After": "junk"}, False, None),
        (404, {}, True, None),
        (403, {}, True, None),
    ],
)
def test_the_answer_that_apprise_keeps_to_itself_decides(httpserver, notification, status, headers, permanent, asked):
    httpserver.expect_request("/x").respond_with_data(SECRET, status=status, headers=headers)
    with pytest.raises(DeliveryError, match=f"the service answered {status}") as caught:
        send(notification(), f"json://user:${{TOKEN}}@{place(httpserver)}")
    assert (caught.value.permanent, caught.value.retry_after) == (permanent, asked)
    assert SECRET not in str(caught.value)
    assert len(httpserver.log) == 1


def test_a_service_that_is_away_or_silent_is_tried_again(serve, notification):
    def silent(connection):
        while connection.recv(65536):
            pass

    server = serve(silent)
    for _ in range(2):
        with pytest.raises(DeliveryError, match="did not take it, or cannot be reached") as caught:
            send(notification(), f"json://127.0.0.1:{server.port}/?")
        assert not caught.value.permanent
        server.close()


@pytest.mark.parametrize(
    ("contact", "reason"),
    [
        ("nonsense://host", "apprise knows no such service"),
        ("slack://", "apprise knows no such service, or its URL is incomplete"),
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#a/#b", "2 addressees"),
    ],
)
def test_a_contact_that_cannot_work_is_refused_for_good(notification, contact, reason):
    with pytest.raises(DeliveryError, match=reason) as caught:
        send(notification(), contact)
    assert caught.value.permanent
    assert "T1JJ3T3L2" not in str(caught.value)


def test_no_secret_is_logged_even_at_debug_level(httpserver, notification, caplog):
    httpserver.expect_request("/x").respond_with_data("", status=500)
    with caplog.at_level(logging.DEBUG):
        with pytest.raises(DeliveryError):
            send(notification(), f"json://user:${{TOKEN}}@{place(httpserver)}?+X-Key=${{TOKEN}}")
        with pytest.raises(DeliveryError):
            send(notification(), "slack://${TOKEN}/no/such")
    assert SECRET not in "".join(record.getMessage() for record in caplog.records if record.name != "werkzeug")


class Answer:
    def __init__(self, status, content):
        self.status_code = status
        self.headers = {}
        self.content = content
        self.text = content.decode()


def test_an_incident_is_opened_and_resolved_under_the_tickets_name(notification, monkeypatch):
    from apprise.plugins import pagerduty

    posted = []
    monkeypatch.setattr(
        pagerduty.requests,
        "post",
        lambda url, data=None, **_: posted.append((url, json.loads(data))) or Answer(202, b"{}"),
    )
    contact = "pagerduty://R0123456789012345678901234567890@A012345678901234567890"
    opened = notification(ticket='["trades","t.price.maximum",null]')
    send(opened, contact)
    send(notification(2, ticket=opened.ticket, resolves=True), contact)
    assert [body["event_action"] for _, body in posted] == ["trigger", "resolve"]
    assert {body["dedup_key"] for _, body in posted} == {ticket_name(opened)}


def test_slack_gets_its_own_form_from_its_own_address(notification, monkeypatch):
    from apprise.plugins import slack

    posted = []

    def request(method, url, data=None, **_):
        posted.append((url, data))
        return Answer(200, b"ok")

    monkeypatch.setattr(slack.requests, "request", request)
    one = notification(title="a_b is <!channel> broken", facts={"what": ["order_items.sku_id is gone"]})
    send(one, "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ")
    (url, data) = posted[0]
    assert url == "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
    assert one.key in str(data)
    assert "<!channel>" not in str(data)
    assert "order_items.sku_id is gone" in str(data)
    assert "github" not in str(data)


def test_what_is_longer_than_a_service_takes_keeps_its_key(notification, monkeypatch):
    from apprise.plugins import pagerduty

    posted = []
    monkeypatch.setattr(
        pagerduty.requests, "post", lambda url, data=None, **_: posted.append(json.loads(data)) or Answer(202, b"{}")
    )
    one = notification(facts={"what": ["w" * 900] * 20})
    send(one, "pagerduty://R0123456789012345678901234567890@A012345678901234567890")
    assert posted[0]["payload"]["summary"].endswith(f"…\nReference: {one.key}")


def test_a_digest_that_is_too_long_is_refused_so_that_fewer_go(notification):
    many = [notification(n, facts={"what": ["w" * 900] * 20}) for n in range(10)]
    with pytest.raises(DeliveryError, match="longer than the service takes") as caught:
        Channels(SETTINGS).send(render_digest(many, SETTINGS), "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ")
    assert caught.value.permanent


def test_requests_stay_as_they_were_for_everybody_else():
    import requests
    from apprise.plugins import custom_json

    assert not isinstance(requests, apprise_services._Watched)
    assert custom_json.requests.RequestException is requests.RequestException

"""Contacts, and the secrets in them."""

import pytest

from databox_contracts.errors import DeliveryError
from databox_contracts.notify.contacts import resolve, scheme_of, scrub, shown
from databox_contracts.notify.sending import channel_of


@pytest.mark.parametrize(
    ("contact", "scheme", "name"),
    [
        ("quant@example.com", "mailto", "quant@example.com"),
        ("mailto:quant@example.com?x=y", "mailto", "mailto:quant@example.com"),
        ("https://user:${PW}@host:8443/path/${TOKEN}?a=${B}#secret=${C}", "https", "https://host:8443"),
        ("https://host", "https", "https://host"),
        ("slack://${A}/B/C/#general", "slack", "slack://…"),
        ("slack://literal-token/B/C", "slack", "slack://…"),
        ("kafka://u:${PW}@one:9092,two:9092/topic", "kafka", "kafka://one:9092,two:9092"),
        ("${WHOLE}", "", "${WHOLE}"),
        ("nothing", "", "a contact without a scheme"),
        ("", "", "a contact without a scheme"),
        ("log:", "log", "log:"),
    ],
)
def test_a_contact_is_shown_without_what_may_be_secret(contact, scheme, name):
    assert (scheme_of(contact), shown(contact)) == (scheme, name)


def test_variables_are_put_in_and_encoded_where_a_password_stands():
    address = resolve("smtps://me:${PW}@host/?to=${TO}", {"PW": "p@ss/w:rd", "TO": "a@b"})
    assert address.url == "smtps://me:p%40ss%2Fw%3Ard@host/?to=a@b"
    assert address.split().password == "p%40ss%2Fw%3Ard"
    assert repr(address) == "Address('smtps://host')"
    assert scrub("it was p@ss/w:rd or p%40ss%2Fw%3Ard", address) == "it was … or …"


def test_a_whole_contact_may_be_a_variable():
    assert resolve("${HOOK}", {"HOOK": "https://h/s3cret"}).url == "https://h/s3cret"
    assert resolve("${HOOK}", {"HOOK": "https://h/s3cret"}).shown == "${HOOK}"
    assert resolve("${WHO}", {"WHO": "a@example.com"}).url == "mailto:a@example.com"


@pytest.mark.parametrize("environ", [{}, {"TOKEN": ""}, {"TOKEN": "  "}])
def test_a_missing_variable_is_named_and_nothing_else(environ):
    with pytest.raises(DeliveryError) as caught:
        resolve("slack://literal/${TOKEN}", environ)
    assert str(caught.value) == (
        "slack://…: the environment variable TOKEN is not set. Set it where notifications are delivered from"
    )
    assert not caught.value.permanent


def test_a_value_of_several_lines_is_refused():
    with pytest.raises(DeliveryError, match="TOKEN holds more than one line") as caught:
        resolve("https://h/${TOKEN}", {"TOKEN": "s3cret\r\nX-Evil: 1"})
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "channel"),
    [
        ("https://example.com/hook", "webhook:WebhookChannel"),
        ("https://hooks.slack.com/services/a/b/c", "apprise_services:AppriseChannel"),
        ("https://x.westus.logic.azure.com/workflows/1", "apprise_services:AppriseChannel"),
        ("https://nothooks.slack.com.example.com/", "webhook:WebhookChannel"),
        ("pagerduty://a@b", "apprise_services:AppriseChannel"),
        ("KAFKA://h:1", "kafka:KafkaChannel"),
        ("a@b.example", "mail:MailChannel"),
        ("ticket+https://h/issues", "tickets:TicketChannel"),
        ("log:", "log_lines:LogChannel"),
    ],
)
def test_the_scheme_chooses_the_channel(url, channel):
    assert channel_of(resolve(url, {})) == channel


def test_a_contact_without_a_scheme_is_refused():
    with pytest.raises(DeliveryError, match="the contact has no scheme") as caught:
        channel_of(resolve("#data-platform", {}))
    assert caught.value.permanent

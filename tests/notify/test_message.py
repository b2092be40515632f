"""What a human reads."""

from databox_contracts.notifications import EventKind
from databox_contracts.notify.message import render, render_digest
from databox_contracts.notify.settings import Settings
from databox_contracts.rules import Severity

PLAIN = Settings(environ={})
LINKED = Settings(
    dagster_url="https://dagster.example.com/",
    contracts_url="https://contracts.example.com/{contract}/{version}.html",
    environ={},
)
FACTS = {
    "what": ["price is gone", "volume is text now"],
    "for_you": ["Quant team reads the fields price"],
    "since": "2026-03-01T10:30:00+01:00",
    "todo": ["Read close_price."],
    "by": "2026-03-31",
    "run_id": "run/1",
    "to_version": "2.0.0",
    "owner": "market data",
}


def test_a_message_says_what_for_whom_since_when_what_to_do_by_when_and_where(notification):
    message = render(notification(facts=FACTS), LINKED)
    assert message.text == (
        "trade 1 is broken\n"
        "\n"
        "What broke:\n"
        "- price is gone\n"
        "- volume is text now\n"
        "For Quant team: Quant team reads the fields price\n"
        "Since: 2026-03-01 09:30 UTC\n"
        "What to do: Read close_price.\n"
        "By: 2026-03-31\n"
        "Owner: market data\n"
        "Dagster run: https://dagster.example.com/runs/run%2F1\n"
        "Contract: https://contracts.example.com/trades/2.0.0.html\n"
        f"Reference: {notification().key}"
    )


def test_markdown_shows_names_as_they_are(notification):
    message = render(notification(title="a *b* <!channel>", facts={"what": "see [x](y) | `z`"}), PLAIN)
    assert message.markdown.splitlines()[0] == r"**a \*b\* \<!channel\>**"
    assert r"- **What broke:** see \[x\](y) \| \`z\`" in message.markdown.splitlines()


def test_without_facts_there_is_still_a_message(notification):
    text = render(notification(title="", facts={}), PLAIN).text
    assert text.splitlines()[0] == ""
    assert "Since: 2026-03-01 12:00 UTC" in text
    assert "Contract: trades" in text


def test_what_is_written_cannot_break_a_line(notification):
    evil = "x\r\nBcc: a@b\u2028\u202eevil\x00"
    message = render(notification(title=evil, consumer=evil, facts={"what": [evil], "owner": evil}), PLAIN)
    assert message.title == "x Bcc: a@b evil"
    assert "\nBcc" not in message.text
    assert "\r" not in message.text + message.markdown
    assert "\u202e" not in message.text + message.markdown


def test_what_is_huge_is_cut(notification):
    message = render(notification(title="t" * 5000, facts={"what": ["w" * 9000] * 500}), PLAIN)
    assert message.title == "t" * 199 + "…"
    assert len(message.text) < 25_000
    assert "- and 480 more" in message.text


def test_links_need_their_base(notification):
    text = render(notification(facts=FACTS), PLAIN).text
    assert "Dagster run: run/1" in text
    assert "Contract: trades" in text
    below = render(notification(contract="a/b c", facts={}), Settings(contracts_url="http://h/", environ={})).text
    assert "Contract: http://h/a%2Fb%20c" in below


def test_good_news_reads_so(notification):
    one = notification(resolves=True, facts={"what": ["it holds again"]})
    assert "What is right again: it holds again" in render(one, PLAIN).text
    assert render(one, PLAIN).resolves


def test_a_digest_has_every_part_whole_and_its_key(notification):
    many = [notification(n, severity=Severity.INFO if n != 2 else Severity.ERROR) for n in (1, 2, 3)]
    digest = render_digest(many, PLAIN)
    assert digest.title == "3 notifications about trades"
    assert digest.severity is Severity.ERROR
    assert digest.keys == tuple(one.key for one in many)
    for one in many:
        assert render(one, PLAIN).text in digest.text
        assert one.key in digest.markdown
    assert digest.key not in digest.keys
    assert digest.key == render_digest(many, PLAIN).key
    assert render_digest(many[:1], PLAIN) == render(many[0], PLAIN)


def test_a_digest_over_contracts_counts_them(notification):
    digest = render_digest([notification(1), notification(2, contract="prices")], PLAIN)
    assert digest.title == "2 notifications about 2 contracts"


def test_the_form_for_machines(notification):
    one = notification(kind=EventKind.DRIFT, ticket="t", facts={"count": 0, "text": "ü"})
    message = render(one, PLAIN)
    assert message.to_dict() == {
        "key": one.key,
        "kind": "drift",
        "severity": "error",
        "consumer": "Quant team",
        "contract": "trades",
        "event": "event 1",
        "title": "trade 1 is broken",
        "text": message.text,
        "markdown": message.markdown,
        "occurred_at": "2026-03-01T12:00:00+00:00",
        "ticket": "t",
        "resolves": False,
        "facts": {"count": 0, "text": "ü"},
    }

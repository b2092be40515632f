"""Secrets from publishing to the receiver: whoever sends uses them, and nothing else ever shows them."""

import json
import logging

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from databox_contracts.cli import main
from databox_contracts.errors import ContactSecretError, DataboxError
from databox_contracts.formats import dump_contract
from databox_contracts.model import Consumer
from databox_contracts.notifications import EventKind, Notification, State
from databox_contracts.notify.building import from_versions
from databox_contracts.registry.store import Registry
from databox_contracts.rules import Severity
from databox_contracts.testing import build_contract, build_field

MARK = "mArKeD"
NAMES = ("PASSWORD", "PATH_TOKEN", "API_KEY", "SIGNING", "BEARER", "SLACK", "SMTP", "WHOLE")
ENVIRON = {name: f"{MARK}-{name}-0815" for name in NAMES}

# What a literal secret looks like in each of its places; the mark is in all of them.
LITERALS = (
    f"https://u:{MARK}@example.com/hook",
    f"https://{MARK}0123456789abcdef@example.com/hook",
    f"https://example.com/hook#secret={MARK}",
    f"https://u:${{PASSWORD}}@example.com/hook#secret=${{SIGNING}}&token={MARK}",
    f"ticket+https://example.com/issues#id=number&token={MARK}",
    f"https://example.com/hook?+Authorization=Bearer%20{MARK}",
    f"https://example.com/hook?api_key={MARK}",
    f"kafka://u:{MARK}@one:9092,two:9092/topic",
    f"smtps://u:{MARK}@example.com?to=a@example.com",
    f"mailto:a@example.com?password={MARK}",
    f"slack://T0/B0/{MARK}0123456789",
    f"slack://T0/B0/{MARK}0123456789/${{SLACK}}",
    f"tgram://123456:{MARK}abcdefgh/-100/${{SLACK}}",
    f"pagerduty://{MARK}0123456789abcdef@${{API_KEY}}",
    f"https://hooks.slack.com/services/T0/B0/{MARK}0123456789",
    f"https://x.webhook.office.com/webhookb2/{MARK}",
)


@pytest.mark.parametrize("contact", LITERALS)
def test_a_literal_secret_is_stored_nowhere(database_url, dumped, capfd, caplog, tmp_path, contact):
    caplog.set_level(logging.DEBUG)
    consumer = Consumer("quant", None, contacts=("log:", contact))
    old = build_contract(build_field("a", "string"), id="c", status="active", consumers=(consumer,))
    new = old.model_copy(update={"version": "2.0.0", "datasets": build_contract(id="c").datasets})
    one = Notification(
        consumer="quant",
        contract="c",
        event="e",
        kind=EventKind.RUN,
        severity=Severity.ERROR,
        contact=contact,
        title="t",
        occurred_at=registry_time(),
    )
    told = []
    with Registry.open(database_url) as registry:
        for call in (
            lambda: registry.publish(old, by="ci"),
            lambda: registry.register("c", consumer, by="ci"),
            lambda: registry.outbox.enqueue([one]),
            lambda: registry.advance("runs", 1, notifications=[one]),
            lambda: from_versions(old, new, [consumer], occurred_at=registry_time()),
        ):
            with pytest.raises(ContactSecretError, match=r"consumer 'quant' has .*Write it as \$\{NAME\}") as error:
                call()
            told.append(str(error.value))
    file = tmp_path / "c.yaml"
    file.write_text(dump_contract(old))
    assert main(["registry", "publish", str(file), "--registry", database_url]) == 2
    out, err = capfd.readouterr()
    assert "Write it as ${NAME}" in err
    for place in (*told, out, err, caplog.text, dumped(database_url)):
        assert MARK not in place


def registry_time():
    from databox_contracts.registry.database import utc_now

    return utc_now()


@pytest.mark.parametrize(
    "contact",
    [
        "",
        "q@example.com",
        "mailto:q@example.com",
        "log:",
        "${WHOLE}",
        "slack://${A}/${B}/${C}/#general",
        "slack://T1JJ3T3L2/A1BRTD4JD/${C}",
        "tgram://${T}/-1001234567890",
        "discord://123456789012345678/${T}",
        "https://hooks.slack.com/services/T0/B0/${C}",
        "https://u:${P}@h/?token=${T}#secret=${S}",
        "https://h/hook?+Authorization=Bearer ${T}&monkey=wrench&key=${K}",
        "ticket+https://api.example.com/repos/o/r/issues#token=${T}&id=number",
        "kafka://svc-orders:${P}@one:9092,two:9092/topic?mechanism=SCRAM-SHA-512",
        "smtps://user:${P}@h?to=a@b.c&from=d@e.f",
        "https://example.com/hooks/team-orders-2026-alerts",
    ],
)
def test_what_holds_names_of_secrets_only_is_taken(tmp_path, contact):
    with Registry.open(tmp_path / "r.db") as registry:
        registry.register("c", Consumer("quant", contact), by="ci")
        assert registry.consumers("c")[0].consumer.contact == contact


@pytest.fixture
def receivers():
    """One that takes everything, one that repeats what it was sent and refuses it for ever, and one that is ill."""
    with HTTPServer(threaded=True) as server:

        def repeating(status):
            def answer(request):
                said = f"{request.url} {dict(request.headers)}"
                return Response(said, status=status, headers={"X-Said": said.replace("\n", " "), "Retry-After": "60"})

            return answer

        for path, status in (("good", 200), ("refusing", 401), ("ill", 500)):
            server.expect_request(f"/{path}/{ENVIRON['PATH_TOKEN']}").respond_with_handler(repeating(status))
        yield server


def test_a_secret_of_the_environment_is_used_and_shown_nowhere(
    database_url, dumped, receivers, serve, mailbox, tmp_path, monkeypatch, capfd, caplog
):
    caplog.set_level(logging.DEBUG)
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DATABOX_MAIL_FROM", "contracts@example.com")
    monkeypatch.setenv("WHOLE", f"http://127.0.0.1:1/{ENVIRON['WHOLE']}")
    silent = serve(lambda connection: None)
    rest = "${PATH_TOKEN}?api_key=${API_KEY}#secret=${SIGNING}&token=${BEARER}"
    at = f"http://u:${{PASSWORD}}@127.0.0.1:{receivers.port}"
    contacts = {
        "good": f"{at}/good/{rest}",
        "refusing": f"{at}/refusing/{rest}",
        "ill": f"{at}/ill/{rest}",
        "desk": f"ticket+{at}/refusing/{rest}",
        "closing": f"http://u:${{PASSWORD}}@127.0.0.1:{silent.port}/{rest}",
        "away": "smtp://u:${SMTP}@127.0.0.1:1?to=a@example.com",
        "mail": f"smtp://u:${{SMTP}}@127.0.0.1:{mailbox.port}?to=a@example.com",
        "service": "slack://${SLACK}/${PATH_TOKEN}/${BEARER}",
        "broken": "https://[${SLACK}/${PATH_TOKEN}",
        "whole": "${WHOLE}",
        "unset": "https://u:${NOT_SET}@example.com/${PATH_TOKEN}",
    }
    consumers = tuple(Consumer(name, None, contacts=(contact,)) for name, contact in contacts.items())
    old = build_contract(build_field("a", "string"), id="c", status="active", consumers=consumers)
    new = build_contract(build_field("b", "string"), id="c", version="2.0.0", status="active", consumers=consumers)
    for one in (old, new):
        file = tmp_path / f"{one.version}.yaml"
        file.write_text(dump_contract(one))
        assert main(["registry", "publish", str(file), "--by", "ci", "--registry", database_url]) == 0
    assert main(["deliver", "--once", "--timeout", "5", "--registry", database_url]) == 1
    for command in (
        ["outbox", "list"],
        ["outbox", "dead"],
        ["outbox", "retry", "--all"],
        ["registry", "show", "c"],
        ["registry", "list"],
        ["registry", "consumers", "c"],
    ):
        for form in ("text", "json"):
            assert main([*command, "--registry", database_url, "--format", form]) in (0, 1)
    with Registry.open(database_url) as registry:
        counts = registry.outbox.counts()
        shown = [repr(registry.outbox.waiting()), repr(registry.outbox.dead()), repr(registry.audit())]
    # The one that takes everything had all of them, so that they were there to be shown.
    request, _ = next(entry for entry in receivers.log if entry[0].path.startswith("/good"))
    assert request.headers["Authorization"] == f"Bearer {ENVIRON['BEARER']}"
    assert (request.args["api_key"], "webhook-signature" in request.headers) == (ENVIRON["API_KEY"], True)
    assert ENVIRON["PATH_TOKEN"] in request.path
    assert counts[State.SENT] >= 1
    assert sum(counts.values()) == len(contacts)
    out, err = capfd.readouterr()
    assert "the receiver answered 401 Unauthorized" in out + err
    assert "the environment variable NOT_SET is not set" in out + err
    ours = "\n".join(one.getMessage() for one in caplog.records if one.name.startswith("databox_contracts"))
    dump = dumped(database_url)
    assert "${PATH_TOKEN}" in dump
    for place in (out, err, ours, dump, *shown):
        assert MARK not in place
    bodies = [request.get_data(as_text=True) for request, _ in receivers.log]
    assert bodies
    assert MARK not in "".join(bodies)
    assert MARK not in "".join(map(str, mailbox.mails))


def test_a_registrys_own_password_is_shown_nowhere(capfd, monkeypatch):
    url = f"postgresql://someone:{MARK}@127.0.0.1:1/registry?connect_timeout=2"
    with pytest.raises(DataboxError) as error:
        Registry.open(url, patience=0.1)
    monkeypatch.setenv("DATABOX_REGISTRY", url)
    assert MARK not in f"{error.value} {json.dumps(str(error.value.hint))}"

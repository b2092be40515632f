"""`kafka:` and `kafkas:` publish to a topic, and wait until the brokers have it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote

from databox_contracts.errors import DeliveryError
from databox_contracts.evolution.report import MigrationReport
from databox_contracts.notify.contacts import Address
from databox_contracts.notify.message import Message
from databox_contracts.notify.settings import Settings

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message as KafkaMessage, Producer

TOPIC: Final = "schema.breaking-changes"
"""Where messages go when a contact names no topic."""

_EXTRA: Final = "pip install 'databox_contracts[kafka]'"
_LAST_WAIT: Final = 5.0

# A broker that says so of a message says it again the next time.
_PERMANENT: Final = (
    "MSG_SIZE_TOO_LARGE",
    "TOPIC_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "INVALID_RECORD",
    "TOPIC_EXCEPTION",
    "_INVALID_ARG",
)


class KafkaChannel:
    """`kafka://host:9092,other:9092/topic`, by default the topic `schema.breaking-changes`; `kafkas:` is TLS.

    User and password are SASL's (`?mechanism=SCRAM-SHA-512`; PLAIN if not given). The message is JSON, keyed by the
    contract, with `schema`, `from_version`, `to_version`, `breaking_fields`, `timestamp` and the notification's `key`,
    which is in the header `Idempotency-Key` too. Producers are idempotent and ask all replicas.
    """

    def __init__(self, settings: Settings) -> None:
        self._timeout = settings.timeout
        self._producers: dict[tuple[tuple[str, Any], ...], Publisher] = {}

    def send(self, message: Message, address: Address) -> None:
        """As `Channel.send`."""
        url = address.split()
        config, topic = _config(url, address.shown), unquote(url.path.strip("/")) or TOPIC
        place = tuple(sorted(config.items()))
        publisher = self._producers.get(place)
        if publisher is None:
            self._producers[place] = publisher = Publisher(config, timeout=self._timeout, name=address.shown)
        publisher.publish(topic, message.first.contract, payload_of(message), message.key)

    def close(self) -> None:
        """As `Channel.close`."""
        for publisher in self._producers.values():
            publisher.close()
        self._producers.clear()


def payload_of(message: Message) -> dict[str, Any]:
    """What is published: the entries that a breaking change has, and all that a webhook gets."""
    facts = message.first.facts
    return {
        "schema": facts.get("schema", message.first.contract),
        "from_version": facts.get("from_version"),
        "to_version": facts.get("to_version", facts.get("version")),
        "breaking_fields": list(facts.get("breaking_fields", ())),
        "timestamp": message.first.occurred_at.isoformat(),
        **message.to_dict(),
    }


def _config(url: SplitResult, name: str) -> dict[str, Any]:
    user, _, brokers = url.netloc.rpartition("@")
    if not brokers:
        raise DeliveryError(name, "the contact names no broker", permanent=True, hint="write kafka://host:9092/topic")
    found: dict[str, Any] = {"bootstrap.servers": brokers}
    secure = url.scheme.lower() == "kafkas"
    found["security.protocol"] = {
        (False, False): "PLAINTEXT",
        (True, False): "SSL",
        (False, True): "SASL_PLAINTEXT",
        (True, True): "SASL_SSL",
    }[secure, bool(user)]
    if user:
        account, _, password = user.partition(":")
        mechanism = dict(parse_qsl(url.query)).get("mechanism", "PLAIN")
        found |= {"sasl.mechanism": mechanism, "sasl.username": unquote(account), "sasl.password": unquote(password)}
    return found


class Publisher:
    """One producer; a message is published when the delivery report of all replicas is there.

    After a failure the producer is thrown away with what is left in it, so that a message that was reported as failed
    cannot leave later.
    """

    def __init__(self, config: Mapping[str, Any], *, timeout: float, name: str) -> None:
        self._config = {
            # What librdkafka has to say goes into our errors, not to standard error.
            "log_level": 0,
            "enable.idempotence": True,
            "acks": "all",
            "message.timeout.ms": int(timeout * 1000),
            "socket.timeout.ms": max(int(timeout * 1000 / 2), 1000),
            "client.id": "databox-contracts",
            **config,
        }
        self._timeout = timeout
        self._name = name
        self._producer: Producer | None = None

    def publish(self, topic: str, key: str, payload: Mapping[str, Any], idempotency_key: str) -> None:
        """Returns when the brokers have it. Raises `DeliveryError` otherwise."""
        from confluent_kafka import KafkaException

        outcome: list[KafkaError | None] = []

        def reported(error: KafkaError | None, _: KafkaMessage) -> None:
            outcome.append(error)

        producer = self._opened()
        try:
            producer.produce(
                topic,
                key=key.encode(),
                value=json.dumps(payload, ensure_ascii=False, default=str).encode(),
                headers={"Idempotency-Key": idempotency_key.encode()},
                on_delivery=reported,
            )
            producer.flush(self._timeout + _LAST_WAIT)
        except (KafkaException, BufferError) as error:
            self._discard()
            told = error.args[0] if isinstance(error, KafkaException) and error.args else None
            raise self._refused(told) from None
        if not outcome or outcome[0] is not None:
            self._discard()
            raise self._refused(outcome[0] if outcome else None)

    def _opened(self) -> Producer:
        if self._producer is None:
            try:
                from confluent_kafka import KafkaException, Producer
            except ImportError:
                raise DeliveryError(self._name, "Kafka's client is not installed", hint=_EXTRA) from None
            try:
                # Connections that fail are tried again inside; the delivery report says what counts.
                self._producer = Producer({**self._config, "error_cb": _quiet})
            except (KafkaException, ValueError, TypeError):
                raise DeliveryError(
                    self._name, "the contact cannot be used as it is written", permanent=True, hint="correct it"
                ) from None
        return self._producer

    def _refused(self, error: Any) -> DeliveryError:
        code = str(error.name()) if error is not None and hasattr(error, "name") else ""
        return DeliveryError(
            self._name,
            f"the brokers did not take it: {code.strip('_').lower().replace('_', ' ')}"
            if code
            else "no broker answered",
            permanent=code in _PERMANENT,
        )

    def _discard(self) -> None:
        if self._producer is not None:
            self._producer.purge()
            self._producer.flush(0.5)
            self._producer = None

    def close(self) -> None:
        """Lets go of the connections."""
        if self._producer is not None:
            self._producer.flush(self._timeout)
            self._producer = None


def _quiet(error: KafkaError) -> None:
    """What a delivery report does not say is no failure of a message."""


class KafkaNotificationHandler:
    """A handler of `NotificationBus` that publishes each breaking change once, keyed by the schema.

    `config` are further settings of the producer, in librdkafka's names. Raises `DeliveryError` where the brokers do
    not take it within `timeout` seconds.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str = TOPIC,
        *,
        config: Mapping[str, Any] | None = None,
        timeout: float = 30.0,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.topic = topic
        self._publisher = Publisher(
            {**(config or {}), "bootstrap.servers": bootstrap_servers}, timeout=timeout, name="kafka"
        )
        self._clock = clock

    def send(self, report: MigrationReport) -> None:
        """Publishes `schema`, `from_version`, `to_version`, `breaking_fields`, `timestamp` and `key`."""
        from databox_contracts.notify.building import report_key

        key = report_key(report)
        payload = {
            "schema": report.schema_name,
            "from_version": report.old_version,
            "to_version": report.new_version,
            "breaking_fields": [change.field_name for change in report.breaking_changes],
            "timestamp": self._clock().isoformat(),
            "key": key,
        }
        self._publisher.publish(self.topic, report.schema_name, payload, key)

    def close(self) -> None:
        """Lets go of the connections."""
        self._publisher.close()

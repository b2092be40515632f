"""The sensor that sends what waits in the registry's outbox."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final

import dagster as dg

from databox_contracts.dagster.registry_resources import ContractRegistryResource, NotifierResource
from databox_contracts.notifications import State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from databox_contracts.notify import Totals

DELIVERY_INTERVAL: Final = 15
"""Seconds between ticks: messages are for people, and one that failed is not tried again before ten seconds."""

USUAL_SECONDS: Final = 20.0
_LOGGER: Final = "databox_contracts.notify"


def build_delivery_sensor(
    *,
    name: str = "contract_delivery",
    registry_resource_key: str = "registry",
    notifier_resource_key: str = "notifier",
    seconds: float = USUAL_SECONDS,
    minimum_interval_seconds: int = DELIVERY_INTERVAL,
    default_status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED,
) -> dg.SensorDefinition:
    """A sensor that sends the messages which wait in the registry's outbox, each in the order of its receiver.

    A message that is not taken waits for its next attempt, longer each time, and is given up in the end
    (`build_outbox_check` is red then). After `seconds` no other message is begun, so that a tick lasts at most
    that and the notifier's timeout, well below the minute after which Dagster gives a tick up; only a registry that
    goes away between sending and recording is waited for, lest the message be sent twice. Several such sensors
    and workers of `databox-contracts deliver` may work on one outbox. Every message is sent at least once, and once
    more at most if the process is killed between sending and recording it; the copy has the same key.

    It is STOPPED until somebody starts it, or `default_status` says otherwise: what it does is seen by others, and a
    developer's copy of a project should not write to the owners of consumers. Until then messages wait, and none is
    lost. Its resources are a `ContractRegistryResource` and a `NotifierResource`.
    """

    @dg.sensor(
        name=name,
        description="Sends the messages to consumers of contracts that wait in the registry's outbox.",
        minimum_interval_seconds=minimum_interval_seconds,
        default_status=default_status,
        required_resource_keys={registry_resource_key, notifier_resource_key},
    )
    def deliver(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        found = ContractRegistryResource.among(context.resources, registry_resource_key)
        notifier = NotifierResource.among(context.resources, notifier_resource_key)
        with closing(found.open_database()) as registry, _forwarded(context.log):
            with notifier.delivery(registry, context.log) as delivery:
                totals = delivery.drain(seconds=seconds)
            counts = registry.outbox.counts()
        return dg.SkipReason(_said(totals, counts))

    return deliver


def _said(totals: Totals, counts: Mapping[State, int]) -> str:
    done = [
        f"{count} {what}"
        for count, what in ((totals.sent, "sent"), (totals.failed, "to be tried again"), (totals.dead, "given up"))
        if count
    ]
    waiting = f"{counts[State.WAITING]} waiting" if counts[State.WAITING] else "none waiting"
    dead = f", {counts[State.DEAD]} given up in all" if counts[State.DEAD] else ""
    return f"{', '.join(done) or 'nothing was due'}; {waiting}{dead}"


@contextmanager
def _forwarded(log: logging.Logger) -> Iterator[None]:
    """Shows in the tick what the delivery says of messages that were not taken; no secret is in it."""

    class Forward(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log.log(record.levelno, record.getMessage())

    handler = Forward(logging.WARNING)
    logger = logging.getLogger(_LOGGER)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)

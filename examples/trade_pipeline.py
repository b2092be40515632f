"""A trade feed changes its schema: two versions, rows that are checked, the difference, and who hears of it.

Prints the report and one line for each of the three consumers that read the changed schema. With
`DATABOX_KAFKA` (such as `localhost:9092`) the change is published to the topic `schema.breaking-changes` too, and with
`DATABOX_SMTP_URL` and `DATABOX_MAIL_FROM` each of the three gets a mail.
"""

from __future__ import annotations

import os

import databox_contracts as dbc
from databox_contracts.notify import Delivery, KafkaNotificationHandler, MemoryOutbox, OutboxHandler


class TradeSchemaV1(dbc.ContractBase):
    """Trades, as the consumers read them."""

    __version__ = "1.0.0"
    symbol: str
    price: float
    volume: int


class TradeSchemaV2(dbc.ContractBase):
    """Trades, with the price under another name and a time."""

    __version__ = "2.0.0"
    symbol: str
    close_price: float
    volume: int
    timestamp: str


CONSUMERS = (
    dbc.Consumer("Quant team", "quant@example.com", ["TradeSchemaV1"]),
    dbc.Consumer("Risk system", "risk@example.com", ["TradeSchemaV1"]),
    dbc.Consumer("ML pipeline", "ml@example.com", ["TradeSchemaV1"]),
    dbc.Consumer("Reporting svc", "bi@example.com", ["PriceSchema"]),
)


def main() -> int:
    """Runs the scenario; 0 if every message was taken."""
    for row in (
        {"symbol": "AAPL", "price": 189.5, "volume": 100},
        {"symbol": "MSFT", "price": "high", "volume": 50},
    ):
        print(TradeSchemaV1.validate(row).summary())

    old, new = (dbc.SchemaRegistry.get_latest(name) for name in ("TradeSchemaV1", "TradeSchemaV2"))
    assert old is not None
    assert new is not None
    report = dbc.SchemaDiff(old, new).generate_report()
    report.print_report()

    bus = dbc.NotificationBus()
    for consumer in CONSUMERS:
        bus.register(consumer)
    if os.environ.get("DATABOX_KAFKA"):
        bus.add_handler(KafkaNotificationHandler(os.environ["DATABOX_KAFKA"]))
    outbox = MemoryOutbox()
    if os.environ.get("DATABOX_SMTP_URL"):
        bus.add_handler(OutboxHandler(outbox, bus))
    bus.notify(report)
    print(f"{len(bus.get_log())} of {len(CONSUMERS)} consumers were notified.")

    delivered = Delivery(outbox).drain()
    return 1 if bus.failures or delivered.failed or delivered.dead else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""The registry's tables as they are now; `migrations` makes them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Dialect,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    text,
)

from databox_contracts.errors import RegistryError


class Moment(TypeDecorator[datetime]):
    """A time in UTC as a text that sorts: both databases keep it to the microsecond."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        """As the database has it."""
        return moment_text(value) if value is not None else None

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:
        """As Python has it."""
        return datetime.fromisoformat(value) if value is not None else None


class Day(TypeDecorator[date]):
    """A day as `2026-01-31`."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: date | None, dialect: Dialect) -> str | None:
        """As the database has it."""
        return value.isoformat() if value is not None else None

    def process_result_value(self, value: str | None, dialect: Dialect) -> date | None:
        """As Python has it."""
        return date.fromisoformat(value) if value is not None else None


class Json(TypeDecorator[Any]):
    """JSON data as a text of ASCII, which holds every character that a string may have."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:
        """As the database has it."""
        return json_text(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """As Python has it."""
        return json.loads(value) if value is not None else None


def moment_text(value: datetime) -> str:
    """A time as the tables have it: always of the same length, in UTC. Raises `ValueError` for one without a zone."""
    if value.tzinfo is None:
        raise ValueError("a time without a zone")
    return value.astimezone(UTC).isoformat(timespec="microseconds")


def json_text(value: Any) -> str:
    """JSON data as the tables have it. Raises `RegistryError` for what JSON cannot say."""
    try:
        return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise RegistryError(f"this cannot be stored as JSON: {error}", hint="Give plain data.") from None


METADATA: Final = MetaData()

# One row for each contract, which whoever publishes a version of it holds locked.
CONTRACTS: Final = Table("databox_contracts", METADATA, Column("id", Text, primary_key=True))

# `ordinal` is the version in one spelling: `3.2` and `3.2.0` are one.
VERSIONS: Final = Table(
    "databox_versions",
    METADATA,
    Column("contract", Text, ForeignKey("databox_contracts.id"), primary_key=True),
    Column("ordinal", Text, primary_key=True),
    Column("version", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("published_at", Moment, nullable=False),
    Column("published_by", Text, nullable=False),
    Column("publication", Text, nullable=False),
    Column("effective", Day),
    Column("sunset", Day),
)

CONSUMERS: Final = Table(
    "databox_consumers",
    METADATA,
    Column("contract", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("origin", Text, primary_key=True),
    Column("declared", Json, nullable=False),
    Column("registered_at", Moment, nullable=False),
    Column("registered_by", Text, nullable=False),
)

APPROVALS: Final = Table(
    "databox_approvals",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("contract", Text, nullable=False, index=True),
    Column("consumer", Text, nullable=False),
    Column("approver", Text, nullable=False),
    Column("at", Moment, nullable=False),
    Column("dataset", Text),
    Column("version", Text),
    Column("purpose", Text),
    Column("note", Text, nullable=False),
)

POSITIONS: Final = Table(
    "databox_positions",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", Json, nullable=False),
    Column("updated_at", Moment, nullable=False),
)

AUDIT: Final = Table(
    "databox_audit",
    METADATA,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("at", Moment, nullable=False),
    Column("who", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("details", Json, nullable=False),
    Index("databox_audit_of", "subject", "number"),
)

# Every notification that was ever given; it stays when the notification itself is pruned.
NOTIFICATION_IDS: Final = Table("databox_notification_ids", METADATA, Column("id", Text, primary_key=True))

# One row for each contact of a consumer. `due_at` is that of its first waiting notification, None where none waits.
LANES: Final = Table(
    "databox_lanes",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("due_at", Moment),
    Column("token", Text),
    Column("worker", Text),
    Column("expires_at", Moment),
)
Index("databox_lanes_due", LANES.c.due_at, LANES.c.id)

OUTBOX: Final = Table(
    "databox_outbox",
    METADATA,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("id", Text, ForeignKey("databox_notification_ids.id"), nullable=False, unique=True),
    Column("lane", Text, ForeignKey("databox_lanes.id"), nullable=False),
    Column("state", Text, nullable=False),
    Column("due_at", Moment, nullable=False),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("notification", Json, nullable=False),
    Column("enqueued_at", Moment, nullable=False),
    Column("settled_at", Moment),
    Column("error", Text),
)
Index("databox_outbox_lane", OUTBOX.c.lane, OUTBOX.c.state, OUTBOX.c.number)
Index("databox_outbox_state", OUTBOX.c.state, OUTBOX.c.number)

BATCHES: Final = Table(
    "databox_quarantine_batches",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("contract", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("held", BigInteger, nullable=False),
    Column("reasons", Json, nullable=False),
    Column("held_at", Moment, nullable=False),
    Column("closed_at", Moment),
    Column("outcome", Text),
    Index("databox_quarantine_batches_of", "contract", "dataset", "held_at"),
)

BASELINES: Final = Table(
    "databox_baselines",
    METADATA,
    Column("contract", Text, primary_key=True),
    Column("dataset", Text, primary_key=True),
    Column("baseline", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("document", Json, nullable=False),
    Column("pinned_at", Moment, nullable=False),
)

SIGHTINGS: Final = Table(
    "databox_sightings",
    METADATA,
    Column("contract", Text, primary_key=True),
    Column("dataset", Text, primary_key=True),
    Column("baseline", Text, primary_key=True),
    Column("seen", Json, nullable=False),
)

TOKENS: Final = Table(
    "databox_tokens",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("hash", Text, nullable=False, unique=True),
    Column("scope", Text, nullable=False),
    Column("issued_at", Moment, nullable=False),
    Column("issued_by", Text, nullable=False),
    Column("expires_at", Moment),
    Column("revoked_at", Moment),
)

PLANS: Final = Table(
    "databox_deletion_plans",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("contract", Text, nullable=False),
    Column("field", Text, nullable=False),
    Column("facts", Json, nullable=False),
    Column("made_at", Moment, nullable=False),
    Column("made_by", Text, nullable=False),
)

STEPS: Final = Table(
    "databox_deletion_steps",
    METADATA,
    Column("plan", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("title", Text, nullable=False),
    Column("facts", Json, nullable=False),
    Column("done_at", Moment),
    Column("done_by", Text),
    Column("note", Text, nullable=False),
    ForeignKeyConstraint(["plan"], ["databox_deletion_plans.id"]),
)

TICKETS: Final = Table(
    "databox_tickets",
    METADATA,
    Column("place", Text, primary_key=True),
    Column("ticket", Text, nullable=False),
    Column("receiver_id", Json, nullable=False),
    Column("opened_at", Moment, nullable=False),
)

SCHEMA_VERSIONS: Final = Table(
    "databox_schema_versions",
    METADATA,
    Column("version", Integer, primary_key=True),
    Column("applied_at", Moment, nullable=False),
)

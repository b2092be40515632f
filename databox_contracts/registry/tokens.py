"""Tokens of the service: shown once, kept as a hash."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Connection, select, update

from databox_contracts.errors import RegistryError
from databox_contracts.registry.database import Database
from databox_contracts.registry.schema import TOKENS
from databox_contracts.registry.statements import Scribe
from databox_contracts.registry.texts import named

PREFIX: Final = "dbx_"
"""What every token begins with, so that a leaked one is recognised."""


class Scope(StrEnum):
    """What a token allows; a later one includes the earlier ones."""

    READ = "read"
    PUBLISH = "publish"
    ADMIN = "admin"

    def includes(self, other: Scope) -> bool:
        """Whether it allows what the other one allows."""
        order = tuple(Scope)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredToken:
    """What is known of a token: all but the token."""

    name: str
    scope: Scope
    issued_at: datetime
    issued_by: str
    expires_at: datetime | None = None
    revoked_at: datetime | None = None


class Tokens:
    """Issues, recognises and revokes tokens."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock

    def issue(self, name: str, scope: Scope, *, by: str, expires_at: datetime | None = None) -> str:
        """A new token of 256 random bits, which nobody can be told again. Raises `RegistryError` for a name in use."""
        named("the token's name", name)
        scribe = Scribe(by, self._clock)
        token = PREFIX + secrets.token_urlsafe(32)
        row = {
            "name": name,
            "hash": _hash(token),
            "scope": str(Scope(scope)),
            "issued_at": scribe.at,
            "issued_by": scribe.who,
            "expires_at": expires_at,
            "revoked_at": None,
        }

        def work(connection: Connection) -> None:
            found = connection.execute(select(TOKENS.c.hash).where(TOKENS.c.name == name)).scalar()
            if found is None:
                connection.execute(TOKENS.insert().values(**row))
                scribe.note(connection, "issue token", name, scope=row["scope"])
            elif found != row["hash"]:
                raise RegistryError(f"there is a token named {name!r}", hint="Choose a name that was never used.")

        self._database.write(work)
        return token

    def recognise(self, token: str) -> StoredToken | None:
        """The token's facts; None for one that is unknown, expired or revoked."""
        given = _hash(token)
        query = select(TOKENS).where(TOKENS.c.hash == given)
        row: Any = self._database.read(lambda connection: connection.execute(query).one_or_none())
        # The database compares hashes, of which nobody can choose a prefix; and here all of it, in the same time.
        if row is None or row.revoked_at is not None or not hmac.compare_digest(row.hash, given):
            return None
        if row.expires_at is not None and row.expires_at <= self._clock():
            return None
        return _token(row)

    def revoke(self, name: str, *, by: str) -> bool:
        """Make it worthless; False where no token of that name is in use."""
        scribe = Scribe(by, self._clock)

        def work(connection: Connection) -> bool:
            in_use = (TOKENS.c.name == name) & TOKENS.c.revoked_at.is_(None)
            if not connection.execute(update(TOKENS).where(in_use).values(revoked_at=scribe.at)).rowcount:
                return False
            scribe.note(connection, "revoke token", name)
            return True

        return self._database.write(work)

    def tokens(self) -> list[StoredToken]:
        """All that were ever issued, by name."""
        query = select(TOKENS).order_by(TOKENS.c.name)
        return [_token(row) for row in self._database.read(lambda connection: connection.execute(query).all())]


def _hash(token: str) -> str:
    # A password would need a slow hash and a salt; nobody can guess 256 random bits.
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def _token(row: Any) -> StoredToken:
    return StoredToken(
        name=row.name,
        scope=Scope(row.scope),
        issued_at=row.issued_at,
        issued_by=row.issued_by,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
    )

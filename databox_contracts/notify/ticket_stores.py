"""Where the ids of open tickets are remembered: in memory, or in a directory."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import uuid
from pathlib import Path

from databox_contracts.errors import DataboxError
from databox_contracts.notifications import Notification


def ticket_name(one: Notification) -> str:
    """The ticket's own name, 32 hex digits: the same for what it is opened for, updated and closed by.

    What concerns several consumers who have one desk is one ticket there; what has no ticket gets one for each.
    """
    about = [one.contract, one.ticket] if one.ticket is not None else [one.consumer, one.contract, one.event]
    return hashlib.sha256(json.dumps(about, ensure_ascii=False).encode()).hexdigest()[:32]


class MemoryTicketStore:
    """A `TicketStore` of this process."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def find(self, contact: str, ticket: str) -> str | None:
        """As `TicketStore.find`."""
        with self._lock:
            return self._open.get((contact, ticket))

    def keep(self, contact: str, ticket: str, id: str) -> str:
        """As `TicketStore.keep`."""
        with self._lock:
            return self._open.setdefault((contact, ticket), id)

    def drop(self, contact: str, ticket: str) -> None:
        """As `TicketStore.drop`."""
        with self._lock:
            self._open.pop((contact, ticket), None)


class DirectoryTicketStore:
    """A `TicketStore` of one small file for each open ticket, safe for several processes on one host.

    The files' names are digests of contact and ticket; in a file is the receiver's id and nothing else.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def find(self, contact: str, ticket: str) -> str | None:
        """As `TicketStore.find`. Raises `DataboxError` where the directory cannot be used."""
        try:
            return self._file(contact, ticket).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise self._unusable(error) from error

    def keep(self, contact: str, ticket: str, id: str) -> str:
        """As `TicketStore.keep`. Raises `DataboxError` where the directory cannot be used."""
        file = self._file(contact, ticket)
        partial = file.with_name(f"{file.name}.{uuid.uuid4().hex}.part")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with open(partial, "w", encoding="utf-8") as writing:
                writing.write(id)
                writing.flush()
                os.fsync(writing.fileno())
            try:
                os.link(partial, file)
            except FileExistsError:
                return self.find(contact, ticket) or id
            finally:
                partial.unlink()
        except OSError as error:
            raise self._unusable(error) from error
        return id

    def drop(self, contact: str, ticket: str) -> None:
        """As `TicketStore.drop`. Raises `DataboxError` where the directory cannot be used."""
        try:
            self._file(contact, ticket).unlink(missing_ok=True)
        except OSError as error:
            raise self._unusable(error) from error

    def _file(self, contact: str, ticket: str) -> Path:
        return self.path / hashlib.sha256(json.dumps([contact, ticket]).encode()).hexdigest()

    def _unusable(self, error: Exception) -> DataboxError:
        reason = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
        return DataboxError(f"cannot use {self.path}: {reason}", hint="make it readable and writable")

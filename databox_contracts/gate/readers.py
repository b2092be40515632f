"""Who reads what a branch breaks, how far away, and who agreed to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from databox_contracts.approvals import Approval
from databox_contracts.evolution.affected import Standing, standing_of
from databox_contracts.evolution.sign_off import SignOff

_CONSUMER: Final = "consumer"


@dataclass(frozen=True)
class Reader:
    """A consumer, or a table made of the data, that a break reaches.

    `distance` is 1 for who reads the data itself, and one more for each table in between; `path` has the names on the
    way to it. `versions` is its pin. `standing` is what that makes of the new version, `approval` its consent; both are
    known only of who reads the data itself. `kind` is consumer, dataset or asset.
    """

    name: str
    owner: str | None = None
    versions: str | None = None
    distance: int = 1
    path: tuple[str, ...] = ()
    standing: Standing | None = None
    approval: Approval | None = None
    kind: str = _CONSUMER

    @property
    def text(self) -> str:
        """The name, and in brackets what else is known."""
        facts = [
            self.owner,
            f"pins {self.versions}" if self.versions is not None else None,
            _STANDINGS.get(self.standing) if self.standing is not None else None,
            f"{self.distance} steps away" if self.distance > 1 else None,
        ]
        said = ", ".join(fact for fact in facts if fact)
        name = self.name if self.kind == _CONSUMER else f"the {self.kind} {self.name}"
        return f"{name} ({said})" if said else name

    @property
    def is_direct(self) -> bool:
        """Whether it is a consumer of the data itself."""
        return self.distance == 1 and self.kind == _CONSUMER

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "kind": self.kind,
            "name": self.name,
            "owner": self.owner,
            "versions": self.versions,
            "standing": str(self.standing) if self.standing is not None else None,
            "distance": self.distance,
            "path": list(self.path),
            "approved_by": self.approval.approver if self.approval is not None else None,
            "approved_on": self.approval.on.isoformat() if self.approval is not None else None,
        }


_STANDINGS: Final = {
    Standing.STAYS: "stays on the old version",
    Standing.OUTSIDE: "pins neither version",
    Standing.UNKNOWN: "which cannot be read as a range",
}

Reach: TypeAlias = Callable[[str, str | None, str | None], Sequence[Reader]]
"""Whom a change reaches: by the contract's id, the dataset and the field, None for all of them."""


def direct(signed: Sequence[SignOff], old_version: str, new_version: str) -> Iterator[Reader]:
    """Those who read the data itself."""
    for one in signed:
        standing = standing_of(one.consumer, old_version, new_version)
        consumer = one.consumer
        yield Reader(consumer.name, consumer.owner, consumer.versions, 1, (consumer.name,), standing, one.approval)

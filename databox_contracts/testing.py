"""For users' own tests: contracts built in a line, baselines that are kept nowhere, messages that go nowhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from databox_contracts.baselines import sighted, without_values
from databox_contracts.datatypes import parse_type
from databox_contracts.drift import DriftKey, Sighting
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.profiles import Baseline
from databox_contracts.rules import Rule


def build_field(name: str, type: str | None = None, *rules: Rule, **facts: Any) -> Field:
    """A field; `type` in any spelling, the parts of a nested one included, `facts` are attributes of `Field`."""
    return Field(name=name, type=parse_type(type) if type is not None else None, rules=rules, **facts).completed()


def build_contract(
    *fields: Field, rules: tuple[Rule, ...] = (), dataset: str = "t", version: str = "1.0.0", **facts: Any
) -> Contract:
    """A contract of one dataset; `facts` are attributes of `Contract`, of which `id` is "test" if not given."""
    one = Dataset(name=dataset, fields=fields, rules=rules)
    return Contract(**{"id": "test", "version": version, "datasets": (one,), **facts})


class RecordingChannel:
    """Takes note of what is sent and sends nothing: a handler of a bus, and `through` of `notify.Channels`.

    `received` holds reports (from a bus) or messages, in order. The next ones raise what is in `failing`, in their
    order; None there lets one through.
    """

    def __init__(self) -> None:
        self.received: list[Any] = []
        self.failing: list[Exception | None] = []

    def send(self, message: Any, address: Any = None) -> None:
        """As `Handler.send` and `Channel.send`."""
        error = self.failing.pop(0) if self.failing else None
        if error is not None:
            raise error
        self.received.append(message)

    def close(self) -> None:
        """As `Channel.close`."""


class MemoryBaselineStore:
    """A `BaselineStore` that keeps everything in this process."""

    def __init__(self) -> None:
        self.baselines: dict[tuple[str, str], Baseline] = {}
        self.seen: dict[tuple[str, str, str], dict[str, Sighting]] = {}

    def get(self, contract: str, dataset: str) -> Baseline | None:
        """As `BaselineStore.get`."""
        return self.baselines.get((contract, dataset))

    def put(self, baseline: Baseline, *, replacing: Baseline | None) -> Baseline:
        """As `BaselineStore.put`."""
        key = (baseline.contract, baseline.dataset)
        if self.baselines.get(key) == replacing:
            self.baselines[key] = baseline
        return self.baselines[key]

    def see(
        self, baseline: str, contract: str, dataset: str, keys: Sequence[DriftKey], *, at: str
    ) -> Mapping[str, Sighting]:
        """As `BaselineStore.see`."""
        place = (contract, dataset, baseline)
        self.seen[place] = after = sighted(self.seen.get(place, {}), keys, at)
        return {key.text: after[key.text] for key in keys}

    def forget_values(self, contract: str, dataset: str, fields: Sequence[str]) -> None:
        """As `BaselineStore.forget_values`."""
        for place, known in self.seen.items():
            if place[:2] == (contract, dataset):
                self.seen[place] = without_values(known, fields)

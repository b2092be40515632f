"""How long before a break, or an end, those who depend on a contract have to hear of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from databox_contracts.errors import DataboxError
from databox_contracts.formats.durations import parse_duration
from databox_contracts.model import Contract

USUAL_NOTICE: Final = {"strict": timedelta(days=30)}
"""The notice before a break or an end, by policy, where the contract does not say."""


def notice_of(contract: Contract, policy: str) -> timedelta | None:
    """The notice that the contract promises, else the usual one under the policy, None where that has none.

    A notice period that is no length of time counts as not said; lint reports it.
    """
    if contract.notice_period is not None:
        try:
            return timedelta(seconds=parse_duration(contract.notice_period))
        except DataboxError:
            pass
    if contract.evolution is not None and contract.evolution.deprecation_window_days is not None:
        return timedelta(days=contract.evolution.deprecation_window_days)
    return USUAL_NOTICE.get(policy)

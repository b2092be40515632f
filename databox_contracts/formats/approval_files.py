"""Files of approvals: YAML, a list of who agreed to what."""

from __future__ import annotations

import os

from databox_contracts.approvals import Approval, approvals_in
from databox_contracts.formats import text_of
from databox_contracts.formats.positions import parse_yaml


def load_approvals(path: str | os.PathLike[str]) -> tuple[Approval, ...]:
    """The approvals of a file. Raises `DataboxError` for one that is missing, no YAML, or something else."""
    text, name = text_of(path)
    document = parse_yaml(text, name)
    entries = document.data
    if isinstance(entries, list):
        # A version is the text that is written: 3.10 is not 3.1.
        entries = [
            {key: document.text((at, key)) or value for key, value in entry.items()}
            if isinstance(entry, dict)
            else entry
            for at, entry in enumerate(entries)
        ]
    return approvals_in(entries, name)

"""Files in which consumers declare themselves: YAML, every finding with its line.

```yaml
consumers:
  - name: Revenue mart
    owner: analytics
    contacts: [revenue@example.com]
    assets: [marts/revenue]
    reads:
      - {contract: payments.transaction, fields: [amount_paise], versions: ^3.2, purpose: payment_processing}
```

What is beside `reads` holds for all of them; who reads one contract only may write its `contract` there as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from databox_contracts.declarations import IN_FILE, Declaration
from databox_contracts.errors import ContractError, Finding, Level
from databox_contracts.formats import contract_files, text_of
from databox_contracts.formats.governing import CONSUMER_FACTS, consumer_facts
from databox_contracts.formats.positions import parse_yaml, refusal
from databox_contracts.formats.reading import Report, Section, described
from databox_contracts.model import Consumer

_OF_A_READING: Final = ("datasets", "fields", "versions", "purpose", "justification")
_HINT: Final = "write `consumers:` and below it `- {name: ..., contract: ...}`"


def load_consumers(paths: Iterable[str | os.PathLike[str]]) -> list[Declaration]:
    """What the files say, and those below folders, in the order of the paths.

    Raises `ContractError` with every finding of all files when any is an error.
    """
    found, findings = read_consumers(paths)
    if any(finding.level is Level.ERROR for finding in findings):
        raise ContractError.from_findings(findings)
    return found


def read_consumers(paths: Iterable[str | os.PathLike[str]]) -> tuple[list[Declaration], list[Finding]]:
    """As `load_consumers`, with every finding; only a folder that cannot be read raises."""
    found: list[Declaration] = []
    findings: list[Finding] = []
    for path in _files(paths):
        declared, remarks = examine_consumers(path)
        found += declared
        findings += remarks
    return found, findings


def examine_consumers(source: str | os.PathLike[str]) -> tuple[list[Declaration], list[Finding]]:
    """What one file says, or a text with a line break in it, and every finding in its order."""
    try:
        text, name = text_of(source)
        report = Report(parse_yaml(text.removeprefix("\ufeff"), name))
        data = report.document.data
        if not isinstance(data, dict) or "consumers" not in data:
            shown = described(data) if not isinstance(data, dict) else "a mapping without `consumers`"
            place = report.document.position(())
            raise refusal(name, f"a file of consumers is a mapping with `consumers`, not {shown}", place, _HINT)
    except ContractError as error:
        return [], list(error.findings)
    root = Section(report, (), data)
    found = [one for entry in root.sections("consumers") for one in _declarations(entry)]
    root.close()
    return found, report.in_order()


def _files(paths: Iterable[str | os.PathLike[str]]) -> Iterator[Path]:
    for path in map(Path, paths):
        if not path.is_dir():
            yield path
            continue
        files = list(contract_files(path))
        if not files:
            raise refusal(str(path), "the folder holds no .yaml or .yml file", None, "name another one")
        yield from files


def _declarations(entry: Section) -> Iterator[Declaration]:
    name = entry.needed("name", "a consumer")
    facts = consumer_facts(entry)
    producer = entry.text("contract")
    readings = list(entry.sections("reads"))
    if producer is not None and readings:
        entry.error("'contract' and 'reads' stand here both", "write each contract under `reads`", "contract")
    elif producer is None and not readings and not entry.data.get("reads"):
        what = f"the consumer {name!r}" if name is not None else "a consumer"
        entry.error(f"{what} reads no contract", "write `contract: ...`, or a list of them under `reads`")
    entry.close()
    if name is None:
        return
    if producer is not None:
        yield _declaration(entry, producer, name, facts)
    for reading in readings:
        read = reading.needed("contract", f"what {name!r} reads")
        own = consumer_facts(reading)
        reading.close()
        if read is not None:
            yield _declaration(reading, read, name, _together(facts, own, reading))


def _together(outer: dict[str, Any], inner: dict[str, Any], reading: Section) -> dict[str, Any]:
    """What the reading says itself goes before what is said for all of them."""
    misplaced = [key for key in CONSUMER_FACTS if key not in _OF_A_READING and reading.data.get(key) is not None]
    for key in misplaced:
        reading.error(f"{key!r} is not said of one contract", "write it beside the consumer's name", key)
    return outer | {key: inner[key] for key in _OF_A_READING if inner[key] not in (None, ())}


def _declaration(section: Section, producer: str, name: str, facts: dict[str, Any]) -> Declaration:
    position = section.position
    place = f"{section.report.document.source}:{position.line}:{position.column}"
    return Declaration(producer, Consumer(name, **facts), place, IN_FILE)

"""Contract files of every dialect: found out, read into one model, and every finding with its line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from databox_contracts.errors import ContractError, DataboxError, Finding
from databox_contracts.formats import (
    datacontract,
    datacontract_writer,
    odcs,
    odcs_writer,
    sections,
    sections_writer,
    soda,
    soda_writer,
)
from databox_contracts.formats.losing import lost
from databox_contracts.formats.positions import MAX_BYTES, parse_yaml, refusal, too_large
from databox_contracts.formats.reading import Report, described
from databox_contracts.formats.remarks import remarks
from databox_contracts.model import Contract

__all__ = [
    "FORMATS",
    "Format",
    "contract_files",
    "detect",
    "dump_contract",
    "examine",
    "load_contract",
    "load_contracts",
    "losses",
    "read",
    "text_of",
]

TEXT_SOURCE: Final = "<text>"
SUFFIXES: Final = (".yaml", ".yml")


@dataclass(frozen=True)
class Format:
    """A dialect: whether a document's data is of it, how a contract is read from it, and how one is written.

    `write` is None where the dialect is only read; it leaves out what the dialect cannot say.
    """

    name: str
    title: str
    recognises: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Report], Contract | None]
    write: Callable[[Contract], str] | None = None


FORMATS: Final = (
    Format("odcs", "Open Data Contract Standard", odcs.recognises, odcs.read, odcs_writer.write),
    Format(
        "datacontract",
        "Data Contract Specification",
        datacontract.recognises,
        datacontract.read,
        datacontract_writer.write,
    ),
    Format("sections", "contract in six sections", sections.recognises, sections.read, sections_writer.write),
    Format("soda", "Soda contract", soda.recognises, soda.read, soda_writer.write),
)
"""Every dialect, the first that recognises a document reads it."""


def load_contract(source: str | os.PathLike[str]) -> Contract:
    """The contract of a file, or of a YAML text (a string with a line break in it).

    `Contract.findings` are the warnings and notes. Raises `ContractError` with every finding when any is an error,
    and for a file that is missing, empty, too large or not UTF-8.
    """
    return _sound(*examine(source))


def contract_of(text: str, source: str) -> Contract:
    """As `load_contract`, for a text that findings call `source`."""
    return _sound(*read(text, source))


def _sound(contract: Contract | None, findings: list[Finding]) -> Contract:
    errors = [finding for finding in findings if finding.level == "error"]
    if contract is None or errors:
        raise ContractError.from_findings(findings, contract=contract.id if contract is not None else None)
    return contract


def load_contracts(folder: str | os.PathLike[str]) -> list[Contract]:
    """The contracts of all YAML files below a folder, in the order of their paths.

    Hidden files and folders are left out. Raises `ContractError` for the first file that is not a contract, for a
    folder that is not there, and for two files with the same id and version.
    """
    root = Path(folder)
    if not root.is_dir():
        raise refusal(str(root), "there is no such folder", None, "name a folder of contract files")
    contracts: list[Contract] = []
    sources: dict[tuple[str, str], str] = {}
    for path in contract_files(root):
        contract = load_contract(path)
        other = sources.setdefault((contract.id, contract.version), str(path))
        if other != str(path):
            message = f"the contract {contract.id!r} {contract.version} is that of {other} too"
            raise refusal(str(path), message, None, "give one of them another id or version")
        contracts.append(contract)
    return contracts


def dump_contract(contract: Contract, format: str = "odcs") -> str:
    """The contract as the text of a dialect, whichever it was read from. The same contract always gives the same text.

    `losses` tells what the dialect cannot say. Raises `DataboxError` for a name that is no dialect's, or is that of one
    which is only read; it lists the names there are.
    """
    return _writer(format)[1](contract)


def losses(contract: Contract, format: str) -> list[str]:
    """What of the contract `dump_contract` would leave out or say otherwise; empty where nothing is lost.

    Found by reading the text again, so no dialect has to know what it cannot say. Errors are those of `dump_contract`.
    """
    return lost(contract, read(dump_contract(contract, format))[0])


def _writer(name: str) -> tuple[Format, Callable[[Contract], str]]:
    for format_ in FORMATS:
        if format_.name == name and format_.write is not None:
            return format_, format_.write
    known = ", ".join(format_.name for format_ in FORMATS if format_.write is not None)
    raise DataboxError(f"no contract is written as {name!r}", hint=f"use one of: {known}")


def examine(source: str | os.PathLike[str]) -> tuple[Contract | None, list[Finding]]:
    """The contract, if there is one, and every finding in the order of the file.

    With an error among the findings the contract lacks what the error is about: it is for showing, not for verifying.
    """
    try:
        text, name = text_of(source)
    except ContractError as error:
        return None, list(error.findings)
    return read(text, name)


def read(text: str, source: str = TEXT_SOURCE) -> tuple[Contract | None, list[Finding]]:
    """As `examine`, for a text; `source` is what findings call it."""
    try:
        report = Report(parse_yaml(text.removeprefix("\ufeff"), source))
        data = report.document.data
        if data is None:
            raise refusal(source, "the document is empty", None, "write a contract into it")
        if not isinstance(data, dict):
            raise refusal(
                source,
                f"a contract is a mapping, not {described(data)}",
                report.document.position(()),
                "write `id: ...`",
            )
        chosen = detect(data)
        if chosen is None:
            known = "; ".join(format_.title for format_ in FORMATS)
            raise refusal(
                source,
                "this is no contract of a known form",
                report.document.position(()),
                f"write `kind: DataContract` and `apiVersion: v3.2.0` ({known})",
            )
    except ContractError as error:
        return None, list(error.findings)
    contract = chosen.read(report)
    if contract is not None:
        report.findings.extend(list(remarks(contract, source, report)))
    findings = report.in_order()
    if contract is not None:
        contract = contract.model_copy(update={"findings": tuple(f for f in findings if f.level != "error")})
    return contract, findings


def detect(data: Mapping[str, Any]) -> Format | None:
    """The dialect of a document, or None."""
    return next((format_ for format_ in FORMATS if format_.recognises(data)), None)


def contract_files(folder: Path) -> Iterator[Path]:
    """The YAML files below a folder in the order of their paths, hidden ones left out.

    A folder that several links lead to is looked at once. Raises `ContractError` for one that cannot be read.
    """
    yield from _files_below(folder, set())


def _files_below(folder: Path, seen: set[str]) -> Iterator[Path]:
    real = os.path.realpath(folder)
    if real in seen:
        return
    seen.add(real)
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise refusal(
            str(folder), f"the folder cannot be read: {error.strerror}", None, "check its permissions"
        ) from None
    for path in entries:
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from _files_below(path, seen)
        elif path.suffix.lower() in SUFFIXES:
            yield path


def text_of(source: str | os.PathLike[str]) -> tuple[str, str]:
    """The text of a file, or the text itself where it has a line break in it, and what findings call it.

    Raises `ContractError` for a file that is missing, too large, not UTF-8, or cannot be read.
    """
    if isinstance(source, str) and ("\n" in source or not source.strip()):
        return source, TEXT_SOURCE
    path = Path(source)
    name = str(path)
    try:
        with path.open("rb") as file:
            # A read of more than there is would make room for all of it.
            size = os.fstat(file.fileno()).st_size
            content = file.read(min(size, MAX_BYTES) + 1)
            if len(content) > size:
                # A pipe has no size.
                content += file.read(MAX_BYTES + 1 - len(content))
                size = len(content)
    except FileNotFoundError:
        raise refusal(name, "there is no such file", None, "check the path; YAML text has a line break in it") from None
    except IsADirectoryError:
        raise refusal(name, "this is a folder", None, "use load_contracts for a folder") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise refusal(name, f"the file cannot be read: {reason}", None, "check the path and its permissions") from None
    if size > MAX_BYTES:
        raise too_large(name, size)
    try:
        return content.decode("utf-8-sig"), name
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise refusal(name, f"the file is not UTF-8 (line {line})", None, "save it as UTF-8") from None

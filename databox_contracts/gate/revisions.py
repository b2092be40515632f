"""The contracts of a folder at a revision, or as they are on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from databox_contracts.errors import ContractError, Finding, Level
from databox_contracts.formats import contract_files, detect, read
from databox_contracts.formats.positions import MAX_BYTES, parse_yaml
from databox_contracts.gate.git import Repository
from databox_contracts.model import Contract

WORKING_TREE: Final = "the working tree"


@dataclass(frozen=True)
class Revision:
    """The YAML files of a folder at one time: contents by path from the repository's root, line ends made equal.

    `label` is what findings call the time.
    """

    label: str
    texts: Mapping[str, bytes]

    @classmethod
    def at(cls, repository: Repository, commit: str, folder: str, label: str) -> Revision:
        """The files at a commit."""
        names = repository.files(commit, folder)
        contents = blobs_of(repository, [names])
        return cls(label, {path: contents[name] for path, name in names.items()})

    @classmethod
    def on_disk(cls, repository: Repository, folder: str) -> Revision:
        """The files as they are now, also those that git does not know."""
        place = repository.root / folder
        found: dict[str, bytes] = {}
        for path in contract_files(place) if place.is_dir() else ():
            with path.open("rb") as file:
                found[path.relative_to(repository.root).as_posix()] = _with_plain_lines(file.read(MAX_BYTES + 1))
        return cls(WORKING_TREE, dict(sorted(found.items())))


def blobs_of(repository: Repository, listings: Iterable[Mapping[str, str]]) -> dict[str, bytes]:
    """The contents of all files of some listings, by the names of their blobs, line ends made equal."""
    names = [name for listing in listings for name in listing.values()]
    return {name: _with_plain_lines(content) for name, content in repository.blobs(names).items()}


def _with_plain_lines(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n")


@dataclass(frozen=True)
class Parsed:
    """The contracts by their paths, and what was wrong with files that should be contracts."""

    contracts: Mapping[str, Contract]
    problems: tuple[Finding, ...] = ()


def parse(revision: Revision, paths: Iterable[str]) -> Parsed:
    """The contracts in those files of a revision; a file that is of no known form is left out.

    A file that cannot be read as YAML, or is a contract with errors, is a problem: nobody knows what it promises.
    """
    contracts: dict[str, Contract] = {}
    problems: list[Finding] = []
    for path in paths:
        source = f"{path} at {revision.label}"
        try:
            text = revision.texts[path].decode("utf-8-sig")
        except UnicodeDecodeError:
            problems.append(Finding(source, Level.ERROR, "the file is not UTF-8 text", hint="save it as UTF-8"))
            continue
        contract, findings = read(text, source)
        errors = [finding for finding in findings if finding.level is Level.ERROR]
        if contract is not None and not errors:
            contracts[path] = contract
        elif contract is not None or _should_be_a_contract(text, source):
            problems.extend(errors)
    return Parsed(contracts, tuple(problems))


def _should_be_a_contract(text: str, source: str) -> bool:
    try:
        data = parse_yaml(text, source).data
    except ContractError:
        return True
    return isinstance(data, dict) and detect(data) is not None

"""Contracts that were read before, kept on this machine: a code location is loaded by many processes.

A file's contract is found again by the file's whole text and name and by the code that has read it, so it is never an
old one. It is kept as Python keeps compiled modules, in a folder of the user's own, and only read where nobody else can
have written it. Whatever goes wrong with that, the file is read as if nothing had been kept.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import stat
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

import databox_contracts
from databox_contracts.errors import ContractError
from databox_contracts.formats import contract_of, load_contract, text_of
from databox_contracts.model import Contract

FOLDER_VARIABLE: Final = "DATABOX_CONTRACTS_CACHE"
"""Names the folder; empty, nothing is kept. By default it is `databox_contracts` in the user's cache folder."""

# What a contract or a finding may depend on.
_LIBRARIES: Final = ("pydantic", "pyyaml", "sqlglot", "jsonschema-rs")

UNUSED_DAYS: Final = 30
"""What another version of the code has kept goes when nothing has been added to it for so long."""


def load_kept(path: Path) -> Contract:
    """As `load_contract` of a file, and much quicker where the same code has read the same text under that name."""
    folder = _folder(os.environ.get(FOLDER_VARIABLE))
    if folder is None:
        return load_contract(path)
    try:
        text, name = text_of(path)
    except ContractError:
        # It says so with all its findings.
        return load_contract(path)
    # A file's name may be no text at all.
    whole = f"{name}\0{text}".encode(errors="surrogatepass")
    place = folder / hashlib.sha256(whole).hexdigest()
    contract = _kept(place)
    if contract is None:
        contract = contract_of(text, name)
        _keep(place, contract)
    return contract


def _kept(place: Path) -> Contract | None:
    try:
        found = pickle.loads(place.read_bytes())
    except Exception:  # A damaged one may end in any error at all.
        return None
    return found if isinstance(found, Contract) else None


def _keep(place: Path, contract: Contract) -> None:
    try:
        content = pickle.dumps(contract, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError):
        return
    # Whoever is first, all write the same.
    partial = f"{place}.{os.getpid()}-{threading.get_ident()}"
    try:
        with open(partial, "wb") as file:
            file.write(content)
        os.replace(partial, place)
    except OSError:
        with suppress(OSError):
            os.unlink(partial)


@cache
def _folder(named: str | None) -> Path | None:
    """The folder for what this code reads, made where it is not there; None where nothing can be kept safely."""
    if named == "" or not hasattr(os, "geteuid"):
        return None
    try:
        root = Path(named) if named is not None else _user_cache() / "databox_contracts"
        folder = root / _code()
        if not folder.is_dir():
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            _remove_unused(root)
            folder.mkdir(mode=0o700, exist_ok=True)
        return folder if _is_own(root) and _is_own(folder) else None
    except (OSError, RuntimeError):
        # There may be no home, or none that can be written.
        return None


def _user_cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME", "")
    return Path(given) if os.path.isabs(given) else Path.home() / ".cache"


def _is_own(folder: Path) -> bool:
    """Whether it is a folder, no link, into which nobody but the user writes."""
    found = folder.lstat()
    others = stat.S_IWGRP | stat.S_IWOTH
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & others


def _code() -> str:
    """A name for the code that reads: this package as its files are, Python, and the libraries that take part."""
    root = Path(databox_contracts.__file__).parent
    facts = [sys.version, *(f"{library} {version(library)}" for library in _LIBRARIES)]
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            if name.endswith((".py", ".json")):
                found = os.stat(os.path.join(folder, name))
                facts.append(f"{os.path.relpath(folder, root)}/{name} {found.st_size} {found.st_mtime_ns}")
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:32]


def _remove_unused(root: Path) -> None:
    latest = time.time() - UNUSED_DAYS * 86_400
    for folder in root.iterdir():
        if _is_own(folder) and folder.stat().st_mtime < latest:
            shutil.rmtree(folder, ignore_errors=True)

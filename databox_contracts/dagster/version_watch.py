"""A look at contracts in a folder and in a registry: new versions are published, judged, shown on their assets."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import dagster as dg

from databox_contracts.dagster.code_location import CodeLocation
from databox_contracts.dagster.compatibility import (
    Comparison,
    Shown,
    compare_newest,
    datasets_of,
    newest_version,
    problem_shown,
)
from databox_contracts.dagster.specs import asset_key as translated_key
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.dagster.watch_state import FileState, Recorded, WatchState
from databox_contracts.errors import ContractError, DataboxError, RegistryUnavailableError, RegistryUnusableError
from databox_contracts.model import Contract

if TYPE_CHECKING:
    from databox_contracts.dagster.watched_folder import Look
    from databox_contracts.registry.records import Publication, StoredVersion
    from databox_contracts.registry.store import Registry

CONTRACT_TAG: Final = "databox/contract"
VERSION_TAG: Final = "databox/contract_version"
"""Tags of a run that a new version asked for."""

_MOST_TOLD: Final = 10
_DOWN: Final = (RegistryUnavailableError, RegistryUnusableError)


@dataclass
class VersionWatch:
    """What a tick does when something may have changed.

    `state` is what was known before, and is brought up to date; `record` takes the results of checks. `told` is what is
    to be said, `errors` what is wrong. Nothing new is begun after `end` (of `time.monotonic`); `finished` says
    whether all was done.
    """

    registry: Registry
    state: WatchState
    around: CodeLocation
    check_name: str
    translator: ContractTranslator
    by: str
    verify: bool
    end: float
    clock: Callable[[], datetime]
    record: Callable[[dg.AssetCheckEvaluation], None]
    told: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    finished: bool = True
    recorded: int = 0
    _begun: int = 0

    # --- files ---

    def take_files(self, folder: Path, look: Look) -> None:
        """Read what changed in the folder, publish what is new in it, and note what is wrong with the rest."""
        for name in [name for name in self.state.files if name not in look.files]:
            del self.state.files[name]
        for name, told in look.files.items():
            known = self.state.files.get(name)
            if known is not None and known.told == told and told and not known.again:
                continue
            if self._is_late():
                return
            self.state.files[name] = self._taken(folder / name, name, told, known or FileState())

    def _taken(self, path: Path, name: str, told: str, known: FileState) -> FileState:
        from databox_contracts.formats import read, text_of

        contract: Contract | None = None
        digest = ""
        try:
            text, source = text_of(path)
            digest = hashlib.sha256(text.encode()).hexdigest()[:32]
            if digest == known.digest and not known.again:
                return replace(known, told=told)
            contract, findings = read(text, source)
            if contract is None or any(finding.level == "error" for finding in findings):
                raise ContractError.from_findings(findings)
            keys = tuple(key.to_user_string() for key in self._keys(contract))
            publication = self._published(contract)
        except ContractError as error:
            return self._wrong(FileState(told, digest, problem=str(error)), known, contract)
        except _DOWN:
            raise
        except DataboxError as error:
            # A consent that was lacking may be given, and a registry's rules are not the file's.
            return self._wrong(FileState(told, digest, problem=str(error), again=True), known, contract)
        self._say(publication)
        after = FileState(told, digest, contract.id, keys)
        other = next(self._others(name, contract.id, keys), None)
        if other is not None:
            text = f"two contracts are for the asset {other[1]}: {contract.id} ({name}) and {other[2]} ({other[0]})"
            hint = "Give their datasets other names or domains, or override ContractTranslator.get_asset_key."
            return self._wrong(replace(after, problem=f"{text}. {hint}", again=True), known, contract)
        return after

    def _published(self, contract: Contract) -> Publication:
        from databox_contracts.notify.announcing import announcement, end_announcement

        return self.registry.publish(
            contract,
            by=self.by,
            notifications=announcement(self.clock),
            announce_end=end_announcement(self.clock),
        )

    def _say(self, publication: Publication) -> None:
        stored = publication.stored
        if publication.outcome == "unchanged":
            return
        messages = f", {publication.notified} messages" if publication.notified else ""
        self.told.append(f"{stored.contract_id} {stored.version} {publication.outcome}{messages}")

    def _wrong(self, after: FileState, known: FileState, contract: Contract | None) -> FileState:
        """The file's state with its problem, which is said and shown once."""
        if contract is not None:
            try:
                keys = tuple(key.to_user_string() for key in self._keys(contract))
            except DataboxError:
                keys = ()
            after = replace(after, contract=contract.id, keys=keys or known.keys)
        else:
            after = replace(after, contract=known.contract, keys=known.keys)
        if (after.problem, after.digest) != (known.problem, known.digest):
            self.errors.append(str(after.problem))
            for key in map(dg.AssetKey.from_user_string, after.keys):
                self._record(key, problem_shown(str(after.problem), after.contract))
            if after.contract is not None:
                before = self.state.recorded.get(after.contract, Recorded())
                self.state.recorded[after.contract] = replace(before, problem=True)
        return after

    def _others(self, name: str, contract: str, keys: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        for other, one in self.state.files.items():
            if other != name and one.contract not in (None, contract):
                yield from ((other, key, str(one.contract)) for key in one.keys if key in keys)

    # --- versions ---

    def judge_versions(self, *, definitions_changed: bool) -> None:
        """Record the result of the check for each contract whose newest version it was not recorded for yet."""
        groups: dict[str, list[StoredVersion]] = {}
        for one in self.registry.every_version():
            groups.setdefault(one.contract_id, []).append(one)
        wrong = {one.contract for one in self.state.files.values() if one.problem is not None}
        for contract_id, versions in groups.items():
            newest = newest_version(versions)
            # What is wrong with a contract stands on its assets until it is mended.
            if newest is None or contract_id in wrong:
                continue
            before = self.state.recorded.get(contract_id, Recorded())
            wanted = Recorded(newest.version, f"{newest.digest[:16]}{'-draft' if newest.status == 'draft' else ''}")
            if replace(before, missing=False) == wanted and not (before.missing and definitions_changed):
                continue
            if self._is_late():
                return
            self.state.recorded[contract_id] = self._judged(contract_id, wanted)
            if self.verify and before.version not in ("", newest.version):
                self.state.pending[contract_id] = newest.version

    def _judged(self, contract_id: str, wanted: Recorded) -> Recorded:
        comparison = compare_newest(self.registry, contract_id)
        assert comparison is not None
        missing = False
        for dataset in datasets_of(comparison):
            key = translated_key(comparison.contract, dataset, self.translator)
            if self._record(key, comparison.shown(dataset.name)) or dataset not in comparison.contract.datasets:
                continue
            missing = True
            if any(one.contract == contract_id for one in self.state.files.values()):
                self.errors.append(self._nowhere(comparison, key))
        return replace(wanted, missing=missing)

    def _nowhere(self, comparison: Comparison, key: dg.AssetKey) -> str:
        about = f"{comparison.contract.id} {comparison.contract.version}"
        if key not in self.around.assets:
            return (
                f"{about} is for the asset {key.to_user_string()}, which is not in this code location. Declare it, or "
                "override ContractTranslator.get_asset_key."
            )
        return (
            f"{about}: the asset {key.to_user_string()} has no check {self.check_name}. Add "
            "build_compatibility_checks(...) to the asset_checks of the code location, or reload it."
        )

    # --- verifications ---

    def requests(self, confirmed: Sequence[tuple[str, str]]) -> Iterator[dg.RunRequest]:
        """Verifications of what is pending, as far as the code has that version by now; `confirmed` were requested."""
        for contract_id, version in confirmed:
            if self.state.pending.get(contract_id) == version:
                del self.state.pending[contract_id]
        for contract_id, version in self.state.pending.items():
            # Earlier it would be the older version that the tables are held against.
            loaded = {check.version for check in self.around.checks.values() if check.contract == contract_id}
            if version not in loaded:
                continue
            checks = self.around.verifying(self._concerned(contract_id))
            if checks:
                yield dg.RunRequest(
                    run_key=f"{self.by}: {contract_id} {version}",
                    asset_check_keys=checks,
                    tags={CONTRACT_TAG: contract_id, VERSION_TAG: version},
                )

    def _concerned(self, contract_id: str) -> set[dg.AssetKey]:
        """The contract's assets, those made of them, and those of the consumers whom the version concerns."""
        own = {key for key, asset in self.around.contracted.items() if asset.contract == contract_id}
        own |= {check.key.asset_key for check in self.around.checks.values() if check.contract == contract_id}
        comparison = compare_newest(self.registry, contract_id)
        made = {
            dg.AssetKey.from_user_string(asset)
            for one in (comparison.affected if comparison is not None else ())
            for asset in one.consumer.assets
        }
        return own | made | {reader for key in own for reader in self.around.reading(key)}

    # --- both ---

    def summary(self) -> str:
        """One line of what was done; everything that is wrong comes first."""
        said = [*self.errors, *self.told]
        shown = "; ".join(said[:_MOST_TOLD])
        more = f"; and {len(said) - _MOST_TOLD} more" if len(said) > _MOST_TOLD else ""
        checks = f"{self.recorded} result{'' if self.recorded == 1 else 's'} recorded" if self.recorded else ""
        rest = "" if self.finished else "the rest follows at the next tick"
        return "; ".join(part for part in (shown + more, checks, rest) if part) or "nothing new"

    def _keys(self, contract: Contract) -> list[dg.AssetKey]:
        return [translated_key(contract, dataset, self.translator) for dataset in contract.datasets]

    def _record(self, key: dg.AssetKey, shown: Shown) -> bool:
        """Whether the check is there to have a result."""
        if dg.AssetCheckKey(key, self.check_name) not in self.around.checks:
            return False
        self.record(shown.evaluation(key, self.check_name))
        self.recorded += 1
        return True

    def _is_late(self) -> bool:
        # However little time there is, every tick gets something done.
        self._begun += 1
        self.finished = self._begun == 1 or time.monotonic() < self.end
        return not self.finished

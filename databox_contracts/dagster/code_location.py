"""What a sensor has to know of the definitions around it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import dagster as dg


@dataclass(frozen=True, slots=True)
class ContractCheck:
    """A check that a contract gave, and the version that it was made from."""

    key: dg.AssetCheckKey
    contract: str
    version: str
    verifies: bool
    partitioned: bool


@dataclass(frozen=True, slots=True)
class ContractedAsset:
    """An asset that a contract describes."""

    key: dg.AssetKey
    contract: str
    version: str
    dataset: str


@dataclass(frozen=True, slots=True)
class CodeLocation:
    """Assets and checks of a code location; `fingerprint` changes with the checks and the versions they are made of."""

    assets: frozenset[dg.AssetKey]
    contracted: Mapping[dg.AssetKey, ContractedAsset]
    checks: Mapping[dg.AssetCheckKey, ContractCheck]
    upstream: Mapping[dg.AssetKey, frozenset[dg.AssetKey]]
    fingerprint: str

    def verifying(self, keys: set[dg.AssetKey]) -> list[dg.AssetCheckKey]:
        """The checks that verify the tables of these assets, in order; partitioned tables are verified by partition."""
        found = [check.key for check in self.checks.values() if check.verifies and not check.partitioned]
        return [check for check in found if check.asset_key in keys]

    def reading(self, key: dg.AssetKey) -> list[dg.AssetKey]:
        """The assets that are made of that one directly."""
        return [one for one, upstream in self.upstream.items() if key in upstream]


@lru_cache(maxsize=8)
def look_around(repository: dg.RepositoryDefinition) -> CodeLocation:
    """The definitions of a repository. They do not change while it is loaded."""
    assets: dict[dg.AssetKey, dg.AssetsDefinition] = dict(repository.assets_defs_by_key)
    specs = {key: definition.specs_by_key[key] for key, definition in assets.items()}
    checks = sorted(_checks(repository, assets), key=lambda check: check.key.to_user_string())
    text = "\n".join(f"{check.key.to_user_string()}\0{check.version}" for check in checks)
    return CodeLocation(
        assets=frozenset((*assets, *repository.source_assets_by_key)),
        contracted={
            key: ContractedAsset(
                key,
                _text(spec.metadata, "contract_id"),
                _text(spec.metadata, "contract_version"),
                _text(spec.metadata, "contract_dataset"),
            )
            for key, spec in specs.items()
            if _text(spec.metadata, "contract_id")
        },
        checks={check.key: check for check in checks},
        upstream={key: frozenset(dep.asset_key for dep in spec.deps) for key, spec in specs.items()},
        fingerprint=hashlib.sha256(text.encode()).hexdigest()[:16],
    )


def _checks(
    repository: dg.RepositoryDefinition, assets: Mapping[dg.AssetKey, dg.AssetsDefinition]
) -> Iterator[ContractCheck]:
    seen: set[dg.AssetCheckKey] = set()
    for definition in (*assets.values(), *repository.asset_checks_defs_by_key.values()):
        for spec in definition.check_specs:
            contract = _text(spec.metadata or {}, "contract_id")
            if not contract or spec.key in seen:
                continue
            seen.add(spec.key)
            asset = assets.get(spec.asset_key)
            yield ContractCheck(
                spec.key,
                contract,
                _text(spec.metadata or {}, "contract_version"),
                verifies="rules" in (spec.metadata or {}),
                partitioned=asset is not None and asset.partitions_def is not None,
            )


def _text(metadata: Mapping[str, Any], name: str) -> str:
    value = metadata.get(name)
    found = getattr(value, "value", value)
    return found if isinstance(found, str) else ""

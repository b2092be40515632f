"""Which assets Spark materializes, so that those without a contract can be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import dagster as dg

from databox_contracts.dagster.io import ContractIOManager
from databox_contracts.dagster.metadata import CONTRACT_METADATA

MOST_NAMED: Final = 20
_KINDS: Final = frozenset(("spark", "pyspark"))


class UncontractedAssetWarning(UserWarning):
    """Spark materializes assets that no contract is about."""


def spark_assets(defs: dg.Definitions) -> Iterator[dg.AssetKey]:
    """The assets that Spark materializes and that name no contract themselves, in order.

    Those are what a `ContractIOManager` handles, what has the kind `spark` or `pyspark`, and what requires a resource
    with a `spark_session`. Of an asset that is made elsewhere only its kinds tell.
    """
    resources = dict(defs.resources or {})
    managers = {key for key, resource in resources.items() if isinstance(resource, ContractIOManager)}
    sessions = {key for key, resource in resources.items() if _has_session(resource)}
    for asset in defs.assets or ():
        if isinstance(asset, dg.AssetSpec):
            yield from _uncontracted([asset], lambda spec: bool(_KINDS & spec.kinds))
        elif isinstance(asset, dg.AssetsDefinition) and asset.is_materializable:
            with_session = bool(sessions & asset.required_resource_keys)
            yield from _uncontracted(
                asset.specs,
                lambda spec, asset=asset, made=with_session: (
                    made or bool(_KINDS & spec.kinds) or asset.get_io_manager_key_for_asset_key(spec.key) in managers
                ),
            )


def uncontracted_text(keys: Sequence[dg.AssetKey]) -> str:
    """One sentence about them, with the way out."""
    names = ", ".join(key.to_user_string() for key in keys[:MOST_NAMED])
    more = f" and {len(keys) - MOST_NAMED} more" if len(keys) > MOST_NAMED else ""
    what = "Spark materializes an asset" if len(keys) == 1 else f"Spark materializes {len(keys)} assets"
    return f'{what} without a contract: {names}{more}. Write one, or say uncontracted="ignore".'


def _uncontracted(specs: Any, made_by_spark: Any) -> Iterator[dg.AssetKey]:
    for spec in specs:
        if not _names_contract(spec.metadata) and made_by_spark(spec):
            yield spec.key


def _names_contract(metadata: Mapping[str, Any]) -> bool:
    return CONTRACT_METADATA in metadata or "contract_id" in metadata


def _has_session(resource: object) -> bool:
    """Asked of the class: a lazy resource would start its session."""
    return hasattr(type(resource), "spark_session") or hasattr(type(resource), "createDataFrame")

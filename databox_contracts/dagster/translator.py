"""How a contract appears in Dagster: the one place where a user overrides it."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, get_args

import dagster as dg

from databox_contracts.check_reports import Granularity, check_name, unknown_granularity
from databox_contracts.dagster.columns import table_schema
from databox_contracts.dagster.loading import plan_of
from databox_contracts.dagster.wording import check_text
from databox_contracts.model import Contract, Dataset, Member
from databox_contracts.plan import Check
from databox_contracts.rules import Freshness, NotEnforced, Severity

_EMAIL: Final = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}")
_LONGEST_TAG: Final = 63
_LEAST_SECONDS: Final = 60

_CONSUMERS_TABLE: Final = dg.TableSchema(
    columns=[dg.TableColumn(name) for name in ("consumer", "owner", "versions", "fields", "purpose", "assets")]
)


class ContractTranslator:
    """Derives keys, owners, tags, metadata and check names from a contract.

    `granularity` is how many checks a dataset gets: one, one per quality dimension, or one per rule. Subclass it to
    change anything else. What Dagster cannot hold (a member who is no e-mail address, a tag with a blank) is kept in
    the asset's metadata.
    """

    def __init__(self, *, granularity: Granularity = "dimension") -> None:
        if granularity not in get_args(Granularity):
            raise unknown_granularity(granularity)
        self.granularity = granularity

    def get_asset_key(self, contract: Contract, dataset: Dataset) -> dg.AssetKey:
        """`[domain, dataset]`, without a domain `[dataset]`, in characters that Dagster and a file system take."""
        return dg.AssetKey([_legal(part) for part in (contract.domain, dataset.name) if part])

    def get_group_name(self, contract: Contract, dataset: Dataset) -> str | None:
        """The domain; None is Dagster's default group."""
        return re.sub(r"[^A-Za-z0-9_]", "_", contract.domain) if contract.domain else None

    def get_description(self, contract: Contract, dataset: Dataset) -> str | None:
        """The dataset's, else the contract's."""
        return dataset.description or contract.description or dataset.business_name

    def get_owners(self, contract: Contract, dataset: Dataset) -> Sequence[str]:
        """The owning team as `team:…`, and the e-mail addresses of present members whose role is owner."""
        return [owner for owner in (_team_owner(contract), *filter(_is_owner_address, _addresses(contract))) if owner]

    def get_tags(self, contract: Contract, dataset: Dataset) -> Mapping[str, str]:
        """Tags of contract and dataset; a character Dagster does not take becomes `_`."""
        legal = (_legal(tag)[:_LONGEST_TAG] for tag in _tags(contract, dataset))
        return {tag: "" for tag in legal if tag}

    def get_kinds(self, contract: Contract, dataset: Dataset) -> set[str]:
        """What the icons show."""
        return {"spark", "parquet"}

    def get_metadata(self, contract: Contract, dataset: Dataset) -> Mapping[str, Any]:
        """Contract, version, status and owner, the column schema, the file, and all that fits nowhere else."""
        plan = plan_of(contract, dataset)
        return {
            "dagster/column_schema": table_schema(plan),
            "dagster/table_name": dataset.table_name,
            "dagster/storage_kind": "parquet",
            "contract_id": contract.id,
            "contract_version": contract.version,
            "contract_status": contract.status,
            "contract_owner": contract.owning_team or "none declared",
            "contract_dataset": dataset.name,
            **_source_metadata(contract, dataset),
            **_tag_metadata(self.get_tags(contract, dataset), _tags(contract, dataset)),
            **_team_metadata(self.get_owners(contract, dataset), contract),
            **_consumers_metadata(contract, dataset),
            **_not_enforced_metadata(contract, plan.checks),
        }

    def get_freshness_policy(self, contract: Contract, dataset: Dataset) -> dg.FreshnessPolicy | None:
        """The shortest freshness that the dataset promises, as the longest time between two materializations.

        Rows cannot be newer than the table that holds them. Only promises of severity error count, and a minute is the
        least that Dagster knows.
        """
        promised = [
            rule.seconds
            for rule in dataset.rules
            if isinstance(rule, Freshness) and rule.severity is Severity.ERROR and rule.seconds > 0
        ]
        if not promised:
            return None
        return dg.FreshnessPolicy.time_window(fail_window=timedelta(seconds=max(min(promised), _LEAST_SECONDS)))

    def get_automation_condition(self, contract: Contract, dataset: Dataset) -> dg.AutomationCondition[Any] | None:
        """None: nothing is automated unless it is asked for; `eager_when_checks_pass()` fits contracted inputs."""
        return None

    def get_check_name(self, contract: Contract, dataset: Dataset, check: Check) -> str:
        """Rules with the same name are one check in Dagster: letters, digits, `_` and `.`."""
        return check_name(check, self.granularity)


def _legal(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text.strip())


def _tags(contract: Contract, dataset: Dataset) -> list[str]:
    return list(dict.fromkeys((*contract.tags, *dataset.tags)))


def _team_owner(contract: Contract) -> str | None:
    owner = (contract.owning_team or "").strip()
    if not owner or _EMAIL.fullmatch(owner):
        return owner or None
    return f"team:{_legal(owner.removeprefix('team:'))}"


def _addresses(contract: Contract) -> list[str]:
    return [member.username for member in contract.team.members if _answers_for_it(member)]


def _answers_for_it(member: Member) -> bool:
    return (member.role or "").strip().lower() in ("owner", "data owner") and member.date_out is None


def _is_owner_address(username: str) -> bool:
    return _EMAIL.fullmatch(username) is not None


def _source_metadata(contract: Contract, dataset: Dataset) -> dict[str, Any]:
    if contract.source is None or not os.path.isfile(contract.source):
        return {}
    with warnings.catch_warnings():
        # Code references are in beta, and say so each time.
        warnings.simplefilter("ignore", dg.BetaWarning)
        reference = dg.LocalFileCodeReference(
            file_path=os.path.realpath(contract.source),
            line_number=dataset.position.line if dataset.position is not None else 1,
            label=f"contract {contract.title}",
        )
        references = dg.CodeReferencesMetadataValue(code_references=[reference])
    return {
        "dagster/code_references": references,
        "contract": dg.MetadataValue.path(contract.source),
    }


def _tag_metadata(legal: Mapping[str, str], written: list[str]) -> dict[str, Any]:
    return {} if list(legal) == written else {"contract_tags": dg.MetadataValue.json(written)}


def _team_metadata(owners: Sequence[str], contract: Contract) -> dict[str, Any]:
    others = [
        {"username": member.username, "name": member.name, "role": member.role, "date_out": member.date_out}
        for member in contract.team.members
        if member.username not in owners
    ]
    return {"contract_team": dg.MetadataValue.json(others)} if others else {}


def _consumers_metadata(contract: Contract, dataset: Dataset) -> dict[str, Any]:
    """Who reads the dataset, without where they are reached."""
    names = {dataset.name, dataset.table_name}
    readers = [
        dg.TableRecord(
            {
                "consumer": one.name,
                "owner": one.owner,
                "versions": one.versions,
                "fields": ", ".join(one.fields) or "all",
                "purpose": one.purpose,
                "assets": ", ".join(one.assets) or None,
            }
        )
        for one in contract.consumers
        if not one.datasets or names & set(one.datasets)
    ]
    return {"contract_consumers": dg.MetadataValue.table(records=readers, schema=_CONSUMERS_TABLE)} if readers else {}


def _not_enforced_metadata(contract: Contract, checks: Sequence[Check]) -> dict[str, Any]:
    promises = [check_text(check) for check in checks if isinstance(check.rule, NotEnforced)]
    remarks = [str(finding) for finding in contract.findings]
    return {
        name: dg.MetadataValue.json(texts)
        for name, texts in (("contract_not_enforced", promises), ("contract_findings", remarks))
        if texts
    }


def eager_when_checks_pass() -> dg.AutomationCondition[Any]:
    """For an asset that reads contracted tables: as soon as one of them is new, and none of their checks blocks it."""
    return dg.AutomationCondition.eager() & dg.AutomationCondition.all_deps_blocking_checks_passed()

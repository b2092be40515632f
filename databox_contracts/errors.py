"""Every exception of the package: its facts are attributes, its text ends with the way out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from databox_contracts.drift import DriftReport
    from databox_contracts.results import Verdict


class Level(StrEnum):
    """How bad a finding in a contract file is; only an error keeps the contract from loading."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a contract file; line and column count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One remark about a contract file. `position` is None where the whole file is meant."""

    source: str
    level: Level
    message: str
    position: Position | None = None
    hint: str | None = None
    field: str | None = None

    @property
    def place(self) -> str:
        """`file:line:column`, or the file alone."""
        if self.position is None:
            return self.source
        return f"{self.source}:{self.position.line}:{self.position.column}"

    def __str__(self) -> str:
        way_out = f" ({self.hint})" if self.hint else ""
        return f"{self.place}: {self.level}: {self.message}{way_out}"


class DataboxError(Exception):
    """Base of every error of ours: one sentence of what is wrong, `hint` is the way out."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        if not self.hint:
            return self.message
        stop = "" if self.message.endswith((".", "!", "?", ":")) else "."
        return f"{self.message}{stop} {self.hint[0].upper()}{self.hint[1:]}"


class ContractError(DataboxError):
    """A contract that cannot be used: unreadable, malformed or contradictory.

    `findings` holds every remark about the document, the first error first; `contract`, `field`, `source` and
    `position` are those of that first error.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        contract: str | None = None,
        field: str | None = None,
        source: str | None = None,
        position: Position | None = None,
        findings: Sequence[Finding] = (),
    ) -> None:
        super().__init__(message, hint=hint)
        self.contract = contract
        self.field = field
        self.source = source
        self.position = position
        self.findings = tuple(findings)

    @classmethod
    def from_findings(cls, findings: Sequence[Finding], *, contract: str | None = None) -> ContractError:
        """The error for a document with at least one finding of level error."""
        errors = [finding for finding in findings if finding.level is Level.ERROR]
        first, others = errors[0], len(errors) - 1
        more = f" (and {others} more error{'s' if others > 1 else ''})" if others else ""
        return cls(
            first.message + more,
            hint=first.hint,
            contract=contract,
            field=first.field,
            source=first.source,
            position=first.position,
            findings=[*errors, *(finding for finding in findings if finding.level is not Level.ERROR)],
        )

    def __str__(self) -> str:
        text = f"{self.message} ({self.hint})" if self.hint else self.message
        if self.source is None:
            return super().__str__()
        place = self.source if self.position is None else f"{self.source}:{self.position.line}:{self.position.column}"
        return f"{place}: {text}"


class UnknownTypeError(DataboxError):
    """A type spelling nobody knows."""

    def __init__(self, spelling: str) -> None:
        super().__init__(
            f"unknown type {spelling!r}",
            hint="use a Spark or SQL type such as string, int, bigint, decimal(10,2), timestamp, array<string>",
        )
        self.spelling = spelling


class UnknownDatasetError(DataboxError):
    """A dataset name that the contract does not have, or none where it has several."""

    def __init__(self, contract: str, dataset: str | None, known: Sequence[str]) -> None:
        message = (
            f"contract {contract!r} has no dataset {dataset!r}"
            if dataset is not None
            else f"contract {contract!r} has {len(known)} datasets and none was named"
        )
        super().__init__(message, hint=f"name one of: {', '.join(known)}" if known else "declare a dataset in it")
        self.contract = contract
        self.dataset = dataset
        self.known = tuple(known)


class ContractViolationError(DataboxError):
    """Data that breaks an error-severity promise. `verdict` says which; its text names rules and counts, no values.

    `publication` tells what became of the rows, where they were to be published; None elsewhere.
    """

    def __init__(
        self, verdict: Verdict, *, message: str | None = None, hint: str | None = None, publication: Any = None
    ) -> None:
        super().__init__(message or verdict.summary(), hint=hint)
        self.verdict = verdict
        self.publication = publication


class DataValidationError(ContractViolationError):
    """A table whose schema is frozen, with a table, a column or a value in it that the schema does not have.

    `schema_name` is the contract's id. `table_name` and `column_name` say where: `orders__items` for what is inside the
    array `items` of `orders`, and no column for a new table. `schema_entity` is "tables", "columns" or "data_type",
    `contract_mode` its mode, `schema_contract` the modes of all entities. `table_schema` is the declared dataset.
    `data_item` is one row with what is refused, without the fields whose values must not be shown; None where no row
    has it. It is no part of the text.
    """

    def __init__(
        self,
        verdict: Verdict,
        *,
        message: str | None = None,
        hint: str | None = None,
        publication: Any = None,
        schema_name: str,
        table_name: str,
        column_name: str | None,
        schema_entity: str,
        contract_mode: str,
        table_schema: Any,
        schema_contract: Mapping[str, str],
        data_item: Any = None,
    ) -> None:
        super().__init__(verdict, message=message, hint=hint, publication=publication)
        self.schema_name = schema_name
        self.table_name = table_name
        self.column_name = column_name
        self.schema_entity = schema_entity
        self.contract_mode = contract_mode
        self.table_schema = table_schema
        self.schema_contract = dict(schema_contract)
        self.data_item = data_item


class UnreadableTableError(DataboxError):
    """A table that cannot be read at all: missing, not a table of that format, or not readable."""

    def __init__(self, path: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"cannot read table {path!r}: {reason}", hint=hint)
        self.path = path
        self.reason = reason


class PublicationError(DataboxError):
    """A table that cannot be published to; the published table, if any, is unchanged and readable."""

    def __init__(self, path: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"cannot publish to {path!r}: {reason}", hint=hint)
        self.path = path
        self.reason = reason


class BaselineError(DataboxError):
    """A stored baseline of drift that cannot be read or written."""


class DriftError(DataboxError):
    """Data that left its contract or its own past. `report` says where; its text has counts, no values."""

    def __init__(self, report: DriftReport) -> None:
        super().__init__(
            report.summary(), hint="Correct the data, or accept it as it is now with `update_baseline=True`."
        )
        self.report = report


class SchemaDriftError(DriftError):
    """A table whose columns are not the contract's any more."""

    def __init__(self, report: DriftReport) -> None:
        super().__init__(report)
        self.message = f"{report.dataset} of {report.contract} {report.version}: " + "; ".join(
            one.message for one in report.diverged
        )
        self.hint = "Correct the table, or publish a new version of the contract."


class VersionRangeError(DataboxError):
    """A text that is no range of versions."""

    def __init__(self, text: str, *, hint: str | None = None) -> None:
        super().__init__(f"{text!r} is no range of versions", hint=hint)
        self.text = text


class VersionPinError(DataboxError):
    """A table of a contract version that its reader did not ask for; `found` is None where nobody knows its version."""

    def __init__(self, table: str, pin: str, found: str | None, *, contract: str, hint: str | None = None) -> None:
        known = f"is of version {found} of its contract" if found is not None else "does not say its contract's version"
        super().__init__(f"{contract}: the reader needs version {pin}, and {table} {known}", hint=hint)
        self.table = table
        self.pin = pin
        self.found = found
        self.contract = contract


class ReaderContractError(DataboxError):
    """A table that does not have what its reader's contract asks for; `differences` are sentences, one a field."""

    def __init__(
        self,
        table: str,
        differences: Sequence[str],
        *,
        contract: str,
        dataset: str,
        fields: Sequence[str] = (),
        hint: str | None = None,
    ) -> None:
        super().__init__(f"{contract}: {table} cannot be read as {dataset}: {'; '.join(differences)}", hint=hint)
        self.table = table
        self.differences = tuple(differences)
        self.contract = contract
        self.dataset = dataset
        self.fields = tuple(fields)


class StreamStoppedError(DataboxError):
    """A streaming query that ended with an error; `query` is its name or id, `reason` the cause in words."""

    def __init__(self, query: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"the stream {query} stopped: {reason}", hint=hint)
        self.query = query
        self.reason = reason


class SparkUnavailableError(DataboxError):
    """No Spark session can be had: no Java, a server that does not start or went away."""


class UnknownPlaceError(DataboxError):
    """A name that no contract, dataset or field has, or `several` have; `known` are these, or the nearest names."""

    def __init__(self, text: str, known: Sequence[str], *, several: bool = False) -> None:
        names = ", ".join(known)
        if several:
            super().__init__(f"{text!r} could mean {len(known)} things", hint=f"name one of: {names}")
        else:
            hint = f"did you mean one of: {names}?" if known else "name it as contract, contract.dataset or .field"
            super().__init__(f"no contract, dataset or field is called {text!r}", hint=hint)
        self.text = text
        self.known = tuple(known)
        self.several = several


class DeliveryError(DataboxError):
    """A message that its channel did not take. `channel` is the channel's name; no part of the error holds a secret.

    `permanent`: the same message will be refused again, so few attempts are made. `retry_after` is how many seconds the
    receiver asked to be left alone, None where it did not say.
    """

    def __init__(
        self,
        channel: str,
        reason: str,
        *,
        permanent: bool = False,
        retry_after: float | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(f"{channel}: {reason}", hint=hint)
        self.channel = channel
        self.reason = reason
        self.permanent = permanent
        self.retry_after = retry_after


class RegistryError(DataboxError):
    """The registry refuses what it was asked for, or its database cannot be used as it is."""


class ContactSecretError(RegistryError):
    """A contact has a secret in it, which is not in the text; neither a registry nor an outbox takes it."""


class RegistryUnavailableError(RegistryError):
    """The registry's database does not answer: locked, stopped or out of reach. Nothing that was begun is half done."""


class RegistryUnusableError(RegistryError):
    """The registry's database answers, and cannot be used as it is: no registry's file, no permission."""


class RegistryAccessError(RegistryError):
    """A service that does not know the token, or does not let it do what was asked for; the token is in no text."""


class RegistryTooNewError(RegistryError):
    """A registry whose tables a newer version of this package has made."""

    def __init__(self, place: str, version: int, known: int) -> None:
        super().__init__(
            f"the registry {place} is of schema version {version}, and this package knows versions up to {known}",
            hint="Upgrade databox_contracts here to the version that upgraded the registry.",
        )
        self.version = version
        self.known = known


class ContractConflictError(RegistryError):
    """Another content under a version that is published; the digests are the published content's and the new one's."""

    def __init__(self, contract: str, version: str, published: str, new: str, *, published_as: str) -> None:
        also = f" (as {published_as}, which is the same version)" if published_as != version else ""
        super().__init__(
            f"{contract} {version} is published already{also} with other content: "
            f"published {published}, now given {new}",
            hint="Give the changed contract a new version; what is published stays as it is.",
        )
        self.contract = contract
        self.version = version
        self.published = published
        self.new = new


class UnknownContractError(RegistryError):
    """A contract, or a version of one, that is not in the registry; `known` are the nearest names or all versions."""

    def __init__(self, contract: str, version: str | None = None, *, known: Sequence[str] = ()) -> None:
        what = f"no contract {contract!r}" if version is None else f"no version of {contract} that is {version!r}"
        hint = f"There is: {', '.join(known)}." if known else "`databox-contracts registry list` shows what there is."
        super().__init__(f"the registry has {what}", hint=hint)
        self.contract = contract
        self.version = version
        self.known = tuple(known)


class LifecycleError(RegistryError):
    """A version that may not become active, deprecated or retired (yet); `reasons` are sentences."""

    def __init__(self, contract: str, version: str, reasons: Sequence[str], *, hint: str | None = None) -> None:
        super().__init__(f"{contract} {version}: {'; '.join(reasons)}", hint=hint)
        self.contract = contract
        self.version = version
        self.reasons = tuple(reasons)


class SignOffError(LifecycleError):
    """A version whose breaks need a consent that nobody gave; `missing` has, by consumer, what breaks for it."""

    def __init__(self, contract: str, version: str, missing: Mapping[str, Sequence[str]]) -> None:
        super().__init__(
            contract,
            version,
            [f"{consumer} has not agreed to {', '.join(changes)}" for consumer, changes in missing.items()],
            hint=f"Have each consent to it (`registry approve {contract} --consumer NAME --version {version}`), "
            "or publish a version that breaks nobody.",
        )
        self.missing = {consumer: tuple(changes) for consumer, changes in missing.items()}


class ConsumersError(RegistryError):
    """Consumers that may not read what they declare; `problems` are all of them, the text has a line for each."""

    def __init__(self, problems: Sequence[Any]) -> None:
        lines = "".join(f"\n  {problem}" for problem in problems)
        count = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}"
        super().__init__(f"the declared consumers do not fit the contracts, {count}:{lines}")
        self.problems = tuple(problems)


class ContractsNotAppliedError(DataboxError):
    """Contracts that do not fit the assets of a code location; `problems` are all of them, a line for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        lines = "".join(f"\n  {problem}" for problem in problems)
        count = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}"
        super().__init__(f"the contracts do not fit the assets, {count}:{lines}")
        self.problems = tuple(problems)

"""Where a published table lives on disk, and how it is opened."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from databox_contracts.errors import PublicationError, UnreadableTableError
from databox_contracts.spark.failures import SPARK_ERRORS, unreadable
from databox_contracts.spark.reading import FORMATS as READABLE, INFERRED, read_table
from databox_contracts.spark.table_files import Layout, require_format

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""A path makes one slash of two."""


@dataclass(frozen=True, slots=True)
class TablePlace:
    """A table's place: `name` (parts separated by `/`) below the directory `root`.

    Readers open `link`, a symbolic link to the version they are to see. Everything else of the table is in `home`, a
    hidden directory beside it; rows held back are in `quarantine`. `format` is what the next version's files are:
    parquet, orc, json or csv. Raises `PublicationError` for a name that would lead out of the root or hide the table
    from Spark, a root that is an object store's, where no rename is atomic, and an unknown format.
    """

    root: Path
    name: str
    format: str = "parquet"

    def __post_init__(self) -> None:
        require_format(self.format, f"{self.root}/{self.name}")
        if _URL.match(str(self.root)):
            raise PublicationError(
                f"{self.root}/{self.name}",
                "the root is a URL, and a table is swapped in by a rename that only a file system has",
                hint="Name a directory that this process and Spark share.",
            )
        for part in self.name.split("/"):
            if not part or part[0] in "._" or "\0" in part or "\\" in part or "=" in part:
                raise PublicationError(
                    f"{self.root}/{self.name}",
                    f"{part!r} is no name for a table or a directory of one",
                    hint="Name it without '..', '\\', '=', and without a leading '.', '_' or '/'.",
                )

    def __str__(self) -> str:
        return str(self.link)

    @property
    def link(self) -> Path:
        """What readers open."""
        return self.root / self.name

    @property
    def home(self) -> Path:
        """Versions, staging and locks of this table."""
        return self.link.with_name(f".{self.link.name}.databox")

    @property
    def versions(self) -> Path:
        """One immutable directory per published version."""
        return self.home / "versions"

    @property
    def staging(self) -> Path:
        """What is being written and is not yet published."""
        return self.home / "staging"

    @property
    def quarantine(self) -> Path:
        """Held rows, one directory `batch=…` per publish that held any."""
        return self.link.with_name(f"{self.link.name}.quarantine")

    def ensure_inside_root(self) -> None:
        """Raises `PublicationError` where a link on the way leads elsewhere, or a file stands in it."""
        at = self.root
        for part in self.name.split("/")[:-1]:
            at = at / part
            if at.is_symlink():
                raise PublicationError(str(self.link), f"{at} is a link, so the table would not be below {self.root}")
            if at.exists() and not at.is_dir():
                raise PublicationError(str(self.link), f"{at} is a file")

    def current_version(self) -> str | None:
        """The version that readers see; None where there is no table, or a plain directory that is not ours."""
        try:
            target = os.readlink(self.link)
        except OSError:
            return None
        return Path(target).name if self.owns(target) else None

    def owns(self, target: str) -> bool:
        """Whether the target of a link is a version of this table."""
        return Path(target).parent == Path(self.home.name, "versions")


def read_published(spark: SparkSession, place: TablePlace) -> DataFrame:
    """Open the version that is published now; a publish that follows does not disturb the reader.

    Raises `UnreadableTableError` where there is no table or Spark cannot read it.
    """
    from databox_contracts.spark.home_files import read_json
    from databox_contracts.spark.versions import MANIFEST, VersionStore

    VersionStore(place).recover_adoption()
    if not place.link.exists():
        raise UnreadableTableError(str(place.link), "nothing was published there yet", hint="Materialize it first.")
    # Resolved now: a link would be followed again, perhaps to another version, when the rows are read.
    path = place.link.resolve()
    layout = Layout.recorded(read_json(path / MANIFEST))
    try:
        if layout is not None:
            return layout.read(spark, path)
        # Another's table, or an older version.
        return read_table(spark, str(path), format=place.format, formats=(*READABLE, *INFERRED))
    except SPARK_ERRORS as error:
        raise unreadable(str(place.link), error) from error
    except UnreadableTableError as error:
        raise UnreadableTableError(str(place.link), error.reason, hint=error.hint) from error

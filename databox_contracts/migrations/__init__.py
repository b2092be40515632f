"""SQL data definition: the datasets it leaves, and what a migration does to those of a contract."""

from databox_contracts.migrations.creating import SOURCE, datasets_of

__all__ = ["SOURCE", "datasets_of"]

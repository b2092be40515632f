"""What checks, gates and deliveries did, as metrics and as lineage events; never a value of the data."""

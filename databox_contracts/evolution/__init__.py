"""What changed between two versions of a contract, whom it breaks, and the version it needs."""

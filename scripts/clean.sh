#!/bin/sh
# Removes what the Makefile made. A shared Spark server that still runs ends by itself once its state is gone.
set -eu
cd "$(dirname "$0")/.."
rm -rf .venv .demo .lanes __pycache__ build dist ./*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
find databox_contracts tests examples benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

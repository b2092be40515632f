#!/bin/sh
# Makes .venv with the tested versions of everything, and finds or installs a Java that Spark can use.
set -eu
cd "$(dirname "$0")/.."
unset PYTHONPATH PYTHONHOME || true

usable='
import sys
import ensurepip, venv
sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))
'

# A command of the right name may be a version manager's shim without a Python behind it, so each one is run.
find_python() {
    for candidate in ${PYTHON:-python3.11 python3.12 python3.13 python3 python}; do
        if "$candidate" -c "$usable" >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
    echo "No usable Python 3.11, 3.12 or 3.13 with venv and pip was found; install one, or name it: make PYTHON=/path/to/python3.12" >&2
    return 1
}

if ! .venv/bin/python -c "$usable" >/dev/null 2>&1 || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    python=$(find_python)
    echo "Making .venv with $("$python" -V)"
    rm -rf .venv
    "$python" -m venv .venv
fi

echo "Installing the tested versions (a few minutes the first time)"
.venv/bin/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
.venv/bin/python scripts/java_home.py

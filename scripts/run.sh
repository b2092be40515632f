#!/bin/sh
# Runs a command in the project's environment: run.sh COMMAND ARGUMENT...
set -eu
unset PYTHONPATH PYTHONHOME || true
venv=$(cd "$(dirname "$0")/../.venv" && pwd)

JAVA_HOME=$(cat "$venv/java_home" 2>/dev/null || true)
if [ ! -x "$JAVA_HOME/bin/java" ]; then
    # The Java that was found at setup is gone.
    "$venv/bin/python" "$venv/../scripts/java_home.py" >&2
    JAVA_HOME=$(cat "$venv/java_home")
fi

export JAVA_HOME
export VIRTUAL_ENV="$venv"
export PATH="$venv/bin:$JAVA_HOME/bin:$PATH"
exec "$@"

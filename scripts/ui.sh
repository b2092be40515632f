#!/bin/sh
# Opens the project in the Dagster web server: ui.sh PORT. Runs started there need Dagster's daemon too.
set -eu
cd "$(dirname "$0")/.."
export DAGSTER_HOME="$PWD/.demo/dagster_home"
mkdir -p "$DAGSTER_HOME"
if [ ! -e "$DAGSTER_HOME/dagster.yaml" ]; then
    printf 'telemetry:\n  enabled: false\nnux:\n  enabled: false\n' >"$DAGSTER_HOME/dagster.yaml"
fi
echo "Dagster: http://127.0.0.1:$1 (ctrl-c ends it)"
# Its successor, dg, is another package and wants another project layout.
exec python -W 'ignore:Function `dev_command` is superseded' -m dagster dev -w workspace.yaml -h 127.0.0.1 -p "$1"

#!/bin/sh
# Runs the engine's tests where Spark is another one: lanes.sh [LANE...]
#
#   connect       over Spark Connect, a real server
#   cluster       on a standalone cluster with two workers
#   pyspark-3.5   on that PySpark, in an environment of its own below .lanes
#   pyspark-4.0
#   iceberg       Iceberg tables of a session's catalog, on PySpark 3.5 with Iceberg's runtime
#   dagster-1.13.0  the plugin's tests on the oldest Dagster that is supported
set -eu
cd "$(dirname "$0")/.."

# What holds of the engine wherever it runs; the other tests are about processes, files of contracts and Dagster.
ENGINE="${ENGINE:-tests/spark/test_predicates.py tests/spark/test_verification.py tests/spark/test_expressions.py
    tests/spark/test_statistics.py tests/spark/test_timeliness.py tests/spark/test_differential.py
    tests/spark/test_keys.py tests/spark/test_running.py tests/spark/test_inside.py tests/spark/test_references.py
    tests/spark/test_completeness.py tests/spark/test_footers.py tests/spark/test_audit.py tests/spark/test_modes.py
    tests/spark/test_splitting.py tests/spark/test_publication.py tests/spark/test_replacing.py tests/spark/test_collations.py}"

PLUGIN="${PLUGIN:-tests/dagster}"

here() {
    echo "== $1"
    # shellcheck disable=SC2086
    DATABOX_TEST_SPARK=$1 python -m pytest $ENGINE
}

# other NAME REQUIREMENT...: makes an environment where these stand in for the tested versions, and its first on PATH.
other() {
    venv=.lanes/$1
    echo "== $1"
    shift
    if [ ! -e "$venv/.complete" ]; then
        rm -rf "$venv"
        python -m venv "$venv"
        pinned=$(for name in "$@"; do printf '%s|' "${name%%[=<]*}"; done)
        grep -viE "^(${pinned%|})(\[[a-z]+\])?==" constraints.txt > "$venv/constraints.txt"
        printf '%s\n' "$@" >> "$venv/constraints.txt"
        "$venv/bin/python" -m pip install -qq --disable-pip-version-check -c "$venv/constraints.txt" -e '.[dev]' \
            setuptools
        touch "$venv/.complete"
    fi
}

# there TEST...: the tests in that environment. Its own parts warn of what newer ones have put right.
there() {
    PATH="$PWD/$venv/bin:$PATH" VIRTUAL_ENV="$PWD/$venv" "$venv/bin/python" -m pytest -o filterwarnings= "$@"
}

for lane in ${*:-connect cluster pyspark-3.5 pyspark-4.0 iceberg dagster-1.13.0}; do
    case $lane in
        connect | cluster) here "$lane" ;;
        # PySpark 3.5 asks for NumPy 1, which the newest Arrow does not take.
        # shellcheck disable=SC2086
        pyspark-3.5)
            other pyspark-3.5 'pyspark==3.5.9' 'numpy<2' 'pyarrow==23.0.1' 'pandas-stubs'
            there $ENGINE
            ;;
        # shellcheck disable=SC2086
        pyspark-4.0)
            other pyspark-4.0 'pyspark==4.0.5'
            there $ENGINE
            ;;
        # shellcheck disable=SC2086
        dagster-1.13.0)
            other dagster-1.13.0 dagster==1.13.0 dagster-shared==1.13.0 dagster-pipes==1.13.0 dagster-graphql==1.13.0 \
                dagster-webserver==1.13.0 dagster-dg-cli==1.13.0 dagster-dg-core==1.13.0 dagster-cloud-cli==1.13.0 \
                dagster-rest-resources==0.29.0 dagster-pyspark==0.29.0 dagster-spark==0.29.0 "tomlkit<0.13.3"
            there $PLUGIN
            ;;
        iceberg)
            [ -x .lanes/iceberg/bin/python ] || sh scripts/iceberg_lane.sh
            python -m pytest -m full tests/spark/test_iceberg_session.py
            ;;
        *) echo "unknown lane $lane" >&2; exit 2 ;;
    esac
done

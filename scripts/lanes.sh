#!/bin/sh
# Runs the engine's tests where Spark is another one: lanes.sh [LANE...]
#
#   connect       over Spark Connect, a real server
#   cluster       on a standalone cluster with two workers
#   pyspark-3.5   on that PySpark, in an environment of its own below .lanes
#   pyspark-4.0
set -eu
cd "$(dirname "$0")/.."

# What holds of the engine wherever it runs; the other tests are about processes, files of contracts and Dagster.
ENGINE="${ENGINE:-tests/spark/test_predicates.py tests/spark/test_verification.py tests/spark/test_expressions.py
    tests/spark/test_statistics.py tests/spark/test_timeliness.py tests/spark/test_differential.py
    tests/spark/test_publication.py}"

here() {
    echo "== $1"
    # shellcheck disable=SC2086
    DATABOX_TEST_SPARK=$1 python -m pytest $ENGINE
}

older() {
    version=$1
    shift
    venv=.lanes/pyspark-$version
    echo "== PySpark $version"
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
    # Its own parts warn of what newer ones have put right.
    # shellcheck disable=SC2086
    PATH="$PWD/$venv/bin:$PATH" VIRTUAL_ENV="$PWD/$venv" "$venv/bin/python" -m pytest -o filterwarnings= $ENGINE
}

for lane in ${*:-connect cluster pyspark-3.5 pyspark-4.0}; do
    case $lane in
        connect | cluster) here "$lane" ;;
        # PySpark 3.5 asks for NumPy 1, which the newest Arrow does not take.
        pyspark-3.5) older 3.5 'pyspark==3.5.9' 'numpy<2' 'pyarrow==23.0.1' 'pandas-stubs' ;;
        pyspark-4.0) older 4.0 'pyspark==4.0.5' ;;
        *) echo "unknown lane $lane" >&2; exit 2 ;;
    esac
done

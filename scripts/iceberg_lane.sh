#!/bin/sh
# Makes .lanes/iceberg: PySpark 3.5 with Iceberg's runtime, which the tests of Iceberg tables in a session's catalog need.
set -eu
cd "$(dirname "$0")/.."
unset PYTHONPATH PYTHONHOME || true

lane=.lanes/iceberg
[ -x .venv/bin/python ] || { echo "Run make setup first." >&2; exit 1; }
rm -rf "$lane"
.venv/bin/python -m venv "$lane"
"$lane/bin/python" -m pip install -qq --disable-pip-version-check "pyspark==3.5.9" "snowpark-connect-deps-iceberg==1.0.2"

# Everything else is that of .venv, which comes after the lane's own packages.
.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
    >"$("$lane/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/main.pth"
"$lane/bin/python" -c 'import pyspark; print("PySpark", pyspark.__version__, "with Iceberg is in '"$lane"'")'

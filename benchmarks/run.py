"""Every benchmark, one after the other: `make bench`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = (
    "lint.py",
    "gate.py",
    "load_definitions.py",
    "sensor_tick.py",
    "one_jvm.py",
    "verify.py",
    "wide.py",
    "publish.py",
    "drift.py",
)

if __name__ == "__main__":
    for name in BENCHMARKS:
        print(f"== {name}", flush=True)
        subprocess.run([sys.executable, str(Path(__file__).with_name(name))], check=True)

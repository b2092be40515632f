"""How long 1,000 contracts take to be loaded into `Definitions`, beyond importing Dagster.

Three ways: an asset of `@contract_asset` for each file; the same with what each consumes of another; assets that are
there already, and `apply_contracts` over the folder. Each figure is the median of three processes, measured in them
from when Dagster is imported to when the repository is there: of those that find contracts kept by another process, and
of those that find nothing, as the first on a machine.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

COUNT = 1000
ROUNDS = 3

MEASURED = """
import time
import dagster
start = time.perf_counter()
{code}
print(time.perf_counter() - start)
"""
DECLARED = """
import pathlib, sys
import dagster as dg
from databox_contracts.dagster import ContractIOManager, SharedSparkResource, contract_asset

def declare(path, number):
    consumes = {f"d{(number - 1) // 100}.table_{number - 1:04}": "^1"} if CONSUMES and number else None

    @contract_asset(contract=path, consumes=consumes)
    def table(): ...

    return table

spark = SharedSparkResource(directory="/nowhere")
paths = sorted(pathlib.Path(sys.argv[1]).rglob("*.yaml"))
defs = dg.Definitions(
    assets=[declare(path, number) for number, path in enumerate(paths)],
    resources={"io_manager": ContractIOManager(root="/nowhere", spark=spark)},
)
defs.get_repository_def()
"""
APPLIED = """
import pathlib, sys
import dagster as dg
from databox_contracts.dagster import ContractIOManager, SharedSparkResource, apply_contracts

def make(path):
    @dg.asset(key=[path.parent.name, path.stem])
    def table(): ...

    return table

spark = SharedSparkResource(directory="/nowhere")
root = pathlib.Path(sys.argv[1])
defs = dg.Definitions(
    assets=[make(path) for path in sorted(root.rglob("*.yaml"))],
    resources={"io_manager": ContractIOManager(root="/nowhere", spark=spark)},
)
apply_contracts(defs, root).get_repository_def()
"""
PLAIN = """
import pathlib, sys
import dagster as dg

def make(path):
    @dg.asset(
        key=[path.parent.name, path.stem],
        check_specs=[dg.AssetCheckSpec(name, asset=[path.parent.name, path.stem]) for name in ("a", "b")],
    )
    def table(): ...

    return table

dg.Definitions(assets=[make(path) for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.yaml"))]).get_repository_def()
"""
WAYS = (
    ("plain assets with two checks, no contract", PLAIN),
    ("@contract_asset", f"CONSUMES = False\n{DECLARED}"),
    ("@contract_asset that consumes another", f"CONSUMES = True\n{DECLARED}"),
    ("apply_contracts to assets that are there", APPLIED),
)


def main() -> None:
    """Prints every way."""
    with tempfile.TemporaryDirectory() as place:
        write_contracts(Path(place))
        for name, code in WAYS:
            firsts, others = [], []
            for _ in range(ROUNDS):
                with tempfile.TemporaryDirectory() as kept:
                    firsts.append(_seconds(code, place, kept))
                    others.append(_seconds(code, place, kept))
            first, other = statistics.median(firsts), statistics.median(others)
            print(f"{COUNT} contracts, {name}: {other:.2f} s; the first process {first:.2f} s", flush=True)


def write_contracts(root: Path) -> None:
    """Contracts of ten fields, ten folders of a hundred."""
    for number in range(COUNT):
        folder = root / f"d{number // 100}"
        folder.mkdir(parents=True, exist_ok=True)
        fields = "".join(
            f"      - {{name: field_{at}, logicalType: integer, physicalType: bigint, required: true,"
            f" logicalTypeOptions: {{minimum: 0, maximum: 1000}}}}\n"
            for at in range(10)
        )
        folder.joinpath(f"table_{number:04}.yaml").write_text(
            f"apiVersion: v3.1.0\nkind: DataContract\nid: contract-{number}\nversion: 1.0.0\nstatus: active\n"
            f"domain: d{number // 100}\nteam: {{name: owners}}\n"
            f"schema:\n  - name: table_{number:04}\n    physicalType: table\n    properties:\n{fields}"
        )


def _seconds(code: str, place: str, kept: str) -> float:
    environ = {**os.environ, "DATABOX_CONTRACTS_CACHE": kept}
    command = [sys.executable, "-c", MEASURED.format(code=code), place]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environ).stdout)


if __name__ == "__main__":
    main()

"""How much longer `lint` takes for 1,000 contracts than a bare parse of them by libyaml.

Two sets: the example contracts of this repository over and over, and contracts of 40 fields. Each figure is the median
of three runs of a process of its own, start included.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COUNT = 1000
ROUNDS = 3
EXAMPLES = Path(__file__).parents[1] / "contracts"

BARE = """
import sys, pathlib, yaml
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.yaml")):
    yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)
"""


def main() -> None:
    """Prints both sets."""
    with tempfile.TemporaryDirectory() as place:
        for name, texts in (("the examples", example_texts()), ("40 fields each", _wide())):
            folder = Path(place, name.split()[0])
            folder.mkdir()
            for number, text in enumerate(texts):
                folder.joinpath(f"c{number:04}.yaml").write_text(text)
            bare = _seconds([sys.executable, "-c", BARE, str(folder)])
            lint = _seconds([sys.executable, "-m", "databox_contracts", "lint", str(folder)])
            print(f"{COUNT} contracts, {name}: libyaml {bare:.2f} s, lint {lint:.2f} s, {lint - bare:.2f} s more")


def _seconds(command: list[str]) -> float:
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def example_texts() -> list[str]:
    """The example contracts over and over, each with an id of its own."""
    texts = [path.read_text() for path in sorted(EXAMPLES.rglob("*.yaml"))]
    return [_with_id(texts[number % len(texts)], number) for number in range(COUNT)]


def _with_id(text: str, number: int) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(f"id: contract-{number}\n" if line.startswith("id:") else line for line in lines)


def _wide() -> list[str]:
    fields = "".join(
        f"      - name: field_{at}\n"
        "        logicalType: integer\n"
        "        physicalType: bigint\n"
        f"        description: The value of field {at}.\n"
        f"        required: {'true' if at % 2 else 'false'}\n"
        "        logicalTypeOptions: {minimum: 0, maximum: 1000}\n"
        for at in range(40)
    )
    head = "apiVersion: v3.1.0\nkind: DataContract\nid: contract-{}\nversion: 1.0.0\nstatus: active\nschema:\n"
    table = "  - name: table_{}\n    physicalType: table\n    properties:\n"
    return [head.format(number) + table.format(number) + fields for number in range(COUNT)]


if __name__ == "__main__":
    main()

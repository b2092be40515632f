"""Every target takes every contract, and says the same of it each time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from databox_contracts.errors import DataboxError, UnknownDatasetError
from databox_contracts.export import EXPORTERS, export
from databox_contracts.formats import load_contract
from databox_contracts.model import Contract
from databox_contracts.testing import build_contract, build_field

CASES = Path(__file__).parents[1] / "cases"
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
DOCUMENTS = [*sorted(CASES.glob("*/*.y*ml")), *sorted(CORPUS.rglob("*.y*ml"))]

ONE_DATASET = ("spark-ddl", "spark-json", "avro", "json-schema")


def test_the_targets():
    names = [exporter.name for exporter in EXPORTERS]
    assert names[:5] == ["spark-ddl", "spark-json", "avro", "json-schema", "sql"]
    assert len(set(names)) == len(names)
    assert tuple(exporter.name for exporter in EXPORTERS if exporter.one_dataset)[:4] == ONE_DATASET


def test_an_unknown_target_lists_the_known():
    with pytest.raises(DataboxError, match=r"nothing is exported as 'paper'\. Use one of: spark-ddl, "):
        export(build_contract(), "paper")


@pytest.mark.parametrize("name", ONE_DATASET)
def test_a_target_of_one_table_asks_for_it(name):
    one = build_contract(build_field("a", "int"), dataset="one").datasets
    two = build_contract(build_field("a", "int"), dataset="two").datasets
    contract = Contract(id="test", version="1.0.0", datasets=one + two)
    with pytest.raises(UnknownDatasetError):
        export(contract, name)
    with pytest.raises(UnknownDatasetError):
        export(contract, name, dataset="three")
    assert export(contract, name, dataset="two").text


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_document_to_every_target(path):
    contract, again = load_contract(path), load_contract(path)
    for exporter in EXPORTERS:
        for dataset in contract.datasets if exporter.one_dataset else (None,):
            named = dataset.name if dataset is not None else None
            exported = export(contract, exporter.name, dataset=named)
            assert exported == export(again, exporter.name, dataset=named)
            # There is no table to make where no columns are declared.
            assert exported.text.endswith("\n") or (exporter.name, exported.text) == ("sql", "")
            assert len(set(exported.losses)) == len(exported.losses)
            assert all(loss and "\n" not in loss for loss in exported.losses)
            if exporter.name in ("spark-json", "avro", "json-schema"):
                json.loads(exported.text)


def test_the_same_text_whatever_the_hash_seed():
    code = (
        "import sys; from databox_contracts.export import EXPORTERS, export;"
        "from databox_contracts.formats import load_contract;"
        f"contract = load_contract({str(CASES / 'odcs' / 'orders.odcs.yaml')!r});"
        "print([export(contract, exporter.name) for exporter in EXPORTERS])"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(CASES.parents[1])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


def test_importing_the_targets_loads_nothing_heavy():
    code = "import sys; import databox_contracts.export; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(CASES.parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {"sqlglot", "pyspark", "jsonschema_rs", "pandas", "pyarrow"} & set(done.stdout.split())

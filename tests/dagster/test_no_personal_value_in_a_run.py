"""A value of a masked field, from a real run to all that is recorded, listed and told of it: it stands nowhere."""

import random
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from databox_contracts.cli import main
from databox_contracts.dagster import (
    ContractIOManager,
    ContractRegistryResource,
    build_contract_failure_sensor,
    contract_asset,
)
from databox_contracts.formats import dump_contract
from databox_contracts.model import Consumer, Contract, Dataset, Field, Governance
from databox_contracts.registry.store import Registry
from databox_contracts.rules import Enum, ForeignKey, Pattern, Unique
from databox_contracts.spark import TablePlace, publish
from databox_contracts.testing import build_contract, build_field

MARK = "mArKdPeRsOn"
OPEN = "nobodys-value"
WAYS: tuple[tuple[dict[str, Any], str | None, bool], ...] = (
    ({"pii": True}, None, True),
    ({"pii": True, "classification": "public"}, None, True),
    ({"classification": "restricted"}, None, True),
    ({"classification": "Confidential", "pii": False}, None, True),
    ({"tags": ("PII",)}, None, True),
    ({}, "gdpr", True),
    ({"pii": False}, "gdpr", False),
    ({"classification": "internal"}, None, False),
    ({}, None, False),
)
"""How a field says that its values are personal, or not: its own facts, the contract's class, whether it is masked."""


def table(dice: random.Random, pii_class: str | None) -> tuple[Contract, str, list[tuple[Any, ...]]]:
    """A contract, Spark's types of its table, and rows in which each field breaks its rule with a value that tells."""
    fields: list[Field] = [build_field("id", "bigint", pii=False)]
    types, bad = ["id bigint"], []
    for number, (facts, _, masked) in enumerate(way for way in WAYS if way[1] == pii_class):
        name, value = f"f{number}", f"{MARK if masked else OPEN}-{number}"
        rule = dice.choice(
            (Enum(values=("fine",)), Pattern(pattern="^fine$"), ForeignKey(fields=(), to="known", to_fields=("k",)))
        )
        match dice.choice(("plain", "object", "array", "map", "key")) if masked else "plain":
            case "plain":
                fields.append(build_field(name, "string", rule, **facts))
                types.append(f"{name} string")
                bad.append(value)
            case "object":
                inner = build_field("inner", "string", rule)
                fields.append(build_field(name, "object", fields=(inner,), **facts))
                types.append(f"{name} struct<inner:string>")
                bad.append((value,))
            case "array":
                fields.append(build_field(name, "array", item=build_field("item", "string", rule), **facts))
                types.append(f"{name} array<string>")
                bad.append([value, "fine"])
            case "map":
                key, one = build_field("key", "string"), build_field("value", "string", rule)
                fields.append(build_field(name, "map", key=key, value=one, **facts))
                types.append(f"{name} map<string,string>")
                bad.append({"k": value})
            case "key":
                fields.append(build_field(name, "string", Unique(), **facts))
                types.append(f"{name} string")
                bad.append(value)
    contract = Contract(
        id="people",
        version="1.0.0",
        status="active",
        datasets=(Dataset(name="people", fields=tuple(fields)),),
        governance=Governance(pii_class=pii_class),
        consumers=(Consumer("desk", "https://desk.example.com/hook"),),
    )
    return contract, ", ".join(types), [(number, *bad) for number in range(6)]


@pytest.mark.parametrize("pii_class", [None, "gdpr"])
@pytest.mark.parametrize("on_violation", ["fail", "quarantine", "warn"])
def test_the_value_of_a_masked_field_is_nowhere(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    pii_class: str | None,
    on_violation: Any,
) -> None:
    dice = random.Random(f"1 {pii_class} {on_violation}")
    contract, types, rows = table(dice, pii_class)
    file, database = tmp_path / "people.yaml", tmp_path / "registry.db"
    file.write_text(dump_contract(contract))
    with Registry.open(database) as registry:
        registry.publish_all([contract], by="test")

    @contract_asset(contract=file, on_violation=on_violation, references={"known": "known"})
    def people():  # type: ignore[no-untyped-def]
        return spark.createDataFrame(rows, types)

    root = tmp_path / "tables"
    manager = ContractIOManager(root=str(root), spark=spark)
    known = spark.createDataFrame([("fine",)], "k string")
    publish(known, build_contract(build_field("k", "string")), place=TablePlace(root, "known"))
    seen: list[str] = []
    resource = ContractRegistryResource(location=str(database))
    with dg.instance_for_test() as instance:
        defs = dg.Definitions(
            assets=[people, dg.AssetSpec("known")], resources={"io_manager": manager, "registry": resource}
        )
        sensor = build_contract_failure_sensor()

        def tick() -> None:
            resources = {"registry": resource}
            context = dg.build_sensor_context(
                instance=instance, definitions=defs, resources=resources, sensor_name=sensor.name
            )
            seen.append(str(sensor.evaluate_tick(context)))

        tick()
        job = defs.resolve_implicit_global_asset_job_def()
        run = job.execute_in_process(instance=instance, raise_on_error=False)
        tick()
        # All that the web server has to show of a run is in its events.
        events = [dg.serialize_value(event) for event in instance.all_logs(run.run_id)]
        assert sum("ASSET_CHECK_EVALUATION" in event for event in events) >= 1
        seen += events
    with Registry.open(database) as registry:
        messages = [repr(one) for one, _ in registry.outbox.waiting()]
        assert messages, "somebody is told"
        seen += messages
    if on_violation == "quarantine":
        for command in (
            ["list", str(root), "people"],
            ["show", str(root), "people", "--contract", str(file), "--format", "json"],
            ["register", str(root), "people", "--registry", str(database)],
        ):
            main(["quarantine", *command])
        main(["registry", "batches", "--registry", str(database), "--format", "json"])
    seen += [*capsys.readouterr(), caplog.text, database.read_bytes().decode("latin-1")]
    found = [text[max(0, text.find(MARK) - 300) : text.find(MARK) + 50] for text in seen if MARK in text]
    assert found == []
    # What may be shown is, so that the search finds something where there is something.
    assert any(OPEN in text for text in seen)

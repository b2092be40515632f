"""Prometheus metrics: what they count, how many there may be, and the file for the node exporter."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from databox_contracts.errors import DataboxError
from databox_contracts.notifications import State
from databox_contracts.telemetry.measures import _RULE_KINDS, NOTIFICATIONS
from databox_contracts.telemetry.prometheus import PrometheusMetrics


def samples(metrics):
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.text())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def value(metrics, name, **labels):
    return samples(metrics).get((name, tuple(sorted(labels.items()))))


def test_violations_by_contract_rule_and_severity(verdict):
    metrics = PrometheusMetrics()
    metrics.record_verdict(verdict, 1.5)
    metrics.record_verdict(verdict, 2.5)
    of = {"contract": "crm", "dataset": "people"}
    assert value(metrics, "databox_violations_total", **of, rule="required", severity="error") == 2
    assert value(metrics, "databox_violations_total", **of, rule="pattern", severity="warning") == 4
    assert value(metrics, "databox_violations_total", **of, rule="freshness", severity="error") == 2
    assert value(metrics, "databox_violating_rows_total", **of, rule="required", severity="error") == 6
    assert value(metrics, "databox_violating_rows_total", **of, rule="pattern", severity="warning") == 18
    assert value(metrics, "databox_violating_rows_total", **of, rule="freshness", severity="error") == 0
    assert {
        status: value(metrics, "databox_checks_total", **of, status=status)
        for status in ("passed", "failed", "not_evaluated", "skipped")
    } == {"passed": 2, "failed": 8, "not_evaluated": 2, "skipped": 2}
    assert value(metrics, "databox_verifications_total", **of, passed="false") == 2
    assert value(metrics, "databox_verified_rows_total", **of) == 2000
    assert value(metrics, "databox_verification_duration_seconds_count", **of) == 2
    assert value(metrics, "databox_verification_duration_seconds_sum", **of) == 4.0
    assert value(metrics, "databox_verification_duration_seconds_bucket", **of, le="2.5") == 2
    assert value(metrics, "databox_last_failed_checks", **of) == 5
    assert value(metrics, "databox_last_passed", **of) == 0
    assert value(metrics, "databox_last_rows", **of) == 1000
    assert value(metrics, "databox_last_verification_seconds", **of) == 2.5


def test_an_empty_table_that_passes(clean):
    metrics = PrometheusMetrics()
    metrics.record_verdict(clean)
    of = {"contract": "crm", "dataset": "people"}
    assert value(metrics, "databox_verifications_total", **of, passed="true") == 1
    assert value(metrics, "databox_last_passed", **of) == 1
    assert value(metrics, "databox_last_rows", **of) == 0
    assert value(metrics, "databox_verification_duration_seconds_count", **of) is None


def test_no_value_stands_in_them(verdict, mark):
    metrics = PrometheusMetrics()
    metrics.record_verdict(verdict, 1.0)
    assert mark not in metrics.text()
    assert "mArK" not in metrics.text()
    assert "mail" not in metrics.text()


def test_a_label_holds_one_of_so_many_texts(verdict):
    metrics = PrometheusMetrics(most_datasets=3)
    for number in range(10):
        metrics.record_verdict(replace(verdict, dataset=f"d{number}"))
    metrics.record_verdict(replace(verdict, dataset="d0"))
    told = {key: count for key, count in samples(metrics).items() if key[0] == "databox_verified_rows_total"}
    assert told == {
        ("databox_verified_rows_total", (("contract", contract), ("dataset", dataset))): count
        for contract, dataset, count in [
            ("crm", "d0", 2000),
            ("crm", "d1", 1000),
            ("crm", "d2", 1000),
            ("(other)", "(other)", 7000),
        ]
    }


def test_rules_of_nobodys_kind_and_names_that_are_none(verdict):
    odd = replace(verdict.results[0], rule="value is 'x'")
    metrics = PrometheusMetrics()
    metrics.record_verdict(replace(verdict, contract='a"b\\c\nd' + "e" * 500, results=(odd,)))
    ((labels, count),) = [
        (dict(key[1]), count) for key, count in samples(metrics).items() if key[0] == "databox_violations_total"
    ]
    assert (labels["rule"], count) == ("(other)", 1)
    assert labels["contract"].startswith('a"b\\c?d')
    assert len(labels["contract"]) == 200
    assert {"required", "pattern", "freshness", "unique", "expression"} <= _RULE_KINDS


@dataclass
class Gate:
    clean: bool
    breaking: tuple[int, ...] = ()
    acknowledged: tuple[int, ...] = ()
    additive: tuple[int, ...] = ()
    problems: tuple[int, ...] = ()


def test_gates():
    metrics = PrometheusMetrics()
    metrics.record_gate(Gate(True, additive=(1, 2)))
    metrics.record_gate(Gate(False, breaking=(1,), acknowledged=(1, 2, 3)))
    metrics.record_gate(Gate(False, problems=(1,)))
    assert {
        outcome: value(metrics, "databox_gates_total", outcome=outcome) for outcome in ("clean", "breaking", "problem")
    } == {
        "clean": 1,
        "breaking": 1,
        "problem": 1,
    }
    assert value(metrics, "databox_gated_changes_total", verdict="breaking") == 1
    assert value(metrics, "databox_gated_changes_total", verdict="acknowledged") == 3
    assert value(metrics, "databox_gated_changes_total", verdict="additive") == 2


def test_a_gates_own_report_is_taken():
    from databox_contracts.gate.gating import GateReport

    metrics = PrometheusMetrics()
    metrics.record_gate(GateReport("a", "b", ()))
    assert value(metrics, "databox_gates_total", outcome="clean") == 1


def test_notifications_by_state():
    metrics = PrometheusMetrics(measures=(NOTIFICATIONS,))
    metrics.record_notifications({State.WAITING: 3, State.DEAD: 1})
    metrics.record_notifications({State.WAITING: 2, State.DEAD: 1})
    assert samples(metrics) == {
        ("databox_notifications", (("state", "waiting"),)): 2,
        ("databox_notifications", (("state", "sent"),)): 0,
        ("databox_notifications", (("state", "dead"),)): 1,
    }


def test_they_are_in_a_registry_of_their_own(verdict):
    first, second = PrometheusMetrics(), PrometheusMetrics()
    first.record_verdict(verdict)
    assert value(second, "databox_verified_rows_total", contract="crm", dataset="people") is None
    assert not [one for one in REGISTRY.collect() if one.name.startswith("databox")]


def test_the_file_for_the_textfile_collector(verdict, tmp_path):
    metrics = PrometheusMetrics()
    metrics.record_verdict(verdict)
    path = tmp_path / "databox.prom"
    path.write_text("of the last run")
    metrics.write(path)
    assert path.read_text() == metrics.text()
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(DataboxError, match=r"cannot be written .*No such file or directory"):
        metrics.write(tmp_path / "nowhere" / "databox.prom")
    with pytest.raises(DataboxError, match=r"cannot be written"):
        metrics.write(tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_verify_writes_it(verdict, tmp_path, monkeypatch, capsys):
    from databox_contracts.cli import main, verify

    contract = tmp_path / "c.yaml"
    contract.write_text(
        "apiVersion: v3.1.0\nkind: DataContract\nid: crm\nversion: 2.1.0\nstatus: active\n"
        "schema: [{name: people, properties: [{name: name, logicalType: string}]}]\n"
    )
    monkeypatch.setattr(verify, "_verify", lambda *_: (verdict, 2.5))
    target = tmp_path / "databox.prom"
    code = main(["verify", str(contract), "--data", "people.parquet", "--metrics-file", str(target)])
    assert code == 1
    assert 'databox_last_passed{contract="crm",dataset="people"} 0.0' in target.read_text()
    assert 'databox_last_verification_seconds{contract="crm",dataset="people"} 2.5' in target.read_text()
    assert "VIOLATED" in capsys.readouterr().out
    code = main(
        ["verify", str(contract), "--data", "people.parquet", "--metrics-file", str(tmp_path / "no" / "x.prom")]
    )
    assert code == 2
    assert "the metrics cannot be written" in capsys.readouterr().err


def test_without_the_client_the_way_out_is_told(monkeypatch):
    import sys

    from databox_contracts.cli.verify import _metrics

    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.delitem(sys.modules, "databox_contracts.telemetry.prometheus", raising=False)
    with pytest.raises(DataboxError, match=r"--metrics-file needs .*databox_contracts\[telemetry\]"):
        _metrics()


def test_anything_that_looks_like_a_gates_report_is_taken():
    metrics = PrometheusMetrics()
    metrics.record_gate(SimpleNamespace(clean=True, breaking=[], acknowledged=[], additive=[], problems=[]))
    assert value(metrics, "databox_gates_total", outcome="clean") == 1

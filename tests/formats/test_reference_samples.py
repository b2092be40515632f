"""The sample contracts of the reference documents work as they stand there, once their lost indentation is repaired.

`tests/cases/reference` has them line by line, with the keys and values of the samples and prose of our own. Where the
documents themselves are at hand, their text is read with the indentation of those files.
"""

import re
from pathlib import Path

import pytest

from databox_contracts.errors import Finding
from databox_contracts.formats import dump_contract, load_contract, losses, read
from databox_contracts.formats.canonical import canonical
from databox_contracts.formats.positions import parse_yaml
from databox_contracts.plan import build_plan

CASES = Path(__file__).parents[1] / "cases" / "reference"
REFERENCE = Path(__file__).parents[3] / "shared" / "reference"

# Which document holds the sample, between which lines.
SAMPLES = {
    "user_events.contract.yaml": (
        "001_47f55b1355916692.txt",
        "# data-contracts/user_events.contract.yaml",
        'percentage: "99.5%"',
    ),
    "transaction.v3.yaml": (
        "004_6c726827b2e47d4d.txt",
        "# contracts/payments/transaction.v3.yaml",
        'write: ["payments-platform"]',
    ),
}

# What lint has to say of them, beside rules that a version does not evaluate yet.
FINDINGS = {
    # An address that is none, the format of a timestamp, two service levels that data cannot show.
    "user_events.contract.yaml": ["warning 16", "note 87", "warning 120", "warning 129"],
    # A short version, a default of a required field, percentiles without an arrival, a percentage of nothing, no order.
    "transaction.v3.yaml": ["note 6", "note 31", "warning 43", "warning 47", "note 49"],
}

DIALECTS = {"user_events.contract.yaml": "datacontract", "transaction.v3.yaml": "sections"}

_PROSE_KEYS = ("description", "usage", "limitations", "billing", "name")


def pasted(name: str) -> str:
    """The sample's text with the indentation that it lost; skips where the document is not at hand."""
    document, first, last = SAMPLES[name]
    path = REFERENCE / document
    if not path.is_file():
        pytest.skip("the reference documents are not here")
    lines = path.read_text(encoding="utf-8").splitlines()
    start = lines.index(first)
    sample = lines[start : lines.index(last, start) + 1]
    indented = (CASES / name).read_text(encoding="utf-8").splitlines()
    assert len(indented) == len(sample)
    spaces = [re.match(" *", line)[0] for line in indented]
    return "".join(f"{before}{line.strip()}\n" for before, line in zip(spaces, sample, strict=True))


def text_of(name: str, source: str) -> str:
    return (CASES / name).read_text(encoding="utf-8") if source == "golden" else pasted(name)


def told(findings: list[Finding]) -> list[str]:
    """Level and line of each finding, without rules that are only carried, which are fewer in each version."""
    own = [finding for finding in findings if "this version does not evaluate" not in finding.message]
    return [f"{finding.level} {finding.position.line if finding.position else '-'}" for finding in own]


@pytest.mark.parametrize("source", ["golden", "pasted"])
@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_loads_and_lints_as_it_deserves(name, source):
    contract, findings = read(text_of(name, source))
    assert contract is not None
    assert contract.dialect == DIALECTS[name]
    assert told(findings) == FINDINGS[name], "\n".join(map(str, findings))


@pytest.mark.parametrize("source", ["golden", "pasted"])
@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_comes_back_from_the_standard_without_a_loss(name, source):
    contract = load_contract(text_of(name, source))
    text = dump_contract(contract)
    again = load_contract(text)
    assert canonical(again) == canonical(contract)
    assert losses(contract, "odcs") == []
    assert dump_contract(again) == text
    for before, after in zip(contract.datasets, again.datasets, strict=True):
        assert checks(again, after) == checks(contract, before)


def checks(contract, dataset) -> list[tuple[object, ...]]:
    found = build_plan(contract, dataset).checks
    return sorted((check.id, check.severity, check.dimension, check.masked) for check in found)


@pytest.mark.parametrize("source", ["golden", "pasted"])
def test_the_sample_in_six_sections_is_written_in_six_sections(source):
    contract = load_contract(text_of("transaction.v3.yaml", source))
    text = dump_contract(contract, "sections")
    assert losses(contract, "sections") == []
    assert dump_contract(load_contract(dump_contract(contract)), "sections") == text


@pytest.mark.parametrize("name", SAMPLES)
def test_the_files_hold_the_keys_and_values_of_the_samples(name):
    golden = parse_yaml(text_of(name, "golden"), name).data
    sample = parse_yaml(text_of(name, "pasted"), name).data
    assert data_of(golden) == data_of(sample)


def data_of(value: object, key: str = "", inside: tuple[str, ...] = ()) -> object:
    """The data without its prose: descriptions, what checks are called, and what `semantics` says."""
    if isinstance(value, dict):
        return {name: data_of(item, name, (*inside, key)) for name, item in value.items()}
    if isinstance(value, list):
        return [data_of(item, key, inside) for item in value]
    is_name = key == "name" and "checks for user_event" not in inside
    if "semantics" in inside or (key in _PROSE_KEYS and not is_name):
        return "prose"
    return value


# The documents show YAML of two other tools, which is no contract of a dialect: it is refused, not read in part.
FOREIGN = {
    "a dbt model": """\
models:
  - name: user_features
    description: "What is known of each visitor."
    config:
      contract:
        enforced: true
    columns:
      - name: user_id
        data_type: varchar
        constraints:
          - type: not_null
          - type: unique
        tests:
          - not_null
          - unique

      - name: event_type
        data_type: varchar
        constraints:
          - type: not_null
        tests:
          - not_null
          - accepted_values:
              values: [page_view, product_click, add_to_cart, purchase]

      - name: computed_at
        data_type: timestamp
        constraints:
          - type: not_null
""",
    "a table of dlt": """\
blocks:
  description: Ethereum blocks
  write_disposition: append
  columns:
    number:
      nullable: false
      primary_key: true
      name: number
""",
}


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
def test_samples_of_other_tools_are_refused(text):
    contract, findings = read(text)
    assert contract is None
    assert [(f.level, f.message, f.position.line) for f in findings] == [
        ("error", "this is no contract of a known form", 1)
    ]

"""One form for what dialects write in several ways."""

from databox_contracts import rules
from databox_contracts.model import Dataset, Field
from databox_contracts.normalizing import with_keys_at_fields, without_dialects
from databox_contracts.testing import build_contract, build_field


def test_a_key_of_one_field_moves_to_the_field():
    inner = Field(name="o", fields=(Field(name="b"),))
    keys = (rules.Unique(fields=("a",)), rules.DuplicateCount(fields=("o.b",), threshold=rules.NO_ROWS))
    dataset = with_keys_at_fields(Dataset(name="t", fields=(Field(name="a"), inner), rules=keys))
    assert dataset.rules == ()
    assert dataset.fields[0].rules == (rules.Unique(),)
    assert dataset.fields[1].fields[0].rules == (rules.DuplicateCount(threshold=rules.NO_ROWS),)


def test_other_rules_stay_where_they_are():
    kept = (
        rules.Unique(fields=("a", "b")),
        rules.Unique(fields=("nothing",)),
        rules.PrimaryKey(fields=("a",)),
        rules.RowCount(threshold=rules.NO_ROWS),
    )
    dataset = Dataset(name="t", fields=(Field(name="a"),), rules=kept)
    assert with_keys_at_fields(dataset) is dataset
    assert with_keys_at_fields(Dataset(name="t")) == Dataset(name="t")


def test_what_only_a_dialect_says_is_left_out_at_every_depth():
    own = {"$odcs": {"x": 1}, "plain": 0}
    field = build_field("a", "array<struct<b:int>>", rules.Required(custom=own), custom=own)
    plain = without_dialects(
        build_contract(field, rules=(rules.RowCount(threshold=rules.NO_ROWS, custom=own),), custom=own)
    )
    (dataset,) = plain.datasets
    assert plain.custom == dataset.fields[0].custom == {"plain": 0}
    assert dataset.rules[0].custom == dataset.fields[0].rules[0].custom == {"plain": 0}
    assert dataset.fields[0].item is not None
    assert [part.name for part in dataset.fields[0].item.fields] == ["b"]
    assert without_dialects(build_contract()) == build_contract()

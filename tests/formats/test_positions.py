"""YAML with positions: what is read as what, where it stands, and what is refused."""

import time

import pytest

from databox_contracts.errors import ContractError, Level, Position
from databox_contracts.formats.positions import MAX_BYTES, MAX_DEPTH, MAX_NODES, parse_yaml, position_of, text_of

DOCUMENT = """\
version: 3.10
list:
  - plain
  - {quoted: "1.0", country: NO, none: null}
base: &base {a: 1, b: 2}
merged:
  <<: *base
  b: 3
"""


def parse(text: str):
    return parse_yaml(text, "c.yaml")


def refusal(text: str) -> ContractError:
    with pytest.raises(ContractError) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1", 1),
        ("a: -0", 0),
        ("a: 0x1F", 31),
        ("a: 1_000", 1000),
        ("a: 1.5", 1.5),
        ("a: 'x'", "x"),
        ("a: ''", ""),
        ("a: '1'", "1"),
        ("a: yes", True),
        ("a: no", False),
        ("a: ~", None),
        ("a:", None),
        ("a: 2026-01-31", "2026-01-31"),
        ("a: 2026-01-31T10:00:00Z", "2026-01-31T10:00:00Z"),
        ("a: !!str 1", "1"),
        ("a: []", []),
        ("a: {}", {}),
        ("a: [1, [2]]", [1, [2]]),
        ("a: |\n  x\n  y\n", "x\ny\n"),
    ],
)
def test_values_are_those_of_yaml_1_1_with_dates_as_text(text, expected):
    value = parse(text).data["a"]
    assert value == expected
    assert type(value) is type(expected)


def test_an_empty_text_has_no_data():
    assert parse("").data is None
    assert parse("# only a comment\n").data is None


def test_positions_are_those_of_values_and_of_keys():
    document = parse(DOCUMENT)
    assert document.position(("version",)) == Position(1, 10)
    assert document.key_position(("version",)) == Position(1, 1)
    assert document.position(("list", 0)) == Position(3, 5)
    assert document.key_position(("list", 0)) == Position(3, 5)
    assert document.position(("list", 1, "country")) == Position(4, 30)
    assert document.key_position(("list", 1, "country")) == Position(4, 21)
    assert document.position(()) == Position(1, 1)


def test_a_merged_value_stands_where_it_was_written():
    document = parse(DOCUMENT)
    assert document.data["merged"] == {"a": 1, "b": 3}
    assert document.position(("merged", "a")) == Position(5, 17)
    assert document.position(("merged", "b")) == Position(8, 6)


def test_the_position_of_what_is_missing_is_that_of_its_nearest_ancestor():
    document = parse(DOCUMENT)
    assert document.position(("list", 7, "x")) == document.position(("list",))
    assert document.position(("nothing",)) == Position(1, 1)
    assert parse("").position(("a",)) == Position(1, 1)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("version",), "3.10"),
        (("list", 1, "country"), "NO"),
        (("list", 1, "quoted"), "1.0"),
        (("list", 1, "none"), None),
        (("list",), None),
        (("list", 9), None),
        (("list", 0, "x"), None),
    ],
)
def test_text_is_what_was_written(path, expected):
    assert parse(DOCUMENT).text(path) == expected


def test_quoted_tells_text_from_what_only_looks_like_it():
    document = parse(DOCUMENT)
    assert document.quoted(("list", 1, "quoted"))
    assert not document.quoted(("version",))
    assert not document.quoted(("list",))


def test_a_repeated_key_is_an_error_and_the_first_one_counts():
    document = parse("a: 1\nb: 2\na: 3\n")
    assert document.data == {"a": 1, "b": 2}
    (finding,) = document.findings
    assert str(finding) == "c.yaml:3:1: error: the key 'a' stands here again, first in line 1 (remove one)"


@pytest.mark.parametrize(("key", "shown"), [("1", "1"), ("no", "no"), ("2026-01-31", "2026-01-31")])
def test_a_key_that_is_no_text_is_read_as_text_with_a_warning(key, shown):
    document = parse(f"{key}: x\n")
    assert document.data == {shown: "x"}
    assert [finding.level for finding in document.findings] == [Level.WARNING]


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("a: [\n", "not valid YAML", Position(2, 1)),
        ("a: b: c\n", "not valid YAML", Position(1, 5)),
        ("a:\n\t- b\n", "cannot start any token", Position(2, 1)),
        ("a: *nothing\n", "undefined alias", Position(1, 4)),
        ("a: 1\n---\nb: 2\n", "another document", Position(2, 1)),
        ("a: x\n \x01: y\n", "not valid YAML", Position(2, 2)),
        ("a: !!python/object/apply:os.system [ls]\n", "!!python/object/apply:os.system", Position(1, 4)),
        ("a: !local x\n", "!local", Position(1, 4)),
        ("a: !!binary eA==\n", "!!binary", Position(1, 4)),
        ("a: !!set {b}\n", "!!set", Position(1, 4)),
        ("!!python/name:os.system a: b\n", "!!python/name:os.system", Position(1, 1)),
        ("a: !!int x\n", "not a usable int", Position(1, 4)),
        ("a: " + "9" * 5000, "not a usable int", Position(1, 4)),
        ("? [a, b]\n: c\n", "a key that is not text", Position(1, 3)),
        ("null: c\n", "a key that is not text", Position(1, 1)),
        ("<<: 1\n", "merges mappings only", Position(1, 5)),
        ("a: &a [*a]\n", "an alias that contains itself", Position(1, 4)),
        ("a: &a {b: *a}\n", "an alias that contains itself", Position(1, 4)),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_position(text, message, position):
    error = refusal(text)
    assert message in error.message
    assert error.position == position
    assert error.hint


def test_half_a_character_is_refused():
    assert "half a character" in refusal("a: \ud800").message


def alias_bomb(levels: int, width: int) -> str:
    lines = [f"a0: &a0 [{', '.join(['x'] * width)}]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(alias_bomb(6, 10), "aliases followed", id="a million-fold alias"),
        pytest.param(alias_bomb(60, 10), "aliases followed", id="a 10**60-fold alias"),
        pytest.param("[" * 100_000, "deep", id="open brackets"),
        pytest.param("{a: " * 100_000, "deep", id="open braces"),
        pytest.param("- " * 400_000, "deep", id="dashes"),
        pytest.param("? " * 400_000, "deep", id="question marks"),
        pytest.param("\n".join(" " * n + "a:" for n in range(1000)), "deep", id="indentation"),
        pytest.param("[" + "a," * 500_000 + "]", "keys and values", id="many items"),
        pytest.param("a: b\n" * 200_000, "keys and values", id="many entries"),
        pytest.param("a" * (MAX_BYTES + 1), "bytes", id="too many bytes"),
        pytest.param("a: 'x\n" * 100_000, "not valid YAML", id="an open quote"),
        pytest.param(":" * 1_000_000, "not valid YAML", id="colons"),
    ],
)
def test_a_hostile_document_is_refused_at_once(text, message):
    started = time.perf_counter()
    assert message in refusal(text).message
    assert time.perf_counter() - started < 1


def test_the_limits_are_inclusive():
    assert parse("[" * MAX_DEPTH + "]" * MAX_DEPTH).data
    assert "deep" in refusal("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)).message
    assert len(parse("[" + "a," * (MAX_NODES - 1) + "]").data) == MAX_NODES - 1
    assert "keys and values" in refusal("[" + "a," * MAX_NODES + "]").message


def test_an_alias_used_often_but_harmlessly_is_read():
    assert parse("a: &a [1, 2]\nb: [*a, *a, *a]\n").data["b"] == [[1, 2], [1, 2], [1, 2]]


def test_an_entry_of_a_mapping_is_the_one_on_its_path():
    document = parse(DOCUMENT)
    for path, mapping in (
        ((), document.data),
        (("list", 1), document.data["list"][1]),
        (("merged",), document.data["merged"]),
    ):
        for key in mapping:
            node = document.node(mapping, key)
            assert node is not None
            assert position_of(node) == document.position((*path, key))
            assert text_of(node) == document.text((*path, key))
        assert document.node(mapping, "nothing") is None
    assert document.node({"version": 1}, "version") is None

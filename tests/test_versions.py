"""Versions as texts, and how far one is from another."""

import pytest

from databox_contracts.versions import Bump, Version


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.2.3", (1, 2, 3)),
        ("3.2", (3, 2, 0)),
        ("3.10", (3, 10, 0)),
        ("3.1", (3, 1, 0)),
        ("0", (0, 0, 0)),
        ("0.0.0", (0, 0, 0)),
        ("v2.1", (2, 1, 0)),
        (" 1.0.0 ", (1, 0, 0)),
        ("1.0.0-rc.1", (1, 0, 0)),
        ("1.0.0+build.5", (1, 0, 0)),
    ],
)
def test_a_version_is_read_as_text(text, expected):
    version = Version.parse(text)
    assert version is not None
    assert (version.major, version.minor, version.patch) == expected


@pytest.mark.parametrize("text", ["", "x", "1.x", "1.2.3.4", "01.2", "1.-2", "1..2", "latest", "1.0.0-", "99999999999"])
def test_what_is_no_version(text):
    assert Version.parse(text) is None


ORDER = [
    "0.9.0",
    "1.0.0-1",
    "1.0.0-2",
    "1.0.0-10",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-beta",
    "1.0.0",
    "1.0.1",
    "1.1",
    "2",
]


def test_versions_have_an_order():
    versions = [Version.parse(text) for text in ORDER]
    shuffled = [*versions[3:], *versions[:3]]
    assert sorted(shuffled) == versions


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("1.0.0", "1.0.0", Bump.NONE),
        ("1.0", "1.0.0", Bump.NONE),
        ("1.0.0", "1.0.1", Bump.PATCH),
        ("1.0.0", "1.1.0", Bump.MINOR),
        ("3.1", "3.10", Bump.MINOR),
        ("1.9.9", "2.0.0", Bump.MAJOR),
        ("0.1.0", "0.2.0", Bump.MINOR),
        ("1.0.0-rc.1", "1.0.0", Bump.PATCH),
        ("2.0.0", "1.9.0", None),
        ("3.10", "3.1", None),
    ],
)
def test_how_far_a_version_moved(old, new, expected):
    assert Version.parse(old).bump_to(Version.parse(new)) == expected


@pytest.mark.parametrize(
    ("bump", "expected"),
    [(Bump.NONE, "1.2.3"), (Bump.PATCH, "1.2.4"), (Bump.MINOR, "1.3.0"), (Bump.MAJOR, "2.0.0")],
)
def test_the_next_version(bump, expected):
    assert str(Version.parse("1.2.3").bumped(bump)) == expected

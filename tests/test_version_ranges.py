"""Ranges of versions: what each allows, written out."""

import pytest

from databox_contracts.errors import VersionRangeError
from databox_contracts.version_ranges import VersionRange
from databox_contracts.versions import Version

RANGES = [
    # range, allowed, not allowed
    ("^1.2.3", "1.2.3 1.2.4 1.3.0 1.99.0", "1.2.2 2.0.0 0.9.0 2.0.0-rc.1 1.4.0-rc.1"),
    ("^2", "2.0.0 2.9.9", "1.9.9 3.0.0 2.1.0-beta"),
    ("^1.2", "1.2.0 1.9.0", "1.1.9 2.0.0"),
    ("^0.2.3", "0.2.3 0.2.9", "0.2.2 0.3.0 1.0.0"),
    ("^0.2", "0.2.0 0.2.9", "0.1.9 0.3.0"),
    ("^0.0.3", "0.0.3", "0.0.2 0.0.4 0.1.0"),
    ("^0.0", "0.0.0 0.0.9", "0.1.0"),
    ("^0", "0.0.0 0.9.9", "1.0.0"),
    ("^1.x", "1.0.0 1.9.9", "0.9.9 2.0.0"),
    ("^1.2.3-beta.2", "1.2.3-beta.2 1.2.3-rc 1.2.3 1.3.0", "1.2.3-beta.1 1.2.4-beta.3 2.0.0"),
    ("~1.2.3", "1.2.3 1.2.9", "1.2.2 1.3.0"),
    ("~1.4", "1.4 1.4.0 1.4.7", "1.3.9 1.5.0 1.40.0"),
    ("~1", "1.0.0 1.9.9", "0.9.9 2.0.0"),
    ("~0.0.1", "0.0.1 0.0.9", "0.0.0 0.1.0"),
    (">=1.2,<2", "1.2.0 1.2 1.9.9", "1.1.9 2.0.0 2.0.1 2.0.0-alpha"),
    (">=1.2 <2", "1.2.0 1.9.9", "1.1.9 2.0.0"),
    (" >= 1.2 , < 2 ", "1.2.0 1.9.9", "1.1.9 2.0.0"),
    (">1.2", "1.3.0 2.0.0", "1.2.0 1.2.9"),
    (">1.2.3", "1.2.4", "1.2.3 1.2.2"),
    (">1", "2.0.0", "1.9.9"),
    ("<=1.2", "1.2.9 0.1.0", "1.3.0"),
    ("<=1.2.3", "1.2.3 1.2.2", "1.2.4 1.2.3-rc.1"),
    ("<1", "0.0.0 0.9.9", "1.0.0 1.0.0-rc.1"),
    (">=0", "0.0.0 7.1.0", "1.0.0-rc"),
    ("1.2.3", "1.2.3 v1.2.3 1.2.3+build", "1.2.4 1.2.2"),
    ("=1.2.3", "1.2.3", "1.2.4"),
    ("==1.2.3", "1.2.3", "1.2.4"),
    ("0.0.0", "0.0.0", "0.0.1"),
    ("1.2", "1.2.0 1.2.9", "1.1.9 1.3.0"),
    ("1.x", "1.0.0 1.9.9", "2.0.0"),
    ("1.2.*", "1.2.0 1.2.9", "1.3.0"),
    ("3.10", "3.10.0 3.10", "3.1.0 3.1"),
    ("3.1", "3.1.0", "3.10.0 3.10"),
    ("v2", "2.0.0", "3.0.0"),
    ("*", "0.0.0 99.0.0", "1.0.0-rc"),
    ("x", "0.0.0", "1.0.0-rc"),
    (">*", "", "0.0.0 9.9.9"),
    ("^1 || ^3", "1.5.0 3.0.0", "2.0.0 4.0.0"),
    ("1.0.0||>=2.1,<2.2", "1.0.0 2.1.5", "1.0.1 2.2.0"),
    (">=1.0.0-rc.1", "1.0.0-rc.1 1.0.0-rc.2 1.0.0 2.0.0", "1.0.0-beta 1.0.1-rc.1"),
    ("1.0.0-rc.1", "1.0.0-rc.1", "1.0.0 1.0.0-rc.2"),
    (">2,<1", "", "0.5.0 1.5.0 3.0.0"),
]


def version(text: str) -> Version:
    found = Version.parse(text)
    assert found is not None
    return found


@pytest.mark.parametrize(("text", "allowed", "refused"), RANGES)
def test_what_a_range_allows(text, allowed, refused):
    pin = VersionRange.parse(text)
    assert [one for one in allowed.split() if not pin.allows(version(one))] == []
    assert [one for one in refused.split() if pin.allows(version(one))] == []


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "^", "latest", "1.2.3.4", "^1.2 ||", "|| 1", ">=1.2,", ",1", ">=1,,<2", "v", "1x", "x.1", "1.x.2"),
        *("=>1", ">=1.2<2", "^^1", "1 - 2", "!=1", "~>1.2", "01", "^1.2.x.x.x", "1.-2"),
    ],
)
def test_what_is_no_range(text):
    with pytest.raises(VersionRangeError, match=r"is no range of versions\. Write it as") as error:
        VersionRange.parse(text)
    assert error.value.text == text


def test_it_is_written_as_it_was():
    assert str(VersionRange.parse(" >=1.2, <2 ")) == ">=1.2, <2"

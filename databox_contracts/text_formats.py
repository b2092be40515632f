r"""The named formats of text as regular expressions that Java and Python read alike.

They are those of JSON Schema: e-mail of RFC 5321, hostname of RFC 1123, URI of RFC 3986, addresses of RFC 2673 and
RFC 4291, dates and times of RFC 3339 (with a zone, by the calendar, leap seconds only where there may be one), and
`byte` of OpenAPI (base64 of RFC 4648, padded). An expression is about the whole text, and none takes an empty one.
An address of numbers with leading zeros is refused, although RFC 2673 has them: many programs read them as octal.
Repetitions of groups are possessive in Java, which would recurse once for each turn of them. In Python they are not:
before 3.11.5 it goes wrong where a turn of such a group begins and does not end. No text matches by giving a turn back,
so the two say the same.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_ONCE: Final = "${once}"
_END: Final = "${end}"

_HEX: Final = "[0123456789abcdefABCDEF]"
_OCTET: Final = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4: Final = rf"{_OCTET}(?:\.{_OCTET}){{3}}"


def _ipv6() -> str:
    group = "[0-9A-Fa-f]{1,4}"
    last = f"(?:{group}:{group}|{_IPV4})"
    # RFC 3986, by the number of groups after the `::`.
    forms = [f"(?:{group}:){{6}}{last}"]
    for after in range(5, -1, -1):
        before = f"(?:(?:{group}:){{0,{5 - after - 1}}}{group})?" if after < 5 else ""
        forms.append(f"{before}::(?:{group}:){{{after}}}{last}")
    forms.append(f"(?:(?:{group}:){{0,5}}{group})?::{group}")
    forms.append(f"(?:(?:{group}:){{0,6}}{group})?::")
    return f"(?:{'|'.join(forms)})"


_IPV6: Final = _ipv6()

_LABEL: Final = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOSTNAME: Final = rf"{_LABEL}(?:\.{_LABEL})*{_ONCE}"

_ATOM: Final = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_QUOTED: Final = rf'"(?:[ !#-\[\]-~]|\\[ -~])*{_ONCE}"'
_EMAIL: Final = rf"(?:{_ATOM}(?:\.{_ATOM})*{_ONCE}|{_QUOTED})@(?:{_HOSTNAME}|\[(?:{_IPV4}|[Ii][Pp][Vv]6:{_IPV6})\])"


def _uri() -> str:
    escaped = f"%{_HEX}{{2}}"

    def run(also: str) -> str:
        plain = rf"[A-Za-z0-9._~!$&'()*+,;={also}-]"
        return f"{plain}*+(?:{escaped}{plain}*+)*{_ONCE}"

    def some(also: str) -> str:
        return rf"(?=[A-Za-z0-9._~!$&'()*+,;={also}%-]){run(also)}"

    future = r"[vV][0-9A-Fa-f]++\.[A-Za-z0-9._~!$&'()*+,;=:-]+"
    host = rf"(?:\[(?:{_IPV6}|{future})\]|{run('')})"
    authority = rf"(?:{run(':')}@)?{host}(?::[0-9]*)?(?:/{run(':@/')})?"
    path = f"(?:/(?:{some(':@')}(?:/{run(':@/')})?)?|{some(':@')}(?:/{run(':@/')})?|)"
    return rf"[A-Za-z][A-Za-z0-9+.-]*:(?://{authority}|{path})(?:\?{run(':@/?')})?(?:#{run(':@/?')})?"


_LEAP_YEAR: Final = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DATE: Final = (
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)


def _time() -> str:
    hour, minute, part = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]", r"(?:\.[0-9]+)?"
    usual = f"{hour}:{minute}:{minute}{part}(?:[Zz]|[+-]{hour}:{minute})"
    return f"(?:{usual}|{'|'.join(_leap_seconds(part))})"


def _leap_seconds(part: str) -> list[str]:
    """The second 60 is the last of a day in UTC: 23:59 is behind an offset by it, or ahead of it."""
    inside = "[.0-9]*"
    same_hour = "|".join(f"{h:02}:[0-9]{{2}}:60{inside}[+]{h:02}:" for h in range(24))
    minute_before = "|".join(f"[0-9]{{2}}:{m - 1:02}:60{part}[+][0-9]{{2}}:{m:02}" for m in range(1, 60))
    full_hours = "|".join(f"{(h - 1) % 24:02}:59:60{part}[+]{h:02}:00" for h in range(24))
    hours_left = "|".join(f"{23 - h:02}:[0-9]{{2}}:60{inside}-{h:02}:" for h in range(24))
    minutes_left = "|".join(f"[0-9]{{2}}:{59 - m:02}:60{part}-[0-9]{{2}}:{m:02}" for m in range(60))
    return [
        f"23:59:60{part}[Zz]",
        f"(?={same_hour})(?:{minute_before})",
        full_hours,
        f"(?={hours_left})(?:{minutes_left})",
    ]


_TIME: Final = _time()
_BASE64: Final = "[A-Za-z0-9+/]"

FORMATS: Final[dict[str, str]] = {
    # Enumerated classes are a third quicker than ranges.
    "uuid": f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}",
    "email": _EMAIL,
    "uri": _uri(),
    "hostname": f"(?=.{{1,253}}{_END}){_HOSTNAME}",
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "date": _DATE,
    "date-time": f"{_DATE}[Tt]{_TIME}",
    "time": _TIME,
    "byte": f"(?=.)(?:{_BASE64}{{4}})*{_ONCE}(?:{_BASE64}{{2}}==|{_BASE64}{{3}}=)?",
}
"""Each format that is evaluated; `${end}` stands for the very end of the text and `${once}` for what makes a repetition
possessive, which the two languages spell apart."""


def format_in_java(name: str) -> str:
    r"""The expression for Java, to be searched for: `\z`, unlike `$`, does not forgive a trailing line feed."""
    expression = FORMATS[name].replace(_END, r"\z").replace(_ONCE, "+")
    return rf"\A(?:{expression})\z"


def has_format(name: str, text: str) -> bool:
    """Whether the text has that format."""
    return _compiled(name).fullmatch(text) is not None


@lru_cache
def _compiled(name: str) -> re.Pattern[str]:
    return re.compile(FORMATS[name].replace(_END, r"\Z").replace(_ONCE, ""))

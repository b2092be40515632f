"""Documents with something wrong in them: each gives a contract or findings with their place, and none a traceback."""

import random
import time
from pathlib import Path

import pytest
import yaml

from databox_contracts.errors import DataboxError
from databox_contracts.formats import FORMATS, dump_contract, read

CASES = Path(__file__).parents[1] / "cases"
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

# The largest document of the corpus alone takes as long as all others together.
LARGEST = 60_000

DOCUMENTS = [
    path
    for path in sorted([*CASES.glob("*/*.y*ml"), *CORPUS.glob("*/*.yaml"), *CORPUS.glob("*/*/*.yaml")])
    if path.stat().st_size < LARGEST
]

VALUES = (
    "",
    " ",
    "null",
    "~",
    "[]",
    "{}",
    "[[]]",
    "{a: {b: c}}",
    "0",
    "-1",
    "1e999",
    ".nan",
    "0x1F",
    "99999999999999999999999999",
    "true",
    "NO",
    "2020-13-45",
    "!!python/object:os.system x",
    "!!binary x",
    "&a [*a]",
    "*missing",
    '"\\u0000"',
    "'unclosed",
    "|\n  block",
    "<<: {a: b}",
    "ä\u2028b",
    "x" * 500,
    "(a+)+$",
    "select * from t; drop table t",
    "P1Y2M3DT4H5M6S",
)
BYTES = (
    b"<<: ",
    b"!!x ",
    b".nan",
    b"1e5",
    b"${x}",
    b'"',
    b"'",
    b"\x00",
    b"\xff\xfe",
    b"\t",
    b"\r",
    b"{",
    b"]",
    b": ",
    b"- ",
    b"#",
    b"&a ",
    b"*a ",
    b"? ",
    b"%",
    b"@",
    b"`",
)


def mutated_text(text: str, dice: random.Random) -> str:
    """The text with a line or a character of it changed."""
    lines = text.splitlines()
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(lines))
        match dice.randrange(7):
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, lines[dice.randrange(len(lines))])
            case 2:
                lines[at] = lines[at].partition(":")[0] + ": " + dice.choice(VALUES)
            case 3:
                lines[at] = " " * dice.randint(0, 6) + lines[at].lstrip()
            case 4:
                lines[at] = lines[at][: dice.randrange(len(lines[at]) + 1)]
            case 5:
                other = dice.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
            case _:
                content = bytearray(lines[at].encode())
                content[dice.randrange(len(content) + 1) : dice.randrange(len(content) + 1)] = dice.choice(BYTES)
                lines[at] = content.decode("utf-8", "replace")
        if not lines:
            return ""
    return "\n".join(lines) + "\n"


def mutated_data(data: object, dice: random.Random) -> object:
    """The data with one part of it replaced, taken away, repeated or put elsewhere."""
    places = list(parts(data))
    holder, key = dice.choice(places)
    other_holder, other_key = dice.choice(places)
    match dice.randrange(4):
        case 0:
            holder[key] = dice.choice(
                [None, "", 0, -1, True, [], {}, "x", 1.5, [None], {"x": None}, [[1]], "2020-01-01"]
            )
        case 1:
            del holder[key]
        case 2:
            holder[key] = [holder[key], holder[key]]
        case _:
            holder[key] = yaml.safe_load(yaml.safe_dump(other_holder[other_key]))
    return data


def parts(data: object):
    """Every place below the top, as its holder and its key."""
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in list(entries):
        yield data, key
        yield from parts(value)


def hold(text: str) -> None:
    """Reads the text, and writes what came of it in every dialect."""
    start = time.process_time()
    contract, findings = read(text)
    taken = time.process_time() - start
    assert taken < 1, f"{taken:.1f} s"
    errors = [finding for finding in findings if finding.level == "error"]
    assert contract is not None or errors
    # Only what concerns the document as a whole has no line.
    assert all(finding.position is not None for finding in errors if "document is empty" not in finding.message)
    if contract is None or errors:
        return
    for format_ in FORMATS:
        try:
            again, found = read(dump_contract(contract, format_.name))
        except DataboxError:
            continue
        assert again is not None, format_.name
        assert [str(finding) for finding in found if finding.level == "error"] == [], format_.name


@pytest.mark.parametrize(
    "seeds", [range(400), pytest.param(range(400, 10_400), marks=pytest.mark.full)], ids=["few", "many"]
)
def test_a_mutated_document_is_a_contract_or_has_findings(seeds):
    texts = [path.read_text() for path in DOCUMENTS]
    for seed in seeds:
        dice = random.Random(seed)
        text = texts[seed % len(texts)]
        if seed % 2:
            text = yaml.safe_dump(mutated_data(yaml.safe_load(text), dice), sort_keys=False, allow_unicode=True)
        else:
            text = mutated_text(text, dice)
        try:
            hold(text)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {DOCUMENTS[seed % len(texts)].name}: {error}\n{text}") from error
        except Exception as error:
            raise AssertionError(f"seed {seed}, {DOCUMENTS[seed % len(texts)].name}: {error!r}") from error

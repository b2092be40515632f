"""Bodies of calls: untrusted bytes to a contract or to plain data, in YAML or JSON, within the loaders' limits."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from databox_contracts.errors import ContractError
from databox_contracts.formats import detect, read
from databox_contracts.formats.positions import MAX_BYTES, MAX_DEPTH, MAX_NODES, refusal, too_large
from databox_contracts.model import Contract
from databox_contracts.service.calls import RefusedError

SOURCE: Final = "body"

_YAML: Final = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/vnd.yaml")
_ESCAPED_PAIR: Final = re.compile(r"\\\\|\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})")


class _Number(str):
    """A number as it was written: 3.10 is not 3.1."""

    __slots__ = ()


def is_json(media_type: str) -> bool:
    """Whether a body of that type is JSON."""
    return media_type == "application/json" or media_type.endswith("+json")


def checked_type(media_type: str) -> str:
    """The media type of a body, which is JSON or YAML."""
    if is_json(media_type) or media_type in _YAML:
        return media_type
    raise RefusedError(
        415, "unsupported-media-type", "the body is neither JSON nor YAML", hint="Send application/json or -yaml."
    )


def contract_of(body: bytes, media_type: str) -> Contract:
    """The contract of a body. Raises `ContractError` with every finding; of JSON they have no place."""
    if is_json(media_type):
        return contract_of_data(json_of(body))
    return _contract(_decoded(body), placed=True)


def contract_of_data(value: Any) -> Contract:
    """The contract that a part of a JSON body is: an object, or the text of a document as a string."""
    if isinstance(value, str) and not isinstance(value, _Number):
        return _contract(value, placed=True)
    _check_number(value, MAX_NODES)
    return _contract(_yaml_of(value), placed=False)


def object_of(
    body: bytes, known: tuple[str, ...], *, required: tuple[str, ...] = (), most: int = MAX_NODES
) -> dict[str, Any]:
    """The object that a JSON body is; empty for an empty body. It holds at most so many values; see `json_of`."""
    value = json_of(body, most=most) if body.strip() else {}
    if not isinstance(value, dict):
        raise RefusedError(422, "body", "the body has to be a JSON object", hint=f"Its names: {', '.join(known)}.")
    if wrong := [name for name in value if name not in known]:
        raise RefusedError(
            422, "body", f"the body has {len(wrong)} names that nobody knows", hint=f"Known are: {', '.join(known)}."
        )
    if missing := [name for name in required if value.get(name) is None]:
        raise RefusedError(422, "body", f"the body lacks {', '.join(missing)}", hint="Give it.")
    return value


def text_in(value: Mapping[str, Any], name: str) -> str | None:
    """A text of an object, None where it is not there or null."""
    found = value.get(name)
    if found is None or (isinstance(found, str) and not isinstance(found, _Number)):
        return found
    raise RefusedError(422, "body", f"{name!r} has to be text", hint="Put it in quotes.")


def plain(value: Any) -> Any:
    """The same data with its numbers as numbers."""
    if isinstance(value, _Number):
        return float(value)
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


def json_of(body: bytes, *, most: int = MAX_NODES) -> Any:
    """Plain data of at most so many values; numbers as they were written, as a `str` of their own kind."""
    text = _decoded(body)
    try:
        # To keep each number's text is slow, and to count them first is not.
        _check_number(json.loads(text, parse_int=bool), most)
        value = json.loads(
            text,
            parse_float=_Number,
            parse_int=_Number,
            parse_constant=_refuse_constant,
            object_pairs_hook=_unique,
        )
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        at = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise refusal(SOURCE, f"the body is not JSON{at}", None, "send it as the declared media type") from None
    _check_depth(value)
    return value


def is_contract(value: Any) -> bool:
    """Whether it is a document of a known dialect."""
    return isinstance(value, dict) and detect(value) is not None


def _contract(text: str, *, placed: bool) -> Contract:
    contract, findings = read(text, SOURCE)
    if not placed:
        findings = [type(one)(one.source, one.level, one.message, None, one.hint, one.field) for one in findings]
    if contract is None or any(finding.level == "error" for finding in findings):
        raise ContractError.from_findings(findings, contract=contract.id if contract is not None else None)
    return contract.model_copy(update={"source": None})


def _decoded(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise refusal(SOURCE, "the body is not UTF-8", None, "send it as UTF-8") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise refusal(SOURCE, "an object has the same name twice", None, "name each once")
    return found


def _too_deep() -> ContractError:
    return refusal(SOURCE, f"values nest more than {MAX_DEPTH} deep", None, "flatten the document")


def _check_depth(value: Any) -> None:
    level = [value]
    # Two more than a contract may have: it may stand in a list of an envelope.
    for _ in range(MAX_DEPTH + 2):
        level = [
            inner
            for one in level
            if isinstance(one, (dict, list))
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return
    raise _too_deep()


def _check_number(value: Any, most: int) -> None:
    """The reader would refuse as many, after it has looked at each of them."""
    left, found = [value], 0
    while left:
        one = left.pop()
        inner = list(one.values()) if isinstance(one, dict) else one if isinstance(one, list) else ()
        found += len(inner)
        if found > most:
            raise refusal(SOURCE, f"the document holds more than {most:,} values", None, "split it")
        left.extend(inner)


def _yaml_of(value: Any) -> str:
    """JSON data as YAML of the same meaning, of which JSON as such is not always a part."""
    parts: list[str] = []
    _write(value, parts)
    text = "".join(parts)
    if len(text) > MAX_BYTES * 2:
        raise too_large(SOURCE, len(text))
    return text


def _write(value: Any, parts: list[str]) -> None:
    if isinstance(value, _Number):
        parts.append(value)
    elif isinstance(value, dict):
        parts.append("{")
        for at, (name, inner) in enumerate(value.items()):
            # A name of more than a thousand characters is none unless it is marked as one.
            parts.append(f"{', ' if at else ''}{'? ' if len(name) > 100 else ''}{_quoted(name)}: ")
            _write(inner, parts)
        parts.append("}")
    elif isinstance(value, list):
        parts.append("[")
        for at, inner in enumerate(value):
            parts.append(", " if at else "")
            _write(inner, parts)
        parts.append("]")
    elif isinstance(value, str):
        parts.append(_quoted(value))
    else:
        parts.append(json.dumps(value))


def _quoted(text: str) -> str:
    # JSON writes a character beyond the first plane as two halves, YAML as one.
    return _ESCAPED_PAIR.sub(
        lambda pair: f"\\U{_joined(int(pair[1], 16), int(pair[2], 16)):08x}" if pair[1] else pair[0], json.dumps(text)
    )


def _joined(high: int, low: int) -> int:
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)

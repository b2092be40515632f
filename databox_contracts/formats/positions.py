"""YAML text to plain data that still knows its lines and columns, within limits that no document may pass."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

import yaml

from databox_contracts.errors import ContractError, Finding, Level, Position

MAX_BYTES: Final = 1 << 20
"""Five times the largest contract we know of (68 tables), and room for some 3,000 documented fields."""

MAX_DEPTH: Final = 64
"""Far beyond any schema, and far below the nesting at which libyaml's recursion ends the process."""

MAX_NODES: Final = 100_000
"""Keys and values once every alias is followed (a full `MAX_BYTES` of ordinary contract has some 60,000): a
million-fold expansion is refused before it happens."""

DataPath: TypeAlias = tuple[str | int, ...]
"""Keys and indices from the document's root down to a value."""

_Entries: TypeAlias = dict[str, tuple[yaml.Node, yaml.Node]]

_SCALARS: Final = yaml.constructor.SafeConstructor()
_TAG: Final = "tag:yaml.org,2002:"
_SEQUENCE: Final = f"{_TAG}seq"
_MAPPING: Final = f"{_TAG}map"
_MERGE: Final = f"{_TAG}merge"
_STRING: Final = f"{_TAG}str"
_NULL: Final = f"{_TAG}null"

_RESOLVER: Final = yaml.resolver.Resolver()
_LONGEST_KNOWN: Final = 40


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A loader that remembers what a short plain scalar is: contracts are made of the same few words."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> Any:
        if kind is yaml.ScalarNode:
            if implicit[0] and len(value) <= _LONGEST_KNOWN:
                return _plain_tag(value)
        elif kind is yaml.MappingNode:
            return _MAPPING
        return super().resolve(kind, value, implicit)


@lru_cache(maxsize=4096)
def _plain_tag(value: str) -> Any:
    return _RESOLVER.resolve(yaml.ScalarNode, value, (True, False))  # type: ignore[no-untyped-call]


_START: Final = yaml.Mark("", 0, 0, 0, None, 0)
_NOTHING: Final = yaml.ScalarNode(_NULL, "", _START, _START)

# A date stays the text it was written as; whoever expects a date reads it from there.
_SCALAR_VALUES: Final[dict[str, Callable[[yaml.ScalarNode], Any]]] = {
    _STRING: lambda node: node.value,
    _NULL: lambda node: None,
    f"{_TAG}bool": _SCALARS.construct_yaml_bool,
    f"{_TAG}int": _SCALARS.construct_yaml_int,
    f"{_TAG}float": _SCALARS.construct_yaml_float,
    f"{_TAG}timestamp": lambda node: node.value,
    f"{_TAG}value": lambda node: node.value,
}


class Document:
    """The data of one YAML document, and where each of its values stands.

    `data` holds dicts with text keys, lists, text, bools, ints, floats and None. Dates and timestamps are text.
    `findings` are what was wrong with the YAML itself and did not keep it from being read, such as a repeated key.
    """

    def __init__(self, root: yaml.Node | None, source: str) -> None:
        self.source = source
        self.findings: list[Finding] = []
        self._root = root
        self._entries: dict[int, _Entries] = {}
        self._nodes: dict[int, yaml.Node] = {}
        self._places: dict[DataPath, tuple[yaml.Node, yaml.Node]] = {}
        self.data: Any = None if root is None else self._value(root)

    def node(self, mapping: Mapping[str, Any], key: str | None = None) -> yaml.Node | None:
        """One of the mappings of `data` as YAML has it, or with `key` the value of its entry; None for any other.

        It says the same as its path does, without the way from the root.
        """
        node = self._nodes.get(id(mapping))
        if node is None or key is None:
            return node
        found = self._entries[id(node)].get(key)
        return found[1] if found is not None else None

    def position(self, path: DataPath) -> Position:
        """Where the value at `path` begins; for a path that is not there, its nearest ancestor that is."""
        return position_of(self._nearest(path)[1])

    def key_position(self, path: DataPath) -> Position:
        """Where the key of the entry at `path` begins; a list item's own beginning."""
        return position_of(self._nearest(path)[0])

    def text(self, path: DataPath) -> str | None:
        """The scalar at `path` as it was written, quotes removed: `3.10` and `NO` stay what they are.

        None for a null, for a list or a mapping, and for a path that is not there.
        """
        return text_of(self._exact(path))

    def quoted(self, path: DataPath) -> bool:
        """Whether the scalar at `path` is written in quotes or as a block, and so is text whatever it looks like."""
        node = self._exact(path)
        return isinstance(node, yaml.ScalarNode) and bool(node.style)

    def _exact(self, path: DataPath) -> yaml.Node | None:
        depth, _, value = self._follow(path)
        return value if depth == len(path) else None

    def _nearest(self, path: DataPath) -> tuple[yaml.Node, yaml.Node]:
        _, key, value = self._follow(path)
        return key, value

    def _follow(self, path: DataPath) -> tuple[int, yaml.Node, yaml.Node]:
        """How many steps of the path exist, and the last one's key and value; a list item stands for both."""
        known = self._places.get(path)
        if known is not None:
            return len(path), *known
        if not path:
            return 0, self._root or _NOTHING, self._root or _NOTHING
        # The way to the entry around it has been gone before, as a rule.
        depth, key, value = self._follow(path[:-1])
        found = self._step(value, path[-1]) if depth == len(path) - 1 else None
        if found is None:
            return depth, key, value
        self._places[path] = found
        return len(path), *found

    def _step(self, value: yaml.Node, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
        """The key and value one step further; None where there is no such entry."""
        if isinstance(step, str):
            return self._entries.get(id(value), {}).get(step)
        if isinstance(value, yaml.SequenceNode) and 0 <= step < len(value.value):
            return value.value[step], value.value[step]
        return None

    def _value(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return node.value if node.tag == _STRING else self._scalar(node)
        if node.tag not in (_SEQUENCE, _MAPPING):
            raise self._refused(f"the tag {_shown_tag(node.tag)} is not allowed in a contract", node, "remove the tag")
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item) for item in node.value]
        # Most are text, and a call for each of them would take a third of the time.
        mapping = {
            key: value.value if type(value) is yaml.ScalarNode and value.tag == _STRING else self._value(value)
            for key, (_, value) in self._mapping(node).items()
        }
        self._nodes[id(mapping)] = node
        return mapping

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        make = _SCALAR_VALUES.get(node.tag)
        if make is None:
            raise self._refused(f"the tag {_shown_tag(node.tag)} is not allowed in a contract", node, "remove the tag")
        try:
            return make(node)
        except (ValueError, KeyError, IndexError, OverflowError):
            kind = node.tag.removeprefix(_TAG)
            raise self._refused(f"{_shortened(node.value)} is not a usable {kind}", node, "quote it") from None

    def _mapping(self, node: yaml.Node) -> _Entries:
        """The entries of a mapping, those that `<<` brings in last and never instead of its own."""
        known = self._entries.get(id(node))
        if known is not None:
            return known
        own: _Entries = {}
        merged: _Entries = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                for other in self._merged(value):
                    merged = {**other, **merged}
                continue
            name = self._key(key)
            if name in own:
                first = position_of(own[name][0])
                self._report(
                    Level.ERROR, f"the key {name!r} stands here again, first in line {first.line}", key, "remove one"
                )
                continue
            own[name] = (key, value)
        entries = own | {name: pair for name, pair in merged.items() if name not in own} if merged else own
        self._entries[id(node)] = entries
        return entries

    def _merged(self, value: yaml.Node) -> Iterator[_Entries]:
        for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
            if not isinstance(source, yaml.MappingNode):
                raise self._refused("'<<' merges mappings only", value, "give it an alias of a mapping")
            yield self._mapping(source)

    def _key(self, key: yaml.Node) -> str:
        if isinstance(key, yaml.ScalarNode) and key.tag == _STRING:
            return str(key.value)
        if not isinstance(key, yaml.ScalarNode) or key.tag == _NULL:
            raise self._refused("a key that is not text", key, "write keys as plain words")
        if key.tag not in _SCALAR_VALUES:
            raise self._refused(f"the tag {_shown_tag(key.tag)} is not allowed in a contract", key, "remove the tag")
        name = str(key.value)
        if key.tag != f"{_TAG}value":
            self._report(
                Level.WARNING, f"the key {name} is read as text; other readers of YAML do not", key, f'write "{name}"'
            )
        return name

    def _report(self, level: Level, message: str, node: yaml.Node, hint: str) -> None:
        self.findings.append(Finding(self.source, level, message, position_of(node), hint))

    def _refused(self, message: str, node: yaml.Node, hint: str) -> ContractError:
        return refusal(self.source, message, position_of(node), hint)


def parse_yaml(text: str, source: str) -> Document:
    """The one document of a YAML text, as YAML 1.1's safe types.

    Raises `ContractError` with a position for what is not YAML, has a tag of its own, refers to itself, or passes
    `MAX_BYTES`, `MAX_DEPTH` or `MAX_NODES`. An empty text gives a document whose data is None.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise refusal(source, "the text holds half a character", None, "save the file as UTF-8") from error
    if size > MAX_BYTES:
        raise too_large(source, size)
    try:
        if size > _LARGE or _may_be_deep(text):
            _check_events(text, source)
        root = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise _syntax_error(error, text, source) from None
    except RecursionError:
        raise _too_deep(source, None) from None
    if root is not None:
        _check_size(root, source)
    return Document(root, source)


def refusal(source: str, message: str, position: Position | None, hint: str) -> ContractError:
    """The error for a document that cannot be read any further, with itself as its only finding."""
    finding = Finding(source, Level.ERROR, message, position, hint)
    return ContractError.from_findings([finding])


def too_large(source: str, size: int) -> ContractError:
    """The error for a document of more bytes than `MAX_BYTES`."""
    message = f"the document has {size:,} bytes, and a contract has at most {MAX_BYTES:,}"
    return refusal(source, message, None, "split it: one contract per file")


_LARGE: Final = 1 << 18

# Each level of block nesting takes a column, each of flow nesting a bracket.
_DEEP_BLOCK: Final = re.compile(r"^(?: |[-?:][ \t]){64}", re.MULTILINE)


def _may_be_deep(text: str) -> bool:
    return text.count("[") + text.count("{") > MAX_DEPTH or _DEEP_BLOCK.search(text) is not None


def _check_events(text: str, source: str) -> None:
    """Stops at the first event that is too deep or too many: composing recurses in C, and without a limit."""
    depth = nodes = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
            if nodes > MAX_NODES:
                raise _too_many(source, _mark_position(event.start_mark))
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _too_deep(source, _mark_position(event.start_mark))
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _too_deep(source: str, position: Position | None) -> ContractError:
    return refusal(source, f"values nest more than {MAX_DEPTH} deep", position, "flatten the document")


def _too_many(source: str, position: Position) -> ContractError:
    message = f"the document holds more than {MAX_NODES:,} keys and values, its aliases followed"
    return refusal(source, message, position, "split it: one contract per file")


def _check_size(root: yaml.Node, source: str) -> None:
    """Counts what following every alias would give, each shared node once."""
    _count(root, 1, source, {}, set())


def _count(node: yaml.Node, depth: int, source: str, counted: dict[int, int], open_nodes: set[int]) -> int:
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) in open_nodes:
        raise refusal(source, "an alias that contains itself", position_of(node), "write the value out")
    known = counted.get(id(node))
    if known is not None:
        return known
    if depth > MAX_DEPTH:
        raise _too_deep(source, position_of(node))
    open_nodes.add(id(node))
    parts = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
    total = 1 + len(parts)
    for part in parts:
        # Most are scalars, and a call for each of them would take half the time.
        if type(part) is not yaml.ScalarNode:
            total += _count(part, depth + 1, source, counted, open_nodes) - 1
        if total > MAX_NODES:
            raise _too_many(source, position_of(node))
    open_nodes.discard(id(node))
    counted[id(node)] = total
    return total


def _syntax_error(error: yaml.YAMLError, text: str, source: str) -> ContractError:
    position = None
    problem = str(error)
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        position = _mark_position(mark) if mark is not None else None
        problem = ": ".join(part for part in (error.context, error.problem) if part)
    elif isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position] if isinstance(error.position, int) else ""
        position = Position(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
        problem = str(error.reason)
    hint = "a file holds one contract" if "single document" in problem else "correct the YAML here"
    return refusal(source, f"not valid YAML: {problem}", position, hint)


def position_of(node: yaml.Node) -> Position:
    """Where it begins."""
    return _mark_position(node.start_mark)


def text_of(node: yaml.Node | None) -> str | None:
    """A scalar as it was written, quotes removed; None for a null and for anything else."""
    if not isinstance(node, yaml.ScalarNode) or node.tag == _NULL:
        return None
    return str(node.value)


def _mark_position(mark: Any) -> Position:
    return Position(1, 1) if mark is None else _shared_position(mark.line + 1, mark.column + 1)


@lru_cache(maxsize=1 << 16)
def _shared_position(line: int, column: int) -> Position:
    """The same few places make up the positions of all documents."""
    return Position(line, column)


def _shown_tag(tag: str) -> str:
    return tag.replace(_TAG, "!!")


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."

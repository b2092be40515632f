"""Files of lineage: YAML or JSON, every finding with its line.

```yaml
edges:
  - {upstream: sales/orders, downstream: marts/revenue}
  - {upstream: sales/orders, upstream_column: total, downstream: marts/revenue, downstream_column: amount}
assets: {sales/orders: shop.orders}
```
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from databox_contracts.errors import ContractError, Finding, Level
from databox_contracts.formats import text_of
from databox_contracts.formats.positions import parse_yaml, refusal
from databox_contracts.formats.reading import Report, Section, described
from databox_contracts.lineage import AssetEdge, ColumnEdge, Edge, Lineage


def load_lineage(paths: Iterable[str | os.PathLike[str]]) -> Lineage:
    """The edges of all files, in their order. Raises `ContractError` with every finding when any is an error.

    A file that ends in `.json` may be of any size.
    """
    found, findings = read_lineage(paths)
    if any(finding.level is Level.ERROR for finding in findings):
        raise ContractError.from_findings(findings)
    return found


def read_lineage(paths: Iterable[str | os.PathLike[str]]) -> tuple[Lineage, list[Finding]]:
    """As `load_lineage`, with every finding."""
    examined = [_examined(Path(path)) for path in paths]
    return Lineage.joined(part for part, _ in examined), [finding for _, remarks in examined for finding in remarks]


def _examined(path: Path) -> tuple[Lineage, list[Finding]]:
    try:
        if path.suffix.lower() == ".json":
            return _of_json(path), []
        text, source = text_of(path)
        report = Report(parse_yaml(text, source))
        data = report.document.data
        if not isinstance(data, dict):
            place = report.document.position(())
            raise refusal(
                source, f"lineage is a mapping with `edges`, not {described(data)}", place, "write `edges: [...]`"
            )
    except ContractError as error:
        return Lineage(), list(error.findings)
    root = Section(report, (), data)
    edges = tuple(_edges(root))
    assets = root.section("assets")
    named = {key: name for key in assets.data if (name := assets.text(key)) is not None} if assets is not None else {}
    root.close()
    return Lineage(edges, named), report.in_order()


def _edges(root: Section) -> Iterator[Edge]:
    for entry in root.sections("edges"):
        source, target = entry.needed("upstream", "an edge"), entry.needed("downstream", "an edge")
        columns = entry.text("upstream_column"), entry.text("downstream_column")
        entry.close()
        if columns[0] is not None and columns[1] is None:
            entry.error("an edge has an 'upstream_column' and no 'downstream_column'", "name both columns")
        elif source is not None and target is not None:
            yield _edge(source, target, *columns)


def _edge(upstream: str, downstream: str, from_column: str | None, to_column: str | None) -> Edge:
    if to_column is None:
        return AssetEdge(upstream, downstream)
    return ColumnEdge(upstream, from_column, downstream, to_column)


# --- JSON, which a program wrote --------------------------------------------------------------------------------------


def _of_json(path: Path) -> Lineage:
    hint = 'write {"edges": [{"upstream": "a", "downstream": "b"}]}'
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise refusal(str(path), f"the file cannot be read: {error.strerror}", None, "check the path") from None
    except (ValueError, RecursionError):
        raise refusal(str(path), "this is not valid JSON", None, hint) from None
    if not isinstance(data, dict) or not isinstance(data.get("edges", []), list):
        raise refusal(str(path), "lineage is a mapping with a list `edges`", None, hint)
    assets = data.get("assets", {})
    if not isinstance(assets, dict) or not all(isinstance(name, str) for name in assets.values()):
        raise refusal(str(path), "`assets` is a mapping from keys to datasets", None, hint)
    return Lineage(tuple(_json_edge(entry, at, path) for at, entry in enumerate(data.get("edges", []), 1)), assets)


_NAMES = ("upstream", "downstream", "upstream_column", "downstream_column")


def _json_edge(entry: Any, at: int, path: Path) -> Edge:
    known = isinstance(entry, dict) and all(key in _NAMES for key in entry)
    values = [entry.get(name) for name in _NAMES] if known else []
    needed = bool(values) and all(isinstance(value, str) and value.strip() for value in values[:2])
    if not needed or not all(value is None or isinstance(value, str) for value in values):
        raise refusal(str(path), f"edge {at} is none", None, f"give it {', '.join(_NAMES[:2])}, and columns as text")
    if values[2] is not None and values[3] is None:
        raise refusal(str(path), f"edge {at} has an 'upstream_column' only", None, "name both columns")
    return _edge(*values)

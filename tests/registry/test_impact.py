"""Whom a change reaches: literal cases, and any graph against a slow oracle."""

import random

import pytest
from hypothesis import given, settings, strategies as st

from databox_contracts.declarations import Declaration
from databox_contracts.errors import DataboxError, UnknownPlaceError
from databox_contracts.lineage import AssetEdge, ColumnEdge
from databox_contracts.model import Consumer, Contract, Dataset, Field
from databox_contracts.registry.consumers import Reading, resolve
from databox_contracts.registry.impact import Impact, impact
from databox_contracts.registry.impact_rendering import as_markdown, as_text
from databox_contracts.testing import build_field


def contract(id_: str, dataset: str, *fields: Field, version: str = "1.0.0", **facts) -> Contract:
    return Contract(id=id_, version=version, datasets=(Dataset(name=dataset, fields=fields),), **facts)


def fields(*names: str) -> list[Field]:
    return [build_field(name, "string") for name in names]


SHOP = contract("shop", "orders", *fields("id", "total", "note"), domain="sales", owner="sales-team", version="1.2.0")
MART = contract(
    "mart",
    "revenue",
    build_field("amount", "string", sources=("shop.orders.total",)),
    build_field("label", "string", sources=("orders.note", "raw.labels")),
    build_field("day", "string"),
    domain="marts",
    owner="bi",
    version="3.0.0",
)
BOARD = contract("board", "kpi", *fields("value"), domain="marts", owner="board-team")
CONTRACTS = [SHOP, MART, BOARD]


def readings(*declarations: Declaration, contracts=CONTRACTS) -> list[Reading]:
    found = resolve(contracts, declarations)
    assert found.problems == ()
    return list(found.readings)


def said(producer: str, name: str, **facts) -> Declaration:
    return Declaration(producer, Consumer(name, **facts), "here")


READERS = readings(
    said("shop", "Totals", owner="finance", fields=("total",), versions="^1", criticality="high"),
    said("shop", "Everything", assets=("lake/copy",), purpose="archive"),
    said("mart", "Dashboard", owner="bi", fields=("amount",), versions="^2"),
    said("mart", "Labels", fields=("label",)),
    said("board", "The board", fields=("value",)),
)
EDGES = [AssetEdge("marts/revenue", "marts/kpi"), AssetEdge("lake/copy", "lake/copy2"), AssetEdge("x", "y")]


def reached(target: str, consumers=READERS, edges=EDGES, contracts=CONTRACTS) -> list[tuple[int, str, tuple[str, ...]]]:
    found = impact(contracts, consumers, edges, target=target)
    return [(one.distance, f"{one.kind} {one.name}", one.fields) for one in found.reached]


CASES = [
    (
        "shop.orders.total",
        [
            (1, "dataset mart.revenue", ("amount",)),
            (1, "asset lake/copy", ()),
            (1, "consumer Everything", ("total",)),
            (1, "consumer Totals", ("total",)),
            (2, "dataset board.kpi", ()),
            (2, "asset lake/copy2", ()),
            (2, "consumer Dashboard", ("amount",)),
            (3, "consumer The board", ("value",)),
        ],
    ),
    (
        "shop.note",
        [
            (1, "dataset mart.revenue", ("label",)),
            (1, "asset lake/copy", ()),
            (1, "consumer Everything", ("note",)),
            (2, "dataset board.kpi", ()),
            (2, "asset lake/copy2", ()),
            (2, "consumer Labels", ("label",)),
            (3, "consumer The board", ("value",)),
        ],
    ),
    (
        "orders.id",
        [
            (1, "asset lake/copy", ()),
            (1, "consumer Everything", ("id",)),
            (2, "asset lake/copy2", ()),
        ],
    ),
    (
        "shop",
        [
            (1, "dataset mart.revenue", ()),
            (1, "asset lake/copy", ()),
            (1, "consumer Everything", ()),
            (1, "consumer Totals", ("total",)),
            (2, "dataset board.kpi", ()),
            (2, "asset lake/copy2", ()),
            (2, "consumer Dashboard", ("amount",)),
            (2, "consumer Labels", ("label",)),
            (3, "consumer The board", ("value",)),
        ],
    ),
    ("mart.revenue.day", [(1, "dataset board.kpi", ()), (2, "consumer The board", ("value",))]),
    ("board", [(1, "consumer The board", ("value",))]),
]


@pytest.mark.parametrize(("target", "expected"), CASES)
def test_what_a_change_reaches(target, expected):
    assert reached(target) == expected


@pytest.mark.parametrize(("target", "expected"), CASES)
def test_the_order_of_what_is_given_does_not_matter(target, expected):
    chance = random.Random(3)
    for _ in range(5):
        consumers, edges, contracts = list(READERS), list(EDGES), list(CONTRACTS)
        for one in (consumers, edges, contracts):
            chance.shuffle(one)
        assert reached(target, consumers, edges, contracts) == expected


def test_everything_that_is_known_is_told():
    found = impact(CONTRACTS, READERS, EDGES, target="shop.total")
    assert (found.target, found.contract, found.version, found.owner) == (
        "shop.orders.total",
        "shop",
        "1.2.0",
        "sales-team",
    )
    assert found.owners == ("bi", "Everything", "finance", "board-team")
    by_name = {one.name: one for one in found.reached}
    assert by_name["Totals"].to_dict() == {
        "kind": "consumer",
        "name": "Totals",
        "distance": 1,
        "path": ["shop.orders.total", "Totals"],
        "owner": "finance",
        "contract": "shop",
        "version": "1.2.0",
        "pin": "^1",
        "reads": ["orders"],
        "fields": ["total"],
        "purpose": None,
        "criticality": "high",
    }
    assert (by_name["Dashboard"].pin, by_name["Dashboard"].version) == ("^2", None)
    assert by_name["The board"].path == ("shop.orders.total", "mart.revenue", "board.kpi", "The board")
    assert by_name["lake/copy2"].owner is None


def test_columns_that_are_known_narrow_what_an_asset_edge_would_reach():
    edges = [
        AssetEdge("sales/orders", "t"),
        ColumnEdge("sales/orders", "TOTAL", "t", "a"),
        ColumnEdge("t", "b", "u", "c"),
    ]
    assert reached("shop.total", [], edges)[-1] == (1, "asset t", ("a",))
    assert ("asset t") not in [name for _, name, _ in reached("shop.id", [], edges)]
    assert [name for _, name, _ in reached("shop.orders", [], edges) if "asset" in name] == ["asset t", "asset u"]


def test_a_column_made_of_a_whole_table_is_reached_by_each_of_its_columns():
    edges = [ColumnEdge("shop.orders", None, "t", "count")]
    for name in ("id", "total", "note"):
        assert (1, "asset t", ("count",)) in reached(f"shop.{name}", [], edges)


def test_what_is_inside_a_field_or_around_it_is_reached_with_it():
    nested = contract("n", "t", build_field("payload", "struct<items:array<struct<sku:string,qty:int>>>"))
    readers = [
        Reading("n", Consumer(name, fields=(name,)), ("here",))
        for name in ("payload", "payload.items", "payload.items.sku", "payload.items.qty")
    ]
    assert [one.name for one in impact([nested], readers, target="n.payload.items.sku").reached] == [
        "payload",
        "payload.items",
        "payload.items.sku",
    ]
    assert len(impact([nested], readers, target="n.payload").reached) == 4


def test_a_consumer_that_does_not_read_the_field_keeps_its_own_asset_out():
    edges = [AssetEdge("sales/orders", "mine"), AssetEdge("sales/orders", "other")]
    mine = readings(said("shop", "a", fields=("id",), assets=("mine",)))
    assert reached("shop.total", mine, edges, [SHOP]) == [(1, "asset other", ())]
    assert reached("shop.id", mine, edges, [SHOP]) == [
        (1, "asset mine", ()),
        (1, "asset other", ()),
        (1, "consumer a", ("id",)),
    ]


def test_cycles_come_to_an_end_and_the_beginning_is_not_reached_again():
    edges = [AssetEdge("sales/orders", "a"), AssetEdge("a", "b"), AssetEdge("b", "a"), AssetEdge("b", "sales/orders")]
    edges.append(AssetEdge("a", "a"))
    assert reached("shop", [], edges, [SHOP]) == [(1, "asset a", ()), (2, "asset b", ())]


def test_a_contract_of_several_datasets_is_all_of_them():
    two = Contract(
        id="two",
        version="1.0.0",
        datasets=(Dataset(name="a", fields=tuple(fields("x"))), Dataset(name="b", fields=tuple(fields("y")))),
    )
    readers = readings(said("two", "both"), said("two.b", "one"), contracts=[two])
    found = impact([two], readers, [AssetEdge("a", "b")], target="two")
    assert [(one.name, one.reads) for one in found.reached] == [("both", ("a", "b")), ("one", ("b",))]
    assert [
        (one.name, one.distance) for one in impact([two], readers, [AssetEdge("a", "b")], target="two.a").reached
    ] == [
        ("two.b", 1),
        ("both", 1),
        ("one", 2),
    ]


def test_an_asset_is_of_the_dataset_that_is_told():
    found = impact(
        [SHOP, BOARD], [], [AssetEdge("raw", "cooked")], target="shop", assets={"raw": "shop", "cooked": "board"}
    )
    assert [one.name for one in found.reached] == ["board.kpi"]


@pytest.mark.parametrize(
    ("target", "facts", "message"),
    [
        ("shp", {}, "no contract, dataset or field is called 'shp'"),
        ("shop.orders.nothing", {}, "no contract, dataset or field is called 'shop.orders.nothing'"),
        ("shop", {"assets": {"a": "nothing"}, "edges": [AssetEdge("a", "b")]}, "is called 'nothing'"),
    ],
)
def test_what_is_not_there_is_an_error(target, facts, message):
    with pytest.raises(UnknownPlaceError, match=message):
        impact(CONTRACTS, [], **facts, target=target)


def test_a_key_that_two_datasets_would_have_is_an_error():
    twins = [contract("a", "t", *fields("x")), contract("b", "t", *fields("x"))]
    with pytest.raises(
        DataboxError, match=r"the asset 't' could be a\.t or b\.t\. Say which under `assets`: `t: a\.t`"
    ):
        impact(twins, [], [AssetEdge("t", "u")], target="a")
    several = Contract(id="c", version="1.0.0", datasets=(Dataset(name="d"), Dataset(name="e")))
    with pytest.raises(DataboxError, match="which has several datasets"):
        impact([several], [], [AssetEdge("k", "u")], target="c", assets={"k": "c"})


def test_nothing_is_reached():
    found = impact([BOARD], [], target="board.kpi.value")
    assert found.reached == ()
    assert list(as_text(found)) == [
        "A change of board.kpi.value (board 1.0.0, owned by board-team) reaches: nobody that is known"
    ]


def test_the_text_and_the_markdown():
    found = impact(CONTRACTS, READERS, EDGES, target="shop.total")
    assert list(as_text(found)) == [
        "A change of shop.orders.total (shop 1.2.0, owned by sales-team) reaches: 4 consumers, 2 assets, 2 datasets",
        "  1  dataset mart.revenue (bi)",
        "     amount of version 3.0.0",
        "  1  asset lake/copy (Everything)",
        "     all fields",
        "  1  consumer Everything",
        "     reads shop.orders: total",
        "     for archive",
        "  1  consumer Totals (finance)",
        "     reads shop.orders: total",
        "     pins ^1, which is version 1.2.0",
        "     criticality high",
        "  2  dataset board.kpi (board-team)",
        "     all fields of version 1.0.0",
        "     by way of shop.orders.total > mart.revenue > board.kpi",
        "  2  asset lake/copy2",
        "     all fields",
        "     by way of shop.orders.total > lake/copy > lake/copy2",
        "  2  consumer Dashboard (bi)",
        "     reads mart.revenue: amount",
        "     pins ^2, which is no version there is",
        "     by way of shop.orders.total > mart.revenue > Dashboard",
        "  3  consumer The board",
        "     reads board.kpi: value",
        "     by way of shop.orders.total > mart.revenue > board.kpi > The board",
        "Ask: bi, Everything, finance, board-team",
    ]
    lines = list(as_markdown(found))
    assert lines[0] == "## A change of shop.orders.total (shop 1.2.0, owned by sales-team) reaches"
    assert lines[2] == "4 consumers, 2 assets, 2 datasets."
    assert len(lines) == 4 + 2 + 8
    assert all(line.count("|") == 7 for line in lines[4:])


# --- any graph, against a slow oracle ---------------------------------------------------------------------------------

NAMES = ("a", "b", "c", "d", "e")
COLUMNS = ("x", "y")


@st.composite
def graphs(draw):
    """Datasets a to c in contracts, d and e as assets; edges, columns and consumers as they come."""
    tables = st.sampled_from(NAMES)
    columns = st.sampled_from(COLUMNS)
    edges = draw(
        st.lists(
            st.builds(AssetEdge, tables, tables) | st.builds(ColumnEdge, tables, st.none() | columns, tables, columns),
            max_size=9,
        )
    )
    consumers = draw(
        st.lists(
            st.tuples(st.sampled_from(NAMES[:3]), st.lists(columns, max_size=1), st.lists(tables, max_size=2)),
            max_size=4,
        )
    )
    start = draw(
        st.sampled_from([*NAMES[:3], *(f"{name}.t{name}.{column}" for name in NAMES[:3] for column in COLUMNS)])
    )
    return edges, consumers, start


def slowly(edges, consumers, start: str) -> dict[tuple[str, str], tuple[int, frozenset[str]]]:
    """All that is reached, by going over every dependency until nothing changes: distances and columns."""
    table, _, column = start.partition(".")
    known_columns = {(one.upstream, one.downstream) for one in edges if isinstance(one, ColumnEdge)}
    pairs = {(one.upstream, one.downstream) for one in edges}
    best: dict[tuple[str, str], int] = {(table, column.rpartition(".")[2] or "*"): 0}

    def reads(wanted: list[str], one: str) -> bool:
        return one == "*" or not wanted or one in wanted

    changed = True
    while changed:
        changed = False
        for (here, one), distance in list(best.items()):
            steps = []
            makers: dict[str, list[list[str]]] = {}
            for source, wanted, made in consumers:
                for name in made if source == here else ():
                    makers.setdefault(name, []).append(wanted)
            for there in NAMES:
                if (here, there) not in pairs and there not in makers:
                    continue
                if one == "*":
                    steps.append((there, "*"))
                elif (here, there) in known_columns:
                    steps += [
                        (there, edge.downstream_column)
                        for edge in edges
                        if isinstance(edge, ColumnEdge)
                        and (edge.upstream, edge.downstream) == (here, there)
                        and edge.upstream_column in (None, one)
                    ]
                elif there not in makers or any(reads(wanted, one) for wanted in makers[there]):
                    steps.append((there, "*"))
            for step in steps:
                if best.get(step, 99) > distance + 1:
                    best[step] = distance + 1
                    changed = True
    found: dict[tuple[str, str], tuple[int, frozenset[str]]] = {}
    for name in NAMES:
        seen = {one: distance for (there, one), distance in best.items() if there == name}
        if seen and name != table:
            found[("table", name)] = (min(seen.values()), frozenset() if "*" in seen else frozenset(seen))
        for at, (source, wanted, _) in enumerate(consumers):
            met = [distance for one, distance in seen.items() if source == name and reads(wanted, one)]
            if met:
                found[("consumer", f"c{at}")] = (min(met) + 1, frozenset())
    return found


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_the_closure_is_that_of_the_oracle(graph):
    edges, consumers, start = graph
    contracts = [contract(name, f"t{name}", *fields(*COLUMNS)) for name in NAMES[:3]]
    assets = {name: f"{name}.t{name}" for name in NAMES[:3]}
    found = [
        Reading(source, Consumer(f"c{at}", fields=tuple(wanted), assets=tuple(made)), ("here",))
        for at, (source, wanted, made) in enumerate(consumers)
    ]
    result: Impact = impact(contracts, found, edges, target=start, assets=assets)
    shown = {}
    for one in result.reached:
        kind = "consumer" if one.kind == "consumer" else "table"
        name = one.name.partition(".")[0]
        shown[(kind, name)] = (one.distance, frozenset(one.fields) if kind == "table" else frozenset())
        assert len(one.path) == one.distance + 1
        assert one.path[-1] == one.name
    assert shown == slowly(edges, consumers, start)
    assert [one.distance for one in result.reached] == sorted(one.distance for one in result.reached)

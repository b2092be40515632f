"""Contracts that several exporters of texts for people and for dbt are tried with."""

from datetime import date
from pathlib import Path

import pytest

from databox_contracts import rules
from databox_contracts.model import (
    Consumer,
    Contract,
    Dataset,
    Enforcement,
    Evolution,
    Field,
    Governance,
    Member,
    Mode,
    SchemaModes,
    Server,
    Team,
)
from databox_contracts.rules import Operator, Severity, Threshold
from databox_contracts.testing import build_field

CASES = Path(__file__).parents[1] / "cases"
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

SECRET = "jane@example.com"
HOSTILE = (
    "<script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "javascript:alert(1)",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='x",
    "]]>",
    "a | b",
    "`tick`",
    "# head",
    "- item",
    "1. one",
    "<!-- comment",
    "&lt;b&gt; &#60;",
    "two\nlines\n\n\n## head",
    "*bold* _it_ ~~no~~ $x$",
    "{{ var('x') }} {% set a %} {# no #}",
    "ref('secrets')",
    "\\",
    "\\|",
    "nul\x00 bell\x07 turn\u202e half\ud800",
    "![i](http://example.com/i.png)",
    "https://example.com/a?b=1&copy=2",
    "https://example.com/(a|b)",
    'http://example.com/"onclick="x',
    "café 数据",
    "  ",
)


def documents() -> list[Path]:
    """Every contract file there is to try."""
    return sorted([*CASES.glob("*/*.y*ml"), *CORPUS.glob("*/*.yaml"), *CORPUS.glob("*/*/*.yaml")])


@pytest.fixture(params=documents(), ids=lambda path: path.name)
def document(request: pytest.FixtureRequest) -> Path:
    """One of them."""
    return request.param


@pytest.fixture
def small() -> Contract:
    """A bit of everything that a page shows."""
    orders = Dataset(
        name="orders",
        physical_name="shop_orders",
        description="One row for each order.",
        modes=SchemaModes(columns=Mode.EVOLVE),
        fields=(
            build_field("id", "bigint", rules.Required(), pii=False, description="Its number."),
            build_field("state", "varchar(8)", rules.Enum(values=("new", "paid")), examples=("new",), default="new"),
            build_field(
                "total",
                "decimal(10,2)",
                rules.Minimum(limit=0, severity=Severity.WARNING, description="Refunds are apart."),
                column_name="total_eur",
                classification="internal",
            ),
            build_field("mail", "string", rules.Enum(values=(SECRET,)), pii=True, examples=(SECRET,), default=SECRET),
            build_field("shop", "int", rules.ForeignKey(fields=(), to="shops", to_fields=("id",))),
            build_field("tags", "array<string>", deprecated=True),
        ),
        rules=(
            rules.PrimaryKey(fields=("id",)),
            rules.RowCount(threshold=Threshold(Operator.GREATER_THAN, 0)),
            rules.Freshness(seconds=3600, element="placed"),
            rules.NotEnforced(description="Always up", reason="no data shows it"),
        ),
    )
    shops = Dataset(name="shops", fields=(build_field("id", "int", rules.Required(), rules.Unique()),))
    return Contract(
        id="shop.orders",
        name="Orders",
        version="2.10",
        status="active",
        description="What was sold.",
        domain="sales",
        tags=("core",),
        owner="checkout",
        team=Team(name="till", members=(Member(username="keeper", role="owner", date_out="2025-06-30"),)),
        servers=(
            Server(
                name="lake",
                type="s3",
                environment="prod",
                settings={"location": "s3://key:secret@shop/orders?token=secret", "password": "secret"},
            ),
        ),
        datasets=(orders, shops),
        consumers=(
            Consumer(name="Reports", contact="reports@example.com", fields=("orders.id",), versions="^2", purpose="bi"),
        ),
        evolution=Evolution(policy="strict", allowed=("add_field",), deprecation_window_days=30),
        enforcement=Enforcement(mode="warn", until=date(2026, 3, 31)),
        governance=Governance(retention_days=0, purposes=("billing",), read=("finance",)),
        notice_period="P3M",
        custom={
            "cost-center": 7,
            "docs": "https://example.com/orders",
            "changelog": [{"version": "2.10", "change": "Shops are told apart."}],
            "$odcs": {
                "support": [{"channel": "#till", "tool": "slack", "url": "https://example.com/till"}],
                "price": 1,
            },
        },
    )


@pytest.fixture
def hostile() -> Contract:
    """Every text of the contract is one that wants to be more than text."""

    def dataset(at: int, bad: str) -> Dataset:
        fields = tuple(
            Field(
                name=f"{at}{name}",
                description=bad,
                semantics=bad,
                business_name=bad,
                column_name=f"{bad}{kind}",
                type=build_field("x", spelling).type,
                tags=(bad,),
                sources=(bad,),
                examples=(bad,),
                default=bad,
                classification="public",
                pii=False,
                custom={bad: bad},
                rules=(
                    rules.Enum(values=(bad, "other"), description=bad, name=bad),
                    rules.Pattern(pattern=bad),
                    rules.RequiredWhen(condition=bad),
                    rules.Minimum(limit=bad),
                    rules.NotEnforced(description=bad, reason=bad, name=bad),
                ),
            )
            for kind, (name, spelling) in enumerate(((bad, "string"), (f"{bad}.{bad}", "array<string>")))
        )
        return Dataset(
            name=f"{bad}{at}",
            physical_name=bad,
            business_name=bad,
            description=bad,
            tags=(bad,),
            fields=fields,
            rules=(
                rules.PrimaryKey(fields=(fields[0].name, fields[1].name)),
                rules.Expression(sql=bad, name=bad, description=bad),
                rules.ForeignKey(fields=(fields[0].name,), to=bad, to_fields=(bad,)),
                rules.Query(sql=bad, threshold=Threshold(Operator.MUST_BE, 0)),
                rules.Freshness(seconds=1, element=bad),
            ),
        )

    return Contract(
        id=HOSTILE[0],
        name=HOSTILE[3],
        version=HOSTILE[6],
        status=HOSTILE[1],
        description="\n".join(HOSTILE),
        domain=HOSTILE[0],
        tags=HOSTILE,
        owner=HOSTILE[2],
        team=Team(
            name=HOSTILE[1],
            description=HOSTILE[0],
            members=tuple(Member(username=bad, name=bad, role=bad, date_out=bad) for bad in HOSTILE),
        ),
        servers=tuple(
            Server(name=f"{bad}{at}", type=bad, environment=bad, settings={"location": bad})
            for at, bad in enumerate(HOSTILE)
        ),
        datasets=tuple(dataset(at, bad) for at, bad in enumerate(HOSTILE)),
        consumers=tuple(
            Consumer(
                name=bad,
                contact=bad,
                owner=bad,
                contacts=(bad,),
                datasets=(bad,),
                fields=(bad,),
                versions=bad,
                purpose=bad,
                justification=bad,
                criticality=bad,
            )
            for bad in HOSTILE
        ),
        evolution=Evolution(policy=HOSTILE[0], allowed=HOSTILE, disallowed=HOSTILE, sign_off=HOSTILE[1]),
        governance=Governance(purposes=HOSTILE, read=HOSTILE, write=HOSTILE),
        notice_period=HOSTILE[1],
        custom={
            **{f"{at}{bad}": bad for at, bad in enumerate(HOSTILE)},
            "changelog": [{bad: bad} for bad in HOSTILE],
            "$odcs": {"support": [{"channel": bad, "url": bad, "tool": bad} for bad in HOSTILE]},
        },
    )

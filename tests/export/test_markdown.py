"""One page of Markdown for each contract: tables stay tables, and texts stay texts."""

import re

import pytest

from databox_contracts.export import export
from databox_contracts.export.markdown import render_markdown
from databox_contracts.export.page import Code, Items, Jump, Page, Prose, Row, Section, Table, linked
from databox_contracts.formats import load_contract
from databox_contracts.model import Contract, Dataset


def cells_of(row: str) -> int:
    """How many cells GitHub finds in a row: bars count but those after a backslash."""
    return len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) - 1


def check(text: str) -> None:
    """Whether every table is one, and no HTML but ours is in the text."""
    text.encode("utf-8")
    for table in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        rows = table.splitlines()
        assert len({cells_of(row) for row in rows}) == 1, table
        assert set(rows[1]) <= set("|- ")
    outside = re.sub(r"`[^`\n]*`", "", text)
    assert set(re.findall(r"<[^>]*>?", outside)) <= {"<br>", "<code>", "</code>"}
    assert not re.search(r"\]\((?!https?://|mailto:)", re.sub(r"\\.", "", outside))


GOLDEN = """\
# Orders 2.10

|  |  |
| --- | --- |
| Id | `shop.orders` |
| Name | Orders |
| Version | `2.10` |
| Status | active |
| Domain | sales |
| Owner | checkout |
| Contacts | \\#till, [https://example.com/till](https://example.com/till) (slack) |
| Tags | core |
| Notice period | P3M |
| Enforcement | violations only warn until 2026-03-31 |

What was sold.

## Dataset orders

|  |  |
| --- | --- |
| Table | `shop_orders` |
| New tables | are made |
| Columns that are not declared | become columns of the table |
| Values of another type | stop the table |

One row for each order.

### Fields

| Field | Type | Required | Key | Rules | Description | Protection |
| --- | --- | --- | --- | --- | --- | --- |
| `id` | integer(64) | yes | primary key |  | Its number. | no personal data |
| `state` | string(8) | no |  | Is one of: `"new"`, `"paid"`. | Default: `"new"`<br>Examples: `"new"` |  |
| `total` | decimal(10, 2) | no |  | Is at least `0`. Refunds are apart. (warning) \
| Column: `total_eur` | classification: internal |
| `mail` | string | no |  | Is one of: 1 value, not shown. \
| Default: not shown<br>Examples: not shown | personal data<br>values are not shown |
| `shop` | integer(32) | no |  | The value is found in `shops` (`id`). |  |  |
| `tags` | array of string | no |  |  | Deprecated. |  |

### Rules

- Each row is identified by `id`.
- Rows in the table: more than 0.

### Guarantees

- The newest row is at most 1 hour old by `placed`.

### Promises that are not enforced

- Always up. Not enforced: no data shows it.

## Dataset shops

|  |  |
| --- | --- |
| Table | `shops` |

### Fields

| Field | Type | Required | Key | Rules | Description | Protection |
| --- | --- | --- | --- | --- | --- | --- |
| `id` | integer(32) | yes | unique |  |  |  |

## Ownership

**Who owns the contract**

|  |  |
| --- | --- |
| Owner | checkout |
| Team | till |

**Members of the team**

| Member | Name | Role | Left on |
| --- | --- | --- | --- |
| keeper |  | owner | 2025-06-30 |

## Consumers

| Consumer | Owner | Contacts | Reads | Versions | Purpose | Criticality |
| --- | --- | --- | --- | --- | --- | --- |
| Reports |  | [reports@example.com](mailto:reports@example.com) | fields: `orders.id` | `^2` | bi |  |

## Evolution

|  |  |
| --- | --- |
| Policy | `strict` |
| Allowed changes | `add_field` |
| Deprecation window | 30 days |

## Governance

|  |  |
| --- | --- |
| Retention | 0 days |
| Purposes | billing |
| May read | finance |

## Servers

| Server | Type | Environment | Location |
| --- | --- | --- | --- |
| lake | s3 | prod | `s3://shop/orders…` |

## Custom properties

|  |  |
| --- | --- |
| cost-center | `7` |
| docs | [https://example.com/orders](https://example.com/orders) |

## History

| Version | Change |
| --- | --- |
| 2.10 | Shops are told apart. |
"""


def test_a_small_page_is_this(small):
    exported = export(small, "markdown")
    # Which rules this version only carries is another matter.
    assert re.sub(r" \(not enforced: this version [^)]*\)", "", exported.text) == GOLDEN
    assert exported.losses == (
        "what only odcs says (price) of the contract: a page has no words for it",
        "password of the server lake: settings may hold secrets",
    )


def test_hostile_texts_stay_texts(hostile):
    check(export(hostile, "markdown").text)


def test_a_reader_of_markdown_finds_neither_html_nor_strange_links(hostile):
    markdown_it = pytest.importorskip("markdown_it")
    text = export(hostile, "markdown").text
    tokens = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    spans = [span for token in tokens for span in token.children or []]
    html = {span.content for span in spans if span.type == "html_inline"}
    assert html <= {"<br>", "<code>", "</code>"}
    assert [token.content for token in tokens if token.type in ("html_block", "fence", "code_block")] == []
    assert {span.type for span in spans} <= {
        *("text", "code_inline", "html_inline", "link_open", "link_close", "strong_open", "strong_close"),
        *("text_special", "softbreak"),
    }
    links = [span.attrs["href"] for span in spans if span.type == "link_open"]
    assert links
    assert [link for link in links if not link.startswith(("https://", "http://", "mailto:"))] == []
    # Everything between two headings of ours: no text has become one.
    assert {token.tag for token in tokens if token.type == "heading_open"} <= {"h1", "h2", "h3"}
    titles = [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"]
    assert "head" not in titles
    assert not any(token.type.startswith(("ordered_list", "blockquote", "hr")) for token in tokens)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("plain - text 1.5", "plain - text 1.5"),
        ("2025-06-30", "2025-06-30"),
        ("1. one", "1\\. one"),
        ("12) one", "12\\) one"),
        ("- item", "\\- item"),
        ("+ item", "\\+ item"),
        ("---", "\\---"),
        ("# head", "\\# head"),
        ("> quote", "&gt; quote"),
        ("a | b", "a \\| b"),
        ("[x](javascript:y)", "\\[x\\](javascript:y)"),
        ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
        ("a\\", "a\\\\"),
        ("a\nb", "a b"),
        ("    code", "code"),
    ],
)
def test_marks_lose_their_meaning(text, marked):
    assert render_markdown(Page("t", (Prose(((text,),)),))) == f"# t\n\n{marked}\n"


@pytest.mark.parametrize(
    ("code", "marked"),
    [
        ("a*b", "`a*b`"),
        ("<b>", "`<b>`"),
        ("a|b", "<code>a&#124;b</code>"),
        ("`", "<code>&#96;</code>"),
        ("", "<code></code>"),
        (" a", "<code>&#160;a</code>"),
        ("a\nb", "<code>a<br>b</code>"),
    ],
)
def test_code_is_kept_letter_by_letter(code, marked):
    assert render_markdown(Page("t", (Items(((Code(code),),)),))) == f"# t\n\n- {marked}\n"


def test_a_table_and_links():
    row = Row((((linked("https://example.com/(a|b)"),),), (("x",), ("y", Code("z")))), "here")
    page = Page("t", (), (Section("s", "s", (Table("c", ("A", "B"), (row,)), Prose(((Jump("go", "s"),),)))),))
    assert render_markdown(page) == (
        "# t\n\n## s\n\n| A | B |\n| --- | --- |\n"
        "| [https://example.com/(a\\|b)](https://example.com/%28a%7Cb%29) | x<br>y`z` |\n\ngo\n"
    )


@pytest.mark.parametrize(
    ("contract", "said"),
    [
        (Contract(id="x", version="1"), "The contract declares no dataset."),
        (Contract(id="x", version="1", datasets=(Dataset(name="empty"),)), "No field is declared."),
    ],
)
def test_a_contract_without_anything_says_so(contract, said):
    text = export(contract, "markdown").text
    check(text)
    assert said in text


def test_every_document_is_a_page_the_same_each_time(document):
    exported = export(load_contract(document), "markdown")
    check(exported.text)
    assert export(load_contract(document), "markdown") == exported

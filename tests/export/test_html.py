"""One HTML page for each contract: whole, still, accessible, and only text where the contract has text."""

import re
from html.parser import HTMLParser

import pytest

from databox_contracts.export import export
from databox_contracts.export.html import render_html
from databox_contracts.export.page import Items, Jump, Page, Section
from databox_contracts.formats import load_contract
from databox_contracts.model import Contract, Dataset

VOID = ("meta", "br")
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "main", "nav", "section", "div", "h1", "h2", "h3"),
    *("p", "ul", "li", "a", "code", "table", "caption", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {
    *("lang", "charset", "name", "content", "http-equiv", "id", "class", "role", "tabindex", "scope", "href", "rel"),
    *("aria-label", "aria-labelledby"),
}


class Checked(HTMLParser):
    """Reads a page and notes what it is made of; it fails on a tag that is not closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[int] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), "an attribute stands twice"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data}")

    def unknown_decl(self, data):
        raise AssertionError(f"a declaration: {data}")

    def all(self, name: str) -> list[str]:
        return [attributes[name] or "" for _, attributes in self.tags if name in attributes]


def check(text: str) -> Checked:
    """Whether the page keeps what is promised of every page."""
    text.encode("utf-8")
    page = Checked(text)
    assert {tag for tag, _ in page.tags} <= ALLOWED
    assert {name for _, attributes in page.tags for name in attributes} <= ATTRIBUTES
    ids = page.all("id")
    assert len(ids) == len(set(ids))
    assert not any(re.search(r"\s", one) or not one for one in ids)
    assert [href for href in page.all("href") if not re.match(r"https?://|mailto:|#", href)] == []
    assert set(page.all("aria-labelledby")) <= set(ids)
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(page.headings, page.headings[1:], strict=False))
    assert all(attributes.get("scope") in ("row", "col") for tag, attributes in page.tags if tag == "th")
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    # What the style sheet says is ours, and fetches nothing.
    assert re.findall(r"url\(|@import|expression\(", text.split("</style>")[0]) == []
    return page


def body(text: str) -> str:
    return text.split("<body>\n")[1]


def test_a_small_page_is_this(small):
    one = small.model_copy(
        update={
            "datasets": small.datasets[1:],
            "consumers": (),
            "team": small.team.model_copy(update={"members": ()}),
            "custom": {},
            "evolution": None,
        }
    )
    assert (
        body(export(one, "html").text)
        == """\
<main>
<h1>Orders 2.10</h1>
<nav aria-label="Contents">
<ul>
<li><a href="#dataset-shops">Dataset shops</a></li>
<li><a href="#ownership">Ownership</a></li>
<li><a href="#governance">Governance</a></li>
<li><a href="#servers">Servers</a></li>
</ul>
</nav>
<div class="scroll" role="region" tabindex="0" aria-label="The contract">
<table>
<caption>The contract</caption>
<tbody>
<tr><th scope="row">Id</th><td><code>shop.orders</code></td></tr>
<tr><th scope="row">Name</th><td>Orders</td></tr>
<tr><th scope="row">Version</th><td><code>2.10</code></td></tr>
<tr><th scope="row">Status</th><td>active</td></tr>
<tr><th scope="row">Domain</th><td>sales</td></tr>
<tr><th scope="row">Owner</th><td>checkout</td></tr>
<tr><th scope="row">Tags</th><td>core</td></tr>
<tr><th scope="row">Notice period</th><td>P3M</td></tr>
<tr><th scope="row">Enforcement</th><td>violations only warn until 2026-03-31</td></tr>
</tbody>
</table>
</div>
<p>What was sold.</p>
<section aria-labelledby="dataset-shops">
<h2 id="dataset-shops">Dataset shops</h2>
<div class="scroll" role="region" tabindex="0" aria-label="The dataset shops">
<table>
<caption>The dataset shops</caption>
<tbody>
<tr><th scope="row">Table</th><td><code>shops</code></td></tr>
</tbody>
</table>
</div>
<section aria-labelledby="fields-shops">
<h3 id="fields-shops">Fields</h3>
<div class="scroll" role="region" tabindex="0" aria-label="Fields of shops">
<table>
<caption>Fields of shops</caption>
<thead><tr><th scope="col">Field</th><th scope="col">Type</th><th scope="col">Required</th><th scope="col">Key</th>\
<th scope="col">Rules</th><th scope="col">Description</th><th scope="col">Protection</th></tr></thead>
<tbody>
<tr id="field-shops-id"><th scope="row"><code>id</code></th><td>integer(32)</td><td>yes</td><td>unique</td>\
<td></td><td></td><td></td></tr>
</tbody>
</table>
</div>
</section>
</section>
<section aria-labelledby="ownership">
<h2 id="ownership">Ownership</h2>
<div class="scroll" role="region" tabindex="0" aria-label="Who owns the contract">
<table>
<caption>Who owns the contract</caption>
<tbody>
<tr><th scope="row">Owner</th><td>checkout</td></tr>
<tr><th scope="row">Team</th><td>till</td></tr>
</tbody>
</table>
</div>
</section>
<section aria-labelledby="governance">
<h2 id="governance">Governance</h2>
<div class="scroll" role="region" tabindex="0" aria-label="Who may hold the data, for what and how long">
<table>
<caption>Who may hold the data, for what and how long</caption>
<tbody>
<tr><th scope="row">Retention</th><td>0 days</td></tr>
<tr><th scope="row">Purposes</th><td>billing</td></tr>
<tr><th scope="row">May read</th><td>finance</td></tr>
</tbody>
</table>
</div>
</section>
<section aria-labelledby="servers">
<h2 id="servers">Servers</h2>
<div class="scroll" role="region" tabindex="0" aria-label="Where the data lies">
<table>
<caption>Where the data lies</caption>
<thead><tr><th scope="col">Server</th><th scope="col">Type</th><th scope="col">Environment</th>\
<th scope="col">Location</th></tr></thead>
<tbody>
<tr><th scope="row">lake</th><td>s3</td><td>prod</td><td><code>s3://shop/orders…</code></td></tr>
</tbody>
</table>
</div>
</section>
</main>
</body>
</html>
"""
    )


def test_hostile_texts_stay_texts(hostile):
    page = check(export(hostile, "html").text)
    said = "".join(page.texts)
    for bad in (
        "<script>alert(1)</script>",
        "]]>",
        '"><img src=x onerror=alert(1)>',
        "<!-- comment",
        "&lt;b&gt; &#60;",
    ):
        assert bad in said
    assert not any("javascript:" in href.lower() for href in page.all("href"))


def test_the_page_reads_in_light_and_dark_and_on_paper(small):
    text = export(small, "html").text
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    assert "color-scheme: light dark" in text


def test_no_secret_and_no_hidden_value_is_on_the_page(small):
    text = export(small, "html").text
    assert "jane" not in text
    assert "secret" not in text


@pytest.mark.parametrize(
    "contract",
    [
        Contract(id="x", version="1"),
        Contract(id="x", version="1", datasets=(Dataset(name="empty"),)),
        Contract(id="", version="", datasets=(Dataset(name=""), Dataset(name=""))),
    ],
)
def test_a_contract_without_anything_is_a_page_all_the_same(contract):
    check(export(contract, "html").text)


def test_every_document_is_a_page_the_same_each_time(document):
    contract = load_contract(document)
    exported = export(contract, "html")
    check(exported.text)
    assert export(load_contract(document), "html") == exported
    page = Checked(exported.text)
    fields = sum(len(dataset.fields) for dataset in contract.datasets)
    assert len([one for one in page.all("id") if one.startswith("field-")]) >= fields


def test_a_jump_leads_to_a_place_of_the_page():
    page = Page("t", (Items(((Jump("go", "größe"),),)),), (Section("s", "größe"),))
    text = render_html(page)
    assert '<a href="#gr%C3%B6%C3%9Fe">go</a>' in text
    assert '<h2 id="größe">s</h2>' in text

"""The OpenAPI document says what the service does."""

import re

from databox_contracts.service.openapi import DOCUMENT
from databox_contracts.service.operations import OPERATIONS

METHODS = ("get", "put", "post", "delete")
OPEN = {"live", "ready", "openapi"}


def operations():
    for path, item in DOCUMENT["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method], item.get("parameters", [])


def test_it_has_the_operations_that_there_are_and_no_other():
    told = {
        (described["operationId"], method.upper(), path, described.get("x-scope"))
        for path, method, described, _ in operations()
    }
    here = {(one.name, one.method, one.path, str(one.scope)) for one in OPERATIONS}
    assert told == here | {
        ("live", "GET", "/health/live", None),
        ("ready", "GET", "/health/ready", None),
        ("openapi", "GET", "/openapi.json", None),
        ("metrics", "GET", "/metrics", "read"),
    }


def test_parameters_and_bodies_are_those_that_are_taken():
    known = {one.name: one for one in OPERATIONS}
    for path, _, described, in_path in operations():
        one = known.get(described["operationId"])
        told = described.get("parameters", [])
        assert [parameter["name"] for parameter in in_path] == re.findall(r"{(\w+)}", path)
        assert {parameter["in"] for parameter in told} <= {"query"}
        assert sorted(parameter["name"] for parameter in told) == sorted(one.query if one is not None else ())
        if "requestBody" in described:
            assert one is not None
            assert one.body > 0


def test_what_needs_a_token_says_so():
    for _, _, described, _ in operations():
        is_open = described["operationId"] in OPEN
        assert described["security"] == ([] if is_open else [{"token": []}])
        assert ("default" in described["responses"]) == (not is_open)


def test_references_lead_somewhere():
    names = set()

    def look(value):
        if isinstance(value, dict):
            if "$ref" in value:
                names.add(value["$ref"])
            for inner in value.values():
                look(inner)
        elif isinstance(value, list):
            for inner in value:
                look(inner)

    look(DOCUMENT)
    assert names
    for name in names:
        found = DOCUMENT
        for step in name.removeprefix("#/").split("/"):
            found = found[step]


def test_it_is_served(lite):
    assert lite("GET", "/openapi.json", scope=None).facts == DOCUMENT


def test_answers_have_the_fields_that_are_told(lite):
    text = "dataContractSpecification: 1.2.0\nid: a\ninfo: {title: A, version: 1.0.0}\n"
    text += "models: {t: {fields: {f: {type: int}}}}\n"
    schemas = DOCUMENT["components"]["schemas"]
    published = lite("PUT", "/contracts/a", text).facts
    lite("PUT", "/contracts/a/consumers/c", {})
    answers = {
        "Version": lite("GET", "/contracts/a").facts,
        "Publication": published,
        "Consumer": lite("GET", "/consumers").facts["consumers"][0],
        "Approval": lite("POST", "/contracts/a/approvals", {"consumer": "c"}).facts,
        "GateReport": lite("POST", "/compatibility", text).facts,
        "Problem": lite("GET", "/contracts/b").facts,
    }
    required = {name: schemas[name].get("required", []) for name in answers} | {
        "Publication": [*schemas["Version"]["required"], *schemas["Publication"]["allOf"][1]["required"]]
    }
    for name, answer in answers.items():
        assert set(required[name]) <= set(answer), name

"""The service's OpenAPI document, written by hand; a test holds it against the operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_TEXT: Final = {"type": "string"}
_FLAG: Final = {"type": "boolean", "default": False}
_MAYBE_TEXT: Final = {"type": ["string", "null"]}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(name: str, of: str) -> dict[str, Any]:
    return {"type": "object", "required": [name], "properties": {name: {"type": "array", "items": _ref(of)}}}


def _object(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties}


def _json(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _query(name: str, description: str, schema: Mapping[str, Any] = _TEXT) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _operation(
    name: str,
    scope: str | None,
    summary: str,
    answers: Mapping[str, Mapping[str, Any] | None],
    *parameters: Mapping[str, Any],
    body: Mapping[str, Any] | None = None,
    required_body: bool = True,
) -> dict[str, Any]:
    described = {
        "200": "done",
        "201": "new",
        "503": "the database does not answer",
    }
    responses: dict[str, Any] = {
        status: {"description": described[status], **({"content": content} if content else {})}
        for status, content in answers.items()
    }
    if scope is not None:
        responses["default"] = {"$ref": "#/components/responses/Problem"}
    return {
        "operationId": name,
        "summary": summary,
        "security": [{"token": []}] if scope is not None else [],
        **({"x-scope": scope} if scope is not None else {}),
        **({"parameters": list(parameters)} if parameters else {}),
        **({"requestBody": {"required": required_body, "content": body}} if body is not None else {}),
        "responses": responses,
    }


_BY: Final = _query("by", "For whom the token's holder does it; both are recorded.")
_ACTIVATE: Final = _query("activate", "Publish drafts as active versions.", _FLAG)
_CONTENT: Final = _query("content", "With the documents.", _FLAG)
_ORIGIN: Final = _query(
    "origin",
    "Where the consumer declared itself.",
    {"type": "string", "enum": ["file", "code", "registry"], "default": "registry"},
)
_DOCUMENT: Final = {
    "application/yaml": {"schema": {"type": "string", "description": "A contract of any dialect."}},
    "application/json": {"schema": {"type": "object", "description": "The same document as JSON."}},
}
_EITHER: Final = {"oneOf": [{"type": "object"}, {"type": "string", "description": "The document's text."}]}


def _parts(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "in": "path", "required": True, "schema": _TEXT} for name in names]


_VERSION_ANSWER: Final = {"200": _json(_ref("Version"))}

DOCUMENT: Final[Mapping[str, Any]] = {
    "openapi": "3.1.0",
    "info": {
        "title": "Registry of data contracts",
        "version": "1",
        "description": "Ids and names are percent-encoded in addresses. Writing twice is writing once.",
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    },
    "paths": {
        "/health/live": {
            "get": _operation("live", None, "Whether the process answers.", {"200": _json({"type": "object"})}),
        },
        "/health/ready": {
            "get": _operation(
                "ready",
                None,
                "Whether the registry's database answers.",
                {"200": _json({"type": "object"}), "503": _json({"type": "object"})},
            ),
        },
        "/openapi.json": {
            "get": _operation("openapi", None, "This document.", {"200": _json({"type": "object"})}),
        },
        "/metrics": {
            "get": _operation(
                "metrics", "read", "Metrics in Prometheus' text format.", {"200": {"text/plain": {"schema": _TEXT}}}
            ),
        },
        "/contracts": {
            "get": _operation(
                "listContracts",
                "read",
                "The contracts there are.",
                {"200": _json(_list("contracts", "Version"))},
                _CONTENT,
            ),
            "post": _operation(
                "publishContracts",
                "publish",
                "Publish all contracts of a catalogue, or none.",
                dict.fromkeys(("200", "201"), _json(_list("publications", "Publication"))),
                _BY,
                _ACTIVATE,
                body=_json(_object("contracts", contracts={"type": "array", "minItems": 1, "items": _EITHER})),
            ),
        },
        "/contracts/{id}": {
            "parameters": _parts("id"),
            "get": _operation(
                "getContract",
                "read",
                "One version, by default the newest active one.",
                _VERSION_ANSWER,
                _query("version", "A version, or a range such as ^2."),
            ),
            "put": _operation(
                "publishContract",
                "publish",
                "Publish the contract, unless it is published already; 409 for other content under its version.",
                dict.fromkeys(("200", "201"), _json(_ref("Publication"))),
                _BY,
                _ACTIVATE,
                body=_DOCUMENT,
            ),
        },
        "/contracts/{id}/versions": {
            "parameters": _parts("id"),
            "get": _operation(
                "listVersions", "read", "All its versions.", {"200": _json(_list("versions", "Version"))}, _CONTENT
            ),
        },
        "/contracts/{id}/versions/{version}": {
            "parameters": _parts("id", "version"),
            "get": _operation("getVersion", "read", "One version.", _VERSION_ANSWER),
        },
        "/contracts/{id}/versions/{version}/activate": {
            "parameters": _parts("id", "version"),
            "post": _operation(
                "activateVersion", "publish", "Make a draft active, or take a deprecation back.", _VERSION_ANSWER, _BY
            ),
        },
        "/contracts/{id}/versions/{version}/deprecate": {
            "parameters": _parts("id", "version"),
            "post": _operation(
                "deprecateVersion",
                "publish",
                "Announce the version's end; 409 for a day within the notice period.",
                _VERSION_ANSWER,
                _BY,
                body=_json(_object("", sunset={"type": "string", "format": "date"})),
                required_body=False,
            ),
        },
        "/contracts/{id}/versions/{version}/retire": {
            "parameters": _parts("id", "version"),
            "post": _operation(
                "retireVersion",
                "publish",
                "End the version; 409 before its sunset, or where a consumer is left with nothing.",
                _VERSION_ANSWER,
                _BY,
            ),
        },
        "/contracts/{id}/consumers": {
            "parameters": _parts("id"),
            "get": _operation(
                "listConsumersOf", "read", "Its consumers.", {"200": _json(_list("consumers", "Consumer"))}
            ),
        },
        "/contracts/{id}/consumers/{name}": {
            "parameters": _parts("id", "name"),
            "put": _operation(
                "registerConsumer",
                "publish",
                "Register a consumer, in place of the one of that name and origin.",
                {"200": _json(_ref("Consumer"))},
                _BY,
                _ORIGIN,
                body=_json(_ref("DeclaredConsumer")),
            ),
            "delete": _operation(
                "removeConsumer",
                "admin",
                "Remove a consumer.",
                {"200": _json(_object("removed", removed={"type": "boolean"}))},
                _BY,
                _ORIGIN,
            ),
        },
        "/contracts/{id}/approvals": {
            "parameters": _parts("id"),
            "get": _operation("listApprovalsOf", "read", "Consents.", {"200": _json(_list("approvals", "Approval"))}),
            "post": _operation(
                "approve",
                "admin",
                "Store a consumer's consent to a version or a purpose.",
                {"200": _json(_ref("Approval"))},
                body=_json(
                    _object(
                        "consumer",
                        consumer=_TEXT,
                        approver=_TEXT,
                        dataset=_MAYBE_TEXT,
                        version=_MAYBE_TEXT,
                        purpose=_MAYBE_TEXT,
                        note=_TEXT,
                    )
                ),
            ),
        },
        "/consumers": {
            "get": _operation(
                "listConsumers", "read", "All consumers.", {"200": _json(_list("consumers", "Consumer"))}
            ),
        },
        "/approvals": {
            "get": _operation("listApprovals", "read", "All consents.", {"200": _json(_list("approvals", "Approval"))}),
        },
        "/compatibility": {
            "post": _operation(
                "checkCompatibility",
                "read",
                "Judge a contract against another one, or against a registered version of it, as the gate does.",
                {"200": _json(_ref("GateReport"))},
                _query("version", "The registered version to judge against, where the body is the contract itself."),
                _query("policy", "Who judges, in place of the old contract's own policy."),
                body={
                    "application/yaml": _DOCUMENT["application/yaml"],
                    "application/json": {
                        "schema": {
                            "oneOf": [
                                {"type": "object", "description": "A contract."},
                                _object("contract", contract=_EITHER, old=_EITHER, version=_TEXT, policy=_TEXT),
                            ]
                        }
                    },
                },
            ),
        },
        "/impact": {
            "get": _operation(
                "impact",
                "read",
                "Whom a change reaches: consumers, what they make of it, and so on.",
                {"200": _json(_ref("Impact"))},
                _query("target", "CONTRACT[.DATASET][.FIELD]"),
            )
        },
    },
    "components": {
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        "responses": {
            "Problem": {
                "description": "refused, or not possible (RFC 9457)",
                "content": {"application/problem+json": {"schema": _ref("Problem")}},
            }
        },
        "schemas": {
            "Problem": _object(
                "type title status detail",
                type=_TEXT,
                title=_TEXT,
                status={"type": "integer"},
                detail=_TEXT,
                hint=_TEXT,
                facts={"type": "object"},
            ),
            "Version": _object(
                "contract version title status digest published_at published_by effective sunset",
                contract=_TEXT,
                version=_TEXT,
                title=_TEXT,
                status={"type": "string", "enum": ["draft", "active", "deprecated", "retired"]},
                digest=_TEXT,
                published_at={"type": "string", "format": "date-time"},
                published_by=_TEXT,
                effective=_MAYBE_TEXT,
                sunset=_MAYBE_TEXT,
                content=_TEXT,
            ),
            "Publication": {
                "allOf": [
                    _ref("Version"),
                    _object(
                        "outcome previous notified",
                        outcome={"type": "string", "enum": ["published", "unchanged", "changed"]},
                        previous=_MAYBE_TEXT,
                        notified={"type": "integer"},
                    ),
                ]
            },
            "DeclaredConsumer": {"type": "object", "description": "A consumer as contracts declare it."},
            "Consumer": _object(
                "contract name origin registered_at registered_by",
                contract=_TEXT,
                name=_TEXT,
                origin=_TEXT,
                registered_at={"type": "string", "format": "date-time"},
                registered_by=_TEXT,
            ),
            "Approval": _object(
                "contract consumer approver at dataset version purpose note",
                contract=_TEXT,
                consumer=_TEXT,
                approver=_TEXT,
                at={"type": "string", "format": "date-time"},
                dataset=_MAYBE_TEXT,
                version=_MAYBE_TEXT,
                purpose=_MAYBE_TEXT,
                note=_TEXT,
            ),
            "Impact": _object(
                "target contract version owner owners reached problems",
                target=_TEXT,
                contract=_TEXT,
                version=_TEXT,
                owner=_MAYBE_TEXT,
                owners={"type": "array", "items": _TEXT},
                reached={"type": "array", "items": {"type": "object"}},
                problems={"type": "array", "items": {"type": "object"}},
            ),
            "GateReport": _object(
                "clean base head breaking additive acknowledged conditions remarks problems",
                clean={"type": "boolean"},
                base=_TEXT,
                head=_TEXT,
                breaking={"type": "array", "items": {"type": "object"}},
                additive={"type": "array", "items": {"type": "object"}},
                acknowledged={"type": "array", "items": {"type": "object"}},
                conditions={"type": "array", "items": _TEXT},
                remarks={"type": "array", "items": _TEXT},
                problems={"type": "array", "items": _TEXT},
            ),
        },
    },
}

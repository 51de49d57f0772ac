"""Workflows: check a document, store it, read it back."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from executor.views import SavedWorkflow
from server.body import read_json
from server.errors import BodyInvalid
from server.routes.params import integer
from server.routes.table import Call, Link, Param, RouteSpec
from server.wire import Validation, fragment, json_response, workflow_summary, workflow_url

DOCUMENT_BODY = {
    "description": "A workflow document, or {document, name?, trigger?} around one.",
    "type": "object",
}


async def validate(call: Call) -> Response:
    """200 with all findings, also when there are errors: being asked is not a failure."""
    document, envelope = await _document(call)
    trigger = envelope.get("trigger") or call.query("trigger")
    found = await call.engine.validate(document, trigger)
    return json_response(Validation(not any(d.severity == "error" for d in found), found))


async def save(call: Call) -> Response:
    """201 for a new version, 200 when this very document is stored already. A document with errors is refused: 422."""
    document, envelope = await _document(call)
    saved = await call.engine.save_workflow(document, envelope.get("name") or call.query("name"))
    return json_response(saved, 201 if saved.created else 200, {"Location": workflow_url(saved.name)})


async def list_all(call: Call) -> Response:
    rows = await call.engine.list_workflows()
    return json_response({"workflows": [workflow_summary(row) for row in rows]})


async def read(call: Call) -> Response:
    row = await call.engine.get_workflow(call.path("name"), integer(call, "version", minimum=1))
    body = {**workflow_summary(row), "document": fragment(row.document)}
    return json_response(body, headers={"ETag": f'"{row.hash}"'})


async def inputs(call: Call) -> Response:
    """The last 10 different inputs of its runs, newest first; those over 64 KiB are left out."""
    row = await call.engine.get_workflow(call.path("name"))
    return json_response({"inputs": await call.engine.last_inputs(row.name)})


async def blocks(call: Call) -> Response:
    return json_response({"blocks": call.engine.blocks()})


async def _document(call: Call) -> tuple[Any, dict[str, Any]]:
    """The document and what was around it. A document has `blocks` and an envelope has not, so the two can not be
    confused."""
    body = await read_json(call.request, call.settings.limits)
    if not isinstance(body, dict):
        raise BodyInvalid("Expected a workflow document: a JSON object.", pointer="")
    if "document" not in body or "blocks" in body:
        return body, {}
    for name in body:
        if name not in ("document", "name", "trigger"):
            raise BodyInvalid(f"Object contains unknown field `{name}`", pointer=f"/{name}")
    for name in ("name", "trigger"):
        if not isinstance(body.get(name), (str, type(None))):
            raise BodyInvalid("Expected text.", pointer=f"/{name}")
    return body["document"], body


_TRIGGER = Param("trigger", "The block it would start at, unless the body has one around the document.")
_NAME = Param("name", "Store it under this name, unless the body has one around the document; else under its own.")
_VERSION = Param("version", "A stored version; the newest without it.", {"type": "integer", "minimum": 1})
_SUMMARY = {
    "type": "object",
    "required": ["name", "version", "hash", "created_at_ms"],
    "properties": {
        "name": {"type": "string"},
        "version": {"type": "integer"},
        "hash": {"type": "string"},
        "created_at_ms": {"type": "integer"},
    },
}
INPUTS = {
    "type": "object",
    "required": ["inputs"],
    "properties": {"inputs": {"type": "array", "maxItems": 10, "items": {}}},
}
_LIST = {"type": "object", "required": ["workflows"], "properties": {"workflows": {"type": "array", "items": _SUMMARY}}}
_ONE = {**_SUMMARY, "properties": {**_SUMMARY["properties"], "document": {"type": "object"}}}  # type: ignore[dict-item]

TABLE = (
    RouteSpec(
        "POST",
        "/api/validate",
        validate,
        "Check a document without running it",
        "workflows",
        body=DOCUMENT_BODY,
        answer=Validation,
        params=(_TRIGGER,),
    ),
    RouteSpec(
        "POST",
        "/api/workflows",
        save,
        "Store a document as the next version",
        "workflows",
        body=DOCUMENT_BODY,
        answer=SavedWorkflow,
        status=201,
        statuses=(200, 422),
        params=(_NAME,),
        links=(
            Link("GET", "/api/workflows/{name}", {"name": "$response.body#/name"}),
            Link("POST", "/api/workflows/{name}/runs", {"name": "$response.body#/name"}),
        ),
    ),
    RouteSpec("GET", "/api/workflows", list_all, "The newest version of each workflow", "workflows", answer=_LIST),
    RouteSpec(
        "GET",
        "/api/workflows/{name}",
        read,
        "A stored document",
        "workflows",
        answer=_ONE,
        statuses=(404,),
        params=(_VERSION,),
    ),
    RouteSpec(
        "GET",
        "/api/workflows/{name}/inputs",
        inputs,
        "Inputs of the last runs",
        "workflows",
        answer=INPUTS,
        statuses=(404,),
    ),
    RouteSpec(
        "GET",
        "/api/blocks",
        blocks,
        "The block types, with the JSON Schema of their params",
        "workflows",
        answer={
            "type": "object",
            "required": ["blocks"],
            "properties": {"blocks": {"type": "array", "items": {"type": "object"}}},
        },
    ),
)

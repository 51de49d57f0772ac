"""Workflows: check a document, store it, read it back, choose the active version, delete."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from executor.service.views import SavedWorkflow
from server.http.body import read_as, read_json
from server.http.call import Call
from server.http.errors import BodyInvalid
from server.http.response import json_response
from server.http.table import Link, RouteSpec
from server.wire.runs import InputList
from server.wire.workflows import (
    ActivateRequest,
    BlockList,
    BlockType,
    DocumentBody,
    SaveQuery,
    ValidateQuery,
    Validation,
    VersionPage,
    VersionsQuery,
    WorkflowDeleted,
    WorkflowPage,
    WorkflowQuery,
    WorkflowVersion,
    workflow_url,
    workflow_version,
)


async def validate(call: Call) -> Response:
    """200 with all findings, even if there are errors."""
    document, envelope = await _document(call)
    trigger = envelope.get("trigger") or call.query(ValidateQuery).trigger
    found = await call.engine.workflows.validate(document, trigger)
    return json_response(Validation(not any(d.severity == "error" for d in found), found))


async def save(call: Call) -> Response:
    """The version becomes active: it runs where no version is given, and its schedules and webhooks replace those of
    the workflow. They are off while it has blocks that were not imported (finding `triggers_off`), unless
    `activate_triggers`. 201 for a new version; 200 when the same document is already a version, which becomes active if
    it was not (`activated`). 422: the document has errors."""
    document, envelope = await _document(call)
    query = call.query(SaveQuery)
    name = envelope.get("name") or query.name
    saved = await call.engine.workflows.save(document, name, activate_triggers=query.activate_triggers)
    return json_response(saved, 201 if saved.created else 200, {"Location": workflow_url(saved.name)})


async def list_all(call: Call) -> Response:
    """`version` is the active one. `last_run` is the run created last, or null."""
    return json_response(WorkflowPage(await call.engine.workflows.heads()))


async def read(call: Call) -> Response:
    """The document of a version, as it is stored. Without `version`: the active one."""
    name, query = call.path("name"), call.query(WorkflowQuery)
    workflows = call.engine.workflows
    row = await workflows.version(name, query.version)
    document = await workflows.converted(row.document) if query.converted else row.document
    body = workflow_version(await workflows.get(name), row, document)
    return json_response(body, headers={"ETag": f'"{row.hash}"'})


async def versions(call: Call) -> Response:
    """Newest first, without their documents."""
    name, query = call.path("name"), call.query(VersionsQuery)
    head = await call.engine.workflows.get(name)
    rows = await call.engine.workflows.versions(name, query.before, query.limit)
    return json_response(VersionPage(name, head.version, rows, rows[-1].version if len(rows) == query.limit else None))


async def activate(call: Call) -> Response:
    """The stored version becomes active, with its schedules and webhooks. Open runs keep their version. `activated` is
    false when it was already active."""
    body = await read_as(call.request, call.limits, ActivateRequest)
    activate = call.engine.workflows.activate
    return json_response(await activate(call.path("name"), body.version, activate_triggers=body.activate_triggers))


async def delete(call: Call) -> Response:
    """Delete it with its versions, schedules and webhooks. Its runs are kept. 409: a run of it is open."""
    name = call.path("name")
    deleted = await call.engine.workflows.delete(name)
    return json_response(WorkflowDeleted(name, deleted.schedules, deleted.webhooks))


async def inputs(call: Call) -> Response:
    """The last 10 different inputs of its runs, newest first. Inputs over 64 KiB are omitted."""
    row = await call.engine.workflows.version(call.path("name"))
    return json_response(InputList(await call.engine.runs.last_inputs(row.name)))


async def blocks(call: Call) -> Response:
    """The block types of this server, by category and title."""
    await call.engine.parts.connectors.refresh()
    return json_response(BlockList([BlockType(**entry) for entry in call.engine.parts.registry.catalogue()]))


async def _document(call: Call) -> tuple[Any, dict[str, Any]]:
    """The document and what was around it. A document has `blocks` and an envelope has not, so the two cannot be
    confused."""
    body = await read_json(call.request, call.limits)
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


TABLE = (
    RouteSpec(
        "POST",
        "/api/validate",
        validate,
        "Check a document without running it",
        "workflows",
        needs="editor",
        audit=False,
        body=DocumentBody,
        answer=Validation,
        query=ValidateQuery,
    ),
    RouteSpec(
        "POST",
        "/api/workflows",
        save,
        "Store a document as a version, and activate it",
        "workflows",
        needs="editor",
        body=DocumentBody,
        answer=SavedWorkflow,
        status=201,
        statuses=(200, 422),
        query=SaveQuery,
        links=(
            Link("GET", "/api/workflows/{name}", {"name": "$response.body#/name"}),
            Link("POST", "/api/workflows/{name}/runs", {"name": "$response.body#/name"}),
        ),
    ),
    RouteSpec(
        "GET",
        "/api/workflows",
        list_all,
        "Workflows and their last runs",
        "workflows",
        needs="viewer",
        answer=WorkflowPage,
    ),
    RouteSpec(
        "GET",
        "/api/workflows/{name}",
        read,
        "A stored document",
        "workflows",
        needs="viewer",
        answer=WorkflowVersion,
        statuses=(404,),
        query=WorkflowQuery,
    ),
    RouteSpec(
        "DELETE",
        "/api/workflows/{name}",
        delete,
        "Delete a workflow",
        "workflows",
        needs="editor",
        answer=WorkflowDeleted,
        statuses=(404, 409),
    ),
    RouteSpec(
        "GET",
        "/api/workflows/{name}/versions",
        versions,
        "The versions of a workflow, newest first",
        "workflows",
        needs="viewer",
        answer=VersionPage,
        statuses=(404,),
        query=VersionsQuery,
    ),
    RouteSpec(
        "PUT",
        "/api/workflows/{name}/active",
        activate,
        "Make a version the active one",
        "workflows",
        needs="editor",
        body=ActivateRequest,
        answer=SavedWorkflow,
        statuses=(404, 422),
    ),
    RouteSpec(
        "GET",
        "/api/workflows/{name}/inputs",
        inputs,
        "Inputs of the last runs",
        "workflows",
        needs="viewer",
        answer=InputList,
        statuses=(404,),
    ),
    RouteSpec(
        "GET",
        "/api/blocks",
        blocks,
        "The block types, with the JSON Schema of their parameters",
        "workflows",
        needs="viewer",
        answer=BlockList,
    ),
)

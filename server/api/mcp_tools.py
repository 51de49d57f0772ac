"""The tools of the MCP server: each stored workflow whose input is described, and `runs`, `waits`, `answer`. Tools that
the caller's role or token does not reach are not listed, and calls of them are refused."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Annotated, Any, Final

import msgspec
import orjson
from msgspec import Meta, Struct

from compiler.diagnostics import CompileError
from compiler.schema import schema_error
from executor.errors import BadRequest, NotFound, NotYours, WeftError
from executor.kernel.process.acting import Act, Role, acting
from executor.kernel.process.threads import aside
from executor.kernel.run.answers import needs_sign_in
from executor.kernel.run.imports import as_ours
from executor.kernel.store.statements import RunStatus
from executor.kernel.store.topics.workflows import WorkflowRow
from executor.kernel.values.coerce import FIELD_TYPES
from executor.kernel.values.files import FORMAT
from executor.kernel.values.run_input import FILE
from executor.service.topics.waits import WaitFilter
from executor.service.views import WaitView
from server.api.runs import IDEMPOTENCY_KEY_MAX, NO_ONE, run_summary, run_urls, wait_for
from server.http.auth import ANYONE
from server.http.errors import Forbidden, status_of
from server.http.principal import without_links
from server.http.request import convert
from server.http.response import to_json
from server.http.table import Call

WAIT_S: Final = 25.0  # of a call that starts a run
PAGE: Final = 100  # workflows that are looked at for one page of tools
LISTED_MAX: Final = 50
TEXT_MAX: Final = 256 * 1024
KEY: Final = "weft/idempotencyKey"  # in `_meta`
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,50}")
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]+")
_JSON_TYPES: Final = frozenset(FIELD_TYPES) - {"any"}


class UnknownTool(Exception):
    """There is no tool of this name for the caller."""


class RunsAsked(Struct, frozen=True, forbid_unknown_fields=True):
    """One run with its output if `run` is given, else the newest runs."""

    run: Annotated[str, Meta(max_length=64)] | None = None
    workflow: Annotated[str, Meta(max_length=200)] | None = None
    status: RunStatus | None = None
    limit: Annotated[int, Meta(ge=1, le=LISTED_MAX)] = 10


class WaitsAsked(Struct, frozen=True, forbid_unknown_fields=True):
    """Open waits of runs, all without parameters, oldest first."""

    run: Annotated[str, Meta(max_length=64)] | None = None
    workflow: Annotated[str, Meta(max_length=200)] | None = None
    limit: Annotated[int, Meta(ge=1, le=LISTED_MAX)] = 20


class Answered(Struct, frozen=True, forbid_unknown_fields=True):
    """`run` and `wait` as `waits` lists them; `action`: one of its actions; `fields`: as its schema wants them."""

    run: Annotated[str, Meta(max_length=64)]
    wait: Annotated[str, Meta(max_length=1000)]
    action: str | None = None
    fields: dict[str, Any] = {}


class _Own(Struct, frozen=True):
    """A tool that is there on every server."""

    needs: Role
    description: str
    asked: type[Struct]
    work: Callable[[Call, Any], Awaitable[Any]]
    reads: bool = True


async def list_tools(call: Call, cursor: str | None) -> dict[str, Any]:
    """A page of them. `cursor`: the name of the last workflow of the page before."""
    tools = [_described(name, own) for name, own in _OWN.items() if call.who.may(own.needs)] if cursor is None else []
    heads = [head for head in await call.engine.store.list_heads() if cursor is None or head.name > cursor]
    if not call.who.may(_START):
        heads = []
    for head in heads[:PAGE]:
        if not _reaches(call, head.name):
            continue
        try:
            row = await call.engine.workflows.version(head.name)
        except NotFound:  # deleted meanwhile
            continue
        described = await aside(partial(_input_of, row))
        if described is not None:
            schema, text = described
            tools.append(
                {
                    "name": tool_name(row.name),
                    "description": text or f"Runs the workflow {row.name}.",
                    "inputSchema": schema,
                    "annotations": {"title": row.name, "readOnlyHint": False},
                }
            )
    return {"tools": tools} | ({"nextCursor": heads[PAGE - 1].name} if len(heads) > PAGE else {})


async def call_tool(call: Call, name: str, arguments: dict[str, Any], meta: Any, key: str | None) -> dict[str, Any]:
    """The result for the client. `key`: idempotency key of the request, if `meta` has none. Raises UnknownTool, and
    errors that are of this server (503, 507)."""
    own = _OWN.get(name)
    try:
        if own is not None:
            _require(call, own.needs)
            return _result(await own.work(call, convert(arguments, own.asked)))
        workflow = await _workflow_of(call, name)
        _require(call, _START)
        return await _start(call, workflow, arguments, meta, key)
    except CompileError as error:
        return _result({"error": {"code": "document_invalid", "message": str(error)}}, failed=True)
    except WeftError as error:
        if status_of(error) >= 500:
            raise
        shown = {"code": error.code, "message": error.message, "pointer": error.pointer, "hint": error.hint}
        return _result({"error": {name: text for name, text in shown.items() if text}}, failed=True)


def tool_name(workflow: str) -> str:
    """Return the tool name of a workflow, independent of other workflows: a name that clients would not accept gets a
    hash at its end."""
    if _PLAIN.fullmatch(workflow):
        return f"run_{workflow}"
    digest = hashlib.sha256(workflow.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"run_{_FOREIGN.sub('_', workflow)[:50]}_{digest}"


_START: Final[Role] = "editor"  # as in the table of routes


async def _workflow_of(call: Call, tool: str) -> str:
    for head in await call.engine.store.list_heads():
        if tool_name(head.name) != tool or not _reaches(call, head.name):
            continue
        row = await call.engine.workflows.version(head.name)
        if await aside(partial(_input_of, row)) is not None:
            return head.name
    raise UnknownTool(tool)


def _input_of(row: WorkflowRow) -> tuple[dict[str, Any], str] | None:
    """Return the schema of the workflow's input and its description, or None if the input is not described."""
    document = as_ours(orjson.loads(row.document)).document
    description = document.get("description")
    text = description[:1000] if isinstance(description, str) else ""
    schema = document.get("input")
    if not isinstance(schema, dict) or not schema:
        schema = _of_fields(document)
    if schema is None or schema.get("type", "object") != "object":
        return None
    schema = {**schema, "type": "object"}
    return (schema, text) if schema_error(orjson.dumps(schema)) is None else None


def _of_fields(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the schema of the fields of its start block, if there is one start block and it has fields."""
    blocks = document.get("blocks")
    starts = [block for block in (blocks.values() if isinstance(blocks, dict) else ()) if block.get("type") == "start"]
    fields = (starts[0].get("params") or {}).get("fields") if len(starts) == 1 else None
    if not isinstance(fields, list) or not fields:
        return None
    properties: dict[str, Any] = {}
    for field in fields:
        kind: dict[str, Any] = {"type": field["type"]} if field.get("type") in _JSON_TYPES else {}
        if field.get("type") == FILE:
            kind = {"type": "object", "format": FORMAT}
        properties[field["name"]] = kind | {
            part: field[part] for part in ("title", "description", "default") if field.get(part) not in (None, "")
        }
    required = [field["name"] for field in fields if field.get("required") and field.get("default") is None]
    return {"type": "object", "properties": properties, "required": required}


async def _start(call: Call, workflow: str, arguments: dict[str, Any], meta: Any, key: str | None) -> dict[str, Any]:
    key = meta.get(KEY, key) if isinstance(meta, dict) else key
    if key is not None and (not isinstance(key, str) or not 0 < len(key) <= IDEMPOTENCY_KEY_MAX):
        raise BadRequest(f"{KEY} must be text of 1 to {IDEMPOTENCY_KEY_MAX} characters")
    submitted = await call.engine.submit(workflow, input=arguments, idempotency_key=key)
    view = await wait_for(call, submitted.run, WAIT_S)
    return _result(await _run_told(call, view.id), failed=view.status in ("failed", "cancelled"))


async def _runs(call: Call, asked: RunsAsked) -> Any:
    if asked.run is not None:
        return await _run_told(call, asked.run)
    _check_reach(call, asked.workflow)
    rows = await call.engine.runs.list(asked.workflow, asked.status, None, asked.limit, None)
    parts = call.engine.parts
    now_ms = parts.clock.now_ms()
    by = await parts.store.starters([row.id for row in rows])
    runs = (run_summary(row, now_ms, parts.owned.lacks(row), by.get(row.id, NO_ONE)) for row in rows)
    return {"runs": [orjson.loads(to_json(run)) for run in runs]}


async def _run_told(call: Call, run: str) -> dict[str, Any]:
    """Raises NotFound, Forbidden."""
    view = await call.engine.runs.view(run)
    _check_reach(call, view.workflow)
    shown: dict[str, Any] = {"run": view.id, "workflow": view.workflow, "status": view.status}
    shown |= {"page": run_urls(view.id).page}
    if view.error is not None:
        shown["error"] = {name: value for name, value in view.error.items() if name != "traceback"}
    if view.output is not None:
        shown["output"] = orjson.loads(to_json(view.output))
    waits = without_links(call.who, (*view.waits, *view.child_waits))
    if waits:
        shown["waits"] = [_wait_shown(wait) for wait in waits]
    if view.finished_at_ms is None:
        shown["next"] = 'It has not ended. Call the tool `runs` with {"run": "' + view.id + '"} to see how it is.'
    return shown


async def _waits(call: Call, asked: WaitsAsked) -> Any:
    workflow = asked.workflow
    if asked.run is not None:
        _check_reach(call, (await call.engine.runs.row(asked.run)).workflow)
    else:
        _check_reach(call, workflow)
    where = WaitFilter(run=asked.run, workflow=workflow, limit=asked.limit, counts=False)
    page = await call.engine.waits.page(where)
    return {"waits": [_wait_shown(wait) for wait in without_links(call.who, page.waits)]}


def _wait_shown(wait: WaitView) -> dict[str, Any]:
    shown: dict[str, Any] = orjson.loads(to_json(wait))
    names = ("run", "workflow", "kind", "status", "title", "request", "schema", "actions", "expires_at_ms", "link")
    return {"wait": wait.id} | {name: shown[name] for name in names if shown.get(name) is not None}


async def _answer(call: Call, asked: Answered) -> Any:
    """Answer a wait in the name of the caller: no name is read from the arguments."""
    wait = await call.engine.waits.get(asked.run, asked.wait)
    _check_reach(call, wait.workflow)
    if wait.link is not None and without_links(call.who, [wait])[0].link is None:
        raise NotYours("this is for other people to answer")
    who = None if call.who is ANYONE else call.who.answerer
    link = wait.link or ""
    if not link:
        raise BadRequest(f"this wait is {wait.status}, and of kind {wait.kind}", code="not_answerable")
    now_ms = call.engine.parts.clock.now_ms()
    place = f"/api/runs/{wait.run}/waits/{wait.key}"
    act = Act(
        call.who.actor, call.who.via, "POST /mcp", place, now_ms, asked.action or "answered", reach=call.who.reach
    )
    with acting(act):
        by = None if who is None else who.name
        given = who if who is not None and needs_sign_in(wait.request) else None
        answered = await call.engine.answer(link, asked.fields, asked.action, by, given)
    return _wait_shown(answered)


def _require(call: Call, needed: Role) -> None:
    if not call.who.may(needed):
        raise Forbidden(f"This needs the role {needed}; yours is {call.who.role}.")


def _reaches(call: Call, workflow: str) -> bool:
    return call.who.workflows is None or workflow in call.who.workflows


def _check_reach(call: Call, workflow: str | None) -> None:
    """Check that the caller may reach `workflow`, or all workflows if it is None."""
    if call.who.workflows is not None and workflow not in call.who.workflows:
        raise Forbidden(
            "This token is only for some workflows.", hint=f"name one: {', '.join(call.who.workflows)[:300]}"
        )


def _result(value: Any, failed: bool = False) -> dict[str, Any]:
    """Return the result as an object for programs, and as text for models."""
    data = orjson.dumps(value)
    if len(data) > TEXT_MAX:
        value = {name: value[name] for name in ("run", "workflow", "status", "page") if name in value}
        value["truncated"] = f"the result has {len(data):,} bytes; GET /api/runs/{{id}} has all of it"
        data = orjson.dumps(value)
    content = [{"type": "text", "text": data.decode()}]
    return {"content": content, "structuredContent": value, "isError": failed}


def _described(name: str, own: _Own) -> dict[str, Any]:
    _, components = msgspec.json.schema_components([own.asked])
    shape = dict(components[own.asked.__name__])
    shape.pop("title", None)
    shape.pop("description", None)
    return {
        "name": name,
        "description": own.description,
        "inputSchema": shape,
        "annotations": {"readOnlyHint": own.reads},
    }


_OWN: Final[dict[str, _Own]] = {
    "runs": _Own(
        "viewer",
        "Runs of workflows, newest first; with `run`, one of them with its output, its error and what it waits for.",
        RunsAsked,
        _runs,
    ),
    "waits": _Own(
        "viewer",
        "What runs wait for: each with what is asked, the schema of the fields and the actions of its answer.",
        WaitsAsked,
        _waits,
    ),
    "answer": _Own(
        "approver",
        "Answers what a run waits for, once, in the name of the caller. `run` and `wait` as `waits` lists them.",
        Answered,
        _answer,
        reads=False,
    ),
}

"""One node of a run: what it was given and what it put out, at any attempt, at any moment."""

from __future__ import annotations

import re
from typing import Any

from starlette.responses import Response

from executor.errors import NotFound
from executor.views import NodeDetail
from server.http.params import choice, integer
from server.http.response import json_response
from server.http.table import Call, Param, RouteSpec
from server.routes.events import PREVIEW, preview_bytes
from server.wire.encode import previewed


async def node(call: Call) -> Response:
    """`key` is a percent-encoded node key such as send@review#5/fan[2], or a container, whose input is that of its
    start and whose output is that of its end. `input` has the parameters with all references resolved and secrets
    redacted; code and expressions in it are {"$code", "values"}. With `only`, the response is the JSON of the input or
    output alone, as a file."""
    preview = preview_bytes(call)
    detail = await call.engine.runs.node(
        call.path("id"), call.path("key"), integer(call, "attempt"), integer(call, "seq", minimum=1)
    )
    if call.query("only"):
        return _file(detail, choice(call, "only", ("input", "output"), "output"))
    body: dict[str, Any] = {name: getattr(detail, name) for name in NodeDetail.__struct_fields__}
    if kept := detail.checkpoint:
        body["checkpoint"] = {"attempt": kept.attempt, "at_ms": kept.at_ms, **previewed("value", kept.value, preview)}
    body |= previewed("input", detail.input, preview) | previewed("output", detail.output, preview)
    return json_response(body)


def _file(detail: NodeDetail, what: str) -> Response:
    data = detail.input if what == "input" else detail.output
    if data is None:
        raise NotFound(f"{detail.key} has no {what}", code=f"no_{what}")
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", f"{detail.key}-{what}")
    return Response(
        data,
        headers={"Cache-Control": "no-store", "Content-Disposition": f'attachment; filename="{name}.json"'},
        media_type="application/json",
    )


_TEXT = {"type": ["string", "null"]}
_ERROR = {"type": ["object", "null"]}
_ATTEMPT = {
    "type": "object",
    "required": ["attempt", "status"],
    "properties": {
        "attempt": {"type": "integer"},
        "status": {"type": "string"},
        "started_seq": {"type": "integer"},
        "started_at_ms": {"type": "integer"},
        "finished_seq": {"type": "integer"},
        "finished_at_ms": {"type": "integer"},
        "error": _ERROR,
    },
}
_NODE: dict[str, Any] = {
    "type": "object",
    "required": [*NodeDetail.__struct_fields__, "input_size", "input_truncated", "output_size", "output_truncated"],
    "properties": {
        "run": {"type": "string"},
        "key": {"type": "string"},
        "node": {"type": "string"},
        "block": {"type": "string"},
        "name": {"type": "string"},
        "type": {"type": "string"},
        "path": {"type": "string"},
        "seq": {"type": "integer", "description": "State after this event."},
        "status": {"type": "string"},
        "attempt": {"type": "integer", "description": "The attempt shown; 0: it did not run."},
        "attempts": {"type": "array", "items": _ATTEMPT},
        "input": {"description": "The resolved parameters; null when it did not start, or when cut."},
        "input_error": {"type": ["object", "null"], "description": "Why the parameters could not be resolved."},
        "input_size": {"type": ["integer", "null"], "description": "Bytes of JSON."},
        "input_truncated": {"type": "boolean"},
        "input_preview": {"type": "string", "description": "Only when cut: the beginning of the JSON."},
        "output": {"description": "Null also when cut."},
        "output_size": {"type": ["integer", "null"], "description": "Bytes of JSON."},
        "output_truncated": {"type": "boolean"},
        "output_preview": {"type": "string", "description": "Only when cut: the beginning of the JSON."},
        "error": _ERROR,
        "route": _TEXT,
        "reason": _TEXT,
        "because": _TEXT,
        "reused": {"type": "boolean"},
        "checkpoint": {
            "type": ["object", "null"],
            "description": "The last checkpoint of its attempts; null also with `seq`.",
            "required": ["attempt", "at_ms", "value", "value_size", "value_truncated"],
            "properties": {
                "attempt": {"type": "integer", "description": "The attempt that stored it."},
                "at_ms": {"type": "integer"},
                "value": {"description": "Null also when cut."},
                "value_size": {"type": "integer", "description": "Bytes of JSON."},
                "value_truncated": {"type": "boolean"},
                "value_preview": {"type": "string", "description": "Only when cut: the beginning of the JSON."},
            },
        },
    },
}

TABLE = (
    RouteSpec(
        "GET",
        "/api/runs/{id}/nodes/{key}",
        node,
        "Input and output of one node",
        answer=(_NODE, {"description": "With `only`: any JSON."}),
        statuses=(400, 404),
        params=(
            Param("attempt", "This attempt. Default: the last one.", {"type": "integer", "minimum": 0}),
            Param("seq", "State after this event.", {"type": "integer", "minimum": 1}),
            Param("only", "Return the JSON of one of the two alone.", {"enum": ["input", "output"]}),
            PREVIEW,
        ),
    ),
)

"""The shapes that cross HTTP: request bodies, response bodies, and a journal record as an event.

Times are Unix milliseconds. Stored JSON (outputs, inputs, event data) is spliced into responses as the bytes it was
stored as (`orjson.Fragment`) and never parsed on the way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import orjson
from msgspec import Struct
from starlette.responses import Response

from compiler.diagnostics import Diagnostic
from executor.store.base import Record, RunRow, WorkflowRow
from executor.views import Submitted


class RunRequest(Struct, forbid_unknown_fields=True):
    """POST /api/workflows/{name}/runs."""

    input: Any = None
    trigger: str | None = None
    version: int | None = None
    stop_after: str | None = None


class RunDocumentRequest(Struct, forbid_unknown_fields=True):
    """POST /api/runs: run a document that need not be stored."""

    document: dict[str, Any]
    input: Any = None
    trigger: str | None = None
    stop_after: str | None = None


class CancelRequest(Struct, forbid_unknown_fields=True):
    reason: str = ""


class SignalRequest(Struct, forbid_unknown_fields=True):
    """`dedupe_key`: a repeated key returns the first signal; the Idempotency-Key header does the same."""

    payload: Any = None
    correlation: str | None = None
    dedupe_key: str | None = None
    by: str | None = None


class AnswerRequest(Struct, forbid_unknown_fields=True):
    """POST /resume/{token}. `by` is the name the answer is recorded under."""

    action: str | None = None
    fields: dict[str, Any] = {}
    by: str | None = None


class LoginRequest(Struct, forbid_unknown_fields=True):
    token: str


class Validation(Struct, frozen=True):
    """`valid`: no finding is an error."""

    valid: bool
    diagnostics: list[Diagnostic]


class RunUrls(Struct, frozen=True):
    self: str
    events: str
    graph: str
    why: str
    plan: str
    cancel: str
    page: str


class RunAccepted(Struct, frozen=True):
    """`created` False: the idempotency key was used before and this is that run."""

    run: str
    workflow: str
    version: int | None
    status: str
    created: bool
    urls: RunUrls
    diagnostics: tuple[Diagnostic, ...] = ()


class RunResult(Struct, frozen=True):
    """Answer to `?wait=`: the run has ended, or waits for somebody, or goes on (then the status code is 202)."""

    run: str
    workflow: str
    status: str
    output: Any
    error: dict[str, Any] | None
    urls: RunUrls


class SignalAccepted(Struct, frozen=True):
    """`seq` counts the signals of this run from 1. `new` False: the dedupe key was used before."""

    run: str
    name: str
    seq: int
    new: bool


class Cancelled(Struct, frozen=True):
    """`cancelled` False: the run had ended already; `status` says how."""

    run: str
    cancelled: bool
    status: str


class EventOnWire(Struct, frozen=True):
    """One event of a run, over SSE and in JSON. `key` is the node with its iteration and branch,
    `send@review#5/fan[2]`; `path` the part behind `@`; `block` the block the node belongs to. `data.output` holds the
    node's output, if any."""

    run: str
    seq: int
    at: int
    type: str
    node: str | None
    block: str | None
    path: str
    key: str | None
    attempt: int
    data: dict[str, Any]


class EventPage(Struct, frozen=True):
    """`count`: all events that match the filters. `next`: pass it as `after` for the next page; null at the end."""

    events: list[EventOnWire]
    count: int
    next: int | None


def run_urls(run: str) -> RunUrls:
    base = f"/api/runs/{run}"
    return RunUrls(
        self=base,
        events=f"{base}/events",
        graph=f"{base}/graph",
        why=f"{base}/why",
        plan=f"{base}/plan",
        cancel=f"{base}/cancel",
        page=f"/runs/{run}",
    )


def accepted(submitted: Submitted) -> RunAccepted:
    return RunAccepted(
        run=submitted.run,
        workflow=submitted.workflow,
        version=submitted.version,
        status=submitted.status,
        created=submitted.created,
        urls=run_urls(submitted.run),
        diagnostics=submitted.diagnostics,
    )


def run_summary(row: RunRow) -> dict[str, Any]:
    """A run in a list: without its nodes and variables, input and output as stored."""
    return {
        "id": row.id,
        "workflow": row.workflow,
        "version": row.version,
        "status": row.status,
        "error": fragment(row.error),
        "seq": row.seq,
        "created_at_ms": row.created_at_ms,
        "started_at_ms": row.started_at_ms,
        "finished_at_ms": row.finished_at_ms,
        "parent_run_id": row.parent_run_id,
    }


def workflow_summary(row: WorkflowRow) -> dict[str, Any]:
    return {"name": row.name, "version": row.version, "hash": row.hash, "created_at_ms": row.created_at_ms}


def encode_record(run: str, record: Record) -> bytes:
    """One record as the JSON of EventOnWire, on one line."""
    node = record.node
    return _one_line(
        orjson.dumps(
            {
                "run": run,
                "seq": record.seq,
                "at": record.at_ms,
                "type": record.type,
                "node": node,
                "block": node.partition(":")[0] if node else None,
                "path": record.path,
                "key": f"{node}@{record.path}" if node and record.path else node,
                "attempt": record.attempt,
                "data": orjson.Fragment(_spliced(record.data, record.output)),
            }
        )
    )


def fragment(data: bytes | None) -> Any:
    return None if data is None else orjson.Fragment(data)


def to_json(value: Any) -> bytes:
    """JSON of structs, fragments and plain values together."""
    return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(
        to_json(value), status, {"Cache-Control": "no-store", **(headers or {})}, media_type="application/json"
    )


def join_events(run: str, records: Iterable[Record]) -> list[orjson.Fragment]:
    return [orjson.Fragment(encode_record(run, record)) for record in records]


def _spliced(data: bytes | None, output: bytes | None) -> bytes:
    """`data` (a JSON object) with `"output"` put in, both as bytes."""
    head = (data or b"{}").strip()
    if output is None:
        return head
    comma = b"" if head[1:-1].strip() == b"" else b","
    return head[:-1] + comma + b'"output":' + output + b"}"


def _one_line(data: bytes) -> bytes:
    """Line breaks outside strings are mere white space in JSON, but would end an SSE data line."""
    if b"\n" in data or b"\r" in data:
        return data.replace(b"\n", b" ").replace(b"\r", b" ")
    return data


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value)

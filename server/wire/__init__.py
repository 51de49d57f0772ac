"""The shapes that cross HTTP: request bodies, response bodies, and a journal record as an event.

Times are Unix milliseconds. Stored JSON (outputs, inputs, event data) is spliced into responses as the bytes it was
stored as (`orjson.Fragment`) and never parsed on the way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
import orjson
from msgspec import Meta, Struct
from starlette.responses import Response

from compiler.diagnostics import Diagnostic
from executor.journal.codec import key_of
from executor.store.rows import VERSION_MAX, DraftHead, LastRun, Record, RunRow, VersionRow, WorkflowHead, WorkflowRow
from executor.views import SavedWorkflow, Submitted, WaitView

SUMMARY_CHARS = 160
DraftName = Annotated[str, Meta(max_length=200)]
PersonName = Annotated[str, Meta(max_length=200)]
ShortText = Annotated[str, Meta(max_length=500)]
Version = Annotated[int, Meta(ge=1, le=VERSION_MAX)]


class RunRequest(Struct, forbid_unknown_fields=True):
    """POST /api/workflows/{name}/runs."""

    input: Any = None
    trigger: str | None = None
    version: Version | None = None
    stop_after: str | None = None


class RunDocumentRequest(Struct, forbid_unknown_fields=True):
    """POST /api/runs: run a document without storing it."""

    document: dict[str, Any]
    input: Any = None
    trigger: str | None = None
    stop_after: str | None = None


class DraftRequest(Struct, forbid_unknown_fields=True):
    """POST /api/drafts. `base_version`: the version of the workflow `name` that the document is a copy of."""

    document: dict[str, Any]
    name: DraftName | None = None
    base_version: Version | None = None


class DraftChange(Struct, forbid_unknown_fields=True):
    """PUT /api/drafts/{id}. Without `name`, the draft has the name in the document."""

    document: dict[str, Any]
    name: DraftName | None = None


class RunDraftRequest(Struct, forbid_unknown_fields=True):
    input: Any = None
    trigger: str | None = None
    stop_after: str | None = None


class VersionRequest(Struct, forbid_unknown_fields=True):
    """POST /api/drafts/{id}/versions. `name` defaults to the name of the draft."""

    name: DraftName | None = None


class ActivateRequest(Struct, forbid_unknown_fields=True):
    """PUT /api/workflows/{name}/active."""

    version: Version


class RerunRequest(Struct, forbid_unknown_fields=True):
    """POST /api/runs/{id}/rerun. Without `from`, everything runs again. `input` defaults to the input of that run."""

    start: str | None = msgspec.field(default=None, name="from")
    input: Any = None


class CancelRequest(Struct, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(max_length=2000)] = ""


class SignalRequest(Struct, forbid_unknown_fields=True):
    """`dedupe_key`: a repeated key returns the first signal; the Idempotency-Key header does the same."""

    payload: Any = None
    correlation: ShortText | None = None
    dedupe_key: ShortText | None = None
    by: PersonName | None = None


class AnswerRequest(Struct, forbid_unknown_fields=True):
    """POST /resume/{token}. `by` is the name recorded with the answer."""

    action: str | None = None
    fields: dict[str, Any] = {}
    by: PersonName | None = None


class LoginRequest(Struct, forbid_unknown_fields=True):
    """POST /login. `code`: of a sign-in link."""

    token: str | None = None
    code: str | None = None


class SignInLink(Struct, frozen=True):
    """`url` signs in one browser, once, within `expires_in_s` seconds."""

    url: str
    expires_in_s: int


class SessionsEnded(Struct, frozen=True):
    ended: int


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
    document: str
    nodes: str
    rerun: str


class RunAccepted(Struct, frozen=True):
    """`created` is false if the idempotency key was used before; the run is then the one created with it."""

    run: str
    workflow: str
    version: int | None
    status: str
    created: bool
    urls: RunUrls
    diagnostics: tuple[Diagnostic, ...] = ()


class DraftRunAccepted(RunAccepted, frozen=True, kw_only=True):
    """`rev`: the revision of the draft that runs."""

    draft: str
    rev: int


class RunResult(Struct, frozen=True):
    """Response to `?wait=`: the run has ended, or is open (status code 202). `waits`: the open waits of the run and of
    runs below it, each with the `link` that answers it."""

    run: str
    workflow: str
    status: str
    output: Any
    error: dict[str, Any] | None
    urls: RunUrls
    waits: tuple[WaitView, ...] = ()


class DraftSummary(Struct, frozen=True):
    """A draft without its document. Revision `base_rev` is version `base_version` of the workflow `base_name`; all
    three are null until it is stored as a version. `last_run`: the run of the draft created last."""

    id: str
    name: str
    rev: int
    base_name: str | None
    base_version: int | None
    base_rev: int | None
    created_at: int
    updated_at: int
    last_run: LastRun | None


class DraftPage(Struct, frozen=True):
    drafts: list[DraftSummary]
    next: str | None


class DraftSaved(Struct, frozen=True):
    """`rev`: the revision to send in If-Match with the next change."""

    id: str
    name: str
    rev: int
    updated_at: int
    diagnostics: tuple[Diagnostic, ...]


class DraftDeleted(Struct, frozen=True):
    id: str
    deleted: bool


class WorkflowPage(Struct, frozen=True):
    """`version` of a workflow is the active one, which runs where no version is given."""

    workflows: list[WorkflowHead]


class WorkflowVersion(Struct, frozen=True):
    """`active`: the version that runs where none is given; `newest`: the highest version."""

    name: str
    version: int
    hash: str
    created_at_ms: int
    active: int
    newest: int
    document: Any


class VersionPage(Struct, frozen=True):
    """Newest first. `next`: pass it as `before` for the following page; null at the end."""

    name: str
    active: int
    versions: list[VersionRow]
    next: int | None


class WorkflowDeleted(Struct, frozen=True):
    """The number of schedules and webhooks deleted with it. Its runs are kept."""

    name: str
    schedules: int
    webhooks: int


class RunDeleted(Struct, frozen=True):
    """`runs`: the number of deleted runs, including those that the run started."""

    run: str
    runs: int


class DraftVersion(SavedWorkflow, frozen=True, kw_only=True):
    """`rev`: the revision of the draft that is this version."""

    draft: str
    rev: int


class RerunPreview(Struct, frozen=True):
    """Ids of blocks, including those inside containers: `reused` keep their outputs, `again` can run, `skipped` stay
    skipped."""

    run: str
    start: str = msgspec.field(name="from")
    reused: tuple[str, ...]
    again: tuple[str, ...]
    skipped: tuple[str, ...]


class SignalAccepted(Struct, frozen=True):
    """`seq` counts the signals of this run from 1. `new` is false if the dedupe key was used before."""

    run: str
    name: str
    seq: int
    new: bool


class CacheCleared(Struct, frozen=True):
    """The number of deleted results."""

    cleared: int


class Cancelled(Struct, frozen=True):
    """`status` is `cancelled` when the run has ended, otherwise `cancelling`: the request is stored and the run will
    process it before it ends."""

    run: str
    cancelled: bool
    status: str


class EventOnWire(Struct, frozen=True):
    """One event of a run, over SSE and in JSON. `key` is the node with its iteration and branch,
    `send@review#5/fan[2]`; `path` is the part after `@`; `block` is the block of the node. `data.output` has the output
    of the node, if any."""

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
        document=f"{base}/document",
        nodes=f"{base}/nodes",
        rerun=f"{base}/rerun",
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


def draft_summary(head: DraftHead, last_run: LastRun | None) -> DraftSummary:
    return DraftSummary(
        id=head.id,
        name=head.name,
        rev=head.rev,
        base_name=head.base_name,
        base_version=head.base_version,
        base_rev=head.base_rev,
        created_at=head.created_at_ms,
        updated_at=head.updated_at_ms,
        last_run=last_run,
    )


def run_summary(row: RunRow) -> dict[str, Any]:
    """A run in a list: without its nodes and variables. `input_summary`: the beginning of the input as JSON text;
    `duration_ms`: from its first start to its end, null before that."""
    began_ms = row.started_at_ms or row.created_at_ms
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
        "input_summary": _beginning(row.input, SUMMARY_CHARS),
        "duration_ms": None if row.finished_at_ms is None else max(0, row.finished_at_ms - began_ms),
        "draft_id": row.draft_id,
        "draft_rev": row.draft_rev,
    }


def workflow_url(name: str) -> str:
    return f"/api/workflows/{quote(name, safe='')}"


def workflow_version(head: WorkflowHead, row: WorkflowRow) -> dict[str, Any]:
    """A WorkflowVersion."""
    return {
        "name": row.name,
        "version": row.version,
        "hash": row.hash,
        "created_at_ms": row.created_at_ms,
        "active": head.version,
        "newest": head.newest,
        "document": fragment(row.document),
    }


def encode_record(run: str, record: Record, preview: int | None = None) -> bytes:
    """One record as the JSON of EventOnWire, on one line. With `preview` an output over so many bytes is cut: in its
    place `data` has "output": null, "truncated": true, "size": its bytes, and "preview": the beginning of its JSON (not
    for outputs over 256 KiB, which are not with the record). Other members of `data` that are as large become null."""
    node = record.node
    data = _spliced(record.data, record.output) if preview is None else _cut(record, preview)
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
                "key": key_of(record),
                "attempt": record.attempt,
                "data": orjson.Fragment(data),
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


def join_events(run: str, records: Iterable[Record], preview: int | None = None) -> list[orjson.Fragment]:
    return [orjson.Fragment(encode_record(run, record, preview)) for record in records]


def previewed(name: str, data: bytes | None, preview: int | None) -> dict[str, Any]:
    """A stored JSON value as members of a response: `name`, `name_size` in bytes, `name_truncated`; over `preview`
    bytes the value is null and `name_preview` the beginning of its JSON."""
    size = None if data is None else len(data)
    if data is None or preview is None or len(data) <= preview:
        return {name: fragment(data), f"{name}_size": size, f"{name}_truncated": False}
    return {
        name: None,
        f"{name}_size": size,
        f"{name}_truncated": True,
        f"{name}_preview": _beginning(data, preview),
    }


def _spliced(data: bytes | None, output: bytes | None) -> bytes:
    """`data` (a JSON object) with `"output"` put in, both as bytes."""
    head = (data or b"{}").strip()
    if output is None:
        return head
    comma = b"" if head[1:-1].strip() == b"" else b","
    return head[:-1] + comma + b'"output":' + output + b"}"


def _cut(record: Record, most: int) -> bytes:
    """`data` with the output, what is large in it cut; see encode_record."""
    data, output = record.data, record.output
    in_blob = output is None and data is not None and b'"blob"' in data
    if not in_blob and len(data or b"") <= most and len(output or b"") <= most:
        return _spliced(data, output)
    fields: dict[str, Any] = orjson.loads(data) if data else {}
    size = 0
    if isinstance(fields.get("blob"), str):
        size = fields["size"]
        fields["output"] = None
    elif output is not None and len(output) > most:
        size = len(output)
        fields |= {"output": None, "preview": _beginning(output, most)}
        output = None
    for name, value in list(fields.items()) if len(data or b"") > most else ():
        if name == "ops":  # who folds them needs to know which variables changed
            fields[name] = [[*op[:2], None if len(orjson.dumps(op[2:])) > most else op[2]] for op in value]
        elif len(orjson.dumps(value)) > most:
            fields[name] = None
        else:
            continue
        size = max(size, len(data or b""))
    if size:
        fields |= {"truncated": True, "size": size}
    return _spliced(orjson.dumps(fields), output)


def _beginning(data: bytes, length: int) -> str:
    """The first `length` characters of JSON bytes; with `...` behind them when there are more."""
    text = data[: 4 * (length + 1)].decode(errors="ignore")  # no character takes more than four bytes
    return text if len(text) <= length else text[:length] + "..."


def _one_line(data: bytes) -> bytes:
    """Line breaks outside strings are mere white space in JSON, but would end an SSE data line."""
    if b"\n" in data or b"\r" in data:
        return data.replace(b"\n", b" ").replace(b"\r", b" ")
    return data


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value)

"""The shapes of runs that cross HTTP: start, read, cancel, delete, run again. Times are Unix milliseconds."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from compiler.diagnostics import Diagnostic
from executor.store.rows import RunRow
from executor.views import Submitted, WaitView
from server.wire.bounds import Version
from server.wire.encode import beginning, fragment

SUMMARY_CHARS = 160


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


class RerunRequest(Struct, forbid_unknown_fields=True):
    """POST /api/runs/{id}/rerun. Without `from`, everything runs again. `input` defaults to the input of that run."""

    start: str | None = msgspec.field(default=None, name="from")
    input: Any = None


class CancelRequest(Struct, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(max_length=2000)] = ""


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


class RunDeleted(Struct, frozen=True):
    """`runs`: the number of deleted runs, including those that the run started."""

    run: str
    runs: int


class RerunPreview(Struct, frozen=True):
    """Ids of blocks, including those inside containers: `reused` keep their outputs, `again` can run, `skipped` stay
    skipped."""

    run: str
    start: str = msgspec.field(name="from")
    reused: tuple[str, ...]
    again: tuple[str, ...]
    skipped: tuple[str, ...]


class Cancelled(Struct, frozen=True):
    """`status` is `cancelled` when the run has ended, otherwise `cancelling`: the request is stored and the run will
    process it before it ends."""

    run: str
    cancelled: bool
    status: str


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
        "input_summary": beginning(row.input, SUMMARY_CHARS),
        "duration_ms": None if row.finished_at_ms is None else max(0, row.finished_at_ms - began_ms),
        "draft_id": row.draft_id,
        "draft_rev": row.draft_rev,
    }

"""The shapes of runs that cross HTTP: start, read, cancel, delete. Times are Unix milliseconds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import orjson
from msgspec import Meta, Struct

from compiler.diagnostics import Diagnostic
from compiler.document import Priority
from compiler.render import Format
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.statements import RunStatus
from executor.service.views import ErrorJson, RunView, Submitted, WaitView, Why, view_of
from server.wire import PAGE_MAX, WAIT_S_MAX, Preview, Version, beginning, fragment

SUMMARY_CHARS = 160


class RunRequest(Struct, forbid_unknown_fields=True):
    """POST /api/workflows/{name}/runs. `priority`: in place of that of the workflow."""

    input: Any = None
    trigger: str | None = None
    version: Version | None = None
    stop_after: str | None = None
    priority: Priority | None = None


class RunDocumentRequest(Struct, forbid_unknown_fields=True):
    """POST /api/runs: run a document without storing it. `priority`: in place of that of the workflow."""

    document: dict[str, Any]
    input: Any = None
    trigger: str | None = None
    stop_after: str | None = None
    priority: Priority | None = None


class CancelRequest(Struct, forbid_unknown_fields=True):
    """POST /api/runs/{id}/cancel. `reason` is recorded in the journal. `now`: the run does not wait for its cleanups; a
    second request means the same."""

    reason: Annotated[str, Meta(max_length=2000)] = ""
    now: bool = False


class RunUrls(Struct, frozen=True):
    """Paths on this server, beginning with a slash."""

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
    status: RunStatus
    created: bool
    urls: RunUrls
    diagnostics: tuple[Diagnostic, ...] = ()


class RunResult(Struct, frozen=True):
    """Response to `?wait=`: the run has ended, or is open (status code 202). `waits`: the open waits of the run and of
    runs below it, each with the `link` that answers it."""

    run: str
    workflow: str
    status: RunStatus
    output: Any
    error: ErrorJson | None
    urls: RunUrls
    waits: tuple[WaitView, ...] = ()


class RunDeleted(Struct, frozen=True):
    """`runs`: the number of deleted runs, including those that the run started."""

    run: str
    runs: int


class Cancelled(Struct, frozen=True):
    """`status` is `cancelled` when the run has ended, otherwise `cancelling`: the request is stored and the run will
    process it before it ends."""

    run: str
    cancelled: bool
    status: Literal["cancelled", "cancelling"]


class RunDetail(RunView, frozen=True, kw_only=True, omit_defaults=False):
    """`status`: queued, running, waiting, succeeded, failed, cancelled. `output`, `response`: after it has finished.
    `failed_nodes`: keys of those in `nodes` that failed; in a run that succeeded, their errors were handled.
    `children`: newest first. `child_waits`: open waits of runs below it, each with the id of its run;
    `children_active`: runs below it that are running or due. `unread`: answers, signals, results of child runs and
    requests that a waiting run has received but not processed. `by`: who started it, such as `user:ada`, `token:ID` or
    `server-token`; null for triggers, child runs and servers without a token. `stale`: its worker stopped responding,
    and no other one has continued the run yet; `stale_since_ms`: when the lease of that worker lapsed. `lacks`: the
    function or block type that the run waits for, as the process that answers does not have it."""

    urls: RunUrls


class RunSummary(Struct, frozen=True):
    """A run in a list, without its nodes and variables. `input_summary`: the beginning of the input as JSON text;
    `duration_ms`: from its first start to its end, null before that. `stale`, `stale_since_ms`, `lacks`: as in
    RunDetail."""

    id: str
    workflow: str
    version: int | None
    status: RunStatus
    error: ErrorJson | None
    seq: int
    created_at_ms: int
    started_at_ms: int | None
    finished_at_ms: int | None
    parent_run_id: str | None
    input_summary: str
    duration_ms: int | None
    draft_id: str | None
    draft_rev: int | None
    stale: bool
    stale_since_ms: int | None
    lacks: str | None


class RunCounts(Struct, frozen=True):
    """The number of runs by status."""

    queued: int
    running: int
    waiting: int
    succeeded: int
    failed: int
    cancelled: int


class RunPage(Struct, frozen=True):
    """`next`: pass it as `before` for the following page; null at the end. `counts`: null with `counts=0`. `capped`:
    statuses of which there are at least 100,000 runs; they are not counted further."""

    runs: list[RunSummary]
    next: str | None
    counts: RunCounts | None
    capped: list[RunStatus]


class RunWhy(Struct, frozen=True):
    """For each node, its state and why it is in it."""

    run: str
    why: list[Why]


class InputList(Struct, frozen=True):
    """Inputs of runs, newest first."""

    inputs: Annotated[list[Any], Meta(max_length=10)]


class RunsQuery(Struct, frozen=True):
    workflow: Annotated[str, Meta(description="Only runs of this workflow.")] | None = None
    draft: Annotated[str, Meta(description="Only runs of this draft.")] | None = None
    parent: Annotated[str, Meta(description="Only runs started by this run.")] | None = None
    status: Annotated[RunStatus, Meta(description="Only runs with this status.")] | None = None
    before: Annotated[str, Meta(description="Id of the last run of the previous page.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=PAGE_MAX, description="Runs per page.")] = 50
    counts: Annotated[bool, Meta(description="0: do not count runs; the answer comes sooner.")] = True


class WhyQuery(Struct, frozen=True):
    node: Annotated[str, Meta(description="A block, a node, or a node key such as send@review#5.")] | None = None
    seq: Annotated[int, Meta(ge=1, description="State after this event.")] | None = None


class StartQuery(Struct, frozen=True):
    """The query of requests that start a run. `preview` applies to a stream of its events."""

    wait: (
        Annotated[
            float, Meta(ge=0, extra={"cut_at": WAIT_S_MAX}, description="Seconds to wait for the result, at most 60.")
        ]
        | None
    ) = None
    preview: Preview | None = None


class RunQuery(Struct, frozen=True):
    wait: (
        Annotated[
            float,
            Meta(
                ge=0,
                extra={"cut_at": WAIT_S_MAX},
                description="Seconds to wait, at most 60, until the run has ended or only an answer or a signal can "
                "move it.",
            ),
        ]
        | None
    ) = None


class StateQuery(Struct, frozen=True):
    seq: Annotated[int, Meta(ge=1, description="The state after this event. Default: now.")] | None = None


class PlanQuery(Struct, frozen=True):
    format: Annotated[Format, Meta(description="json, text, dot or mermaid.")] = "json"
    expanded: Annotated[bool, Meta(description="1: show branches and iterations as separate nodes.")] = False


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
    """The answer to a request that started a run."""
    return view_of(RunAccepted, submitted, urls=run_urls(submitted.run))


def _without_traceback(error: bytes | None) -> Any:
    """A list has no room for it."""
    if error is None or b'"traceback"' not in error:
        return fragment(error)
    return {name: value for name, value in orjson.loads(error).items() if name != "traceback"}


def run_summary(row: RunRow, now_ms: int, lacks: str | None) -> RunSummary:
    """A run as lists show it."""
    since_ms = row.stale_since_ms(now_ms)
    began_ms = row.started_at_ms or row.created_at_ms
    return view_of(
        RunSummary,
        row,
        error=_without_traceback(row.error),
        input_summary=beginning(row.input, SUMMARY_CHARS),
        duration_ms=None if row.finished_at_ms is None else max(0, row.finished_at_ms - began_ms),
        stale=since_ms is not None,
        stale_since_ms=since_ms,
        lacks=lacks,
    )

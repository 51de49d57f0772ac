"""The graph of a run, its past states, why nodes have their state, a comparison of two runs, one node, and plans."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.responses import Response

from compiler import plan as plans
from compiler.plan import Plan
from compiler.render import Format, render
from executor.errors import NotFound
from executor.kernel.process.threads import aside
from executor.service.topics.history import RunState
from executor.service.views import CheckpointView, ErrorJson, NodeDetail, RunGraph, StepView, Why, view_of
from executor.service.views.diff import RunDiff
from executor.service.views.lane import Lane
from server.api.runs import PlanQuery
from server.api.workflows import WorkflowPlanQuery
from server.http.response import Json, Preview, beginning, fragment, long_json
from server.http.table import Call, Routes, RouteSpec

Bytes = Annotated[int, Meta(description="Bytes of JSON.")]
Beginning = Annotated[str, Meta(description="Only when cut: the beginning of the JSON.")]


class CheckpointShown(CheckpointView, frozen=True):
    """The last checkpoint that an attempt stored, its value cut to `preview` bytes."""

    attempt: Annotated[int, Meta(description="The attempt that stored it.")]
    value: Annotated[Any, Meta(description="Null also when cut.")]
    value_size: Bytes
    value_truncated: bool
    value_preview: Beginning | UnsetType = UNSET


class NodeShown(NodeDetail, frozen=True):
    """One attempt of a node: its resolved parameters and its output, after event `seq`. Sizes are in bytes of JSON."""

    seq: Annotated[int, Meta(description="State after this event.")]
    attempt: Annotated[int, Meta(description="The attempt shown; 0: it did not run.")]
    input: Annotated[Any, Meta(description="The resolved parameters; null when it did not start, or when cut.")]
    input_error: Annotated[ErrorJson | None, Meta(description="Why the parameters could not be resolved.")]
    output: Annotated[Any, Meta(description="Null also when cut.")]
    checkpoint: Annotated[
        CheckpointShown | None, Meta(description="The last checkpoint of its attempts; null also with `seq`.")
    ]
    steps: Annotated[
        tuple[StepView, ...], Meta(description="The durable steps of its handler; event `finished_seq` has the output.")
    ]
    input_size: Bytes | None
    input_truncated: bool
    output_size: Bytes | None
    output_truncated: bool
    input_preview: Beginning | UnsetType = UNSET
    output_preview: Beginning | UnsetType = UNSET


class NodeQuery(Struct, frozen=True):
    attempt: Annotated[int, Meta(ge=0, description="This attempt. Default: the last one.")] | None = None
    seq: Annotated[int, Meta(ge=1, description="State after this event.")] | None = None
    only: Annotated[Literal["input", "output"] | None, Meta(description="Return the JSON of one of the two alone.")] = (
        None
    )
    preview: Preview | None = None


def node_shown(detail: NodeDetail, preview: int | None) -> NodeShown:
    """Values over `preview` bytes are cut: the value is null, and the beginning of its JSON beside it."""
    stored, checkpoint = detail.checkpoint, None
    if stored is not None:
        value, size, truncated, begins = _cut(stored.value, preview)
        assert size is not None
        checkpoint = CheckpointShown(stored.attempt, stored.at_ms, value, size, truncated, begins)
    input, input_size, input_truncated, input_begins = _cut(detail.input, preview)
    output, output_size, output_truncated, output_begins = _cut(detail.output, preview)
    return view_of(
        NodeShown,
        detail,
        checkpoint=checkpoint,
        input=input,
        input_size=input_size,
        input_truncated=input_truncated,
        input_preview=input_begins,
        output=output,
        output_size=output_size,
        output_truncated=output_truncated,
        output_preview=output_begins,
    )


def _cut(data: bytes | None, preview: int | None) -> tuple[Any, int | None, bool, str | UnsetType]:
    """(value, bytes, whether it is cut, the beginning if it is)."""
    if data is None or preview is None or len(data) <= preview:
        return fragment(data), None if data is None else len(data), False, UNSET
    return None, len(data), True, beginning(data, preview)


class RunWhy(Struct, frozen=True):
    """For each node, its state and why it is in it."""

    run: str
    why: list[Why]


class WhyQuery(Struct, frozen=True):
    node: Annotated[str | None, Meta(description="A block, a node, or a node key such as send@review#5.")] = None
    seq: Annotated[int, Meta(ge=1, description="State after this event.")] | None = None


class LaneQuery(Struct, frozen=True):
    after: Annotated[int, Meta(ge=0, description="Only calls that events after this one are about.")] = 0
    before: Annotated[int, Meta(ge=1, description="Only calls that began before this event.")] | None = None


class StateQuery(Struct, frozen=True):
    seq: Annotated[int, Meta(ge=1, description="The state after this event. Default: now.")] | None = None


route = Routes("runs", RouteSpec)


@route("GET", "/api/runs/{id}/graph", "The plan of a run with the state of its nodes and edges", needs="viewer")
async def graph(call: Call, id: str) -> RunGraph:
    return await call.engine.runs.graph(id)


@route("GET", "/api/runs/{id}/why", "Why nodes have their state", needs="viewer")
async def why(call: Call, id: str, query: WhyQuery) -> Json[RunWhy]:
    """With `seq`: the state after that event."""
    return await long_json(RunWhy(id, await call.engine.history.why(id, query.node, query.seq)), "why")


@route("GET", "/api/runs/{id}/state", "State of a run after an event", needs="viewer")
async def state(call: Call, id: str, query: StateQuery) -> Json[RunState]:
    """The state of the run after an event: succeeded, running, open and due nodes, and the variables. A `seq` after the
    last event means the last event. Outputs are at /api/runs/{id}/nodes/{key}?seq=."""
    return await long_json(await call.engine.history.state(id, query.seq), "nodes")


@route("GET", "/api/runs/{id}/lane", "The calls of a durable function", needs="viewer")
async def lane(call: Call, id: str, query: LaneQuery) -> Json[Lane]:
    """The steps and waits of a run of a durable function, in the order of the calls: at most 1,000, the newest. 404:
    the run is another one."""
    return await long_json(await call.engine.runs.lane(id, query.after, query.before), "items")


@route("GET", "/api/runs/{id}/diff/{other}", "Compare two runs", needs="viewer")
async def diff(call: Call, id: str, other: str) -> RunDiff:
    """The first event at which the two runs differ, ignoring times and ids, and every node with a different result. The
    runs can use different versions: blocks are matched by id."""
    return await call.engine.history.diff(id, other)


@route(
    "GET",
    "/api/runs/{id}/nodes/{key}",
    "Input and output of one node",
    needs="viewer",
    answer=(NodeShown, Annotated[Any, Meta(description="With `only`: any JSON.")]),
)
async def node(call: Call, id: str, key: str, query: NodeQuery) -> Response:
    """`key` is a percent-encoded node key such as send@review#5/fan[2], or a container, whose input is that of its
    start and whose output is that of its end. `input` has the parameters with all references resolved and secrets
    redacted; code and expressions in it are {"$code", "values"}. With `only`, the response is the JSON of the input or
    output alone, as a file."""
    detail = await call.engine.runs.node(id, key, query.attempt, query.seq)
    return _file(detail, query.only) if query.only else Json(node_shown(detail, query.preview))


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


FORMATS: dict[Format, str] = {
    "json": "application/json",
    "text": "text/plain; charset=utf-8",
    "dot": "text/vnd.graphviz; charset=utf-8",
    "mermaid": "text/vnd.mermaid; charset=utf-8",
}

_MEDIA = ("application/json", "text/plain", "text/vnd.graphviz", "text/vnd.mermaid")


@route("GET", "/api/runs/{id}/plan", "The plan of a run", needs="viewer", answer=dict[str, Any], media=_MEDIA)
async def plan_of_run(call: Call, id: str, query: PlanQuery) -> Response:
    """`expanded` includes each branch and iteration whose number is known before the run."""
    return await _drawn(query, await call.engine.runs.plan(id))


@route(
    "GET",
    "/api/workflows/{name}/plan",
    "The plan of a stored workflow",
    tag="workflows",
    needs="viewer",
    answer=dict[str, Any],
    statuses=(422,),
    media=_MEDIA,
)
async def plan_of_workflow(call: Call, name: str, query: WorkflowPlanQuery) -> Response:
    """The plan that a run starting at `trigger` would use. Nothing runs."""
    return await _drawn(query, await call.engine.workflows.plan(name, query.version, query.trigger))


async def _drawn(query: PlanQuery, plan: Plan) -> Response:
    form, expanded = query.format, query.expanded
    whole = form == "json" and not expanded
    body = plans.encode(plan) if whole else await aside(partial(render, plan, form, expanded=expanded))
    return Response(body, media_type=FORMATS[form], headers={"ETag": f'"{plan.hash}"'})

"""The plan a run is pinned to, or one a stored workflow would run: JSON, text for people, or a drawing for Graphviz and
Mermaid."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.responses import Response

from compiler import plan as plans
from compiler.plan import Plan
from compiler.render import Format, render
from executor.kernel.process.threads import aside
from server.api.runs import PlanQuery
from server.api.workflows import WorkflowPlanQuery
from server.http.call import Call
from server.http.table import Routes, RouteSpec

FORMATS: dict[Format, str] = {
    "json": "application/json",
    "text": "text/plain; charset=utf-8",
    "dot": "text/vnd.graphviz; charset=utf-8",
    "mermaid": "text/vnd.mermaid; charset=utf-8",
}


_MEDIA = ("application/json", "text/plain", "text/vnd.graphviz", "text/vnd.mermaid")


route = Routes("runs", RouteSpec)


@route(
    "GET",
    "/api/runs/{id}/plan",
    "The plan of a run",
    needs="viewer",
    answer=dict[str, Any],
    statuses=(404,),
    query=PlanQuery,
    media=_MEDIA,
)
async def plan_of_run(call: Call) -> Response:
    """`expanded` includes each branch and iteration whose number is known before the run."""
    query = call.query(PlanQuery)
    return await _drawn(query, await call.engine.runs.plan(call.path("id")))


@route(
    "GET",
    "/api/workflows/{name}/plan",
    "The plan of a stored workflow",
    tag="workflows",
    needs="viewer",
    answer=dict[str, Any],
    statuses=(404, 422),
    query=WorkflowPlanQuery,
    media=_MEDIA,
)
async def plan_of_workflow(call: Call) -> Response:
    """The plan that a run starting at `trigger` would use. Nothing runs."""
    query = call.query(WorkflowPlanQuery)
    return await _drawn(query, await call.engine.workflows.plan(call.path("name"), query.version, query.trigger))


async def _drawn(query: PlanQuery, plan: Plan) -> Response:
    form, expanded = query.format, query.expanded
    whole = form == "json" and not expanded
    body = plans.encode(plan) if whole else await aside(partial(render, plan, form, expanded=expanded))
    return Response(body, media_type=FORMATS[form], headers={"ETag": f'"{plan.hash}"'})

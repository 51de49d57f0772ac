"""The plan a run is pinned to, or one a stored workflow would run: JSON, text for people, or a drawing for Graphviz and
Mermaid."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from compiler import plan as plans
from compiler.plan import Plan
from compiler.render import Format, render
from server.http.call import Call
from server.http.table import RouteSpec
from server.wire.runs import PlanQuery
from server.wire.workflows import WorkflowPlanQuery

FORMATS: dict[Format, str] = {
    "json": "application/json",
    "text": "text/plain; charset=utf-8",
    "dot": "text/vnd.graphviz; charset=utf-8",
    "mermaid": "text/vnd.mermaid; charset=utf-8",
}


async def plan_of_run(call: Call) -> Response:
    """`expanded` includes each branch and iteration whose number is known before the run."""
    query = call.query(PlanQuery)
    return _drawn(query, await call.engine.runs.plan(call.path("id")))


async def plan_of_workflow(call: Call) -> Response:
    """The plan that a run starting at `trigger` would use. Nothing runs."""
    query = call.query(WorkflowPlanQuery)
    return _drawn(query, await call.engine.workflows.plan(call.path("name"), query.version, query.trigger))


def _drawn(query: PlanQuery, plan: Plan) -> Response:
    form, expanded = query.format, query.expanded
    body = plans.encode(plan) if form == "json" and not expanded else render(plan, form, expanded=expanded)
    return Response(body, media_type=FORMATS[form], headers={"ETag": f'"{plan.hash}"'})


_MEDIA = ("application/json", "text/plain", "text/vnd.graphviz", "text/vnd.mermaid")

TABLE = (
    RouteSpec(
        "GET",
        "/api/runs/{id}/plan",
        plan_of_run,
        "The plan of a run",
        needs="viewer",
        answer=dict[str, Any],
        statuses=(404,),
        query=PlanQuery,
        media=_MEDIA,
    ),
    RouteSpec(
        "GET",
        "/api/workflows/{name}/plan",
        plan_of_workflow,
        "The plan of a stored workflow",
        "workflows",
        needs="viewer",
        answer=dict[str, Any],
        statuses=(404, 422),
        query=WorkflowPlanQuery,
        media=_MEDIA,
    ),
)

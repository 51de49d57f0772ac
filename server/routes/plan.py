"""The plan a run is pinned to, or one a stored workflow would run: JSON, text for people, or a drawing for Graphviz and
Mermaid."""

from __future__ import annotations

from starlette.responses import Response

from compiler import plan as plans
from compiler.plan import Plan
from compiler.render import Format, render
from server.http.params import FLAGS, choice, flag, integer
from server.http.table import Call, Param, RouteSpec

FORMATS: dict[Format, str] = {
    "json": "application/json",
    "text": "text/plain; charset=utf-8",
    "dot": "text/vnd.graphviz; charset=utf-8",
    "mermaid": "text/vnd.mermaid; charset=utf-8",
}


async def plan_of_run(call: Call) -> Response:
    """`expanded` includes each branch and iteration whose number is known before the run."""
    return _drawn(call, await call.engine.runs.plan(call.path("id")))


async def plan_of_workflow(call: Call) -> Response:
    """The plan that a run starting at `trigger` would use. Nothing runs."""
    version = integer(call, "version", minimum=1)
    return _drawn(call, await call.engine.workflows.plan(call.path("name"), version, call.query("trigger")))


def _drawn(call: Call, plan: Plan) -> Response:
    form: Format = choice(call, "format", tuple(FORMATS), "json")
    expanded = flag(call, "expanded")
    body = plans.encode(plan) if form == "json" and not expanded else render(plan, form, expanded=expanded)
    return Response(body, media_type=FORMATS[form], headers={"ETag": f'"{plan.hash}"'})


_FORM = (
    Param("format", "json, text, dot or mermaid.", {"enum": list(FORMATS)}),
    Param(
        "expanded",
        "1: show branches and iterations as separate nodes.",
        {"enum": list(FLAGS)},
    ),
)
_MEDIA = ("application/json", "text/plain", "text/vnd.graphviz", "text/vnd.mermaid")

TABLE = (
    RouteSpec(
        "GET",
        "/api/runs/{id}/plan",
        plan_of_run,
        "The plan of a run",
        answer={"type": "object"},
        statuses=(404,),
        params=_FORM,
        media=_MEDIA,
    ),
    RouteSpec(
        "GET",
        "/api/workflows/{name}/plan",
        plan_of_workflow,
        "The plan of a stored workflow",
        "workflows",
        answer={"type": "object"},
        statuses=(404, 422),
        params=(
            Param("version", "A stored version. Default: the active one.", {"type": "integer", "minimum": 1}),
            Param("trigger", "Id of the trigger block, if there are several."),
            *_FORM,
        ),
        media=_MEDIA,
    ),
)

"""The plan a run is pinned to: as JSON, as text for people, or as a drawing for Graphviz and Mermaid."""

from __future__ import annotations

from starlette.responses import Response

from compiler import plan as plans
from compiler.render import Format, render
from server.routes.params import FLAGS, choice, flag
from server.routes.table import Call, Param, RouteSpec

FORMATS: dict[Format, str] = {
    "json": "application/json",
    "text": "text/plain; charset=utf-8",
    "dot": "text/vnd.graphviz; charset=utf-8",
    "mermaid": "text/vnd.mermaid; charset=utf-8",
}


async def plan(call: Call) -> Response:
    """`expanded` stamps out the branches and iterations whose number is known before the run."""
    form: Format = choice(call, "format", tuple(FORMATS), "json")
    found = await call.engine.plan_of(call.path("id"))
    expanded = flag(call, "expanded")
    body = plans.encode(found) if form == "json" and not expanded else render(found, form, expanded=expanded)
    return Response(body, media_type=FORMATS[form], headers={"ETag": f'"{found.hash}"'})


TABLE = (
    RouteSpec(
        "GET",
        "/api/runs/{id}/plan",
        plan,
        "The plan of a run",
        answer={"type": "object"},
        statuses=(404,),
        params=(
            Param("format", "json, text, dot or mermaid.", {"enum": list(FORMATS)}),
            Param(
                "expanded",
                "1: with branch-indexed copies and iterations as nodes of their own.",
                {"enum": list(FLAGS)},
            ),
        ),
        media=("application/json", "text/plain", "text/vnd.graphviz", "text/vnd.mermaid"),
    ),
)

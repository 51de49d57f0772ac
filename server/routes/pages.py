"""The pages for people: the interface of server/ui.py, or plain pages where it was not built. A page asks for the token
like any route, but with a form instead of an error."""

from __future__ import annotations

from starlette.responses import Response

from executor.errors import NotFound
from server import ui
from server.http.call import Call
from server.http.table import RouteSpec
from server.pages import index
from server.pages.run import run_page

LISTED = 50


async def front(call: Call) -> Response:
    if not await call.auth.allows(call.request):
        return index.login()
    if call.request.app.state.interface:
        return ui.page(call.request.app.state.interface)
    workflows = await call.engine.workflows.active()
    runs = await call.engine.runs.list(limit=LISTED)
    waits = await call.engine.waits.list("pending", limit=LISTED)
    signed_in = await call.auth.session(call.request) is not None
    return index.front(workflows, runs, waits, signed_in)


async def run(call: Call) -> Response:
    if not await call.auth.allows(call.request):
        return index.login()
    if call.request.app.state.interface:
        return ui.page(call.request.app.state.interface)
    try:
        return run_page(await call.engine.runs.view(call.path("id")))
    except NotFound as error:
        return index.not_found(error.message)


TABLE = (
    RouteSpec("GET", "/", front, "Front page", "pages", public=True, documented=False),
    RouteSpec("GET", "/runs/{id}", run, "A run, live", "pages", public=True, documented=False),
    RouteSpec("GET", "/w/{id}", front, "The editor of a workflow", "pages", public=True, documented=False),
    RouteSpec("GET", "/runs", front, "Runs", "pages", public=True, documented=False),
    RouteSpec("GET", "/approvals", front, "Open requests to people", "pages", public=True, documented=False),
    RouteSpec("GET", "/settings", front, "Settings", "pages", public=True, documented=False),
)

"""The addresses of the editor: one page for all of them, a form to sign in where the token is required, or how to build
the editor where it was not built."""

from __future__ import annotations

from starlette.responses import Response

from server import ui
from server.http.call import Call
from server.http.table import RouteSpec
from server.pages import entry


async def editor(call: Call) -> Response:
    if not await call.auth.allows(call.request):
        return entry.sign_in()
    return ui.page(call.interface) if call.interface else entry.not_built()


TABLE = tuple(
    RouteSpec("GET", path, editor, summary, "pages", public=True, documented=False)
    for path, summary in (
        ("/", "Front page"),
        ("/runs/{id}", "A run, live"),
        ("/w/{id}", "The editor of a workflow"),
        ("/runs", "Runs"),
        ("/approvals", "Open requests to people"),
        ("/settings", "Settings"),
    )
)

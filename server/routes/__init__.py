"""The routes, in the order OpenAPI shows them."""

from server.routes import demo, events, health, pages, plan, resume, runs, workflows
from server.routes.table import RouteSpec

TABLE: tuple[RouteSpec, ...] = (
    *workflows.TABLE,
    *runs.TABLE,
    *events.TABLE,
    *plan.TABLE,
    *resume.TABLE,
    *health.TABLE,
    *demo.TABLE,
    *pages.TABLE,
)

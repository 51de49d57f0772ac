"""The routes, in the order OpenAPI shows them."""

from server.routes import (
    demo,
    drafts,
    env,
    events,
    examples,
    health,
    nodes,
    pages,
    plan,
    rerun,
    resume,
    runs,
    workflows,
)
from server.routes.table import RouteSpec

TABLE: tuple[RouteSpec, ...] = (
    *workflows.TABLE,
    *drafts.TABLE,
    *examples.TABLE,
    *env.TABLE,
    *runs.TABLE,
    *rerun.TABLE,
    *nodes.TABLE,
    *events.TABLE,
    *plan.TABLE,
    *resume.TABLE,
    *health.TABLE,
    *demo.TABLE,
    *pages.TABLE,
)

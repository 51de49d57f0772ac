"""The routes, in the order OpenAPI shows them."""

from server.http.table import RouteSpec
from server.routes import (
    cache,
    callbacks,
    demo,
    drafts,
    env,
    events,
    examples,
    health,
    history,
    hooks,
    lifecycle,
    nodes,
    pages,
    plan,
    rerun,
    resume,
    runs,
    schedules,
    sign_in,
    signals,
    upkeep,
    waits,
    webhooks,
    workflows,
)
from server.settings import Settings
from server.variables import is_loopback

TABLE: tuple[RouteSpec, ...] = (
    *workflows.TABLE,
    *drafts.TABLE,
    *examples.TABLE,
    *env.TABLE,
    *runs.TABLE,
    *rerun.TABLE,
    *lifecycle.TABLE,
    *nodes.TABLE,
    *events.TABLE,
    *history.TABLE,
    *plan.TABLE,
    *cache.TABLE,
    *signals.TABLE,
    *waits.TABLE,
    *resume.TABLE,
    *callbacks.TABLE,
    *schedules.TABLE,
    *webhooks.TABLE,
    *hooks.TABLE,
    *upkeep.TABLE,
    *health.TABLE,
    *sign_in.TABLE,
    *demo.TABLE,
    *pages.TABLE,
)


def table_of(settings: Settings) -> tuple[RouteSpec, ...]:
    """The routes of this server: `/demo` asks for no credential, so other machines cannot call it."""
    return TABLE if is_loopback(settings.host) else tuple(spec for spec in TABLE if spec not in demo.TABLE)

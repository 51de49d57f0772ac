"""The routes, in the order OpenAPI shows them."""

from server.http.table import RouteSpec
from server.routes import (
    callbacks,
    demo,
    drafts,
    entry,
    events,
    history,
    hooks,
    lifecycle,
    plan,
    resume,
    runs,
    schedules,
    server,
    waits,
    webhooks,
    workflows,
)
from server.settings import Settings
from server.variables import is_loopback

TABLE: tuple[RouteSpec, ...] = (
    *workflows.TABLE,
    *drafts.TABLE,
    *runs.TABLE,
    *lifecycle.TABLE,
    *events.TABLE,
    *history.TABLE,
    *plan.TABLE,
    *waits.TABLE,
    *resume.TABLE,
    *callbacks.TABLE,
    *schedules.TABLE,
    *webhooks.TABLE,
    *hooks.TABLE,
    *server.TABLE,
    *entry.TABLE,
    *demo.TABLE,
)


def table_of(settings: Settings) -> tuple[RouteSpec, ...]:
    """The routes of this server: `/demo` asks for no credential, so other machines cannot call it."""
    return TABLE if is_loopback(settings.host) else tuple(spec for spec in TABLE if spec not in demo.TABLE)

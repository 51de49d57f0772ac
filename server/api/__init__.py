"""The API, one file a topic: the shapes of its bodies, queries and answers, and its routes. Times are Unix
milliseconds.

The routes are in the order OpenAPI shows them.
"""

from server.api import (
    callbacks,
    chats,
    connections,
    connectors,
    demo,
    drafts,
    entry,
    events,
    files,
    forms,
    history,
    hooks,
    lifecycle,
    mcp,
    memory,
    oidc,
    people,
    plan,
    resume,
    runs,
    schedules,
    secrets,
    server,
    stats,
    usage,
    waits,
    webhooks,
    workflows,
)
from server.http.table import RouteSpec
from server.settings import Settings
from server.variables import is_loopback

TABLE: tuple[RouteSpec, ...] = (
    *workflows.route.table,
    *connectors.route.table,
    *drafts.route.table,
    *runs.route.table,
    *lifecycle.route.table,
    *events.route.table,
    *history.route.table,
    *plan.route.table,
    *waits.route.table,
    *resume.route.table,
    *callbacks.route.table,
    *schedules.route.table,
    *webhooks.route.table,
    *hooks.route.table,
    *forms.route.table,
    *chats.route.table,
    *files.route.table,
    *secrets.route.table,
    *memory.route.table,
    *usage.route.table,
    *connections.route.table,
    *server.route.table,
    *stats.route.table,
    *people.route.table,
    *mcp.route.table,
    *entry.route.table,
    *oidc.route.table,
    *demo.route.table,
)


def table_of(settings: Settings) -> tuple[RouteSpec, ...]:
    """The routes of this server: `/demo` asks for no credential, so other machines cannot call it."""
    return TABLE if is_loopback(settings.host) else tuple(spec for spec in TABLE if spec not in demo.route.table)

"""The routes, in the order OpenAPI shows them."""

from server.http.table import RouteSpec
from server.routes import (
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
    tool_servers,
    usage,
    waits,
    webhooks,
    workflows,
)
from server.settings import Settings
from server.variables import is_loopback

TABLE: tuple[RouteSpec, ...] = (
    *workflows.TABLE,
    *connectors.TABLE,
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
    *forms.TABLE,
    *chats.TABLE,
    *files.TABLE,
    *secrets.TABLE,
    *memory.TABLE,
    *usage.TABLE,
    *connections.TABLE,
    *tool_servers.TABLE,
    *server.TABLE,
    *stats.TABLE,
    *people.TABLE,
    *mcp.TABLE,
    *entry.TABLE,
    *oidc.TABLE,
    *demo.TABLE,
)


def table_of(settings: Settings) -> tuple[RouteSpec, ...]:
    """The routes of this server: `/demo` asks for no credential, so other machines cannot call it."""
    return TABLE if is_loopback(settings.host) else tuple(spec for spec in TABLE if spec not in demo.TABLE)

"""The API, one file a topic: the shapes of its bodies, queries and answers, and its routes. Times are Unix
milliseconds.

The routes are in the order OpenAPI shows them.
"""

from server.api import (
    backtests,
    chats,
    connections,
    connectors,
    demo,
    drafts,
    entry,
    events,
    files,
    forms,
    functions,
    history,
    knowledge,
    lifecycle,
    mcp,
    memory,
    people,
    resume,
    runs,
    schedules,
    secrets,
    server,
    usage,
    waits,
    webhooks,
    workflows,
)
from server.http.table import RouteSpec
from server.reach import is_loopback
from server.settings import Settings

TOPICS = (
    workflows,
    connectors,
    drafts,
    runs,
    lifecycle,
    events,
    history,
    backtests,
    waits,
    functions,
    resume,
    schedules,
    webhooks,
    forms,
    chats,
    files,
    secrets,
    memory,
    knowledge,
    usage,
    connections,
    server,
    people,
    mcp,
    entry,
    demo,
)
TABLE: tuple[RouteSpec, ...] = tuple(spec for topic in TOPICS for spec in topic.route.table)


def table_of(settings: Settings) -> tuple[RouteSpec, ...]:
    """The routes of this server: `/demo` asks for no credential, so other machines cannot call it."""
    return TABLE if is_loopback(settings.host) else tuple(spec for spec in TABLE if spec not in demo.route.table)

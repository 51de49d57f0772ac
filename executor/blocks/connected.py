"""The param `connection`: a stored connection, picked from a list."""

from __future__ import annotations

from typing import Any, Final

from executor.blocks.base import Context
from executor.blocks.shared_params import invalid, text
from executor.vault.connection import NAME, Credential

CONNECTION: Final[dict[str, Any]] = {
    "type": "string",
    "title": "Connection",
    "description": "A stored credential, sent only to its own hosts.",
    "pattern": f"^({NAME.pattern})?$",
    "x-weft": "literal",
}


async def credential_of(ctx: Context, stale: Credential | None = None) -> Credential | None:
    """That of the connection in the params, if there is one. `stale`: one that the service has refused. Raises
    BlockError."""
    name = text(ctx.params, "connection")
    if name is None:
        return None
    if ctx.connections is None:
        raise invalid("connections are not available here")
    return await ctx.connections.get(name, stale)

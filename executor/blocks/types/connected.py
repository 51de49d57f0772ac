"""The param `connection`: a stored connection, picked from a list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from executor.blocks.types.params import invalid, param
from executor.blocks.vault.connection import NAME, Credential
from executor.errors import BlockError
from executor.kernel.handler import needs
from executor.kernel.handler.base import StepContext

if TYPE_CHECKING:
    from executor.blocks.vault.connections import Connections

T = TypeVar("T")
CONNECTION: Final[Any] = param(
    "Connection",
    "A stored credential, sent only to its own hosts.",
    pattern=f"^({NAME.pattern})?$",
    weft="literal",
    widget="connection",
)


async def credential_of(ctx: StepContext, name: str | None, stale: Credential | None = None) -> Credential | None:
    """Return the credential of the connection with this name. `stale`: one that the service has refused. Raises
    BlockError."""
    return None if name is None else await _stored(ctx.connections).get(name, stale)


async def signed_in(ctx: StepContext, name: str | None, work: Callable[[Credential | None], Awaitable[T]]) -> T:
    """`signed_in_with` the connections of an attempt."""
    return await signed_in_with(ctx.connections, name, work)


async def signed_in_with(
    connections: needs.Connections | None, name: str | None, work: Callable[[Credential | None], Awaitable[T]]
) -> T:
    """Call `work` with the credential of this connection, bound to its hosts, and return its result. If a token was
    refused (`answer_status` 401), call it once more with a new one. Raises BlockError."""
    if name is None:
        return await work(None)
    stored = _stored(connections)
    credential = await stored.get(name)
    try:
        with credential.bound():
            return await work(credential)
    except BlockError as error:
        if error.extra.get("answer_status") != 401:
            raise
        if not credential.renews:
            error.hint = error.hint or f"check the credential of the connection {name}"
            raise
    renewed = await stored.get(name, credential)
    with renewed.bound():
        return await work(renewed)


def _stored(connections: needs.Connections | None) -> Connections:
    if connections is None:
        raise invalid("connections are not available here")
    return cast("Connections", connections)

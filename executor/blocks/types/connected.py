"""The param `connection`: a stored connection, picked from a list."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from compiler.catalog import Finding
from compiler.references import find
from executor.blocks.databases.rows import Login
from executor.blocks.types.params import invalid, param
from executor.blocks.vault.connection import NAME, Credential
from executor.errors import BlockError
from executor.kernel.handler import needs
from executor.kernel.handler.base import StepContext

if TYPE_CHECKING:
    from executor.blocks.vault.connections import Connections

T = TypeVar("T")
SETTING: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
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


def check_address(
    name: str, address: str, connected: bool, *, other: str, schemes: tuple[str, ...], form: str, server: str
) -> tuple[Finding, ...]:
    """Check the param `name`, the address of a server that a connection signs in to, or else ${NAME}. `other`: what
    it may be instead, `form`: what an address looks like, `server`: what it leads to, in messages."""
    title, wrong, hint = name.capitalize(), "", ""
    if SETTING.fullmatch(address):
        return ()
    if find(address):
        wrong = f"must be ${{NAME}}{other}"
        hint = "The operator sets the address of a database. Data of a run must not choose it."
    elif not connected:
        wrong = "must not contain an address"
        hint = "Choose a connection that signs in, or put the address into a secret and write ${NAME} here."
    elif not address.lower().startswith(schemes):
        return (Finding("param_invalid", f"/{name}", f"A connection signs in to {server}.", f"Write {form}."),)
    elif ":" in address.partition("://")[2].partition("/")[0].rpartition("@")[0] or "password=" in address:
        wrong, hint = "must not contain a password", "Remove it. The connection has the user and the password."
    return (Finding("param_invalid", f"/{name}", f"{title} {wrong}.", hint),) if wrong else ()


def login_of(credential: Credential | None) -> Login | None:
    """Some services take an access token as the password. Raises BlockError(params_invalid)."""
    if credential is None:
        return None
    if credential.kind not in ("basic", "oauth2_code", "oauth2_client"):
        hint = "use a user name and password, or OAuth 2"
        raise invalid(f"the connection {credential.connection} cannot sign in to a database", hint)
    return Login(credential.username or None, credential.value)

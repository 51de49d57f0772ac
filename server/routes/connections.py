"""Connections: what there is, never a credential; sign-in at OAuth 2 providers."""

from __future__ import annotations

from starlette.responses import Response

from executor.blocks.vault.connection import Connection, Provider
from executor.blocks.vault.providers import known_providers
from executor.service.topics.connections import ConnectionView, SignIn
from server.http.body import read_as
from server.http.call import Call
from server.http.response import json_response
from server.http.table import RouteSpec
from server.wire.connections import (
    ConnectionDeleted,
    ConnectionList,
    ConnectionSpec,
    ConnectionUses,
    SignInAnswer,
)


async def list_all(call: Call) -> Response:
    """Names, kinds, hosts and states; and the well-known OAuth providers."""
    connections = call.engine.connections
    return json_response(ConnectionList(await connections.all(), connections.redirect_uri, known_providers()))


async def put(call: Call) -> Response:
    """Add a connection, or replace the one of this name, with its credential; people must then sign in again."""
    spec = await read_as(call.request, call.limits, ConnectionSpec)
    connections = call.engine.connections
    return json_response(await connections.put(call.path("name"), _made(spec), spec.hosts, by=call.who.actor))


async def uses(call: Call) -> Response:
    """The workflows and drafts that name it."""
    return json_response(ConnectionUses(await call.engine.connections.used_by(call.path("name"))))


async def delete(call: Call) -> Response:
    """Blocks that name it fail from now on."""
    await call.engine.connections.delete(call.path("name"))
    return json_response(ConnectionDeleted(call.path("name"), True))


async def connect(call: Call) -> Response:
    """Begin to sign in at its provider. The address is valid for 10 minutes, once, and only for the session or token
    that asked for it."""
    return json_response(await call.engine.connections.begin(call.path("name"), _session(call)))


async def connected(call: Call) -> Response:
    """End a sign-in with the parameters that the provider gave the browser."""
    said = await read_as(call.request, call.limits, SignInAnswer)
    connections = call.engine.connections
    made = await connections.end(said.state, _session(call), code=said.code, said=said.error, issuer=said.iss)
    call.note(made.name)
    return json_response(made)


def _session(call: Call) -> str:
    """The session or token that began a sign-in; only it may finish the sign-in."""
    return f"{call.who.actor} {call.who.key or ''}"


def _made(spec: ConnectionSpec) -> Connection:
    provider = None
    if spec.kind in ("oauth2_code", "oauth2_client"):
        provider = Provider(
            spec.token_url,
            spec.client_id,
            spec.authorize_url if spec.kind == "oauth2_code" else "",
            spec.scopes,
            spec.issuer,
            spec.client_auth,
            spec.parameters,
            spec.pkce,
        )
    return Connection(
        spec.kind, spec.secret, spec.username, spec.where, spec.name or "Authorization", spec.prefix, provider
    )


_ONE = "/api/connections/{name}"

TABLE = (
    RouteSpec(
        "GET", "/api/connections", list_all, "List connections", "secrets", needs="editor", answer=ConnectionList
    ),
    RouteSpec(
        "PUT",
        _ONE,
        put,
        "Add or replace a connection",
        "secrets",
        needs="admin",
        body=ConnectionSpec,
        answer=ConnectionView,
        statuses=(400, 409, 422),
    ),
    RouteSpec(
        "DELETE",
        _ONE,
        delete,
        "Delete a connection",
        "secrets",
        needs="admin",
        answer=ConnectionDeleted,
        statuses=(404,),
    ),
    RouteSpec(
        "GET",
        f"{_ONE}/uses",
        uses,
        "List what uses a connection",
        "secrets",
        needs="editor",
        answer=ConnectionUses,
        statuses=(404, 409),
    ),
    RouteSpec(
        "POST",
        f"{_ONE}/connect",
        connect,
        "Begin to sign in to a connection",
        "secrets",
        needs="admin",
        answer=SignIn,
        statuses=(404, 409),
    ),
    RouteSpec(
        "POST",
        "/api/oauth/code",
        connected,
        "End a sign-in to a connection",
        "secrets",
        needs="admin",
        body=SignInAnswer,
        answer=ConnectionView,
        statuses=(400, 409, 502),
    ),
)

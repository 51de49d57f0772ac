"""Connections: what there is, never a credential; sign-in at OAuth 2 providers."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from executor.blocks.vault.connection import Connection, Kind, Provider
from executor.blocks.vault.oauth import KnownProvider, known_providers
from executor.service.topics.connection_tests import ConnectionTest
from executor.service.topics.connections import ConnectionView, SignIn
from executor.service.topics.secrets import EnvUse
from executor.service.views import view_of
from server.http.table import Call, Routes, RouteSpec


class ConnectionSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """`hosts`: where it may be sent to. `secret`: the API key, the token, the password of `username`, or the secret of
    the OAuth client. `where`, `name` and `prefix`: where an API key goes. The rest is about an OAuth 2 provider:
    `client_auth`: whether the client's secret goes in the body or in the header of a request for a token; `parameters`:
    more of them for `authorize_url`; `pkce`: false for a provider without it. `check_url`: what a test of it requests,
    where no service on its hosts has a sign-in check: it answers only with the credential. Of `ssh`, `secret` is a
    password or a private key, `passphrase` that of the key, and `host_key` has the public keys of the server or their
    fingerprints, one a line."""

    kind: Kind
    hosts: tuple[str, ...]
    secret: str = ""
    username: str = ""
    where: Literal["header", "query"] = "header"
    name: str = "Authorization"
    prefix: str = ""
    authorize_url: str = ""
    token_url: str = ""
    client_id: str = ""
    scopes: str = ""
    issuer: str = ""
    client_auth: Literal["body", "header"] = "body"
    parameters: Annotated[dict[str, Annotated[str, Meta(max_length=500)]], Meta(max_length=20)] = {}
    pkce: bool = True
    check_url: str = ""
    passphrase: str = ""
    host_key: str = ""


class ConnectionList(Struct, frozen=True):
    """The connections, by name. Credentials never leave the server. `redirect_uri`: the address to register at OAuth
    providers; `providers`: well-known ones, with the settings that a connection to them begins with."""

    connections: list[ConnectionView]
    redirect_uri: str
    providers: tuple[KnownProvider, ...]


class ConnectionUses(Struct, frozen=True):
    """The active versions and drafts that name it."""

    used_by: list[EnvUse]


class ConnectionDeleted(Struct, frozen=True):
    name: str
    deleted: bool


class SignInAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters with which the provider sent the browser back. `iss`: the issuer of the provider."""

    state: Annotated[str, Meta(max_length=500)]
    code: Annotated[str, Meta(max_length=8_000)] = ""
    error: Annotated[str, Meta(max_length=500)] = ""
    iss: Annotated[str, Meta(max_length=2_000)] = ""


class ConnectionAsked(Struct, frozen=True, forbid_unknown_fields=True):
    """`service`: the connector of the block that names the connection, and `base_url` the address of its service there.
    `connection`: settings that are not stored yet, which are tested in place of those that are."""

    service: Annotated[str, Meta(max_length=100)] = ""
    base_url: Annotated[str, Meta(max_length=2_000)] = ""
    connection: ConnectionSpec | None = None


_ONE = "/api/connections/{name}"

route = Routes("secrets", RouteSpec)


@route("GET", "/api/connections", "List connections", needs="editor")
async def list_all(call: Call) -> ConnectionList:
    """Names, kinds, hosts and states; and the well-known OAuth providers."""
    connections = call.engine.connections
    return ConnectionList(await connections.all(), connections.redirect_uri, known_providers())


@route("PUT", _ONE, "Add or replace a connection", needs="admin", statuses=(409,), always=True)
async def put(call: Call, name: str, body: ConnectionSpec) -> ConnectionView:
    """Add a connection, or replace the one of this name, with its credential; people must then sign in again."""
    connections = call.engine.connections
    return await connections.put(name, _made(body), body.hosts, by=call.who.actor)


@route("GET", f"{_ONE}/uses", "List what uses a connection", needs="editor", statuses=(409,))
async def uses(call: Call, name: str) -> ConnectionUses:
    """The workflows and drafts that name it."""
    return ConnectionUses(await call.engine.connections.used_by(name))


@route("DELETE", _ONE, "Delete a connection", needs="admin")
async def delete(call: Call, name: str) -> ConnectionDeleted:
    """Blocks that name it fail from now on."""
    await call.engine.connections.delete(name)
    return ConnectionDeleted(name, True)


@route("POST", f"{_ONE}/test", "Test a connection", needs="editor", statuses=(409,))
async def test(call: Call, name: str, body: ConnectionAsked) -> ConnectionTest:
    """Ask the service of a connection who is signed in, with its credential, which goes to its hosts alone. That it was
    refused is an answer, too: see `outcome`."""
    new = None if body.connection is None else (_made(body.connection), body.connection.hosts)
    found = await call.engine.connections.test(name, body.service, body.base_url, new)
    call.record(found.outcome)
    await call.engine.store.record_act()  # nothing is written that would record it
    return found


@route("POST", f"{_ONE}/connect", "Begin to sign in to a connection", needs="admin", statuses=(409,))
async def connect(call: Call, name: str) -> SignIn:
    """Begin to sign in at its provider. The address is valid for 10 minutes, once, and only for the session or token
    that asked for it."""
    return await call.engine.connections.begin(name, _session(call))


@route("POST", "/api/oauth/code", "End a sign-in to a connection", needs="admin", statuses=(409, 502))
async def connected(call: Call, body: SignInAnswer) -> ConnectionView:
    """End a sign-in with the parameters that the provider gave the browser."""
    connections = call.engine.connections
    made = await connections.end(body.state, _session(call), code=body.code, said=body.error, issuer=body.iss)
    call.record(made.name)
    return made


def _session(call: Call) -> str:
    """The session or token that began a sign-in; only it may finish the sign-in."""
    return f"{call.who.actor} {call.who.key or ''}"


def _made(spec: ConnectionSpec) -> Connection:
    provider = None
    if spec.kind in ("oauth2_code", "oauth2_client"):
        provider = view_of(Provider, spec, authorize_url=spec.authorize_url if spec.kind == "oauth2_code" else "")
    return view_of(Connection, spec, name=spec.name or "Authorization", provider=provider)

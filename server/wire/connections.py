"""The shapes of connections. Only the shape that sets a credential holds one."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from executor.blocks.vault.connection import Kind
from executor.blocks.vault.providers import KnownProvider
from executor.service.topics.connections import ConnectionView
from executor.service.topics.environment import EnvUse


class ConnectionSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """`hosts`: where it may be sent to. `secret`: the API key, the token, the password of `username`, or the secret of
    the OAuth client. `where`, `name` and `prefix`: where an API key goes. The rest is about an OAuth 2 provider:
    `client_auth`: whether the client's secret goes in the body or in the header of a request for a token; `parameters`:
    more of them for `authorize_url`; `pkce`: false for a provider without it."""

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

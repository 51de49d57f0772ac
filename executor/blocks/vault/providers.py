"""Well-known OAuth 2 providers, so that a new connection needs only a client ID and its secret. They are data,
`providers.json`, and get no request until someone signs in.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec
from msgspec import Struct


class KnownProvider(Struct, frozen=True, forbid_unknown_fields=True):
    """The defaults of a connection of kind `oauth2_code`. `scopes`: a first choice, as the provider separates them;
    `hosts`: those of its API; `docs`: its page about registering a client."""

    id: str
    title: str
    authorize_url: str
    token_url: str
    hosts: tuple[str, ...]
    docs: str
    scopes: str = ""
    issuer: str = ""
    client_auth: Literal["body", "header"] = "body"
    pkce: bool = True
    parameters: dict[str, str] = {}


@cache
def known_providers() -> tuple[KnownProvider, ...]:
    """Return the known providers in the order of lists."""
    data = files(__package__).joinpath("providers.json").read_bytes()
    return msgspec.json.decode(data, type=tuple[KnownProvider, ...])

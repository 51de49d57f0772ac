"""Requests to an OAuth 2 provider: the address at which people sign in (code with PKCE, RFC 7636), and requests for
tokens (RFC 6749). Of the provider's answers only error codes are shown: the rest could have a token in it. Those of
`providers.json` are well known: a new connection to one needs only a client ID and its secret.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal
from urllib.parse import quote, urlencode

import msgspec
import orjson
from msgspec import Struct

from executor.blocks.http.binding import basic
from executor.blocks.http.client import GuardedClient
from executor.blocks.vault.connection import Connection, Provider, Tokens
from executor.errors import BlockError


class KnownProvider(Struct, frozen=True, forbid_unknown_fields=True):
    """The defaults of a connection of kind `oauth2_code`. `scopes`: a first choice, as the provider separates them;
    `hosts`: those of its API; `docs`: its page about registering a client; `check_url` reports who is signed in, at the
    JSON pointer `who`."""

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
    check_url: str = ""
    who: str = ""


@cache
def known_providers() -> tuple[KnownProvider, ...]:
    data = files(__package__).joinpath("providers.json").read_bytes()
    return msgspec.json.decode(data, type=tuple[KnownProvider, ...])


TIMEOUT_S: Final = 20.0
ANSWER_BYTES_MAX: Final = 64 * 1024
TOKEN_CHARS_MIN: Final = 8  # shorter ones cannot be kept out of records
TOKEN_CHARS_MAX: Final = 16 * 1024
REFUSED: Final = "oauth_refused"
_BEARER: Final = ("bearer", "bot")  # Slack calls bot tokens "bot"
_LATER: Final = frozenset({408, 425, 429})
_CODE: Final = re.compile(r"[a-zA-Z0-9_.-]{1,60}")


def sign_in_url(provider: Provider, redirect_uri: str, state: str, verifier: str) -> str:
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    asked = {
        **provider.parameters,
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
    }
    if provider.pkce:
        asked |= {"code_challenge": challenge, "code_challenge_method": "S256"}
    if provider.scopes:
        asked["scope"] = provider.scopes
    joint = "&" if "?" in provider.authorize_url else "?"
    return f"{provider.authorize_url}{joint}{urlencode(asked, quote_via=quote)}"


async def exchange(
    http: GuardedClient, connection: Connection, code: str, verifier: str, redirect_uri: str, now_ms: int
) -> Tokens:
    """Return the tokens for a code. Raises BlockError: oauth_refused, and, retryable, oauth_failed."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri,
    }
    if connection.provider is None or connection.provider.pkce:
        form["code_verifier"] = verifier
    return await _ask(http, connection, form, now_ms)


async def renew(http: GuardedClient, connection: Connection, now_ms: int) -> Tokens:
    """Return the next tokens. The refresh token stays the same unless the provider gives another one. Raises
    BlockError: oauth_refused, and, retryable, oauth_failed."""
    assert connection.provider is not None
    if connection.kind == "oauth2_client":
        form = {"grant_type": "client_credentials"}
        if connection.provider.scopes:
            form["scope"] = connection.provider.scopes
        return await _ask(http, connection, form, now_ms)
    used = connection.tokens.refresh if connection.tokens is not None else ""
    form = {"grant_type": "refresh_token", "refresh_token": used}
    found = await _ask(http, connection, form, now_ms)
    return found if found.refresh else Tokens(found.access, used, found.at_ms, found.expires_at_ms)


async def _ask(http: GuardedClient, connection: Connection, form: dict[str, str], now_ms: int) -> Tokens:
    provider = connection.provider
    assert provider is not None
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    if provider.client_auth == "header" and connection.secret:
        pair = f"{quote(provider.client_id, safe='')}:{quote(connection.secret, safe='')}"
        headers["Authorization"] = basic(pair)
    else:
        form = {**form, "client_id": provider.client_id}
        if connection.secret:
            form["client_secret"] = connection.secret
    answer = await http.request(
        "POST",
        provider.token_url,
        headers=headers,
        content=urlencode(form).encode(),
        timeout_s=TIMEOUT_S,
        max_bytes=ANSWER_BYTES_MAX,
        follow_redirects=False,  # a redirect would have the code or the refresh token go elsewhere
    )
    found = _json(answer.body)
    if answer.status >= 500 or answer.status in _LATER:
        raise BlockError(f"{provider.token_url} answered {answer.status}", code="oauth_failed")
    if answer.status != 200 or "error" in found:  # some answer 200 with an error in it
        said = found.get("error")
        shown = said if isinstance(said, str) and _CODE.fullmatch(said) else f"status {answer.status}"
        if shown == "temporarily_unavailable":
            raise BlockError(f"{provider.token_url} is temporarily unavailable", code="oauth_failed")
        raise _refused(provider.token_url, shown)
    access, refresh, seconds = found.get("access_token"), found.get("refresh_token"), found.get("expires_in")
    if not _is_token(access) or (refresh not in (None, "") and not _is_token(refresh)):
        raise _refused(provider.token_url, "its answer has no token that can be used")
    if str(found.get("token_type", "bearer")).lower() not in _BEARER:
        raise _refused(provider.token_url, "its token is not a bearer token")
    return Tokens(str(access), str(refresh or ""), now_ms, _end(seconds, now_ms))


def ends_sign_in(error: BlockError) -> bool:
    """Return True if the refresh token is no longer valid: every request with it will be refused."""
    return error.code == REFUSED and error.extra.get("said") == "invalid_grant"


def _refused(where: str, said: str) -> BlockError:
    message = f"{where} refused to issue a token: {said}"
    return BlockError(message, code=REFUSED, retryable=False, said=said)


def _json(body: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_token(value: Any) -> bool:
    return (
        isinstance(value, str)
        and TOKEN_CHARS_MIN <= len(value) <= TOKEN_CHARS_MAX
        and value.isascii()
        and value.isprintable()
        and " " not in value
    )


def _end(seconds: Any, now_ms: int) -> int | None:
    """Convert to our clock: the provider's may differ."""
    try:
        left = float(seconds)
    except (TypeError, ValueError):
        return None
    return now_ms + int(min(left, 10 * 365 * 86_400) * 1000) if left >= 0 else None

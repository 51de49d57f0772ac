"""The provider as this server asks it: its description, its keys, and the token for a code."""

from __future__ import annotations

import asyncio
import base64
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeGuard
from urllib.parse import quote, urlencode, urlsplit

import orjson
from msgspec import Struct

from executor.blocks.http.client import GuardedClient
from executor.errors import BlockError
from server.oidc.settings import OidcSettings

if TYPE_CHECKING:
    from server.oidc.id_token import Claims

KEPT_S = 3600.0  # description and keys; a key that was withdrawn counts for so long
ASK_AGAIN_S = 60.0  # tokens with unknown keys cause at most one request a minute
FAILED_S = 10.0  # what failed is tried again after it
TIMEOUT_S = 10.0
BYTES_MAX = 512 * 1024
KEYS_MAX = 100
_ID_TOKEN = "server.oidc.id_token"  # noqa: S105 - the name of a module


class ProviderError(Exception):
    """The provider does not answer, or not as it must. The text is the reason."""


class Description(Struct, frozen=True):
    """The parts of `/.well-known/openid-configuration` that are used."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    basic: bool  # how the client secret is sent
    end_session_endpoint: str | None = None  # page for signing out; not every provider has one


class Provider:
    """The provider of this process. `now_s` is a monotonic clock."""

    def __init__(
        self, settings: OidcSettings, client: GuardedClient, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._client = client
        self._now_s = now_s
        self._lock = asyncio.Lock()
        self._found: tuple[float, Description] | None = None
        self._failed: tuple[float, str] | None = None
        self._keys: tuple[float, list[Mapping[str, Any]]] | None = None

    async def describe(self) -> Description:
        """Raises ProviderError."""
        async with self._lock:
            return await self._describe()

    async def redeem(self, code: str, verifier: str, redirect_uri: str) -> str:
        """The ID token for a code. Raises ProviderError."""
        described, mine = await self.describe(), self._settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        if mine.client_secret is None:
            form["client_id"] = mine.client_id
        elif described.basic:
            pair = f"{quote(mine.client_id, safe='')}:{quote(mine.client_secret, safe='')}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form |= {"client_id": mine.client_id, "client_secret": mine.client_secret}
        answer = await self._ask("POST", described.token_endpoint, headers, urlencode(form).encode())
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise ProviderError("the provider sent no ID token")
        return token

    async def verify(self, token: str, nonce: str, now_s: float) -> Claims:
        """Return the claims of the token. `now_s` is Unix time. Raises TokenRefused, ProviderError."""
        if _ID_TOKEN not in sys.modules:
            await asyncio.to_thread(import_module, _ID_TOKEN)
        from server.oidc.id_token import UnknownKey, find_key, header_of, verified

        alg, kid = header_of(token)
        try:
            key = find_key(await self._known_keys(), alg, kid)
        except UnknownKey:
            key = find_key(await self._known_keys(newer=True), alg, kid)
        mine = self._settings
        return verified(token, key, alg, issuer=mine.issuer, client_id=mine.client_id, nonce=nonce, now_s=now_s)

    async def _known_keys(self, newer: bool = False) -> list[Mapping[str, Any]]:
        """Return the keys of the provider; with `newer` not those of more than a minute ago."""
        async with self._lock:
            now_s, kept_s = self._now_s(), ASK_AGAIN_S if newer else KEPT_S
            if self._keys is None or now_s - self._keys[0] >= kept_s:
                keys = (await self._ask("GET", (await self._describe()).jwks_uri)).get("keys")
                if not isinstance(keys, list):
                    raise ProviderError("the provider has no keys")
                self._keys = now_s, [key for key in keys[:KEYS_MAX] if isinstance(key, dict)]
            return self._keys[1]

    async def _describe(self) -> Description:
        now_s = self._now_s()
        if self._found is not None and now_s - self._found[0] < KEPT_S:
            return self._found[1]
        if self._failed is not None and now_s - self._failed[0] < FAILED_S:
            raise ProviderError(self._failed[1])
        issuer = self._settings.issuer
        try:
            found = await self._ask("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
            if found.get("issuer") != issuer:
                raise ProviderError(f"the provider calls itself {str(found.get('issuer'))[:200]!r}, not {issuer!r}")
            methods = found.get("token_endpoint_auth_methods_supported")
            basic = not isinstance(methods, list) or "client_secret_basic" in methods
            described = Description(
                self._endpoint(found, "authorization_endpoint"),
                self._endpoint(found, "token_endpoint"),
                self._endpoint(found, "jwks_uri"),
                basic,
                self._end_session_endpoint(found),
            )
        except ProviderError as error:
            self._failed = now_s, str(error)
            raise
        self._found, self._failed = (now_s, described), None
        return self._found[1]

    def _endpoint(self, found: Mapping[str, Any], name: str) -> str:
        url = found.get(name)
        if not self._is_address(url):
            raise ProviderError(f"the description of the provider has no {name}")
        return url

    def _end_session_endpoint(self, found: Mapping[str, Any]) -> str | None:
        url = found.get("end_session_endpoint")
        return url if self._is_address(url) else None

    def _is_address(self, url: Any) -> TypeGuard[str]:
        """Return whether it is an address with TLS, or without it if the issuer has none either."""
        scheme = urlsplit(self._settings.issuer).scheme
        return isinstance(url, str) and url.startswith(("https://", f"{scheme}://")) and url.isprintable()

    async def _ask(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, content: bytes | None = None
    ) -> dict[str, Any]:
        try:
            answer = await self._client.request(
                method,
                url,
                headers=headers or {"accept": "application/json"},
                content=content,
                timeout_s=TIMEOUT_S,
                max_bytes=BYTES_MAX,
                follow_redirects=False,
            )
        except BlockError as error:
            raise ProviderError(f"the provider cannot be reached: {error.message}") from None
        try:
            body = orjson.loads(answer.body)
        except orjson.JSONDecodeError:
            body = None
        if answer.status != 200 or not isinstance(body, dict):
            code = body.get("error") if isinstance(body, dict) else None
            said = f" and {code[:100]!r}" if isinstance(code, str) else ""
            raise ProviderError(f"the provider answered with {answer.status}{said}")
        return body

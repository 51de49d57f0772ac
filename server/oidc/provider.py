"""The provider as this server asks it: its description, its keys, and the token for a code."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeGuard
from urllib.parse import quote, urlencode, urlsplit

import msgspec
import orjson
from msgspec import Struct

from executor.blocks.http.client import GuardedClient
from executor.blocks.vault.connection import Provider as OAuthProvider
from executor.blocks.vault.oauth import sign_in_url
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
        async with self._lock:
            return await self._describe()

    async def redeem(self, code: str, verifier: str, redirect_uri: str) -> str:
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


UNDER_WAY_S = 600
TO_CHARS_MAX = 1000


class UnderWay(Struct, frozen=True):
    """`to`: the page of ours to show at the end."""

    state: str
    nonce: str
    verifier: str
    to: str
    until_s: float


class Flow:
    """`secret`: of the server."""

    def __init__(self, settings: OidcSettings, secret: bytes, base_url: str) -> None:
        self._settings = settings
        self._key = hmac.new(secret, b"oidc", hashlib.sha256).digest()
        self.redirect_uri = f"{base_url}/oidc/callback"
        self._after_sign_out = f"{base_url}/"

    def begin(self, described: Description, to: str, now_s: float) -> tuple[str, str]:
        """Return the address to send the browser to, and its cookie."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        mine, page = self._settings, described.authorization_endpoint
        asked = OAuthProvider("", mine.client_id, page, " ".join(mine.scopes), parameters={"nonce": nonce})
        under_way = UnderWay(state, nonce, verifier, to if is_own_path(to) else "/", now_s + UNDER_WAY_S)
        return sign_in_url(asked, self.redirect_uri, state, verifier), self._sealed(under_way)

    def end(self, described: Description, id_token: str) -> str | None:
        """Return the address at which a browser that has signed out here signs out at the provider as well, or None if
        the provider has no such page. `id_token` is the token of the sign-in, empty if it was not kept."""
        if described.end_session_endpoint is None:
            return None
        query = {"client_id": self._settings.client_id, "post_logout_redirect_uri": self._after_sign_out}
        url, hint = described.end_session_endpoint, {"id_token_hint": id_token} if id_token else {}
        return f"{url}{'&' if '?' in url else '?'}{urlencode(query | hint)}"

    def resume(self, cookie: str, state: str, now_s: float) -> UnderWay | None:
        """Return the sign-in, or None if this browser has begun none with this state, or too long ago."""
        try:
            body, _, mac = cookie.rpartition(".")
            if not hmac.compare_digest(self._mac(body), mac):
                return None
            under_way = msgspec.json.decode(base64.urlsafe_b64decode(f"{body}=="), type=UnderWay)
        except (ValueError, TypeError, msgspec.DecodeError):
            return None
        if now_s >= under_way.until_s or not hmac.compare_digest(
            under_way.state.encode(), state.encode("utf-8", "surrogatepass")
        ):
            return None
        return under_way

    def _sealed(self, under_way: UnderWay) -> str:
        body = base64.urlsafe_b64encode(msgspec.json.encode(under_way)).rstrip(b"=").decode()
        return f"{body}.{self._mac(body)}"

    def _mac(self, body: str) -> str:
        return hmac.new(self._key, body.encode(), hashlib.sha256).hexdigest()


def is_own_path(to: str) -> bool:
    """Return whether it leads to a page of this server, however a browser reads it."""
    return (
        to.startswith("/")
        and not to.startswith("//")
        and len(to) <= TO_CHARS_MAX
        and to.isascii()
        and to.isprintable()
        and not any(character in to for character in "\\ \"'<>")
    )


class SignIn:
    """The parts of signing in by a provider. `allow_private` is what the operator allows besides the provider
    itself."""

    def __init__(
        self, settings: OidcSettings, secret: bytes, base_url: str, allow_private: tuple[str, ...] = ()
    ) -> None:
        self.settings = settings
        self._client = GuardedClient([*allow_private, *([settings.place] if settings.private else ())])
        self.provider = Provider(settings, self._client)
        self.flow = Flow(settings, secret, base_url)

    async def close(self) -> None:
        await self._client.close()

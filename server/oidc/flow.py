"""One sign-in in progress: the state that the browser carries from its start to its end.

State, nonce and verifier are in a cookie of the browser that began it, signed by this server, so that any process can
complete a sign-in that another process began. The cookie is SameSite=Lax: the browser sends it with the navigation from
the provider's page.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from server.oidc.provider import Description
from server.oidc.settings import OidcSettings

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
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": " ".join(self._settings.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        under_way = UnderWay(state, nonce, verifier, to if is_own_path(to) else "/", now_s + UNDER_WAY_S)
        return _with_query(described.authorization_endpoint, query), self._sealed(under_way)

    def end(self, described: Description, id_token: str) -> str | None:
        """Return the address at which a browser that has signed out here signs out at the provider as well, or None if
        the provider has no such page. `id_token` is the token of the sign-in, empty if it was not kept."""
        if described.end_session_endpoint is None:
            return None
        query = {"client_id": self._settings.client_id, "post_logout_redirect_uri": self._after_sign_out}
        return _with_query(described.end_session_endpoint, query | ({"id_token_hint": id_token} if id_token else {}))

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


def _with_query(url: str, query: dict[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(query)}"


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

"""Who may use the API: holders of the server's token, as a bearer header or, in a browser, as a session cookie.

The check belongs to each route (server/routes/table.py), never to a prefix of the path. The cookie holds a value
derived from token and server secret, not the token; both are compared in constant time. Resume pages are public: their
token in the link is the credential."""

from __future__ import annotations

import hashlib
import hmac

from starlette.requests import Request
from starlette.responses import Response

from server.errors import Unauthorized
from server.settings import Settings

COOKIE = "weft_session"
SESSION_S = 7 * 24 * 3600


class Auth:
    """`secret` is the 32 bytes of settings.read_secret: a new secret or a new token ends all sessions."""

    def __init__(self, settings: Settings, secret: bytes) -> None:
        self._token = settings.token
        self._secure = settings.base_url.startswith("https://")
        self._session = hmac.new(secret, b"session:" + (settings.token or "").encode(), hashlib.sha256).hexdigest()

    @property
    def required(self) -> bool:
        return self._token is not None

    def allows(self, request: Request) -> bool:
        """True when no token is set, or the request carries it or a session made with it."""
        if self._token is None:
            return True
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _same(given.strip(), self._token):
            return True
        return _same(request.cookies.get(COOKIE, ""), self._session)

    def require(self, request: Request) -> None:
        """Raise Unauthorized (401)."""
        if not self.allows(request):
            raise Unauthorized(hint="Send the header `Authorization: Bearer <token>`, or sign in at /.")

    def log_in(self, token: str, response: Response) -> Response:
        """Put the session cookie on `response`. Raises Unauthorized when the token is wrong."""
        if self._token is None:
            return response
        if not _same(token, self._token):
            raise Unauthorized("That is not this server's token.")
        response.set_cookie(
            COOKIE, self._session, max_age=SESSION_S, path="/", httponly=True, samesite="strict", secure=self._secure
        )
        return response


def _same(given: str, wanted: str) -> bool:
    """Constant time over both, whatever their lengths."""
    return hmac.compare_digest(hashlib.sha256(given.encode()).digest(), hashlib.sha256(wanted.encode()).digest())

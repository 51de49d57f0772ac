"""Who may use the API: holders of the server's token, as a bearer header or, in a browser, by a session.

The check belongs to each route (server/http/table.py), never to a prefix of the path. A browser signs in with the
token, or with a one-time code from a sign-in link; then it holds a cookie with the random
value of its session. Resume pages are public: their token in the link is the credential.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from executor.engine import Engine
from server.http.errors import Unauthorized
from server.http.rates import LoginRates
from server.http.sessions import AGE_MS, Sessions, hash_of
from server.settings import Settings

HINT = (
    "Send the header `Authorization: Bearer <token>`. On the machine of the server, `weft token` prints the token. "
    "To sign in with a browser, open the link that `weft serve` or `weft link` prints."
)
CODE_S = 600
CODES_MAX = 100


class Auth:
    """`secret` is the 32 bytes of settings.read_secret: a new secret or a new token ends all sessions."""

    def __init__(self, settings: Settings, secret: bytes, now_s: Callable[[], float] = time.monotonic) -> None:
        self._token = settings.token
        self._base_url = settings.base_url
        self._secure = settings.base_url.startswith("https://")
        # Cookies do not know ports: without the number, servers beside each other would sign each other out.
        self.cookie = "__Host-weft" if self._secure else f"weft_{settings.port}"
        mark = hmac.new(secret, b"session:" + (settings.token or "").encode(), hashlib.sha256).hexdigest()
        self.sessions = Sessions(mark)
        self.codes = Codes(now_s)
        self.rates = LoginRates(now_s)

    @property
    def required(self) -> bool:
        """Whether this server has a token."""
        return self._token is not None

    async def allows(self, request: Request) -> bool:
        """True when no token is set, or the request carries it or an open session."""
        return self._token is None or self._bears(request) or await self.session(request) is not None

    async def require(self, request: Request) -> str | None:
        """The session that lets the request in, None when it needs none. Raises Unauthorized (401)."""
        if self._token is None or self._bears(request):
            return None
        session = await self.session(request)
        if session is None:
            raise Unauthorized(hint=HINT)
        return session

    async def session(self, request: Request) -> str | None:
        """The hash of the open session whose cookie the request carries."""
        value = request.cookies.get(self.cookie)
        engine: Engine | None = request.app.state.engine if value else None
        if not value or engine is None:
            return None
        session = hash_of(value)
        return session if await self.sessions.use(engine, session) else None

    async def sign_in(self, engine: Engine, token: str | None, code: str | None, response: Response) -> None:
        """Begin a session and put its cookie on `response`. Raises Unauthorized when neither counts."""
        if self._token is None:
            return
        if code is not None:
            if not self.codes.redeem(code):
                raise Unauthorized(
                    "This sign-in link has already been used, or is more than 10 minutes old.",
                    hint="Use a new link from `weft link`, or paste the token from `weft token`.",
                )
        elif not _same(token or "", self._token):
            raise Unauthorized("The token is not valid.", hint="`weft token` prints it.")
        value = await self.sessions.begin(engine)
        response.set_cookie(
            self.cookie, value, max_age=AGE_MS // 1000, path="/", httponly=True, samesite="strict", secure=self._secure
        )

    def sign_out(self, response: Response) -> None:
        """Take the cookie away; the session is ended in the store."""
        response.delete_cookie(self.cookie, path="/", httponly=True, samesite="strict", secure=self._secure)

    def link(self) -> str:
        """A link that signs one browser in. The code is behind the `#`: it is in no request line, log or referrer."""
        return f"{self._base_url}/sign-in#{quote(self.codes.make())}"

    def _bears(self, request: Request) -> bool:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self._token is not None and _same(token.strip(), self._token)


class Codes:
    """Codes of sign-in links, each for one use within CODE_S; this process alone knows them."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._until_s: dict[str, float] = {}  # by hash, oldest first

    def make(self) -> str:
        """A code that signs in once, within CODE_S seconds."""
        code = secrets.token_urlsafe(32)
        while len(self._until_s) >= CODES_MAX:
            del self._until_s[next(iter(self._until_s))]
        self._until_s[hash_of(code)] = self._now_s() + CODE_S
        return code

    def redeem(self, code: str) -> bool:
        """Whether it counts; it does so once."""
        return self._now_s() < self._until_s.pop(hash_of(code), 0.0)


def _same(sent: str, wanted: str) -> bool:
    """Constant time over both, whatever their lengths."""
    sent_hash = hashlib.sha256(sent.encode("utf-8", "surrogatepass")).digest()
    return hmac.compare_digest(sent_hash, hashlib.sha256(wanted.encode()).digest())

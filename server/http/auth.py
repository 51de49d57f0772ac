"""Authentication: the API is open to the server's token and to API tokens, as a bearer header, and to users who are
signed in in a browser.

A route's RouteSpec (server/http/table.py) defines whether it needs a credential and for which role; a prefix of the
path never does. A browser signs in with the server's token, or with the one-time code of a sign-in link; then it holds
a cookie with the random value of its session. Resume pages are public: their token in the link is the credential.

Event streams are authorised when they are opened; a check every LOOK_EVERY_S ends those whose session or token has
ended meanwhile.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal
from urllib.parse import quote

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from executor.errors import NotFound, StoreError
from executor.kernel.process.acting import Act, acting
from executor.kernel.store.topics.people import UserRow
from executor.open.engine import Engine
from server.http.credentials import AGE_MS, KEY, ApiTokens, Sessions, hash_of
from server.http.errors import Unauthorized
from server.http.principal import FIRST_ADMIN, SERVER, Principal, of_session
from server.http.rates import Rates
from server.http.request import header
from server.http.streams import Streams
from server.settings import Settings

ANYONE: Final = Principal("anyone", "open", "admin")  # on a server without a token
SERVER_TOKEN: Final = Principal(SERVER, "token", "admin")

HINT = (
    "Send the header `Authorization: Bearer <token>`. On the machine of the server, `weft token` prints the token. "
    "To sign in with a browser, open the link that `weft serve` or `weft link` prints."
)
CODE_S = 600
LOOK_EVERY_S = 20.0
RECORD_PATIENCE_S = 0.5  # a stuck writer delays a refusal by so much
ID_TOKEN_KEPT_MAX = 3_000  # characters: browsers take cookies of 4 KB
TOO_LONG = "-"


class Cookie(Struct, frozen=True):
    """`ending`: of its name."""

    ending: str
    path: str
    samesite: Literal["strict", "lax"]
    age_s: int


SESSION: Final = Cookie("", "/", "strict", AGE_MS // 1000)
ELSEWHERE: Final = Cookie("-oidc", "/", "lax", CODE_S)  # with it the browser comes back from a provider's page
ID_TOKEN: Final = Cookie("-id", "/logout", "strict", AGE_MS // 1000)


class Auth:
    """`secret` is the 32 bytes of settings.read_secret: a new secret or a new token ends all sessions."""

    def __init__(self, settings: Settings, secret: bytes, now_s: Callable[[], float] = time.monotonic) -> None:
        self._token = settings.token
        self._base_url = settings.base_url
        self._secure = settings.base_url.startswith("https://")
        # Cookies are not separated by port: without the number, servers on one host would sign each other out.
        self.cookie = "__Host-weft" if self._secure else f"weft_{settings.port}"
        mark = hmac.new(secret, b"session:" + (settings.token or "").encode(), hashlib.sha256).hexdigest()
        self.sessions = Sessions(mark)
        self.tokens = ApiTokens()
        self.rates = Rates(now_s)

    @property
    def required(self) -> bool:
        return self._token is not None

    async def allows(self, request: Request) -> bool:
        return await self.principal(request) is not None

    async def require(self, request: Request) -> Principal:
        """Return the principal of the request. Raises Unauthorized (401)."""
        found = await self.principal(request)
        if found is None:
            raise Unauthorized(hint=HINT)
        return found

    async def principal(self, request: Request) -> Principal | None:
        """Return the principal of the request, or None if it carries no valid credential."""
        if self._token is None:
            return ANYONE
        sent = _bearer(request)
        if sent is not None and _same(sent, self._token):
            return SERVER_TOKEN
        engine: Engine | None = request.app.state.engine
        if engine is None:
            return None
        if sent is not None and (found := await self.tokens.use(engine, sent)) is not None:
            return found
        return await self.session(request)

    async def session(self, request: Request) -> Principal | None:
        engine: Engine | None = request.app.state.engine
        session = self._cookie_hash(request)
        if session is None or engine is None:
            return None
        user = await self.sessions.use(engine, session)
        return None if user is None else of_session(user.id, user.role, session)

    async def sign_in(
        self, engine: Engine, token: str | None, code: str | None, response: Response, device: str = ""
    ) -> None:
        """Begin a session and put its cookie on `response`. Raises Unauthorized when neither counts."""
        if self._token is None:
            return
        now_ms = engine.parts.clock.now_ms()
        if code is not None:
            user = await engine.store.redeem_code(hash_of(code), now_ms)
            if user is None or await engine.store.get_user(user) is None:
                raise Unauthorized(
                    "This sign-in link has already been used, or is more than 10 minutes old.",
                    hint="Use a new link from `weft link`, or paste the token from `weft token`.",
                )
        elif not _same(token or "", self._token):
            raise Unauthorized("The token is not valid.", hint="`weft token` prints it.")
        else:
            user = await self.first_admin(engine)
        via = "server-token" if code is None else "sign-in link"
        with acting(Act(f"user:{user}", via, "POST /login", "/login", now_ms)):
            await self.begin(engine, user, response, device)

    async def begin(self, engine: Engine, user: str, response: Response, device: str) -> None:
        """Start a session of this user, with its cookie on `response`. `device` is the User-Agent."""
        self.set_cookie(response, SESSION, await self.sessions.begin(engine, user, device))

    def set_cookie(self, response: Response, cookie: Cookie, value: str) -> None:
        response.set_cookie(
            self.cookie + cookie.ending,
            value,
            max_age=cookie.age_s,
            path=cookie.path,
            httponly=True,
            samesite=cookie.samesite,
            secure=self._secure,
        )

    def delete_cookie(self, response: Response, cookie: Cookie) -> None:
        name = self.cookie + cookie.ending
        response.delete_cookie(name, cookie.path, httponly=True, samesite=cookie.samesite, secure=self._secure)

    def cookie_of(self, request: Request, cookie: Cookie) -> str | None:
        return request.cookies.get(self.cookie + cookie.ending)

    def keep_id_token(self, response: Response, token: str) -> None:
        """Store the ID token of a session that a provider has signed in, for signing out there. A token too long for a
        cookie is left out."""
        self.set_cookie(response, ID_TOKEN, token if len(token) <= ID_TOKEN_KEPT_MAX else TOO_LONG)

    def kept_id_token(self, request: Request) -> str | None:
        """Return the kept ID token: None if no provider has signed in this browser, empty if the token was too long to
        keep."""
        value = self.cookie_of(request, ID_TOKEN)
        return "" if value == TOO_LONG else value or None

    def sign_out(self, response: Response) -> None:
        """Take the cookies away; the session is ended in the store."""
        self.delete_cookie(response, SESSION)
        self.delete_cookie(response, ID_TOKEN)

    async def first_admin(self, engine: Engine) -> str:
        """Return the user that the server's token signs in; creates it if there is none."""
        if await engine.store.get_user(FIRST_ADMIN) is None:
            await engine.store.put_user(UserRow(FIRST_ADMIN, "Admin", "admin", engine.parts.clock.now_ms()))
        return FIRST_ADMIN

    async def link(self, engine: Engine, user: str | None = None) -> str:
        """Return a link that signs one browser in, as this user or as the first admin. The code comes after the `#`, so
        it is in no request line, log or referrer. Raises NotFound."""
        user = user or await self.first_admin(engine)
        if await engine.store.get_user(user) is None:
            raise no_user(user)
        code, now_ms = secrets.token_urlsafe(32), engine.parts.clock.now_ms()
        await engine.store.put_code(hash_of(code), user, now_ms + CODE_S * 1000, now_ms)
        return f"{self._base_url}/sign-in#{quote(code)}"

    async def record_refusal(self, engine: Engine, action: str, why: str, address: str) -> None:
        """A sign-in was refused: a row of the audit, unless there are many. It does not hold up the answer for long."""
        left_out = self.rates.refusal_recorded(address)
        if left_out is None:
            return
        more = f"; {left_out} more have no row" if left_out else ""
        detail = f"refused: {why}, from {address}{more}"
        path = action.partition(" ")[2]
        act = Act("unknown", "sign-in", action, path, engine.parts.clock.now_ms(), detail)
        with acting(act), suppress(StoreError, TimeoutError):
            await asyncio.wait_for(engine.store.record_act(), RECORD_PATIENCE_S)

    async def is_open(self, engine: Engine, key: str) -> bool:
        if key.startswith(KEY):
            return await self.tokens.is_open(engine, key.removeprefix(KEY))
        return await self.sessions.is_open(engine, key)

    async def end_streams(self, streams: Streams, engine: Engine) -> None:
        """End the event streams whose session or token has ended. Raises StoreError."""
        for key in streams.sessions:
            if not await self.is_open(engine, key):
                streams.close_session(key)

    def _cookie_hash(self, request: Request) -> str | None:
        value = self.cookie_of(request, SESSION)
        return hash_of(value) if value else None


async def watch_streams(streams: Streams, auth: Auth, engine: Engine) -> None:
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        try:
            await auth.end_streams(streams, engine)
        except StoreError:
            continue  # what cannot be read now is looked at again


def _bearer(request: Request) -> str | None:
    scheme, _, token = (header(request.scope, b"authorization") or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _same(sent: str, wanted: str) -> bool:
    """Compare in constant time. The lengths may differ."""
    sent_hash = hashlib.sha256(sent.encode("utf-8", "surrogatepass")).digest()
    return hmac.compare_digest(sent_hash, hashlib.sha256(wanted.encode()).digest())


def no_user(id: str) -> NotFound:
    return NotFound(f"There is no user {id!r}.", code="user_not_found")

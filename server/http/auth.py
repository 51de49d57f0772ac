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
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from executor.errors import NotFound, StoreError
from executor.kernel.process.acting import Act, acting
from executor.kernel.store.topics.people import UserRow
from executor.open.engine import Engine
from server.http.credentials import AGE_MS, KEY, ApiTokens, Sessions, hash_of
from server.http.errors import Unauthorized
from server.http.principal import FIRST_ADMIN, SERVER, Principal, of_session
from server.http.rates import LoginRates, Refusals, ReturnRates
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
NOTE_PATIENCE_S = 0.5  # a stuck writer delays a refusal by so much
ID_TOKEN_KEPT_MAX = 3_000  # characters: browsers take cookies of 4 KB
TOO_LONG = "-"


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
        self.rates = LoginRates(now_s)
        self.returns = ReturnRates(now_s)
        self.refusals = Refusals(now_s)

    @property
    def required(self) -> bool:
        """True if this server has a token."""
        return self._token is not None

    async def allows(self, request: Request) -> bool:
        """Return whether the request carries a valid credential."""
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
        """Return the principal of the open session whose cookie the request carries."""
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
        value = await self.sessions.begin(engine, user, device)
        response.set_cookie(
            self.cookie, value, max_age=AGE_MS // 1000, path="/", httponly=True, samesite="strict", secure=self._secure
        )

    def begin_elsewhere(self, response: Response, value: str) -> None:
        """Set the cookie of a sign-in through a provider's page, with which the browser comes back."""
        response.set_cookie(
            f"{self.cookie}-oidc", value, max_age=CODE_S, path="/", httponly=True, samesite="lax", secure=self._secure
        )

    def begun_elsewhere(self, request: Request) -> str:
        return request.cookies.get(f"{self.cookie}-oidc", "")

    def end_elsewhere(self, response: Response) -> None:
        response.delete_cookie(f"{self.cookie}-oidc", path="/", httponly=True, samesite="lax", secure=self._secure)

    def keep_id_token(self, response: Response, token: str) -> None:
        """Store the ID token of a session that a provider has signed in, for signing out there: in a cookie that the
        browser sends with that request alone. A token too long for a cookie is left out."""
        value = token if len(token) <= ID_TOKEN_KEPT_MAX else TOO_LONG
        response.set_cookie(
            self._id_token_cookie,
            value,
            max_age=AGE_MS // 1000,
            path="/logout",
            httponly=True,
            samesite="strict",
            secure=self._secure,
        )

    def kept_id_token(self, request: Request) -> str | None:
        """Return the kept ID token: None if no provider has signed in this browser, empty if the token was too long to
        keep."""
        value = request.cookies.get(self._id_token_cookie)
        return "" if value == TOO_LONG else value or None

    def sign_out(self, response: Response) -> None:
        """Take the cookies away; the session is ended in the store."""
        response.delete_cookie(self.cookie, path="/", httponly=True, samesite="strict", secure=self._secure)
        self.forget_id_token(response)

    def forget_id_token(self, response: Response) -> None:
        response.delete_cookie(
            self._id_token_cookie, path="/logout", httponly=True, samesite="strict", secure=self._secure
        )

    @property
    def _id_token_cookie(self) -> str:
        return f"{self.cookie}-id"

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
            raise NotFound(f"There is no user {user!r}.", code="user_not_found")
        code, now_ms = secrets.token_urlsafe(32), engine.parts.clock.now_ms()
        await engine.store.put_code(hash_of(code), user, now_ms + CODE_S * 1000, now_ms)
        return f"{self._base_url}/sign-in#{quote(code)}"

    async def note_refusal(self, engine: Engine, action: str, why: str, address: str) -> None:
        """A sign-in was refused: a row of the audit, unless there are many. It does not hold up the answer for long."""
        left_out = self.refusals.spend(address)
        if left_out is None:
            return
        more = f"; {left_out} more have no row" if left_out else ""
        detail = f"refused: {why}, from {address}{more}"
        path = action.partition(" ")[2]
        act = Act("unknown", "sign-in", action, path, engine.parts.clock.now_ms(), detail)
        with acting(act), suppress(StoreError, TimeoutError):
            await asyncio.wait_for(engine.store.record_act(), NOTE_PATIENCE_S)

    async def is_open(self, engine: Engine, key: str) -> bool:
        """Return whether the session or the token is still valid. `key` is a Principal's."""
        if key.startswith(KEY):
            return await self.tokens.is_open(engine, key.removeprefix(KEY))
        return await self.sessions.is_open(engine, key)

    async def end_streams(self, streams: Streams, engine: Engine) -> None:
        """End the event streams whose session or token has ended. Raises StoreError."""
        for key in streams.sessions:
            if not await self.is_open(engine, key):
                streams.close_session(key)

    def _cookie_hash(self, request: Request) -> str | None:
        value = request.cookies.get(self.cookie)
        return hash_of(value) if value else None


async def watch_streams(streams: Streams, auth: Auth, engine: Engine) -> None:
    """Call `end_streams` at an interval until cancelled."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        try:
            await auth.end_streams(streams, engine)
        except StoreError:
            continue  # what cannot be read now is looked at again


def _bearer(request: Request) -> str | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _same(sent: str, wanted: str) -> bool:
    """Compare in constant time, whatever the lengths of the two."""
    sent_hash = hashlib.sha256(sent.encode("utf-8", "surrogatepass")).digest()
    return hmac.compare_digest(sent_hash, hashlib.sha256(wanted.encode()).digest())

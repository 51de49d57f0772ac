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
import re
import secrets
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import quote

import orjson
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from executor.errors import NotFound, StoreError
from executor.kernel.run.answers import Answerer, needs_sign_in
from executor.kernel.store.topics.audit import Act, Reach, acting
from executor.kernel.store.topics.people import ROLES, Role, SessionRow, TokenRow, UserRow, includes
from executor.open.engine import Engine
from executor.service.views import WaitView
from server.http.errors import Unauthorized
from server.http.rates import LoginRates, Refusals, ReturnRates
from server.http.sse import Streams
from server.settings import Settings

SERVER: Final = "server-token"
FIRST_ADMIN: Final = "admin"  # the user that the server's token signs in


class Principal(Struct, frozen=True):
    """The sender of a request. `actor` is the name in records, `via` the kind of credential. `key` identifies the
    session or token, which must stay valid while a stream is open. `workflows` lists the only ones it may reach, or is
    None for all."""

    actor: str
    via: str
    role: Role
    user: str | None = None
    key: str | None = None
    workflows: tuple[str, ...] | None = None

    def may(self, needed: Role) -> bool:
        return includes(self.role, needed)

    @property
    def answerer(self) -> Answerer:
        """The name it answers as. The holder of the server's token and the user that it signs in are the same
        person."""
        names = {self.actor} | ({f"user:{self.user}"} if self.user else set())
        if names & {SERVER, f"user:{FIRST_ADMIN}"}:
            names |= {SERVER, f"user:{FIRST_ADMIN}"}
        return Answerer(self.actor if self.user is None else f"user:{self.user}", frozenset(names), self.role)

    @property
    def reach(self) -> Reach | None:
        """The workflows whose files it may name, or None for all."""
        return None if self.workflows is None else Reach(self.workflows, (self.actor,))

    @property
    def is_signed_in(self) -> bool:
        """In a browser."""
        return self.via == "session"


ANYONE: Final = Principal("anyone", "open", "admin")  # on a server without a token
SERVER_TOKEN: Final = Principal(SERVER, "token", "admin")


def of_session(user: str, role: Role, session: str) -> Principal:
    return Principal(f"user:{user}", "session", role, user, session)


def without_links(who: Principal, waits: Sequence[WaitView]) -> tuple[WaitView, ...]:
    """Remove the links that this principal may not see: a link is a credential. Approvers see those that they
    may use."""
    return tuple(wait if _may_see_link(who, wait) else replace(wait, link=None) for wait in waits)


def _may_see_link(who: Principal, wait: WaitView) -> bool:
    if who.workflows is not None and wait.workflow not in who.workflows:
        return False
    if who.may("editor"):
        return True
    by = wait.request.get("by") if isinstance(wait.request, dict) and needs_sign_in(wait.request) else None
    return who.may("approver") and (not by or who.answerer.is_among(by))


IDLE_MS = 8 * 3_600_000
AGE_MS = 7 * 24 * 3_600_000
SEE_EVERY_MS = 60_000  # a session in use costs one small write a minute
DEVICE_CHARS_MAX = 200
SEE_PATIENCE_S = 0.5  # the longest that a stuck writer delays a request


class Sessions:
    """Sessions of a server. `mark` is derived from the server's token: sessions made with another token are not
    valid."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._seen_ms: dict[str, int] = {}  # when this process last wrote that it saw a session

    async def begin(self, engine: Engine, user: str, device: str = "") -> str:
        """Start a session and return the value of its cookie. The session is stored when this returns. `device` is the
        User-Agent."""
        value, now_ms = secrets.token_urlsafe(32), engine.parts.clock.now_ms()
        row = SessionRow(hash_of(value), self._mark, now_ms, now_ms, user, _shown(device))
        await engine.store.put_session(row, now_ms - AGE_MS, now_ms - IDLE_MS)
        return value

    async def is_open(self, engine: Engine, hash: str) -> bool:
        """Return whether a session with this hash exists and has not expired."""
        row = await engine.store.get_session(hash)
        return (
            row is not None
            and self.counts(row, engine.parts.clock.now_ms())
            and await engine.store.get_user(row.user_id) is not None
        )

    async def use(self, engine: Engine, hash: str) -> UserRow | None:
        """Return the user of an open session and note that it was used now, or None."""
        row, now_ms = await engine.store.get_session(hash), engine.parts.clock.now_ms()
        if row is None or not self.counts(row, now_ms):
            self._seen_ms.pop(hash, None)
            return None
        if now_ms - max(row.seen_at_ms, self._seen_ms.get(hash, 0)) >= SEE_EVERY_MS:
            self._seen_ms[hash] = now_ms
            with suppress(StoreError, TimeoutError):  # a request a minute from now tries again
                await asyncio.wait_for(engine.store.see_session(hash, now_ms), SEE_PATIENCE_S)
        return await engine.store.get_user(row.user_id)

    def counts(self, row: SessionRow, now_ms: int) -> bool:
        """Return whether the session has not expired and was made with the server's present token."""
        return row.mark == self._mark and now_ms < min(row.created_at_ms + AGE_MS, row.seen_at_ms + IDLE_MS)


def hash_of(value: str) -> str:
    """Return the stored form of a session or a token: sha256, in hex, of its whole value."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()


def _shown(device: str) -> str:
    return "".join(character for character in device[:DEVICE_CHARS_MAX] if character.isprintable())


SHAPE: Final = re.compile(r"weft_([a-z2-7]{8})_([0-9a-f]{40})([0-9a-f]{8})")
ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz234567"
KEY: Final = "token:"  # before the id, in the key of a Principal


def new_token() -> tuple[str, str]:
    """The id, and the whole token."""
    id = "".join(secrets.choice(ALPHABET) for _ in range(8))
    text = f"weft_{id}_{secrets.token_hex(20)}"
    return id, text + _checksum(text)


def id_in(text: str) -> str | None:
    """Return the id of a token, or None if `text` is not in the form of one."""
    found = SHAPE.fullmatch(text)
    return found[1] if found is not None and _checksum(text[:-8]) == found[3] else None


class ApiTokens:
    def __init__(self) -> None:
        self._used_ms: dict[str, int] = {}  # when this process last wrote that it was used

    async def use(self, engine: Engine, text: str) -> Principal | None:
        """Return the principal of a token, or None if the token is not valid."""
        id = id_in(text)
        row = None if id is None else await engine.store.get_token(id)
        if row is None or not hmac.compare_digest(row.hash, hash_of(text)):
            return None
        found = await self._principal(engine, row)
        now_ms = engine.parts.clock.now_ms()
        if found is not None and now_ms - max(row.used_at_ms or 0, self._used_ms.get(row.id, 0)) >= SEE_EVERY_MS:
            self._used_ms[row.id] = now_ms
            with suppress(StoreError, TimeoutError):
                await asyncio.wait_for(engine.store.use_token(row.id, now_ms), SEE_PATIENCE_S)
        return found

    async def is_open(self, engine: Engine, id: str) -> bool:
        row = await engine.store.get_token(id)
        return row is not None and await self._principal(engine, row) is not None

    async def _principal(self, engine: Engine, row: TokenRow) -> Principal | None:
        """Return the principal of a token, with the role of its user if that is less than its own."""
        if engine.parts.clock.now_ms() >= row.expires_at_ms:
            return None
        role = row.role
        if row.user_id is not None:
            user = await engine.store.get_user(row.user_id)
            if user is None:
                return None
            role = min(role, user.role, key=ROLES.index)
        workflows = None if row.workflows is None else tuple(orjson.loads(row.workflows))
        return Principal(f"token:{row.id}", "token", role, row.user_id, KEY + row.id, workflows)


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


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

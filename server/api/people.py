"""People: the present user, users and their sign-in links, sessions, tokens of programs, and the audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import orjson
from msgspec import Meta, Struct

from executor.errors import BadRequest, Conflict, LimitExceeded, NotFound
from executor.kernel.process.acting import Role
from executor.kernel.store.topics.audit import FIRST_HASH, AuditFilter, AuditRow, hash_of
from executor.kernel.store.topics.people import TOKENS_MAX, USERS_MAX, PersonRole, SessionRow, TokenRow, UserRow
from executor.service.views import view_of
from server.api.server import SessionsEnded
from server.http.auth import CODE_S, no_user
from server.http.credentials import KEY, new_token
from server.http.credentials import hash_of as hash_of_secret
from server.http.principal import FIRST_ADMIN
from server.http.response import PAGE_MAX, USER_ID
from server.http.table import Call, Routes, RouteSpec

DAYS_MAX = 3650
UserId = Annotated[str, Meta(pattern=USER_ID, description="What documents call the user by: lower case.")]
Name = Annotated[str, Meta(max_length=200)]


class Me(Struct, frozen=True):
    """The present user or token. `user` is null for the server's token and for tokens made with it; `workflows`: the
    only ones that a token may reach, null for all."""

    actor: str
    via: str
    role: Role
    user: str | None
    name: str
    workflows: list[str] | None


class User(Struct, frozen=True):
    """`seen_at_ms`: when one of their sessions was last used; `sessions`: those that are open."""

    id: str
    name: str
    role: PersonRole
    created_at_ms: int
    sessions: int
    seen_at_ms: int | None


class UserList(Struct, frozen=True):
    """The users, by id."""

    users: list[User]


class InviteRequest(Struct, forbid_unknown_fields=True):
    """POST /api/users."""

    id: UserId
    role: PersonRole
    name: Name = ""


class Invited(Struct, frozen=True):
    """`url` signs in one browser as this user, once, within `expires_in_s` seconds."""

    id: str
    url: str
    expires_in_s: int


class RoleRequest(Struct, forbid_unknown_fields=True):
    """PUT /api/users/{id}/role."""

    role: PersonRole


class UserChanged(Struct, frozen=True):
    """`role` is null when the user was removed; then `schedules` are those that they made, which stay active."""

    id: str
    role: PersonRole | None
    schedules: tuple[str, ...] = ()


class Session(Struct, frozen=True):
    """A browser that is signed in. `id` is the beginning of its hash; `current`: the browser of this request; `device`:
    its User-Agent when it signed in."""

    id: str
    user: str
    created_at_ms: int
    seen_at_ms: int
    current: bool
    device: str


class SessionList(Struct, frozen=True):
    """Seen last first."""

    sessions: list[Session]


class TokenRequest(Struct, forbid_unknown_fields=True):
    """POST /api/tokens. `workflows`: the only ones that it may reach; null for all. The role `metrics` reads /metrics
    and nothing else."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    role: Role
    days: Annotated[int, Meta(ge=1, le=DAYS_MAX)] = 90
    workflows: Annotated[list[Name], Meta(min_length=1, max_length=100)] | None = None


class Token(Struct, frozen=True):
    """A token without its secret. `user`: whose it is, null when it was made with the server's token. Its role is never
    more than that of its user."""

    id: str
    prefix: str
    name: str
    user: str | None
    role: Role
    workflows: list[str] | None
    created_at_ms: int
    expires_at_ms: int
    used_at_ms: int | None


class TokenList(Struct, frozen=True):
    """Oldest first, expired ones included."""

    tokens: list[Token]


class TokenMade(Struct, frozen=True):
    """`token` is shown this once."""

    id: str
    token: str
    expires_at_ms: int


class TokenRevoked(Struct, frozen=True):
    id: str
    revoked: Literal[True] = True


class AuditQuery(Struct, frozen=True):
    """`before`: the `next` of the page before; `actor`: such as `user:ada`, `token:abcdefgh`, `server-token`; `text`:
    in action, object or detail; `since` and `until`: Unix time in milliseconds, `since` included."""

    before: Annotated[int, Meta(ge=1)] | None = None
    limit: Annotated[int, Meta(ge=1, le=PAGE_MAX)] = 100
    actor: str | None = None
    text: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    since: Annotated[int, Meta(ge=0)] | None = None
    until: Annotated[int, Meta(ge=0)] | None = None


class AuditPage(Struct, frozen=True):
    """Newest first. `next`: pass it as `before`; null at the end."""

    rows: list[AuditRow]
    next: int | None


class Verified(Struct, frozen=True):
    """`valid`: each row has the hash that follows from it and the one before, none is missing, and the last is the one
    that was written last. `broken_at`: the number of the first row that is not as it was written. `hash`: of the last
    row; keep it elsewhere to prove later that nothing before it was changed."""

    valid: bool
    rows: int
    broken_at: int | None
    hash: str


DAY_MS = 24 * 3_600_000
PAGE = 1_000
_USER = "/api/users/{id}"

route = Routes("people", RouteSpec)


@route("GET", "/api/me", "Who you are", needs="viewer")
async def me(call: Call) -> Me:
    """The owner of the credential and its role."""
    who = call.who
    user = None if who.user is None else await call.engine.store.get_user(who.user)
    name = who.actor if user is None else user.name
    workflows = None if who.workflows is None else list(who.workflows)
    return Me(who.actor, who.via, who.role, who.user, name, workflows)


@route("GET", "/api/users", "Users", needs="admin")
async def list_users(call: Call) -> UserList:
    seen: dict[str, list[int]] = {}
    for row in await _open_sessions(call):
        seen.setdefault(row.user_id, []).append(row.seen_at_ms)
    found = []
    for user in await call.engine.store.list_users():
        at = seen.get(user.id, [])
        found.append(view_of(User, user, sessions=len(at), seen_at_ms=max(at, default=None)))
    return UserList(found)


@route("POST", "/api/users", "Add a user", needs="admin", status=201, statuses=(409,))
async def invite(call: Call, body: InviteRequest) -> Invited:
    """Add a user, and make their first sign-in link, for you to pass on. 409: there is one of this id."""
    call.record(f"{body.id}, {body.role}")
    if body.id == FIRST_ADMIN:
        # creates it if missing, so that its id cannot be taken with another role
        await call.auth.first_admin(call.engine)
    row = UserRow(body.id, body.name or body.id, body.role, call.engine.parts.clock.now_ms())
    if not await call.engine.store.put_user(row):
        if await call.engine.store.get_user(body.id) is None:
            raise LimitExceeded(f"There are {USERS_MAX} users, which is the limit.")
        raise Conflict(f"There is a user {body.id!r}.", code="user_exists")
    return Invited(body.id, await call.auth.link(call.engine, body.id), CODE_S)


@route("POST", f"{_USER}/link", "Create a sign-in link for a user", needs="admin", status=201)
async def link(call: Call, id: str) -> Invited:
    """A new sign-in link for a user. It works once, within ten minutes."""
    url = await call.auth.link(call.engine, id)
    return Invited(id, url, CODE_S)


@route("PUT", f"{_USER}/role", "Change the role of a user", needs="admin", statuses=(409,))
async def set_role(call: Call, id: str, body: RoleRequest) -> UserChanged:
    """It counts for the next request of each of their browsers and tokens. 409: the first admin keeps its role."""
    _check_first(id)
    call.record(body.role)
    if not await call.engine.store.set_role(id, body.role):
        raise no_user(id)
    return UserChanged(id, body.role)


@route("DELETE", _USER, "Remove a user", needs="admin", statuses=(409,))
async def remove(call: Call, id: str) -> UserChanged:
    """Remove a user with their sessions, tokens and sign-in links. Workflows and schedules of theirs stay; the response
    lists the schedules that continue. 409: the first admin cannot be removed."""
    _check_first(id)
    schedules = tuple(await call.engine.schedules.made_by(f"user:{id}"))
    if not await call.engine.store.delete_user(id):
        raise no_user(id)
    await call.auth.end_streams(call.streams, call.engine)
    return UserChanged(id, None, schedules)


@route("DELETE", f"{_USER}/sessions", "Sign a user out", needs="admin")
async def end_sessions_of(call: Call, id: str) -> SessionsEnded:
    """Sign a user out of all browsers."""
    if await call.engine.store.get_user(id) is None:
        raise no_user(id)
    return await _end_sessions(call, id)


@route("GET", "/api/sessions", "Open sessions", needs="admin")
async def list_sessions(call: Call) -> SessionList:
    """Browsers that are signed in."""
    return SessionList([_session(call, row) for row in await _open_sessions(call)])


@route("GET", "/api/me/sessions", "Your open sessions", needs="viewer")
async def list_own(call: Call) -> SessionList:
    """Browsers that are signed in as you."""
    rows = await _open_sessions(call)
    return SessionList([_session(call, row) for row in rows if row.user_id == call.who.user])


@route("DELETE", "/api/sessions/{id}", "Sign one browser out", needs="admin")
async def end_session(call: Call, id: str) -> SessionsEnded:
    return await _end_session(call, id, await _open_sessions(call))


@route("DELETE", "/api/me/sessions/{id}", "Sign out of one browser", needs="viewer")
async def end_own_session(call: Call, id: str) -> SessionsEnded:
    return await _end_session(call, id, [row for row in await _open_sessions(call) if row.user_id == call.who.user])


async def _end_session(call: Call, id: str, among: Sequence[SessionRow]) -> SessionsEnded:
    row = next((row for row in among if _id_of(row) == id), None)
    if row is not None:
        call.record(row.user_id)
        ended = await call.engine.store.delete_session(row.hash)
        call.streams.close_session(row.hash)
        if ended:
            return SessionsEnded(1)
    raise NotFound("There is no such session.", code="session_not_found")


async def _open_sessions(call: Call) -> list[SessionRow]:
    now_ms = call.engine.parts.clock.now_ms()
    return [row for row in await call.engine.store.list_sessions() if call.auth.sessions.counts(row, now_ms)]


def _session(call: Call, row: SessionRow) -> Session:
    return view_of(Session, row, id=_id_of(row), user=row.user_id, current=row.hash == call.who.key)


def _id_of(row: SessionRow) -> str:
    return row.hash[:12]


@route("DELETE", "/api/me/sessions", "Sign out of all browsers", needs="viewer", statuses=(400,))
async def end_own(call: Call) -> SessionsEnded:
    """Sign yourself out of all browsers, this one included."""
    if call.who.user is None:
        raise BadRequest("This credential belongs to no user.", code="no_user")
    return await _end_sessions(call, call.who.user)


async def _end_sessions(call: Call, user: str) -> SessionsEnded:
    ended = await call.engine.store.delete_sessions(user)
    await call.auth.end_streams(call.streams, call.engine)
    return SessionsEnded(ended)


@route("GET", "/api/tokens", "Tokens", needs="admin")
async def list_tokens(call: Call) -> TokenList:
    return TokenList([_shown(row) for row in await call.engine.store.list_tokens()])


@route("POST", "/api/tokens", "Create a token", needs="admin", status=201)
async def make_token(call: Call, body: TokenRequest) -> TokenMade:
    """A token for a program. It is shown this once; the database has its hash."""
    id, text = new_token()
    call.record(f"{id}, {body.role}, {body.name}")
    now_ms = call.engine.parts.clock.now_ms()
    workflows = None if body.workflows is None else orjson.dumps(body.workflows).decode()
    user, expires_ms = call.who.user, now_ms + body.days * DAY_MS
    row = TokenRow(id, hash_of_secret(text), body.name, user, body.role, workflows, now_ms, expires_ms)
    if not await call.engine.store.put_token(row):
        raise LimitExceeded(
            f"There are {TOKENS_MAX} tokens, which is the limit.", hint="Revoke those that have expired."
        )
    return TokenMade(id, text, expires_ms)


@route("DELETE", "/api/tokens/{id}", "Revoke a token", needs="admin")
async def revoke(call: Call, id: str) -> TokenRevoked:
    """It stops working at once, and its event streams end."""
    if not await call.engine.store.delete_token(id):
        raise NotFound(f"There is no token {id!r}.", code="token_not_found")
    call.streams.close_session(KEY + id)
    return TokenRevoked(id)


def _shown(row: TokenRow) -> Token:
    workflows = None if row.workflows is None else orjson.loads(row.workflows)
    return view_of(Token, row, prefix=f"weft_{row.id}_", user=row.user_id, workflows=workflows)


@route("GET", "/api/audit", "What was changed", needs="admin")
async def list_audit(call: Call, query: AuditQuery) -> AuditPage:
    """Changes made through the API, with who made them. `action` is the route, `object` the path."""
    wanted = AuditFilter(query.actor, query.text, query.since, query.until)
    rows = await call.engine.store.list_audit(query.before, query.limit, wanted)
    return AuditPage(rows, rows[-1].n if len(rows) == query.limit else None)


@route("GET", "/api/audit/verification", "Check the audit", needs="admin")
async def verify_audit(call: Call) -> Verified:
    """Recompute the hash of each row, and compare the last with the head of the audit."""
    store, count, before = call.engine.store, 0, FIRST_HASH
    while True:
        rows = await store.read_audit(count, PAGE)
        for row in rows:
            if row.n != count + 1 or row.hash != hash_of(before, row):
                return Verified(False, count, count + 1, before)
            count, before = row.n, row.hash
        if len(rows) == PAGE:
            continue
        # Rows and head change together, so a head that is read after the rows is not older than they are.
        head = await store.audit_head()
        last, hash = (0, FIRST_HASH) if head is None else (head.n, head.hash)
        if last == count:
            found = hash == before
            return Verified(found, count, None if found else count, before)
        if last < count:
            return Verified(False, last, last + 1, before)
        if not await store.read_audit(count, 1):
            return Verified(False, count, count + 1, before)


def _check_first(id: str) -> None:
    if id == FIRST_ADMIN:
        raise Conflict(
            "The first admin keeps its role: it is the user that the server's token signs in.", code="first_admin"
        )

"""People: the present user, users and their sign-in links, sessions, tokens of programs, and the audit."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from starlette.responses import Response

from executor.errors import BadRequest, Conflict, LimitExceeded, NotFound
from executor.kernel.store.topics.audit import FIRST_HASH, AuditFilter, hash_of
from executor.kernel.store.topics.people import TOKENS_MAX, USERS_MAX, SessionRow, TokenRow, UserRow
from server.http.api_tokens import KEY, new_token
from server.http.auth import CODE_S
from server.http.body import read_as
from server.http.call import Call
from server.http.principals import FIRST_ADMIN
from server.http.response import json_response
from server.http.sessions import hash_of as hash_of_secret
from server.http.table import RouteSpec
from server.wire.people import (
    AuditPage,
    AuditQuery,
    Invited,
    InviteRequest,
    Me,
    RoleRequest,
    Session,
    SessionList,
    Token,
    TokenList,
    TokenMade,
    TokenRequest,
    TokenRevoked,
    User,
    UserChanged,
    UserList,
    Verified,
)
from server.wire.server import SessionsEnded

DAY_MS = 24 * 3_600_000
PAGE = 1_000


async def me(call: Call) -> Response:
    """The owner of the credential and its role."""
    who = call.who
    user = None if who.user is None else await call.engine.store.get_user(who.user)
    name = who.actor if user is None else user.name
    workflows = None if who.workflows is None else list(who.workflows)
    return json_response(Me(who.actor, who.via, who.role, who.user, name, workflows))


# --- users


async def list_users(call: Call) -> Response:
    seen: dict[str, list[int]] = {}
    for row in await _open_sessions(call):
        seen.setdefault(row.user_id, []).append(row.seen_at_ms)
    return json_response(
        UserList(
            [
                User(
                    row.id,
                    row.name,
                    row.role,
                    row.created_at_ms,
                    len(at := seen.get(row.id, [])),
                    max(at, default=None),
                )
                for row in await call.engine.store.list_users()
            ]
        )
    )


async def invite(call: Call) -> Response:
    """Add a user, and make their first sign-in link, for you to pass on. 409: there is one of this id."""
    body = await read_as(call.request, call.limits, InviteRequest)
    call.note(f"{body.id}, {body.role}")
    if body.id == FIRST_ADMIN:
        # creates it if missing, so that its id cannot be taken with another role
        await call.auth.first_admin(call.engine)
    row = UserRow(body.id, body.name or body.id, body.role, call.engine.parts.clock.now_ms())
    if not await call.engine.store.put_user(row):
        if await call.engine.store.get_user(body.id) is None:
            raise LimitExceeded(f"There are {USERS_MAX} users, which is the limit.")
        raise Conflict(f"There is a user {body.id!r}.", code="user_exists")
    return json_response(Invited(body.id, await call.auth.link(call.engine, body.id), CODE_S), 201)


async def link(call: Call) -> Response:
    """A new sign-in link for a user. It works once, within ten minutes."""
    url = await call.auth.link(call.engine, call.path("id"))
    return json_response(Invited(call.path("id"), url, CODE_S), 201)


async def set_role(call: Call) -> Response:
    """It counts for the next request of each of their browsers and tokens. 409: the first admin keeps its role."""
    body = await read_as(call.request, call.limits, RoleRequest)
    id = call.path("id")
    _check_first(id)
    call.note(body.role)
    if not await call.engine.store.set_role(id, body.role):
        raise _no_user(id)
    return json_response(UserChanged(id, body.role))


async def remove(call: Call) -> Response:
    """Remove a user with their sessions, tokens and sign-in links. Workflows and schedules of theirs stay; the response
    lists the schedules that continue. 409: the first admin cannot be removed."""
    id = call.path("id")
    _check_first(id)
    schedules = tuple(await call.engine.schedules.made_by(f"user:{id}"))
    if not await call.engine.store.delete_user(id):
        raise _no_user(id)
    await call.auth.end_streams(call.streams, call.engine)
    return json_response(UserChanged(id, None, schedules))


async def end_sessions_of(call: Call) -> Response:
    """Sign a user out of all browsers."""
    id = call.path("id")
    if await call.engine.store.get_user(id) is None:
        raise _no_user(id)
    return await _end_sessions(call, id)


# --- sessions


async def list_sessions(call: Call) -> Response:
    """Browsers that are signed in."""
    return json_response(SessionList([_session(call, row) for row in await _open_sessions(call)]))


async def list_own(call: Call) -> Response:
    """Browsers that are signed in as you."""
    rows = await _open_sessions(call)
    return json_response(SessionList([_session(call, row) for row in rows if row.user_id == call.who.user]))


async def end_session(call: Call) -> Response:
    """Sign one browser out."""
    return await _end_session(call, await _open_sessions(call))


async def end_own_session(call: Call) -> Response:
    """Sign one of your browsers out."""
    return await _end_session(call, [row for row in await _open_sessions(call) if row.user_id == call.who.user])


async def _end_session(call: Call, among: Sequence[SessionRow]) -> Response:
    id = call.path("id")
    row = next((row for row in among if _id_of(row) == id), None)
    if row is None or not await _end(call, row):
        raise NotFound("There is no such session.", code="session_not_found")
    return json_response(SessionsEnded(1))


async def _end(call: Call, row: SessionRow) -> bool:
    call.note(row.user_id)
    ended = await call.engine.store.delete_session(row.hash)
    call.streams.close_session(row.hash)
    return ended


async def _open_sessions(call: Call) -> list[SessionRow]:
    now_ms = call.engine.parts.clock.now_ms()
    return [row for row in await call.engine.store.list_sessions() if call.auth.sessions.counts(row, now_ms)]


def _session(call: Call, row: SessionRow) -> Session:
    return Session(_id_of(row), row.user_id, row.created_at_ms, row.seen_at_ms, row.hash == call.who.key, row.device)


def _id_of(row: SessionRow) -> str:
    return row.hash[:12]


async def end_own(call: Call) -> Response:
    """Sign yourself out of all browsers, this one included."""
    if call.who.user is None:
        raise BadRequest("This credential belongs to no user.", code="no_user")
    return await _end_sessions(call, call.who.user)


async def _end_sessions(call: Call, user: str) -> Response:
    ended = await call.engine.store.delete_sessions(user)
    await call.auth.end_streams(call.streams, call.engine)
    return json_response(SessionsEnded(ended))


# --- tokens


async def list_tokens(call: Call) -> Response:
    return json_response(TokenList([_shown(row) for row in await call.engine.store.list_tokens()]))


async def make_token(call: Call) -> Response:
    """A token for a program. It is shown this once; the database has its hash."""
    body = await read_as(call.request, call.limits, TokenRequest)
    id, text = new_token()
    call.note(f"{id}, {body.role}, {body.name}")
    now_ms = call.engine.parts.clock.now_ms()
    workflows = None if body.workflows is None else orjson.dumps(body.workflows).decode()
    user, expires_ms = call.who.user, now_ms + body.days * DAY_MS
    row = TokenRow(id, hash_of_secret(text), body.name, user, body.role, workflows, now_ms, expires_ms)
    if not await call.engine.store.put_token(row):
        raise LimitExceeded(
            f"There are {TOKENS_MAX} tokens, which is the limit.", hint="Revoke those that have expired."
        )
    return json_response(TokenMade(id, text, expires_ms), 201)


async def revoke(call: Call) -> Response:
    """It stops working at once, and its event streams end."""
    id = call.path("id")
    if not await call.engine.store.delete_token(id):
        raise NotFound(f"There is no token {id!r}.", code="token_not_found")
    call.streams.close_session(KEY + id)
    return json_response(TokenRevoked(id))


def _shown(row: TokenRow) -> Token:
    workflows = None if row.workflows is None else orjson.loads(row.workflows)
    times = row.created_at_ms, row.expires_at_ms, row.used_at_ms
    return Token(row.id, f"weft_{row.id}_", row.name, row.user_id, row.role, workflows, *times)


# --- the audit


async def list_audit(call: Call) -> Response:
    """Changes made through the API, with who made them. `action` is the route, `object` the path."""
    query = call.query(AuditQuery)
    wanted = AuditFilter(query.actor, query.text, query.since, query.until)
    rows = await call.engine.store.list_audit(query.before, query.limit, wanted)
    return json_response(AuditPage(rows, rows[-1].n if len(rows) == query.limit else None))


async def verify_audit(call: Call) -> Response:
    """Recompute the hash of each row, and compare the last with the head of the audit."""
    store, count, before = call.engine.store, 0, FIRST_HASH
    while True:
        rows = await store.read_audit(count, PAGE)
        for row in rows:
            if row.n != count + 1 or row.hash != hash_of(before, row):
                return json_response(Verified(False, count, count + 1, before))
            count, before = row.n, row.hash
        if len(rows) == PAGE:
            continue
        # Rows and head change together, so a head that is read after the rows is not older than they are.
        head = await store.audit_head()
        last, hash = (0, FIRST_HASH) if head is None else (head.n, head.hash)
        if last == count:
            found = hash == before
            return json_response(Verified(found, count, None if found else count, before))
        if last < count:
            return json_response(Verified(False, last, last + 1, before))
        if not await store.read_audit(count, 1):
            return json_response(Verified(False, count, count + 1, before))


def _check_first(id: str) -> None:
    if id == FIRST_ADMIN:
        raise Conflict(
            "The first admin keeps its role: it is the user that the server's token signs in.", code="first_admin"
        )


def _no_user(id: str) -> NotFound:
    return NotFound(f"There is no user {id!r}.", code="user_not_found")


_USER = "/api/users/{id}"
TABLE = (
    RouteSpec("GET", "/api/me", me, "Who you are", "people", needs="viewer", answer=Me),
    RouteSpec(
        "DELETE",
        "/api/me/sessions",
        end_own,
        "Sign out of all browsers",
        "people",
        needs="viewer",
        answer=SessionsEnded,
        statuses=(400,),
    ),
    RouteSpec(
        "GET",
        "/api/me/sessions",
        list_own,
        "Your open sessions",
        "people",
        needs="viewer",
        answer=SessionList,
    ),
    RouteSpec(
        "DELETE",
        "/api/me/sessions/{id}",
        end_own_session,
        "Sign out of one browser",
        "people",
        needs="viewer",
        answer=SessionsEnded,
        statuses=(404,),
    ),
    RouteSpec("GET", "/api/users", list_users, "Users", "people", needs="admin", answer=UserList),
    RouteSpec(
        "POST",
        "/api/users",
        invite,
        "Add a user",
        "people",
        needs="admin",
        body=InviteRequest,
        answer=Invited,
        status=201,
        statuses=(409,),
    ),
    RouteSpec(
        "POST",
        f"{_USER}/link",
        link,
        "Create a sign-in link for a user",
        "people",
        needs="admin",
        answer=Invited,
        status=201,
        statuses=(404,),
    ),
    RouteSpec(
        "PUT",
        f"{_USER}/role",
        set_role,
        "Change the role of a user",
        "people",
        needs="admin",
        body=RoleRequest,
        answer=UserChanged,
        statuses=(404, 409),
    ),
    RouteSpec(
        "DELETE",
        _USER,
        remove,
        "Remove a user",
        "people",
        needs="admin",
        answer=UserChanged,
        statuses=(404, 409),
    ),
    RouteSpec(
        "DELETE",
        f"{_USER}/sessions",
        end_sessions_of,
        "Sign a user out",
        "people",
        needs="admin",
        answer=SessionsEnded,
        statuses=(404,),
    ),
    RouteSpec("GET", "/api/sessions", list_sessions, "Open sessions", "people", needs="admin", answer=SessionList),
    RouteSpec(
        "DELETE",
        "/api/sessions/{id}",
        end_session,
        "Sign one browser out",
        "people",
        needs="admin",
        answer=SessionsEnded,
        statuses=(404,),
    ),
    RouteSpec("GET", "/api/tokens", list_tokens, "Tokens", "people", needs="admin", answer=TokenList),
    RouteSpec(
        "POST",
        "/api/tokens",
        make_token,
        "Create a token",
        "people",
        needs="admin",
        body=TokenRequest,
        answer=TokenMade,
        status=201,
    ),
    RouteSpec(
        "DELETE",
        "/api/tokens/{id}",
        revoke,
        "Revoke a token",
        "people",
        needs="admin",
        answer=TokenRevoked,
        statuses=(404,),
    ),
    RouteSpec(
        "GET", "/api/audit", list_audit, "What was changed", "people", needs="admin", answer=AuditPage, query=AuditQuery
    ),
    RouteSpec(
        "GET",
        "/api/audit/verification",
        verify_audit,
        "Check the audit",
        "people",
        needs="admin",
        answer=Verified,
    ),
)

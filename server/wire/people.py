"""The shapes that concern people: users, sessions, tokens, the audit."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from executor.kernel.store.topics.audit import AuditRow
from executor.kernel.store.topics.people import PersonRole, Role
from server.wire import PAGE_MAX

DAYS_MAX = 3650
USER_ID = r"^[a-z0-9][a-z0-9._@-]{0,99}$"
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

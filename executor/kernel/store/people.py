"""People, their tokens and sign-in links, and the record of what they did: what a store is asked for. See rules 39 to
41 of the contract."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal, Protocol, get_args

import orjson
from msgspec import Struct

PersonRole = Literal["viewer", "approver", "editor", "admin"]
PEOPLE_ROLES: Final[tuple[PersonRole, ...]] = get_args(PersonRole)
Role = Literal["metrics", "viewer", "approver", "editor", "admin"]  # `metrics`: of tokens alone
ROLES: Final[tuple[Role, ...]] = get_args(Role)  # each may do what those before it may

USERS_MAX: Final = 10_000
TOKENS_MAX: Final = 10_000
CODES_MAX: Final = 1_000
FIRST_HASH: Final = ""  # before the first row


def includes(role: Role, needed: Role) -> bool:
    """Returns True if `role` may do all that `needed` may."""
    return ROLES.index(role) >= ROLES.index(needed)


class UserRow(Struct, frozen=True):
    """`id` is what documents and people call them by; `identity` who they are at the provider that signs people in."""

    id: str
    name: str
    role: PersonRole
    created_at_ms: int
    identity: str | None = None


class TokenRow(Struct, frozen=True):
    """A token. `hash` is of the whole token. `user_id` is None if it was made with the token of the server. `workflows`
    is a JSON array of names, or None for all."""

    id: str
    hash: str
    name: str
    user_id: str | None
    role: Role
    workflows: str | None
    created_at_ms: int
    expires_at_ms: int
    used_at_ms: int | None = None


class AuditRow(Struct, frozen=True):
    """`hash` is of the row, and of the hash of the row before it."""

    n: int
    at_ms: int
    actor: str
    via: str
    action: str
    object: str
    detail: str
    hash: str


class AuditFilter(Struct, frozen=True):
    """Rows of one actor; with a text in action, object or detail, whatever its case; of a time, `since_ms` included."""

    actor: str | None = None
    text: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None


EVERY_ROW: Final = AuditFilter()


class AuditHead(Struct, frozen=True):
    """The number and the hash of the last row."""

    n: int
    hash: str


class Reach(Struct, frozen=True):
    """The files that a restricted caller may use: those that runs of `workflows` hold, and those that one of
    `uploaders` has stored, which the caller proves."""

    workflows: tuple[str, ...] = ()
    uploaders: tuple[str, ...] = ()


class Act:
    """The act under way, until `acting` ends: `actor`, `via`, `action`, `object` and more in `detail`. The first
    audited change that it makes has a row; its others need none once that is on disk (`is_noted`). `reach` are the
    files that its data may name, or None for all."""

    __slots__ = ("action", "actor", "at_ms", "detail", "is_noted", "is_over", "object", "person", "reach", "via")

    def __init__(
        self,
        actor: str,
        via: str,
        action: str,
        object: str,
        at_ms: int,
        detail: str = "",
        person: str = "",
        reach: Reach | None = None,
    ) -> None:
        self.actor, self.via, self.action, self.object = actor, via, action, object
        self.at_ms, self.detail = at_ms, detail
        self.person = person or actor  # the user whose token the actor is
        self.reach = reach
        self.is_noted = self.is_over = False


_act: ContextVar[Act | None] = ContextVar("act", default=None)


@contextmanager
def acting(act: Act) -> Iterator[Act]:
    """Attribute what is submitted inside to the actor of `act`. A task that is begun inside and outlives it is not."""
    reset = _act.set(act)
    try:
        yield act
    finally:
        act.is_over = True
        _act.reset(reset)


def present_act() -> Act | None:
    """Return the present act, or None if the server acts for itself or the audit row is written."""
    act = _act.get()
    return None if act is None or act.is_over or act.is_noted else act


def chained(before: str, n: int, act: Act) -> AuditRow:
    """Return row number `n`, after one with the hash `before`."""
    row = AuditRow(n, act.at_ms, act.actor, act.via, act.action, act.object, act.detail, "")
    return AuditRow(n, act.at_ms, act.actor, act.via, act.action, act.object, act.detail, hash_of(before, row))


def hash_of(before: str, row: AuditRow) -> str:
    """Return the hash of a row after one with the hash `before`."""
    said = [before, row.n, row.at_ms, row.actor, row.via, row.action, row.object, row.detail]
    return hashlib.sha256(orjson.dumps(said)).hexdigest()


def has_changed(result: object) -> bool:
    """Returns True if an audited change has changed something, by what it returned."""
    if isinstance(result, tuple) and result and isinstance(result[-1], bool):
        return result[-1]
    won = getattr(result, "won", None)
    return won if isinstance(won, bool) else result is not None and result is not False and result != 0


def present_actor() -> str | None:
    """Return who acts now, whether or not there is a row about it, or None for the server itself."""
    act = _act.get()
    return None if act is None or act.is_over else act.person


def present_reach() -> Reach | None:
    """Return the reach of who acts now, or None for all files."""
    act = _act.get()
    return None if act is None or act.is_over else act.reach


class PeopleStore(Protocol):
    """See rules 39 to 41."""

    async def put_user(self, row: UserRow) -> bool:
        """Add a user. Returns False, with nothing changed, if there is one of this id or identity, or there are
        USERS_MAX."""

    async def get_user(self, id: str) -> UserRow | None: ...

    async def get_user_of(self, identity: str) -> UserRow | None: ...

    async def identify(self, id: str, identity: str) -> bool:
        """Give the user this identity. Returns False if there is no such user, they have one, or another user has
        it."""

    async def list_users(self) -> list[UserRow]:
        """Return users by id."""

    async def set_role(self, id: str, role: PersonRole) -> bool:
        """Set the role of a user. Returns False if there is no such user."""

    async def delete_user(self, id: str) -> bool:
        """Delete a user with their sessions, tokens and sign-in links. Returns False if there is no such user."""

    async def put_code(self, hash: str, user_id: str, until_ms: int, now_ms: int) -> bool:
        """True. Of a sign-in link. Codes whose time is over are deleted, and those next to end beyond CODES_MAX."""

    async def redeem_code(self, hash: str, now_ms: int) -> str | None:
        """Return the user that the code signs in, once, or None if it is not valid."""

    async def put_token(self, row: TokenRow) -> bool:
        """Add a token. Returns False, with nothing changed, if there are TOKENS_MAX, expired ones included."""

    async def get_token(self, id: str) -> TokenRow | None: ...

    async def list_tokens(self) -> list[TokenRow]:
        """Return tokens by the time they were made, and id."""

    async def use_token(self, id: str, now_ms: int) -> None:
        """Note that a token was used now; the time only grows."""

    async def delete_token(self, id: str) -> bool: ...

    async def read_audit(self, after: int = 0, limit: int = 1_000) -> list[AuditRow]:
        """Return audit rows in order."""

    async def list_audit(
        self, before: int | None = None, limit: int = 200, wanted: AuditFilter = EVERY_ROW
    ) -> list[AuditRow]:
        """Return audit rows below `before`, newest first."""

    async def audit_head(self) -> AuditHead | None:
        """Return the head, or None if no row was ever written."""

    async def note_act(self) -> bool:
        """A row of the present act that changes nothing else in the database."""

"""People and what they did in the model store."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from msgspec.structs import replace

from executor.kernel.process.acting import Role, present_act
from executor.kernel.store.topics.audit import (
    EVERY_ROW,
    FIRST_HASH,
    AuditFilter,
    AuditHead,
    AuditRow,
    chained,
    has_changed,
)
from executor.kernel.store.topics.people import CODES_MAX, TOKENS_MAX, USERS_MAX, TokenRow, UserRow
from tests.support.changes import audited
from tests.support.model_store.sessions import ModelSessions

T = TypeVar("T")


class ModelPeople(ModelSessions):
    """What ModelStore can do with users, tokens and the audit."""

    def __init__(self) -> None:
        super().__init__()
        self._users: dict[str, UserRow] = {}
        self._codes: dict[str, tuple[int, str]] = {}  # until when, whose
        self._tokens: dict[str, TokenRow] = {}
        self._audit: list[AuditRow] = []

    async def put_user(self, row: UserRow) -> bool:
        if row.id in self._users or len(self._users) >= USERS_MAX:
            return False
        if row.identity is not None and await self.get_user_of(row.identity) is not None:
            return False
        self._users[row.id] = row
        return True

    async def get_user(self, id: str) -> UserRow | None:
        return self._users.get(id)

    async def get_user_of(self, identity: str) -> UserRow | None:
        return next((row for row in self._users.values() if row.identity == identity), None)

    async def identify(self, id: str, identity: str) -> bool:
        row = self._users.get(id)
        if row is None or row.identity is not None or await self.get_user_of(identity) is not None:
            return False
        self._users[id] = replace(row, identity=identity)
        return True

    async def list_users(self) -> list[UserRow]:
        return [self._users[id] for id in sorted(self._users)]

    async def set_role(self, id: str, role: Role) -> bool:
        if id not in self._users:
            return False
        self._users[id] = replace(self._users[id], role=role)
        return True

    async def delete_user(self, id: str) -> bool:
        if self._users.pop(id, None) is None:
            return False
        await self.delete_sessions(id)
        self._tokens = {token: row for token, row in self._tokens.items() if row.user_id != id}
        self._codes = {hash: code for hash, code in self._codes.items() if code[1] != id}
        return True

    async def put_code(self, hash: str, user_id: str, until_ms: int, now_ms: int) -> bool:
        rest = [(hash, code) for hash, code in self._codes.items() if code[0] > now_ms]
        rest = sorted(rest, key=lambda each: (-each[1][0], each[0]))[: CODES_MAX - 1]
        self._codes = {**dict(rest), hash: (until_ms, user_id)}
        return True

    async def redeem_code(self, hash: str, now_ms: int) -> str | None:
        until_ms, user = self._codes.pop(hash, (0, ""))
        return user if now_ms < until_ms else None

    async def put_token(self, row: TokenRow) -> bool:
        if row.id in self._tokens or len(self._tokens) >= TOKENS_MAX:
            return False
        self._tokens[row.id] = row
        return True

    async def get_token(self, id: str) -> TokenRow | None:
        return self._tokens.get(id)

    async def list_tokens(self) -> list[TokenRow]:
        return sorted(self._tokens.values(), key=lambda row: (row.created_at_ms, row.id))

    async def use_token(self, id: str, now_ms: int) -> None:
        row = self._tokens.get(id)
        if row is not None:
            self._tokens[id] = replace(row, used_at_ms=max(now_ms, row.used_at_ms or 0))

    async def delete_token(self, id: str) -> bool:
        return self._tokens.pop(id, None) is not None

    async def read_audit(self, after: int = 0, limit: int = 1_000) -> list[AuditRow]:
        return self._audit[after : after + limit]

    async def list_audit(
        self, before: int | None = None, limit: int = 200, wanted: AuditFilter = EVERY_ROW
    ) -> list[AuditRow]:
        below = self._audit if before is None else self._audit[: max(before - 1, 0)]
        return [row for row in reversed(below) if _is_wanted(row, wanted)][:limit]

    async def audit_head(self) -> AuditHead | None:
        return AuditHead(self._audit[-1].n, self._audit[-1].hash) if self._audit else None

    async def record_act(self) -> bool:
        return True

    def note(self) -> None:
        """A row about the present act."""
        act = present_act()
        if act is not None:
            before = self._audit[-1].hash if self._audit else FIRST_HASH
            self._audit.append(chained(before, len(self._audit) + 1, act))
            act.is_recorded = True


def with_audit(store: type[ModelPeople]) -> None:
    """Have each change of the store that is audited note what it has changed."""
    for name in audited():
        setattr(store, name, _noted(getattr(store, name)))


def _noted(change: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., Coroutine[Any, Any, T]]:
    async def method(store: ModelPeople, *args: Any, **kwargs: Any) -> T:
        result = await change(store, *args, **kwargs)
        if has_changed(result):
            store.note()
        return result

    return method


def _is_wanted(row: AuditRow, wanted: AuditFilter) -> bool:
    said = f"{row.action} {row.object} {row.detail}".lower()
    return (
        wanted.actor in (None, row.actor)
        and (wanted.text is None or wanted.text.lower() in said)
        and (wanted.since_ms is None or row.at_ms >= wanted.since_ms)
        and (wanted.until_ms is None or row.at_ms < wanted.until_ms)
    )

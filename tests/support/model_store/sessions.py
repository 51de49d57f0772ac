"""Sessions in the model store."""

from __future__ import annotations

from msgspec.structs import replace

from executor.kernel.store.topics.people import SESSIONS_MAX, SessionRow


class ModelSessions:
    """What ModelStore can do with sessions."""

    def __init__(self) -> None:
        super().__init__()
        self._sessions: dict[str, SessionRow] = {}

    async def put_session(self, row: SessionRow, created_after_ms: int, seen_after_ms: int) -> bool:
        rest = [
            old
            for old in self._sessions.values()
            if old.created_at_ms > created_after_ms and old.seen_at_ms > seen_after_ms
        ]
        rest = sorted(rest, key=lambda old: (-old.seen_at_ms, old.hash))[: SESSIONS_MAX - 1]
        self._sessions = {each.hash: each for each in (*rest, row)}
        return True

    async def get_session(self, hash: str) -> SessionRow | None:
        return self._sessions.get(hash)

    async def see_session(self, hash: str, seen_at_ms: int) -> None:
        row = self._sessions.get(hash)
        if row is not None:
            self._sessions[hash] = replace(row, seen_at_ms=max(row.seen_at_ms, seen_at_ms))

    async def delete_session(self, hash: str) -> bool:
        return self._sessions.pop(hash, None) is not None

    async def list_sessions(self) -> list[SessionRow]:
        return sorted(self._sessions.values(), key=lambda row: (-row.seen_at_ms, row.hash))

    async def delete_sessions(self, user_id: str | None = None) -> int:
        gone = [row.hash for row in self._sessions.values() if user_id in (None, row.user_id)]
        for hash in gone:
            del self._sessions[hash]
        return len(gone)

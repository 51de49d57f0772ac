"""Sessions in the model store. The contract is in `executor.store.contract`."""

from __future__ import annotations

from msgspec.structs import replace

from executor.store.rows import SESSIONS_MAX, SessionRow


class ModelSessions:
    """What ModelStore can do with sessions."""

    def __init__(self) -> None:
        super().__init__()
        self._sessions: dict[str, SessionRow] = {}

    async def put_session(self, row: SessionRow, created_after_ms: int, seen_after_ms: int) -> None:
        rest = [
            old
            for old in self._sessions.values()
            if old.created_at_ms > created_after_ms and old.seen_at_ms > seen_after_ms
        ]
        rest = sorted(rest, key=lambda old: (-old.seen_at_ms, old.hash))[: SESSIONS_MAX - 1]
        self._sessions = {each.hash: each for each in (*rest, row)}

    async def get_session(self, hash: str) -> SessionRow | None:
        return self._sessions.get(hash)

    async def see_session(self, hash: str, seen_at_ms: int) -> None:
        row = self._sessions.get(hash)
        if row is not None:
            self._sessions[hash] = replace(row, seen_at_ms=max(row.seen_at_ms, seen_at_ms))

    async def delete_session(self, hash: str) -> bool:
        return self._sessions.pop(hash, None) is not None

    async def delete_sessions(self) -> int:
        gone = len(self._sessions)
        self._sessions.clear()
        return gone

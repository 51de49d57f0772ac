"""Child runs in SQLite. The contract is in `executor.store.children`."""

# ruff: noqa: S608  (the pieces put together here are constants of this file, never values)

from __future__ import annotations

from executor.store.base import WaitRow
from executor.store.children import ChildRow
from executor.store.readers import Readers
from executor.store.statements import OPEN, WAIT

CHILD = "id, workflow, version, status, parent_run_id, parent_key, created_at_ms, finished_at_ms"
CHILDREN = f"SELECT {CHILD} FROM runs WHERE parent_run_id = ? ORDER BY created_at_ms DESC, id DESC LIMIT ?"
ANCESTORS = """
WITH RECURSIVE above (id, depth) AS (
    SELECT parent_run_id, 1 FROM runs WHERE id = ?1
    UNION ALL
    SELECT r.parent_run_id, above.depth + 1 FROM above JOIN runs AS r ON r.id = above.id WHERE above.depth < ?2)
SELECT id FROM above WHERE id IS NOT NULL ORDER BY depth"""
_BELOW = f"""
WITH RECURSIVE below (id) AS (
    SELECT id FROM runs WHERE parent_run_id = ?1 AND {OPEN}
    UNION ALL
    SELECT r.id FROM below JOIN runs AS r ON r.parent_run_id = below.id WHERE r.{OPEN})
"""
WAITS_BELOW = f"""{_BELOW}
SELECT {WAIT} FROM waits WHERE run_id IN below AND status = 'pending' AND kind <> 'child'
 ORDER BY opened_at_ms, run_id, id LIMIT ?2"""
COUNT_ACTIVE_BELOW = f"""{_BELOW}
SELECT count(*) FROM runs WHERE id IN below AND (status <> 'waiting' OR next_run_at_ms <= ?2)"""


class SQLiteChildren:
    """What SQLiteStore can tell of child runs."""

    _readers: Readers

    async def list_children(self, run_id: str, limit: int = 200) -> list[ChildRow]:
        return [ChildRow(*row) for row in await self._readers.all(CHILDREN, (run_id, limit))]

    async def list_ancestors(self, run_id: str, limit: int = 100) -> list[str]:
        return [id for (id,) in await self._readers.all(ANCESTORS, (run_id, limit))]

    async def list_waits_below(self, run_id: str, limit: int = 200) -> list[WaitRow]:
        return [WaitRow(*row) for row in await self._readers.all(WAITS_BELOW, (run_id, limit))]

    async def count_active_below(self, run_id: str, now_ms: int) -> int:
        row = await self._readers.one(COUNT_ACTIVE_BELOW, (run_id, now_ms))
        return 0 if row is None else int(row[0])

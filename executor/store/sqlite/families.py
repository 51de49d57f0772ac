"""Child runs, and the families that they and their root make."""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

from executor.store.rows import Append, ChildRow, FamilyRow
from executor.store.rules import check_room
from executor.store.sqlite.conditions import OPEN
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.readers import Readers

CHILD = "id, workflow, version, status, parent_run_id, parent_key, created_at_ms, finished_at_ms"
CHILDREN = f"SELECT {CHILD} FROM runs WHERE parent_run_id = ? ORDER BY created_at_ms DESC, id DESC LIMIT ?"
ANCESTORS = """
WITH RECURSIVE above (id, depth) AS (
    SELECT parent_run_id, 1 FROM runs WHERE id = ?1
    UNION ALL
    SELECT r.parent_run_id, above.depth + 1 FROM above JOIN runs AS r ON r.id = above.id WHERE above.depth < ?2)
SELECT id FROM above WHERE id IS NOT NULL ORDER BY depth"""
BELOW = f"""
WITH RECURSIVE below (id) AS (
    SELECT id FROM runs WHERE parent_run_id = ?1 AND {OPEN}
    UNION ALL
    SELECT r.id FROM below JOIN runs AS r ON r.parent_run_id = below.id WHERE r.{OPEN})
"""
COUNT_ACTIVE_BELOW = f"""{BELOW}
SELECT count(*) FROM runs WHERE id IN below AND (status <> 'waiting' OR next_run_at_ms <= ?2)"""
FAMILY = "runs, open, bytes, over"
GET_FAMILY = f"SELECT {FAMILY} FROM families WHERE root_id = ?"
ROOT_OF = "SELECT coalesce(root_id, id) FROM runs WHERE id = ?"
FAMILY_OF = f"SELECT {FAMILY} FROM families WHERE root_id = ({ROOT_OF})"
ADD_TO_FAMILY = """
INSERT INTO families (root_id, runs, open, bytes, over) VALUES (?1, ?2, ?2, 0, 0)
ON CONFLICT DO UPDATE SET runs = runs + ?2, open = open + ?2"""
CHANGE_FAMILY = f"""
UPDATE families SET bytes = bytes + ?, open = open - ?, over = max(over, ?) WHERE root_id = ? RETURNING {FAMILY}"""
END_FAMILY = "UPDATE families SET over = 1 WHERE root_id = ?"


async def get_family(readers: Readers, root_id: str) -> FamilyRow | None:
    row = await readers.one(GET_FAMILY, (root_id,))
    return None if row is None else _family(row)


async def list_children(readers: Readers, run_id: str, limit: int = 200) -> list[ChildRow]:
    return [ChildRow(*row) for row in await readers.all(CHILDREN, (run_id, limit))]


async def list_ancestors(readers: Readers, run_id: str, limit: int = 100) -> list[str]:
    return [id for (id,) in await readers.all(ANCESTORS, (run_id, limit))]


async def count_active_below(readers: Readers, run_id: str, now_ms: int) -> int:
    row = await readers.one(COUNT_ACTIVE_BELOW, (run_id, now_ms))
    return 0 if row is None else int(row[0])


def check_family(tx: Tx, change: Append) -> None:
    """Part of an append that makes children, before anything is written. Raises LimitExceeded."""
    for row in tx.db.execute(FAMILY_OF, (change.run_id,)).fetchall():
        check_room(_family(row), len(change.children), change.family_max)


def add_to_family(tx: Tx, parent: str, children: int) -> str:
    """Part of creating children. Returns the root."""
    found = tx.db.execute(ROOT_OF, (parent,)).fetchall()
    root: str = found[0][0] if found else parent
    tx.db.execute(ADD_TO_FAMILY, (root, children))
    return root


def append_to_family(tx: Tx, change: Append, finished: bool) -> FamilyRow | None:
    """Part of an append."""
    root = change.root
    if root is None:
        return None
    if finished or change.output_bytes:
        below = root != change.run_id
        values = (change.output_bytes, finished and below, finished and not below, root)
        rows = tx.db.execute(CHANGE_FAMILY, values).fetchall()
    else:
        rows = tx.db.execute(GET_FAMILY, (root,)).fetchall()
    return _family(rows[0]) if rows else None


def end_family(tx: Tx, root: str) -> None:
    tx.db.execute(END_FAMILY, (root,))


def _family(row: tuple[int, int, int, int]) -> FamilyRow:
    return FamilyRow(row[0], row[1], row[2], bool(row[3]))

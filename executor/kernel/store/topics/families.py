"""Child runs, and the families that they and their root make."""

from __future__ import annotations

from msgspec import Struct

from executor.errors import LimitExceeded
from executor.kernel.store.statements import OPEN, Readers, RunStatus, Tx, columns, lock_run


class FamilyMax(Struct, frozen=True):
    open: int = 10_000
    runs: int = 100_000


class FamilyRow(Struct, frozen=True):
    """`runs` were made below the root, `open` of them have not ended; `bytes`: see `Append.output_bytes`."""

    runs: int
    open: int
    bytes: int
    over: bool


class ChildRow(Struct, frozen=True):
    """A child run as its parent needs it: no input, no output."""

    id: str
    workflow: str
    version: int | None
    status: RunStatus
    parent_run_id: str
    parent_key: str
    created_at_ms: int
    finished_at_ms: int | None


def check_room(family: FamilyRow, more: int, most: FamilyMax) -> None:
    if family.open + more > most.open:
        raise LimitExceeded(
            f"more than {most.open:,} runs would be open below one run",
            code="limit_family_open",
            hint="Does the workflow run itself without end? Start fewer runs at a time, "
            "for example with `concurrency` of the parallel.",
        )
    if family.runs + more > most.runs:
        raise LimitExceeded(
            f"more than {most.runs:,} runs would have been started below one run",
            code="limit_family_runs",
            hint="Does the workflow run itself without end? Use a loop to repeat blocks without new runs.",
        )


CHILDREN = f"""
SELECT {columns(ChildRow)} FROM runs WHERE parent_run_id = :run ORDER BY created_at_ms DESC, id DESC LIMIT :limit"""
ANCESTORS = """
WITH RECURSIVE above (id, depth) AS (
    SELECT parent_run_id, 1 FROM run_details WHERE id = :run
    UNION ALL
    SELECT r.parent_run_id, above.depth + 1 FROM above JOIN run_details AS r ON r.id = above.id
     WHERE above.depth < :limit)
SELECT id FROM above WHERE id IS NOT NULL ORDER BY depth"""
BELOW = f"""
WITH RECURSIVE below (id) AS (
    SELECT id FROM run_details WHERE parent_run_id = :run AND {OPEN}
    UNION ALL
    SELECT r.id FROM below JOIN run_details AS r ON r.parent_run_id = below.id WHERE r.{OPEN})
"""
COUNT_ACTIVE_BELOW = f"""{BELOW}
SELECT count(*) FROM runs
 WHERE id IN (SELECT id FROM below) AND (status <> 'waiting' OR next_run_at_ms <= :now)"""
FAMILY = columns(FamilyRow)
GET_FAMILY = f"SELECT {FAMILY} FROM families WHERE root_id = :root"
ROOT_OF = "SELECT coalesce(root_id, id) FROM run_details WHERE id = :run"
TAKE_FAMILY_OF = f"UPDATE families SET runs = runs WHERE root_id = ({ROOT_OF}) RETURNING {FAMILY}"
ADD_TO_FAMILY = """
INSERT INTO families (root_id, runs, open, bytes, over) VALUES (:root, :more, :more, 0, 0)
ON CONFLICT (root_id) DO UPDATE SET runs = families.runs + excluded.runs, open = families.open + excluded.open"""
CHANGE_FAMILY = f"""
UPDATE families SET bytes = bytes + :bytes, open = open - :ended, over = CASE WHEN :over = 1 THEN 1 ELSE over END
 WHERE root_id = :root RETURNING {FAMILY}"""


async def get_family(readers: Readers, root_id: str) -> FamilyRow | None:
    """Return the family, or None if the run never had a child."""
    return await readers.fetch_one(FamilyRow, GET_FAMILY, {"root": root_id})


async def list_children(readers: Readers, run_id: str, limit: int = 200) -> list[ChildRow]:
    return await readers.fetch(ChildRow, CHILDREN, {"run": run_id, "limit": limit})


async def list_ancestors(readers: Readers, run_id: str, limit: int = 100) -> list[str]:
    """Return the run's parent, the parent's parent and so on; [] for a run that no run started."""
    return [id for (id,) in await readers.all(ANCESTORS, {"run": run_id, "limit": limit})]


async def count_active_below(readers: Readers, run_id: str, now_ms: int) -> int:
    """Count runs below that are queued or running, or are due."""
    return await readers.value(int, COUNT_ACTIVE_BELOW, {"run": run_id, "now": now_ms}) or 0


def check_family(tx: Tx, run_id: str, children: int, most: FamilyMax) -> None:
    """Part of an append that makes children, before anything is changed: what it looks at stays as it is until the
    children are made. Raises LimitExceeded."""
    lock_run(tx, run_id)
    for row in tx.fetch(FamilyRow, TAKE_FAMILY_OF, {"run": run_id}):
        check_room(row, children, most)


def root_of(tx: Tx, parent: str) -> str:
    return next((str(root) for (root,) in tx.rows(ROOT_OF, {"run": parent})), parent)


def add_to_family(tx: Tx, root: str, children: int) -> None:
    tx.do(ADD_TO_FAMILY, {"root": root, "more": children})


def reopen_family(tx: Tx, root: str) -> None:
    """Let new members run. Those that were to end have messages about it."""
    tx.do("UPDATE families SET over = 0 WHERE root_id = :root", {"root": root})


def append_to_family(tx: Tx, root: str | None, run_id: str, output_bytes: int, finished: bool) -> FamilyRow | None:
    if root is None:
        return None
    if not (finished or output_bytes):
        return tx.fetch_one(FamilyRow, GET_FAMILY, {"root": root})
    below = root != run_id
    values = {"root": root, "bytes": output_bytes, "ended": int(finished and below)}
    return tx.fetch_one(FamilyRow, CHANGE_FAMILY, {**values, "over": int(finished and not below)})


def end_family(tx: Tx, root: str) -> None:
    tx.do("UPDATE families SET over = 1 WHERE root_id = :root", {"root": root})

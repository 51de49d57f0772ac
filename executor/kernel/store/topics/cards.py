"""Workflows as the front page shows them: pages of them, and for each of a page what starts it next and its last runs.
Every statement is bounded by the page or the number of workflows or of open runs, whatever number of runs there is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from executor.kernel.store.statements import Readers, as_list, those_of
from executor.kernel.store.topics.workflows import HEADS, WorkflowHead, head_of

Order = Literal["run", "changed", "name"]
TODAY_MAX: Final = 1_000  # nothing is counted further

CARDS = f"{HEADS} WHERE true"
OF_FOLDER = " AND a.folder = :folder"
WITH_TEXT = r"""
   AND (lower(a.workflow) LIKE :text ESCAPE '\' OR EXISTS
        (SELECT 1 FROM $blocks_of(w.document) AS b
          WHERE lower(coalesce(b.value ->> 'name', '') || ' ' || (b.value ->> 'type')) LIKE :text ESCAPE '\'))"""
ORDERS: Final[dict[Order, str]] = {
    "run": " ORDER BY coalesce(r.created_at_ms, 0) DESC, a.workflow LIMIT :limit OFFSET :after",
    "changed": " ORDER BY a.since_ms DESC, a.workflow LIMIT :limit OFFSET :after",
    "name": " ORDER BY a.workflow LIMIT :limit OFFSET :after",
}
FOLDERS = "SELECT folder, count(*) FROM active_versions GROUP BY folder ORDER BY folder"
FACTS = f"""
SELECT a.workflow, w.document,
       (SELECT min(s.next_run_at_ms) FROM schedules AS s WHERE s.workflow = a.workflow AND s.enabled = 1),
       (SELECT count(*) FROM (SELECT 1 FROM run_details AS d WHERE d.workflow = a.workflow AND d.created_at_ms >= :since
                               LIMIT {TODAY_MAX}) AS counted)
  FROM active_versions AS a JOIN workflows AS w ON w.name = a.workflow AND w.version = a.version
 WHERE a.workflow IN $texts(:names)"""
SHORT_RUNS = """
SELECT r.workflow, r.id, coalesce(r.status, h.status), r.created_at_ms, coalesce(r.started_at_ms, h.started_at_ms),
       r.finished_at_ms
  FROM $texts(:names) AS v $last_runs(workflow, v.value, runs_by_workflow) LEFT JOIN heads AS h ON h.n = r.n
 ORDER BY r.created_at_ms, r.id"""
OPEN = """
SELECT d.workflow, h.status, count(*) FROM heads AS h CROSS JOIN run_details AS d
 WHERE d.n = h.n AND d.workflow IN $texts(:names) GROUP BY d.workflow, h.status"""


class CardFacts(Struct, frozen=True):
    """`next_ms`: when its next schedule starts a run. `today`: the runs since a time, at most TODAY_MAX."""

    document: bytes
    next_ms: int | None
    today: int


class ShortRun(Struct, frozen=True):
    """`duration_ms`: from its first start to its end, or null."""

    id: str
    status: str
    created_at_ms: int
    duration_ms: int | None


async def list_cards(
    readers: Readers,
    folder: str | None = None,
    text: str | None = None,
    order: Order = "run",
    after: int = 0,
    limit: int = 24,
) -> list[WorkflowHead]:
    """Return heads, `after` of them left out. `text`: of those that have it in their name, or in the name or type of a
    block, whatever its case."""
    query = CARDS + those_of((OF_FOLDER, folder), (WITH_TEXT, text)) + ORDERS[order]
    like = None if text is None else "%" + re.sub(r"([\\%_])", r"\\\1", text.lower()) + "%"
    values = {"folder": folder, "text": like, "after": after, "limit": limit}
    return [head_of(row) for row in await readers.all(query, values)]


async def count_folders(readers: Readers) -> dict[str, int]:
    """Count workflows by folder; '' are those in none."""
    return dict(await readers.all(FOLDERS))


async def card_facts(readers: Readers, names: Sequence[str], since_ms: int) -> dict[str, CardFacts]:
    rows = await readers.all(FACTS, {"names": as_list(names), "since": since_ms})
    return {name: CardFacts(*facts) for name, *facts in rows}


async def short_runs(readers: Readers, names: Sequence[str], limit: int = 24) -> dict[str, list[ShortRun]]:
    """Return the last runs of each workflow, the newest last."""
    found: dict[str, list[ShortRun]] = {}
    for name, id, status, created, started, finished in await readers.all(
        SHORT_RUNS, {"names": as_list(names), "limit": limit}
    ):
        took = None if finished is None else max(0, finished - (started or created))
        found.setdefault(name, []).append(ShortRun(id, status, created, took))
    return found


async def count_open(readers: Readers, names: Sequence[str]) -> dict[str, dict[str, int]]:
    """Count the open runs of each workflow by status."""
    found: dict[str, dict[str, int]] = {}
    for name, status, count in await readers.all(OPEN, {"names": as_list(names)}):
        found.setdefault(name, {})[status] = count
    return found

"""Pages and counts of runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal

from msgspec import Struct

from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.statements import COUNT_MAX, TERMINAL, Readers, RunStatus, as_list, columns, those_of
from executor.kernel.store.topics.runs import RUN

Without = Literal["status", "workflow", "by", "text"]
NOTHING: Final[Mapping[Without, str]] = MappingProxyType({})

# A page of runs, newest first. The numbers of those that are wanted are found in the details, or by their heads, with
# any of the conditions and RUNS_PAGE; then they are read.
RUNS = "SELECT d.n FROM run_details AS d WHERE true"
RUNS_UNDER_WAY = """
SELECT d.n FROM heads AS h CROSS JOIN run_details AS d WHERE d.n = h.n AND h.status = :status"""
RUNS_OF_STATUS = " AND d.status = :status"
RUNS_OF_WORKFLOW = " AND d.workflow = :workflow"
RUNS_OF_DRAFT = " AND d.draft_id = :draft"
RUNS_OF_PERSON = " AND d.started_by = :by"
RUNS_OF_PARENT = " AND d.parent_run_id = :parent"
RUNS_BEFORE = " AND (d.created_at_ms, d.id) < (SELECT created_at_ms, id FROM run_details WHERE id = :before)"
RUNS_SINCE = " AND d.created_at_ms >= :since"
RUNS_UNTIL = " AND d.created_at_ms < :until"
# A key and a text are looked for in this many: in ids, idempotency keys and errors, which have the message and the
# block. So is what a run must not be.
SCAN_MAX = 10_000
SCANNED = "d.n, d.id, d.created_at_ms, d.idempotency_key, d.error, d.workflow, d.started_by, d.status"
RUNS_SCAN = " ORDER BY d.created_at_ms DESC, d.id DESC LIMIT :scan"
WITH_KEY = " AND d.idempotency_key = :key"
WITH_TEXT = r"""
   AND (d.id LIKE :text ESCAPE '\' OR lower(coalesce(d.idempotency_key, '')) LIKE :text ESCAPE '\'
        OR lower(coalesce($text_of(d.error), '')) LIKE :text ESCAPE '\')"""
WITHOUT: Final[Mapping[Without, str]] = {
    "status": " AND coalesce(d.status, (SELECT h.status FROM heads AS h WHERE h.n = d.n)) <> :not_status",
    "workflow": " AND d.workflow <> :not_workflow",
    "by": " AND coalesce(d.started_by, '') <> :not_by",
    "text": WITH_TEXT.replace("AND (", "AND NOT (").replace(":text", ":not_text"),
}
STARTERS = """
SELECT d.id, d.started_by, d.draft_id IS NOT NULL AND d.workflow LIKE '%/%' AND EXISTS
       (SELECT 1 FROM plans AS p WHERE p.hash = d.plan_hash AND $text_of(p.ir) LIKE '%"trigger":"step.start"%')
  FROM run_details AS d WHERE d.id IN $texts(:ids)"""
RUNS_PAGE = " ORDER BY d.created_at_ms DESC, d.id DESC LIMIT :limit"
# Their inputs: INPUTS, then any of the conditions, then RUNS_PAGE.
INPUTS = "SELECT d.input FROM run_details AS d WHERE length(d.input) <= :bytes_max"
# By status, none counted further than COUNT_MAX: of each status that ended runs have COUNT_ENDED with any of the
# conditions and COUNT_TO_MAX, and COUNT_OPEN with the same. Open runs are few.
ENDS = sorted(TERMINAL)
COUNT_ENDED = "SELECT '{status}', count(*) FROM (SELECT 1 FROM run_details AS d WHERE d.status = '{status}'"
COUNT_TO_MAX = f" LIMIT {COUNT_MAX}) AS counted"
COUNT_OPEN = "SELECT h.status, count(*) FROM heads AS h"
OF_DETAILS = " CROSS JOIN run_details AS d WHERE d.n = h.n"
BY_STATUS_OF_HEAD = " GROUP BY h.status"
# By status and part of a time: each ended status in its index, at most COUNT_MAX of each.
TIMES_ENDED = f"""
SELECT status, part, count(*)
  FROM (SELECT d.status, (d.created_at_ms - CAST(:since AS BIGINT)) / CAST(:width AS BIGINT) AS part
          FROM run_details AS d WHERE d.status = '{{status}}'{RUNS_SINCE}{RUNS_UNTIL}{{where}}
         LIMIT {COUNT_MAX}) AS counted
 GROUP BY status, part"""
TIMES_OPEN = f"""
SELECT h.status, (d.created_at_ms - CAST(:since AS BIGINT)) / CAST(:width AS BIGINT) AS part, count(*)
  FROM heads AS h CROSS JOIN run_details AS d WHERE d.n = h.n{RUNS_SINCE}{RUNS_UNTIL}{{where}}
 GROUP BY h.status, part"""
# The runs of a draft: its index has the status of those that have ended.
COUNT_ENDED_OF_DRAFT = f"""
SELECT status, count(*)
  FROM (SELECT status FROM run_details WHERE draft_id = :draft AND status IS NOT NULL LIMIT {COUNT_MAX}) AS counted
 GROUP BY status"""


class RunOutline(Struct, frozen=True):
    """A run without its input, its output and who executes it."""

    id: str
    version: int | None
    status: RunStatus
    seq: int
    idempotency_key: str | None
    error: bytes | None
    created_at_ms: int
    finished_at_ms: int | None


async def list_outlines(
    readers: Readers, workflow: str, limit: int, *, since: int | None = None, until: int | None = None
) -> list[RunOutline]:
    """Newest first. `since` and `until`: created then."""
    found = RUNS + those_of((RUNS_OF_WORKFLOW, workflow), (RUNS_SINCE, since), (RUNS_UNTIL, until))
    values = {"workflow": workflow, "since": since, "until": until}
    query = f"""SELECT {columns(RunOutline)} FROM runs AS d WHERE n IN ({found}{RUNS_PAGE})
 ORDER BY d.created_at_ms DESC, d.id DESC"""
    return await readers.fetch(RunOutline, query, {**values, "limit": limit})


async def list_runs(
    readers: Readers,
    workflow: str | None = None,
    status: str | None = None,
    before: str | None = None,
    limit: int = 50,
    draft: str | None = None,
    *,
    parent: str | None = None,
    since: int | None = None,
    until: int | None = None,
    text: str | None = None,
    by: str | None = None,
    key: str | None = None,
    without: Mapping[Without, str] = NOTHING,
) -> list[RunRow]:
    """Newest first (created_at, id). `before`: the run id that ended the previous page. `since`, `until`: created then.
    `by`: who started them. Of the first SCAN_MAX that the rest leaves: `key`: their idempotency key; `text`: in the id,
    that key or the error; `without`: those that are not that."""
    under_way = status is not None and status not in TERMINAL
    found = (RUNS_UNDER_WAY if under_way else RUNS) + those_of(
        (RUNS_OF_STATUS, None if under_way else status),
        (RUNS_OF_PERSON, by),
        (RUNS_OF_PARENT, parent),
        (RUNS_OF_WORKFLOW, workflow),
        (RUNS_OF_DRAFT, draft),
        (RUNS_SINCE, since),
        (RUNS_UNTIL, until),
        (RUNS_BEFORE, before),
    )
    looked = those_of((WITH_KEY, key), (WITH_TEXT, text), *((WITHOUT[name], value) for name, value in without.items()))
    if looked:
        found = f"SELECT d.n FROM ({found.replace('d.n', SCANNED, 1)}{RUNS_SCAN}) AS d WHERE true{looked}"
    query = f"SELECT {RUN} FROM runs AS d WHERE n IN ({found}{RUNS_PAGE}) ORDER BY d.created_at_ms DESC, d.id DESC"
    values: dict[str, Any] = {"status": status, "parent": parent, "workflow": workflow, "draft": draft, "by": by}
    values |= {"before": before, "since": since, "until": until, "key": key, "scan": SCAN_MAX, "limit": limit}
    values |= {"text": _like(text), **{f"not_{name}": value for name, value in without.items()}}
    return await readers.fetch(RunRow, query, {**values, "not_text": _like(without.get("text"))})


def _like(text: str | None) -> str | None:
    return None if text is None else "%" + re.sub(r"([\\%_])", r"\\\1", text.lower()) + "%"


async def starters(readers: Readers, ids: Sequence[str]) -> dict[str, tuple[str | None, bool]]:
    """Return who started each of these runs, None for no person or token, and if it is one step of a draft."""
    rows = await readers.all(STARTERS, {"ids": as_list(ids)})
    return {id: (by, bool(is_step)) for id, by, is_step in rows}


async def count_by_time(
    readers: Readers, since: int, until: int, width: int, workflow: str | None = None
) -> list[tuple[RunStatus, int, int]]:
    """Count the runs that were created in a time by status and part of it, each `width` ms long."""
    where = those_of((RUNS_OF_WORKFLOW, workflow))
    parts = [TIMES_OPEN.format(where=where), *(TIMES_ENDED.format(status=end, where=where) for end in ENDS)]
    values = {"since": since, "until": until, "width": width, "workflow": workflow}
    return [(status, part, count) for status, part, count in await readers.all(" UNION ALL ".join(parts), values)]


async def count_runs(readers: Readers, workflow: str | None = None, draft: str | None = None) -> dict[str, int]:
    """Count runs by status; a status without runs is left out, and COUNT_MAX means that number or more."""
    where = those_of((RUNS_OF_WORKFLOW, workflow), (RUNS_OF_DRAFT, draft))
    parts = [COUNT_OPEN + (OF_DETAILS + where if where else "") + BY_STATUS_OF_HEAD]
    if draft is not None and workflow is None:
        parts.append(COUNT_ENDED_OF_DRAFT)
    else:
        parts += [COUNT_ENDED.format(status=status) + where + COUNT_TO_MAX for status in ENDS]
    counts = await readers.all(" UNION ALL ".join(parts), {"workflow": workflow, "draft": draft})
    return {status: min(count, COUNT_MAX) for status, count in counts if count}


async def list_inputs(
    readers: Readers, workflow: str | None = None, draft: str | None = None, bytes_max: int = 65_536, limit: int = 100
) -> list[bytes]:
    """Return inputs of at most `bytes_max` bytes, repeats included, newest run first."""
    query = INPUTS + those_of((RUNS_OF_WORKFLOW, workflow), (RUNS_OF_DRAFT, draft)) + RUNS_PAGE
    values = {"workflow": workflow, "draft": draft, "bytes_max": bytes_max, "limit": limit}
    return [input for (input,) in await readers.all(query, values)]

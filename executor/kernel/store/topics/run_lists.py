"""Pages and counts of runs."""

from __future__ import annotations

from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.statements import COUNT_MAX, TERMINAL, Readers, those_of
from executor.kernel.store.topics.runs import RUN

# A page of runs, newest first. The numbers of those that are wanted are found in the details, or by their heads, with
# any of the conditions and RUNS_PAGE; then they are read.
RUNS = "SELECT d.n FROM run_details AS d WHERE true"
RUNS_UNDER_WAY = """
SELECT d.n FROM heads AS h CROSS JOIN run_details AS d WHERE d.n = h.n AND h.status = :status"""
RUNS_OF_STATUS = " AND d.status = :status"
RUNS_OF_WORKFLOW = " AND d.workflow = :workflow"
RUNS_OF_DRAFT = " AND d.draft_id = :draft"
RUNS_OF_PARENT = " AND d.parent_run_id = :parent"
RUNS_BEFORE = " AND (d.created_at_ms, d.id) < (SELECT created_at_ms, id FROM run_details WHERE id = :before)"
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
# The runs of a draft: its index has the status of those that have ended.
COUNT_ENDED_OF_DRAFT = f"""
SELECT status, count(*)
  FROM (SELECT status FROM run_details WHERE draft_id = :draft AND status IS NOT NULL LIMIT {COUNT_MAX}) AS counted
 GROUP BY status"""


async def list_runs(
    readers: Readers,
    workflow: str | None = None,
    status: str | None = None,
    before: str | None = None,
    limit: int = 50,
    draft: str | None = None,
    *,
    parent: str | None = None,
) -> list[RunRow]:
    """Newest first (created_at, id). `before`: the run id that ended the previous page."""
    under_way = status is not None and status not in TERMINAL
    found = (RUNS_UNDER_WAY if under_way else RUNS) + those_of(
        (RUNS_OF_STATUS, None if under_way else status),
        (RUNS_OF_PARENT, parent),
        (RUNS_OF_WORKFLOW, workflow),
        (RUNS_OF_DRAFT, draft),
        (RUNS_BEFORE, before),
    )
    query = f"SELECT {RUN} FROM runs AS d WHERE n IN ({found}{RUNS_PAGE}) ORDER BY d.created_at_ms DESC, d.id DESC"
    values = {"status": status, "parent": parent, "workflow": workflow, "draft": draft, "before": before}
    return await readers.fetch(RunRow, query, {**values, "limit": limit})


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

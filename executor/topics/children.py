"""The children of a run in its view. How they are created: `runtime/children.py`."""

from __future__ import annotations

from msgspec.structs import replace

from compiler.keys import parse_wait
from executor.runtime.parts import Parts
from executor.store.rows import TERMINAL, RunRow
from executor.topics.waits import Waits
from executor.views import ChildView, ParentView, RunView

# The view of a run shows the newest; `engine.runs.list(parent=...)` has pages.
SHOWN_MAX = 200


async def with_family(parts: Parts, waits: Waits, view: RunView, row: RunRow) -> RunView:
    """The view of a run with the run above it and the runs below it."""
    if row.parent_run_id is not None and row.parent_key is not None:
        view = replace(view, parent=ParentView(row.parent_run_id, parse_wait(row.parent_key)[0]))
    rows = await parts.store.list_children(row.id, SHOWN_MAX)
    if not rows:
        return view
    children = tuple(
        ChildView(
            run=child.id,
            workflow=child.workflow,
            version=child.version,
            status=child.status,
            key=parse_wait(child.parent_key)[0],
            attempt=parse_wait(child.parent_key)[1],
            created_at_ms=child.created_at_ms,
            finished_at_ms=child.finished_at_ms,
        )
        for child in rows
    )
    view = replace(view, children=children)
    if row.status in TERMINAL:
        return view
    asked = await waits.views(await parts.store.list_waits_below(row.id, SHOWN_MAX))
    active = await parts.store.count_active_below(row.id, parts.clock.now_ms())
    return replace(view, child_waits=tuple(asked), children_active=active)

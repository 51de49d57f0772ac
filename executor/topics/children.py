"""A run's children as people look at them from above; `engine.children`. How they are made: `runtime/children.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from compiler.keys import parse_wait
from executor.store.rows import TERMINAL, RunRow
from executor.views import ChildView, ParentView, RunView

if TYPE_CHECKING:
    from executor.engine import Engine

# The view of a run shows the newest; `list_runs(parent=...)` has pages.
SHOWN_MAX = 200


class Children:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._store = engine.store

    async def active(self, run: str) -> int:
        """Open runs below `run` that do something, or are about to."""
        return await self._store.count_active_below(run, self._engine.now_ms())

    async def completed(self, view: RunView, row: RunRow) -> RunView:
        """The view of a run with what is above and below it."""
        if row.parent_run_id is not None and row.parent_key is not None:
            view = replace(view, parent=ParentView(row.parent_run_id, parse_wait(row.parent_key)[0]))
        rows = await self._store.list_children(row.id, SHOWN_MAX)
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
        waits = await self._engine.waits.views(await self._store.list_waits_below(row.id, SHOWN_MAX))
        return replace(view, child_waits=tuple(waits), children_active=await self.active(row.id))

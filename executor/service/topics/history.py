"""Looking back: a run as it stood at any event, and two runs side by side; `engine.history`."""

from __future__ import annotations

from msgspec.structs import replace

from executor.kernel.core.state import DECIDED
from executor.kernel.journal.reader import load_plan
from executor.kernel.read.find import existing_run
from executor.service.parts import Parts
from executor.service.views import Why
from executor.service.views import diff as diff_view
from executor.service.views import state as state_view
from executor.service.views import why as why_view
from executor.service.views.diff import RunDiff
from executor.service.views.state import RunState

_DECIDED = frozenset(status.name.lower() for status in DECIDED)


class History:
    """Runs at an earlier event, and compared; `engine.history`. Reads journals only."""

    def __init__(self, parts: Parts) -> None:
        self._store = parts.store
        self._clock = parts.clock
        self._owned = parts.owned

    async def state(self, run: str, seq: int | None = None) -> RunState:
        """Return the run after event `seq`, at most the last one, or as it is now if `seq` is None. Raises NotFound."""
        async with existing_run(self._store, run) as row:
            return await state_view.build(self._store, await load_plan(self._store, row.plan_hash), row, seq)

    async def why(self, run: str, node: str | None = None, seq: int | None = None) -> list[Why]:
        """Explain every node that is not decided yet, or the given one (a node id or a whole key), after event `seq`.
        Raises NotFound."""
        async with existing_run(self._store, run) as row:
            plan = await load_plan(self._store, row.plan_hash)
            found = await why_view.build(self._store, plan, row, node, seq)
            if seq is None and plan.has_limits and row.finished_at_ms is None:
                found = why_view.with_limits(found, await self._store.places_of(run), row.epoch)
            full = await self._store.waits_for(run) if seq is None else None
            since_ms = row.stale_since_ms(self._clock.now_ms()) if seq is None else None
            lacks = self._owned.lacks(row) if seq is None else None
        if since_ms is not None:
            held_up = f"the worker of the run stopped responding at {since_ms} ms, and another one will continue it"
        elif lacks is not None:
            held_up = f"the run waits for a process that has {lacks}"
        elif full is not None:
            held_up = f"the run waits for limit {full.key} ({full.held} of {full.at_most})"
        else:
            return found
        return [why if why.state in _DECIDED else replace(why, reasons=(held_up, *why.reasons)) for why in found]

    async def diff(self, a: str, b: str) -> RunDiff:
        """Return where two runs differ. Blocks with the same id are the same, in any version of the workflow. Raises
        NotFound."""
        async with existing_run(self._store, a) as one, existing_run(self._store, b) as two:
            plan_one = await load_plan(self._store, one.plan_hash)
            plan_two = await load_plan(self._store, two.plan_hash)
            return await diff_view.build(self._store, one, plan_one, two, plan_two)

"""A reader's place in the journal of a run. It carries no queue: a slow reader costs nothing but its own reads."""

from __future__ import annotations

import asyncio

from executor.runtime.find import find_run
from executor.runtime.hub import Hub, Lookout
from executor.runtime.pages import Pages
from executor.store.contract import Store
from executor.store.rows import TERMINAL, Record

# Without a signal a reader looks again: should one be lost, this is what it costs.
PATIENCE_S = 30.0


class Cursor:
    """Behind event `after` of `run`. Take `watch` BEFORE `take`, and wait for it when `take` found nothing: then
    nothing falls in between. Commits of this process are signalled at once, those of others by the lookout."""

    def __init__(self, store: Store, hub: Hub, pages: Pages, lookout: Lookout, run: str, after: int) -> None:
        self._store = store
        self._hub = hub
        self._pages = pages
        self._lookout = lookout
        self._run = run
        self._after = after
        self._idle = True  # since the last take
        self._ended = False

    def watch(self) -> asyncio.Future[None]:
        """Done at the next commit to the run. Cancel it when it is not needed any more."""
        self._lookout.begin()
        return self._hub.watch(self._run)

    async def take(self) -> list[Record] | None:
        """The next batch; [] when there is nothing yet, None at the end. Raises NotFound: no such run (any more)."""
        if self._ended:
            return None
        records = await self._pages.read(self._run, self._after)
        if records:
            self._after = records[-1].seq
            self._idle = False
            self._ended = records[-1].type == "run.finished"
            return records
        if self._idle:  # the row tells that the run had ended before `after`, or was deleted
            row = await find_run(self._store, self._run)
            if row.status in TERMINAL and self._after >= row.seq:
                return None
        self._idle = True
        return records

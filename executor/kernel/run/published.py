"""The state that the code of a durable function publishes: the last one of those between two appends is recorded."""

from __future__ import annotations

import logging
from typing import Any

from executor.errors import BlockError
from executor.kernel.core.events import StatePublished
from executor.kernel.journal.reader import newest, output_of
from executor.kernel.run.border import Border
from executor.kernel.run.step_work import NO_KEY, StepJournal
from executor.kernel.store.patience import with_retries
from executor.kernel.values.payload import dump

log = logging.getLogger("weft.durable")


class Published:
    """`note` is called when all that happened before is delivered to the code: what it publishes until then, it has
    published before."""

    def __init__(self, journal: StepJournal, border: Border) -> None:
        self.enter(journal, border)
        self._last: bytes | None = None  # recorded
        self._is_read = False
        self._state: bytes | None = None

    def enter(self, journal: StepJournal, border: Border) -> None:
        self._journal = journal
        self._border = border

    def leave(self) -> None:
        del self._journal, self._border

    @property
    def is_due(self) -> bool:
        return self._state is not None

    def put(self, state: Any) -> None:
        """Raises BlockError: it is no JSON value, or too large."""
        self._state = self._border.clean(state, dump(state))

    async def note(self, attempt: int) -> None:
        """Record the state with the next append, if it is another one. Raises BlockError: the outputs of the run are
        too large, or the database cannot be read."""
        state, self._state = self._state, None
        if state is None:
            return
        if not self._is_read:
            what = f"the state of run {self._journal.run_id}"
            self._last = await with_retries(self._read, what=what, failed="the database could not be read", log=log)
            self._is_read = True
        if state == self._last:
            return
        if (full := self._border.full(len(state))) is not None:
            raise BlockError(full.message, code=full.code, retryable=False, hint=full.hint)
        self._journal.note(StatePublished(NO_KEY, attempt), state)
        self._last = state

    async def _read(self) -> bytes | None:
        record = await newest(self._journal.store, self._journal.run_id, "node.state")
        return None if record is None else await output_of(self._journal.store, record)

"""Runs that wait for other code (`run/attention.OtherCode`) are entered again by a process that has it: when it starts,
and later, as another process may have had a newer version for a while."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any, Final

import orjson

from executor.errors import NotFound
from executor.kernel.core.messages import Answer, encode
from executor.kernel.run.parts import Parts
from executor.kernel.store.topics.waits import WaitRow

log = logging.getLogger("weft.worker")

LOOK_EVERY_S: Final = 30.0
PAGE: Final = 200
# Two processes with different code, neither of which fits, must not enter a run in turn for ever.
TIMES_MAX: Final = 5
BY: Final = "weft"


class OtherCodeWaits:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._times: Counter[str] = Counter()  # by run

    async def look(self) -> float:
        """Answer the questions for which other code is here. Returns the seconds until the next look. Raises
        StoreError."""
        before: tuple[str, str] | None = None
        while True:
            rows = await self._parts.store.list_waits(limit=PAGE, kind="attention", before=before)
            for row in rows:
                if self._times[row.run_id] < TIMES_MAX and self._is_here(orjson.loads(row.request)):
                    await self._enter(row)
            if len(rows) < PAGE:
                return LOOK_EVERY_S
            before = rows[-1].run_id, rows[-1].id

    def _is_here(self, request: dict[str, Any]) -> bool:
        if request.get("reason") != "code":
            return False
        try:
            handler: Any = self._parts.registry.handler("durable")
        except NotFound:
            return False
        return bool(handler.has_other_code(request))

    async def _enter(self, row: WaitRow) -> None:
        self._times[row.run_id] += 1
        now_ms = self._parts.clock.now_ms()
        answer = encode(Answer(row.id, now_ms, {}, "retry", by=BY)), now_ms
        response, owned = orjson.dumps({"action": "retry"}), self._parts.owned
        # Entered here, if there is room: another process may have the code that does not fit.
        here = None if owned.answer is None else await owned.answer(row, response, BY, *answer)
        if here is None:
            answered = await self._parts.store.answer_wait(row.token_hash, response, BY, *answer)
            self._parts.wake(row.run_id)
        else:
            answered, _ = here
        if answered is not None and answered.won:
            log.info("run %s waited for other code, and is entered with the code that is here", row.run_id)

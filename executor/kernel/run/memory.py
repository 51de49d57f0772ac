"""Memory of the agents of one run, implements `Context.memory`: turns of a conversation, in the store.

Reads and writes happen inside a step, so a later attempt gets what the first one read. A step whose end was lost is
done again: a turn that is there is not written a second time.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import orjson

from executor.kernel.process.clock import Clock
from executor.kernel.store.patience import with_retries
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.topics.memory import Conversation, MemoryTurn
from executor.kernel.store.topics.store import Store
from executor.kernel.values.redact import Redactor

T = TypeVar("T")
log = logging.getLogger("weft.memory")


class RunMemory:
    """See `executor.kernel.handler.base.Memory`."""

    def __init__(self, store: Store, row: RunRow, clock: Clock, redactor: Redactor) -> None:
        self._store = store
        self._run_id = row.id
        self._workflow = row.workflow
        self._clock = clock
        self._redactor = redactor

    async def recall(self, scope: str, key: str, turns: int) -> list[list[dict[str, Any]]]:
        conversation = self._conversation(scope, key)
        rows = await self._with_retries(lambda: self._store.recall(conversation, turns))
        return [orjson.loads(row.messages) for row in rows]

    async def remember(self, scope: str, key: str, node: str, messages: Sequence[Mapping[str, Any]]) -> bool:
        conversation = self._conversation(scope, key)
        data = self._redactor.redact_json(orjson.dumps(list(messages)))
        turn = MemoryTurn(f"{self._run_id}:{node}", self._run_id, self._clock.now_ms(), data)
        return await self._with_retries(lambda: self._store.remember(conversation, turn))

    def _conversation(self, scope: str, key: str) -> Conversation:
        """Two keys that differ in a secret are two conversations, and the secret is in neither."""
        label = self._redactor.label
        return Conversation("" if scope else self._workflow, label(scope), label(key))

    async def _with_retries(self, ask: Callable[[], Awaitable[T]]) -> T:
        what, failed = f"the memory of run {self._run_id}", "the database could not be used for a memory"
        return await with_retries(ask, what=what, failed=failed, log=log)

"""Runs with a block type, or a function of a block, that this process does not have, while others may: those of a newer
version, with another package, or started with other functions. They are given back, and come again a little later,
until a process that has it claims them. Alone on a database there is no other process, and the block fails."""

from __future__ import annotations

import logging
import random
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from compiler.plan import Node, Plan
from executor.errors import NotFound
from executor.runtime.parts import Parts
from executor.store.rows import RunRow

log = logging.getLogger("weft.worker")

# Until the run is due again. It may come back to the same process, so not at once; each time costs two commits.
AGAIN_S: Final = (2.0, 6.0)
PLANS_MAX: Final = 10_000


@runtime_checkable
class Particular(Protocol):
    """A handler that has not the same to offer in each process."""

    def lacks(self, params: dict[str, Any]) -> str | None:
        """What a block with these params, as they are in the plan, needs and is not in this process."""
        ...


class Lacking:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._by_plan: dict[str, str | None] = {}  # hash -> what is not here
        self._revision = 0  # of the stored connectors that it was found with
        self._logged: set[str] = set()

    def of(self, plan: Plan) -> str | None:
        """What the plan needs and another process may have. None: all is here, or there is no other."""
        if not self._parts.elsewhere.is_connected:
            return None
        if self._revision != self._parts.connectors.revision or len(self._by_plan) >= PLANS_MAX:
            self._revision = self._parts.connectors.revision
            self._by_plan.clear()
        if plan.hash not in self._by_plan:
            found = (self._of_block(node) for node in sorted(plan.nodes, key=lambda node: node.type))
            self._by_plan[plan.hash] = next((what for what in found if what is not None), None)
        return self._by_plan[plan.hash]

    async def give_back(self, row: RunRow, what: str) -> None:
        """A claimed run that needs this. Raises StoreError."""
        if what not in self._logged:
            self._logged.add(what)
            log.warning("run %s needs %s, which this process lacks: left to the others", row.id, what)
        store, now_ms = self._parts.store, self._parts.clock.now_ms()
        again_ms = now_ms + round(random.uniform(*AGAIN_S) * 1000)
        # It waits for a process. With a message in its inbox it must not be called waiting.
        if not await store.release(row.id, row.epoch, row.seq, again_ms, "waiting"):
            await store.release(row.id, row.epoch, row.seq, again_ms, "running")

    def _of_block(self, node: Node) -> str | None:
        try:
            handler = self._parts.registry.handler(node.type)
        except NotFound:
            return f"block type {node.type!r}"
        return handler.lacks(msgspec.json.decode(node.params)) if isinstance(handler, Particular) else None

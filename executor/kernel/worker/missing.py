"""Runs with a block type, or a function of a block, that this process does not have, while others may: those of a newer
version, with another package, or started with other functions; or this one, when it starts again with a function that
was renamed or left out. They are given back, and come again a little later, until a process that has it claims them.
A durable function that stays away is a question: its runs are in the inbox then (`other_code.py`).
A document that names what is not there is refused when it is compiled, so each run had it when it began."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from compiler.plan import Node, Plan
from executor.errors import NotFound
from executor.kernel.core import messages as m
from executor.kernel.read.find import find_run
from executor.kernel.run.move import move
from executor.kernel.run.parts import Parts
from executor.kernel.store.run_rows import RunRow

T = TypeVar("T")
log = logging.getLogger("weft.worker")

# Bounds of the pause before the run is due again. It may come back to the same process, so not at once; each time
# costs two commits, so many such runs come less often.
AGAIN_S: Final = (2.0, 6.0)
AGAIN_EACH_S: Final = 0.05
AGAIN_MAX_S: Final = 60.0
# A run whose durable function is missing is given back for this long: another process may have it.
GIVE_BACK_S: Final = 60.0
# The block types of functions, which a process without such functions does not have.
FUNCTIONS: Final = {"python": "Python function", "durable": "durable function"}
PLANS_MAX: Final = 10_000


# The method `lacks` that some block types have. It returns what a block with these params, as they are in the plan,
# needs and this process does not have, and what it has instead; or None.
Lacks = Callable[[dict[str, Any]], str | None]


class MissingBlocks:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._by_plan: dict[str, tuple[str, ...]] = {}  # hash -> what is not here
        self._since_ms: dict[str, int] = {}  # run -> when it was first given back
        self._revision = 0  # of the stored connectors that it was found with
        self._logged: set[str] = set()

    def of(self, plan: Plan) -> str | None:
        """Return what the plan needs and only another process may have, or None if all is here."""
        return next(iter(self._all_of(plan)), None)

    def _all_of(self, plan: Plan) -> tuple[str, ...]:
        if self._revision != self._parts.connectors.revision or len(self._by_plan) >= PLANS_MAX:
            self._revision = self._parts.connectors.revision
            self._by_plan.clear()
        if plan.hash not in self._by_plan:
            found = (self._of_block(node) for node in sorted(plan.nodes, key=lambda node: node.type))
            self._by_plan[plan.hash] = tuple(what for what in found if what is not None)
        return self._by_plan[plan.hash]

    async def held_up_by(self, row: RunRow, plan: Plan) -> str | None:
        """Return what a claimed run waits for, or None. A run that lacks something still ends when it is cancelled.
        Raises StoreError."""
        what = self.of(plan)
        known = self._parts.owned.missing
        if what is None:
            self._since_ms.pop(row.id, None)
        if what is None or row.orphaned or self._asks(row, plan) or await self._messages(row, m.Cancel):
            known.pop(row.id, None)
            return None
        known[row.id] = what
        return what

    def _asks(self, row: RunRow, plan: Plan) -> bool:
        """Returns True if the run has been given back for long enough, and its handlers ask for what is missing."""
        now_ms = self._parts.clock.now_ms()
        asks = all(what.startswith(FUNCTIONS["durable"]) for what in self._all_of(plan))
        return asks and now_ms - self._since_ms.setdefault(row.id, now_ms) >= GIVE_BACK_S * 1000

    async def give_back(self, row: RunRow, plan: Plan, what: str) -> None:
        """A claimed run that needs this. If it is to move to another version, it does, and is looked at again. Raises
        StoreError."""
        if what not in self._logged:
            self._logged.add(what)
            log.warning("run %s needs %s, which this process lacks: it waits for a process that has it", row.id, what)
        store, now_ms = self._parts.store, self._parts.clock.now_ms()
        for n, migrate in await self._messages(row, m.Migrate):
            if await move(store, row, plan, migrate, n, self._parts.clock.now_ms) is not None:
                moved = await find_run(store, row.id)
                await store.release(row.id, row.epoch, moved.seq, now_ms, "running")
                return
        pause_s = random.uniform(*AGAIN_S) + AGAIN_EACH_S * len(self._parts.owned.missing)
        again_ms = now_ms + round(min(AGAIN_MAX_S, pause_s) * 1000)
        # It waits for a process. With a message in its inbox it must not be called waiting.
        if not await store.release(row.id, row.epoch, row.seq, again_ms, "waiting"):
            await store.release(row.id, row.epoch, row.seq, again_ms, "running")

    async def _messages(self, row: RunRow, type: type[T]) -> list[tuple[int, T]]:
        inbox = [(each.n, m.decode(each.message)) for each in await self._parts.store.read_inbox(row.id)]
        return [(n, message) for n, message in inbox if isinstance(message, type)]

    def _of_block(self, node: Node) -> str | None:
        try:
            handler = self._parts.registry.handler(node.type)
        except NotFound:
            if (kind := FUNCTIONS.get(node.type)) is not None:
                name = msgspec.json.decode(node.params).get("function")
                return f"{kind} {name!r} (this process has no functions)"
            return f"block type {node.type!r}"
        lacks: Lacks | None = getattr(handler, "lacks", None)
        return None if lacks is None else lacks(msgspec.json.decode(node.params))

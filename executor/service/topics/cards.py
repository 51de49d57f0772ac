"""Workflows as the front page shows them; `engine.cards`."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, Final

import msgspec

from executor.errors import WeftError
from executor.kernel.journal.reader import load_plan
from executor.kernel.store.statements import TERMINAL
from executor.kernel.store.topics.workflows import Order, ShortRun, WorkflowHead
from executor.service.parts import Parts, Topic
from executor.service.views import run as run_view
from executor.service.views import view_of

DAY_MS: Final = 24 * 3_600_000
EVENTS_MAX: Final = 1_000  # of a run whose states are shown: more take too long to read for a picture
KEPT_MAX: Final = 500  # states of runs that have ended


class Card(WorkflowHead, frozen=True, kw_only=True):
    """A workflow, with its active document. `states`: of each block in the last run. `runs`: the last ones, oldest
    first. `open`: the open runs by status. `today`: the runs of a day, at most 1,000. `next_ms`: when a schedule starts
    the next one."""

    document: Any
    runs: list[ShortRun]
    states: dict[str, str]
    open: dict[str, int]
    today: int
    next_ms: int | None


class Cards(Topic):
    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._states: OrderedDict[str, dict[str, str]] = OrderedDict()

    async def list(
        self,
        folder: str | None = None,
        text: str | None = None,
        order: Order = "run",
        since_ms: int | None = None,
        after: int = 0,
        limit: int = 24,
    ) -> list[Card]:
        """List workflows; `text` is in the name, or in the name or type of a block."""
        store = self._store
        heads = await store.list_cards(folder, text, order, after, limit)
        names = [head.name for head in heads]
        since_ms = self._clock.now_ms() - DAY_MS if since_ms is None else since_ms
        facts, runs, opened = await asyncio.gather(
            store.card_facts(names, since_ms), store.short_runs(names), store.count_open(names)
        )
        cards = []
        for head in heads:
            if (fact := facts.get(head.name)) is not None:  # else it was deleted meanwhile
                cards.append(
                    view_of(
                        Card,
                        head,
                        document=msgspec.Raw(fact.document),
                        runs=runs.get(head.name, []),
                        states=await self._states_of(head),
                        open=opened.get(head.name, {}),
                        today=fact.today,
                        next_ms=fact.next_ms,
                    )
                )
        return cards

    async def _states_of(self, head: WorkflowHead) -> dict[str, str]:
        if head.last_run is None:
            return {}
        id = head.last_run.id
        if (kept := self._states.get(id)) is not None:
            self._states.move_to_end(id)
            return kept
        row = await self._store.get_run(id)
        if row is None or row.seq > EVENTS_MAX:
            return {}
        try:
            graph = await run_view.graph(self._store, await load_plan(self._store, row.plan_hash), row)
        except WeftError:
            return {}  # damage to a run, which the doctor names, is no reason to show no workflows
        states = {node.block: node.state for node in graph.nodes if node.sentinel != "start"}
        if row.status in TERMINAL:
            self._states[id] = states
            if len(self._states) > KEPT_MAX:
                self._states.popitem(last=False)
        return states

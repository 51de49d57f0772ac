"""The attempts of one run that are under way: a task each, which is cancelled when its end is no longer needed. Those
of inline nodes run within the loop.

They outlive the loop that started them: when a run moves to another plan, or is folded again after a refused append,
the next loop owns them. An attempt ends under the plan with which it began; its result belongs to the node of that
plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from compiler.keys import NodeKey
from executor.kernel.core import commands as c
from executor.kernel.core import events as e
from executor.kernel.core import facts as f
from executor.kernel.core.decide_attempts import CANCELLED
from executor.kernel.core.events import ErrorInfo
from executor.kernel.process.observe import begin as begin_doing
from executor.kernel.process.observe import begin_task
from executor.kernel.run.attempt import Attempt
from executor.kernel.run.launch import Launcher
from executor.kernel.run.meters import now_s, outcome_of
from executor.kernel.run.parts import Parts
from executor.kernel.run.results import Arrivals, Payload, Result
from executor.kernel.run.wait_ends import Settling

# A cancelled handler gets this long to clean up; then it is abandoned and its outcome ignored.
CANCEL_GRACE_S = 5.0


class Attempts:
    """`arrivals`: where they log, and where their results are found."""

    def __init__(self, run: str, parts: Parts, arrivals: Arrivals) -> None:
        self.arrivals = arrivals
        self._run_id = run
        self._clock = parts.clock
        self._meters = parts.meters
        self._lanes = parts.owned.lanes
        self._by_key: dict[NodeKey, Attempt] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def keys(self) -> set[NodeKey]:
        """Return the keys of nodes with an attempt that has not ended, or whose end is not decided yet."""
        ended = {key for result in self.arrivals.results if (key := getattr(result.fact, "key", None)) is not None}
        return ended | self._by_key.keys()

    def settling(self, events: Sequence[e.Event], first_seq: int) -> list[Settling]:
        """Return what waits until these events are on disk: the ends of waits, which their attempts receive here, and
        the lanes that attempts have left."""
        ends: list[Settling] = []
        for seq, event in enumerate(events, first_seq):
            if isinstance(event, e.NodeLeft):
                ends += self._lanes.left(self._run_id, event.key, event.attempt)
            elif isinstance(event, e.StepFinished):
                attempt = self._by_key.get(event.key)
                if attempt is not None and attempt.number != event.attempt:
                    ends.append(attempt.wait_ends.add(event.n, seq))
        return ends

    def limits_in_use(self) -> set[str]:
        return {attempt.place.ask.key for attempt in self._by_key.values() if attempt.place is not None}

    def start(self, launcher: Launcher, key: NodeKey, number: int, seq: int) -> None:
        """Start an attempt, which may have ended when this returns. `seq` is that of the commit with its start."""
        attempt = self._by_key[key] = Attempt(launcher.host, key, number, seq, self.arrivals)
        begin_task(self._run(launcher, attempt), f"{self._run_id}:{key[1]}")

    async def run_inline(self, launcher: Launcher, command: c.RunNode) -> Result:
        """Run an attempt here, and return its result."""
        run, (path, number) = launcher.host.run, command.key
        node = run.plan.nodes[number]
        turn = count = 0
        if node.sentinel == "end":
            container = run.state.containers.get((path, node.body))
            if container is not None:
                turn, count = container.opened, container.count
        attempt = Attempt(launcher.host, command.key, command.attempt, run.state.seq, self.arrivals)
        began_s = now_s()
        result = await launcher.run(attempt, turn, count)
        self._meters.attempt_ended(node.type, outcome_of(result), now_s() - began_s)
        return result

    def refuse(self, key: NodeKey, number: int) -> None:
        """Cancel an attempt before it begins; its start is recorded."""
        self.arrivals.add(f.NodeErred(self._clock.now_ms(), key, number, CANCELLED))

    def cancel(self, key: NodeKey, drains: bool = False) -> None:
        """Cancel an attempt. Its result comes all the same, at the latest after the grace; with `drains` when what it
        has begun has ended, each within its own time limit."""
        attempt = self._by_key.get(key)
        if attempt is None:
            return
        if not attempt.cancelled:  # a second time would interrupt its clean-up
            attempt.cancelled, attempt.drains = True, drains
            if attempt.task is not None:
                attempt.task.cancel()
        if attempt.grace is None and not drains:
            attempt.grace = asyncio.get_running_loop().call_later(CANCEL_GRACE_S, self._abandon, attempt)

    def cancel_all(self) -> None:
        for attempt in self._by_key.values():
            attempt.end_grace()
            if attempt.task is not None:
                attempt.task.cancel()
        self._by_key.clear()

    def rekey(self, translate: Callable[[NodeKey], NodeKey]) -> None:
        """Change the keys: the run follows another plan, where the same nodes have other keys."""
        for attempt in self._by_key.values():
            attempt.key = translate(attempt.key)
        self._by_key = {attempt.key: attempt for attempt in self._by_key.values()}
        self.arrivals.rekey(translate)

    async def _run(self, launcher: Launcher, attempt: Attempt) -> None:
        attempt.task = asyncio.current_task()
        key, began_s = attempt.started_as, now_s()
        begin_doing(partial(launcher.host.doing, key, attempt.number))
        result = await launcher.run(attempt)
        self._meters.attempt_ended(attempt.node.type, outcome_of(result), now_s() - began_s)
        if attempt.place is not None:
            result.place = attempt.leave_place()
        if attempt.key != key:
            fact: Any = result.fact  # of an attempt: it has a key
            result.fact = replace(fact, key=attempt.key)
        self._remove(attempt)
        self.arrivals.put(result)

    def _abandon(self, attempt: Attempt) -> None:
        if self._by_key.get(attempt.key) is not attempt:
            return
        self._remove(attempt)
        error = ErrorInfo("cancelled", f"the handler did not stop within {CANCEL_GRACE_S:g} s and was abandoned")
        fact = f.NodeErred(self._clock.now_ms(), attempt.key, attempt.number, error)
        self.arrivals.put(Result(fact, Payload(), attempt.leave_place()))

    def _remove(self, attempt: Attempt) -> None:
        if self._by_key.get(attempt.key) is attempt:  # else it was abandoned, and this is the one that followed it
            del self._by_key[attempt.key]
        if attempt.cancelled:
            attempt.end_grace()

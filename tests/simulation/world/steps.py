"""Handlers that work in durable steps, and what must be true of each step whatever dies around it.

Which blocks have steps depends on the workflow; how long a step takes, whether it fails and what it puts out is drawn
anew each time its work is done. So an output that a later attempt sees again can only come from the journal.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import orjson

from executor.errors import BlockError
from executor.kernel.core.events import StepEffect
from executor.kernel.handler.base import StepContext, Suspend

STEP_FAILED = "step_scripted"
LOST = "attempt_lost"
CAUGHT = (STEP_FAILED, LOST)  # the second: a person says that a lost step failed

_OUTPUT = "SELECT data, output FROM events WHERE run_id = ? AND seq = ?"
_BLOB = "SELECT bytes FROM blobs WHERE hash = ?"

STEP_EVENTS = frozenset(("step.started", "step.finished", "retry.scheduled", "wait.opened", "wait.closed"))

Key = tuple[str, str, str]  # run, node, path
Complain = Callable[[str], None]


@dataclass
class Step:
    """As the journal has it. `asked`: a person has said what is to become of it, since it began."""

    effect: str
    attempt: int
    started_seq: int
    finished_seq: int = 0
    failed: bool = False
    asked: bool = False


@dataclass
class StepLedger:
    """Hears of each event that is committed, and of each work that begins."""

    db: sqlite3.Connection
    complain: Complain
    steps: dict[Key, dict[int, Step]] = field(default_factory=dict)
    asking: dict[Key, int] = field(default_factory=dict)  # for which step a wait is open
    asked_in: dict[Key, int] = field(default_factory=dict)  # the last attempt whose lost step was asked about
    failed_seq: dict[Key, int] = field(default_factory=dict)  # of the last attempt that failed by itself
    done: set[tuple[Key, int, int]] = field(default_factory=set)  # with attempt and number

    def event(self, key: Key, seq: int, type: str, attempt: int, data: dict[str, Any]) -> None:
        match type:
            case "step.started":
                self._started(key, seq, attempt, data["n"], data["effect"])
            case "step.finished":
                step = self.steps[key][data["n"]]
                if step.finished_seq:
                    self.complain(f"step {data['n']} of {key} is finished twice")
                step.finished_seq, step.failed = seq, "error" in data
            case "retry.scheduled" if data["error"]["code"] != LOST:
                self.failed_seq[key] = seq
            case "wait.opened" if data.get("step") is not None and data["kind"] == "attention":
                self.asking[key], self.asked_in[key] = data["step"], attempt
            case "wait.closed" if key in self.asking:
                self.steps[key][self.asking.pop(key)].asked = True

    def asked(self, key: Key, attempt: int) -> bool:
        """Whether the attempt left to have a person asked about a step."""
        return self.asked_in.get(key) == attempt

    def _started(self, key: Key, seq: int, attempt: int, n: int, effect: str) -> None:
        steps = self.steps.setdefault(key, {})
        before = steps.get(n)
        if before is not None:
            last_start = max(step.started_seq for step in steps.values())
            ended = before.finished_seq
            again = before.failed and last_start < ended < self.failed_seq.get(key, 0)
            if ended and not again:
                self.complain(f"step {n} of {key} has finished and begins again")
            if not ended and before.effect == "write" and not before.asked:
                self.complain(f"step {n} of {key} changes something, was lost, and begins again unasked")
            if before.attempt == attempt:
                self.complain(f"step {n} of {key} begins twice in attempt {attempt}")
        steps[n] = Step(effect, attempt, seq)

    def begins(self, key: Key, attempt: int, n: int) -> None:
        """The work of a step, each time after a start of its own that is on disk."""
        step = self.steps.get(key, {}).get(n)
        if step is None or step.attempt < attempt:
            self.complain(f"step {n} of {key} is done in attempt {attempt}, and its start is not on disk")
        if (key, attempt, n) in self.done:
            self.complain(f"step {n} of {key} is done twice in attempt {attempt}")
        self.done.add((key, attempt, n))

    def seen(self, key: Key, n: int, outcome: Any, owner: bool) -> None:
        """By a handler, for the first time or again."""
        step = self.steps.get(key, {}).get(n)
        if step is None or not step.finished_seq:
            if owner:
                self.complain(f"the handler of {key} sees the end of step {n}, which is not on disk")
        elif owner and (stored := self.outcome(key[0], step.finished_seq)) != outcome:
            self.complain(f"the handler of {key} sees {outcome!r} of step {n}, its journal says {stored!r}")

    def outcome(self, run: str, seq: int) -> Any:
        ((data, output),) = self.db.execute(_OUTPUT, (run, seq)).fetchall()
        told = orjson.loads(data)
        if "error" in told:
            return {"failed": told["error"]["code"]}
        if output is None and "blob" in told:
            ((output,),) = self.db.execute(_BLOB, (told["blob"],)).fetchall()
        return None if output is None else orjson.loads(output)

    def outcomes(self, key: Key) -> list[Any]:
        """Of all steps, in their order."""
        return [self.outcome(key[0], step.finished_seq) for _, step in sorted(self.steps.get(key, {}).items())]


@dataclass
class Stepping:
    """What the handlers of a world do in steps. `share`: of its blocks; 0: no block has any."""

    rng: Random
    ledger: StepLedger
    owns: Callable[[str], bool]  # whether the process that asks owns the run
    share: float = 0.0

    @classmethod
    def draw(cls, seed: int, ledger: StepLedger, owns: Callable[[str], bool]) -> Stepping:
        rng = Random(f"world {seed} steps")
        return cls(rng, ledger, owns, rng.choice((0.4, 0.9)) if rng.random() < 0.4 else 0.0)

    def begin(self, ctx: StepContext, actions: tuple[str, ...]) -> Handler | None:
        """None: this block has no steps."""
        plan = Random(f"{ctx.workflow} {ctx.key} steps")
        return Handler(self, ctx, plan, actions) if plan.random() < self.share else None


class Handler:
    """One attempt of a block with steps: some calls, one after the other or side by side, and maybe waits between, of
    which several may be open at the same time."""

    def __init__(self, stepping: Stepping, ctx: StepContext, plan: Random, actions: tuple[str, ...]) -> None:
        self._of = stepping
        self._ctx = ctx
        self._plan = plan
        self._beside = Random(f"{ctx.workflow} {ctx.key} waits side by side")
        self._actions = actions
        node, _, path = ctx.key.partition("@")
        self._key = (ctx.run_id, node, path)
        self._n = 0
        self.outcomes: list[Any] = []

    async def work(self) -> None:
        plan, left = self._plan, self._plan.randint(1, 4)
        while left > 0:
            if plan.random() < 0.2:
                timer, more = plan.random() < 0.5, self._beside.choice((0, 0, 1, 2))
                waits = [self._wait(timer), *(self._wait(self._beside.random() < 0.5) for _ in range(more))]
                self.outcomes += await asyncio.gather(*waits)
                left -= 1
                continue
            side_by_side = min(left, plan.choice((1, 1, 2, 3)))
            calls = [
                self._step(plan.choice(("none", "read", "write")), plan.random() < 0.2) for _ in range(side_by_side)
            ]
            self.outcomes += await asyncio.gather(*calls)
            left -= side_by_side

    async def end(self, error: BlockError | None) -> None:
        """A last step, which fails with the attempt: it is done again with the next one."""
        self.outcomes.append(await self._step(self._plan.choice(("none", "write")), False, error))

    def _step(self, effect: StepEffect, may_fail: bool, error: BlockError | None = None) -> Any:
        """Its number is of the order of the calls, and not of the order in which they begin."""
        self._n += 1
        n, rng = self._n, self._of.rng

        async def work() -> Any:
            self._of.ledger.begins(self._key, self._ctx.attempt, n)
            await asyncio.sleep(rng.random() * rng.choice((0, 0.3, 3)))
            if error is not None:
                raise error
            if may_fail and rng.random() < 0.5:
                raise BlockError("this step failed", code=STEP_FAILED, retryable=True)
            return rng.getrandbits(48)

        return self._seen(n, self._ctx.step("tool", f"call {n}", self._ctx.key, work, effect=effect), error)

    def _wait(self, timer: bool) -> Any:
        self._n += 1
        if timer:
            suspend = Suspend("timer", due_ms=self._ctx.now_ms + self._of.rng.randrange(9_000))
        else:
            suspend = Suspend("approval", actions=self._actions)
        return self._seen(self._n, self._ctx.wait(suspend), None)

    async def _seen(self, n: int, call: Any, error: BlockError | None) -> Any:
        try:
            outcome = await call
        except BlockError as failure:
            if failure.code not in (*CAUGHT, *([] if error is None else [error.code])):
                raise
            outcome = {"failed": failure.code}
        self._of.ledger.seen(self._key, n, outcome, self._of.owns(self._key[0]))
        return outcome

"""Plays a recorded run by a plan. The core decides, the recorder folds and the launcher runs blocks as in any run; only
nothing is appended, and nothing waits.

A block that is asked for the same as in the recording has its recorded result. Another one is executed if all it does
is to compute, or if it asks a model and may: see `calling`. One that would reach outside is not: it is noted, and what
follows it stays open. Time is that of the recording; waits for a time are over at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from heapq import heappop, heappush
from itertools import count
from typing import Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from compiler.keys import NodeKey
from compiler.plan import Node, Plan, Retry
from executor.kernel.core import commands as c
from executor.kernel.core import events as e
from executor.kernel.core import facts as f
from executor.kernel.core.commands import commands_of
from executor.kernel.core.decide_attempts import CANCELLED
from executor.kernel.core.state import RunPhase
from executor.kernel.journal.codec import data_of, key_of
from executor.kernel.process.clock import SystemClock
from executor.kernel.read.hub import Hub
from executor.kernel.read.peers import Peers
from executor.kernel.run.attempt import Attempt, Host
from executor.kernel.run.launch import Launcher
from executor.kernel.run.loaded import LoadedRun
from executor.kernel.run.recorder import Recorder
from executor.kernel.run.results import Arrivals, Payload, Result, assigned, run_error
from executor.kernel.values.payload import encode
from executor.service.parts import Parts
from executor.service.replay.calling import MODELS, Budget, PaidAttempt
from executor.service.replay.recording import Inputs, NotPlayed, Outcome, Recording, Used
from executor.service.views.run import Slices

FACTS_MAX: Final = 50_000
TIME_MAX_S: Final = 20.0  # of one run
CALLING_MAX_S: Final = 600.0  # of one whose models are called
_SAVES: Final = frozenset({"file"})  # types without an effect outside weft that write in it


class Call(Struct, frozen=True):
    """A block that would reach outside, or ask. `before`: its input in the recording, None if it did not run; `sends`:
    something leaves weft; `answered`: the recorded answer is taken, so the run continues; `would`: what it does, if it
    was entered; `refused`: why its model was not called."""

    node: Node
    before: bytes | None
    now: bytes
    sends: bool
    answered: bool = False
    would: str = ""
    refused: str = ""


class Played(Struct):
    """A run as it would go. `nodes`, `calls` by the text of keys; `pruned`: keys that no branch led to; `end` is None
    if it is unknown how the run ends; `used` is by models."""

    used: Used
    nodes: dict[str, Outcome] = {}
    calls: dict[str, Call] = {}
    pruned: set[str] = set()
    end: e.RunFinished | None = None
    output: bytes | None = None


class _Time(SystemClock):
    """The clock of a replay."""

    ms = 0

    def now_ms(self) -> int:
        return self.ms


def alone(plan: Plan) -> Plan:
    """Return the plan without what concerns other runs and later attempts: caches, limits, runners, retries."""

    def of(node: Node) -> Node:
        policy = replace(node.policy, retry=Retry(max_attempts=1), cache=None, limit=None, runner="inline")
        return replace(node, policy=policy)

    return replace(plan, regions=tuple(replace(r, nodes=tuple(map(of, r.nodes))) for r in plan.regions))


class Play:
    """One replay by a plan from `alone`; `play` is called once."""

    def __init__(
        self, parts: Parts, recording: Recording, inputs: Inputs, env: Mapping[str, str], budget: Budget | None = None
    ) -> None:
        self._recording = recording
        self._inputs = inputs
        self._budget = budget
        self._plan = plan = inputs.plan
        self._time = _Time()
        self._time.ms = recording.row.created_at_ms
        self._parts = parts = replace(parts, clock=self._time, hub=Hub(Peers()))
        self._run = LoadedRun.empty(recording.row, plan, env)
        self._recorder = Recorder(self._run, parts)
        self._launcher = Launcher(Host(self._run, parts))
        self._inline: deque[c.RunNode] = deque()
        self._due: list[tuple[int, int, c.RunNode, bytes]] = []  # in the order of their ends in the recording
        self._numbers = count()
        self._cancelled: set[NodeKey] = set()
        self._played = Played(Used())
        self._seq = 0

    async def play(self) -> Played:
        """Raises NotPlayed, TimeoutError."""
        started, slices = self._recording.started, Slices()
        stop = None if started.stop_after is None else self._recording.plan.nodes[started.stop_after].id
        number = None if stop is None else self._plan.node_index(stop)
        start = f.StartRequested(self._time.ms, self._run.id, stop_after=number, by=started.by)
        async with asyncio.timeout(TIME_MAX_S if self._budget is None else CALLING_MAX_S):
            self._take(Result(start, Payload()))
            for _ in range(FACTS_MAX):
                if slices.is_over:
                    await slices.rest()
                if self._inline:
                    command = self._inline.popleft()
                    input = self._inputs.of(self._run.fold.values, command.key)
                elif self._due:
                    *_, command, input = heappop(self._due)
                elif self._run.state.phase is RunPhase.FAILING and self._run.state.running:
                    for key in self._run.state.running:  # they are given up, as are waits
                        self._cancel(key)
                    continue
                else:
                    return self._played
                result = await self._result(command, input)
                if result is not None:
                    self._take(result)
        raise NotPlayed(f"a replay has at most {FACTS_MAX:,} steps")

    def _take(self, result: Result) -> None:
        run, codec, played = self._run, self._run.codec, self._played
        events = self._recorder.decide(self._plan, result)
        if run.fold.bytes > self._parts.services.limits.run_bytes:
            raise NotPlayed(run_error(self._parts.services.limits).message)
        append = self._recorder.pop_append(())
        blobs = {} if append is None else dict(append.blobs)
        for record in () if append is None else append.records:
            event, text = codec.to_event(record), key_of(record)
            number = self._plan.node_index(record.node or "")
            if isinstance(event, e.RunFinished):
                played.end, played.output = event, None if append is None else append.output
            elif text is not None and number is not None:
                if isinstance(event, e.NodeSkipped) and event.reason == "pruned":
                    played.pruned.add(text)
                came = Outcome(self._plan.nodes[number])
                if came.decided_by(event, record.output or blobs.get(data_of(record).get("blob", ""))):
                    played.nodes[text] = came
        for command in commands_of(self._plan, run.state, events):
            if isinstance(command, c.RunNode) and self._plan.nodes[command.key[1]].inline:
                self._inline.append(command)
            elif isinstance(command, c.RunNode):
                self._put(command, self._inputs.of(run.fold.values, command.key))
            elif isinstance(command, c.CancelNode):
                self._cancel(command.key)

    def _cancel(self, key: NodeKey) -> None:
        self._cancelled.add(key)
        self._put(c.RunNode(key, self._run.state.running.get(key, 0)), b"")

    def _put(self, command: c.RunNode, input: bytes) -> None:
        was = self._recording.nodes.get(self._run.codec.key_text(command.key))
        seq = was.seq if was is not None and was.seq else self._seq
        heappush(self._due, (seq, next(self._numbers), command, input))

    async def _result(self, command: c.RunNode, input: bytes) -> Result | None:
        """Return the result of an attempt, or None if it stays open."""
        key, attempt = command.key, command.attempt
        if self._run.state.running.get(key) != attempt:
            return None
        if key in self._cancelled:
            return Result(f.NodeErred(self._time.ms, key, attempt, CANCELLED), Payload())
        text, node = self._run.codec.key_text(key), self._plan.nodes[key[1]]
        was = self._recording.nodes.get(text)
        if was is not None:
            self._seq, self._time.ms = max(self._seq, was.seq), max(self._time.ms, was.at_ms)
        if was is not None and was.input == input and not node.sentinel:
            return self._recorded(was, key, attempt)
        if node.pin is not None:
            return await self._executed(Attempt(self._launcher.host, key, attempt, 0, Arrivals()), was)
        if self._budget is not None and node.type in MODELS:
            return await self._called(
                PaidAttempt(self._launcher.host, key, attempt, was, self._budget, self._played.used), was, input
            )
        spec = self._parts.registry.handler(node.type).spec
        is_outside = spec.effect != "none" or spec.type in _SAVES
        if is_outside or (spec.pauses and spec.type != "wait"):
            params = orjson.loads(input)[1]
            is_answered = not is_outside and was is not None and was.ended is not None
            sends = is_outside or bool(params.get("notify"))
            self._played.calls[text] = Call(node, None if was is None else was.input, input, sends, is_answered)
            return self._recorded(was, key, attempt) if is_answered and was is not None else None
        return await self._executed(Attempt(self._launcher.host, key, attempt, 0, Arrivals()), was)

    async def _called(self, own: PaidAttempt, was: Outcome | None, input: bytes) -> Result | None:
        """Run a block that asks a model, with the secrets that it has in a run."""
        values = self._run.fold.values
        shown, values.env = values.env, self._parts.vault.values
        try:
            result = await self._executed(own, was)
        finally:
            values.env = shown
        if own.would or own.refused:
            before = None if was is None else was.input
            self._played.calls[own.key_text] = Call(own.node, before, input, True, would=own.would, refused=own.refused)
            return None
        return result

    def _recorded(self, was: Outcome, key: NodeKey, attempt: int) -> Result | None:
        at_ms = self._time.ms
        self._played.used.add(was.used.cost_usd, was.used.tokens, was.used.ms)
        match was.ended:
            case "succeeded":
                return Result(
                    f.NodeDone(at_ms, key, attempt, was.route, was.ends_run), Payload(was.output, was.patches)
                )
            case "skipped":
                return Result(f.NodePassed(at_ms, key, attempt), Payload())
            case "failed" if was.error is not None:
                return Result(f.NodeErred(at_ms, key, attempt, was.error), Payload())
            case _:
                return None  # the recording has no result: the run ended before

    async def _executed(self, own: Attempt, was: Outcome | None) -> Result:
        turn = scopes = 0
        container = self._run.state.containers.get((own.key[0], own.node.body))
        if own.node.sentinel == "end" and container is not None:
            turn, scopes = container.opened, container.count
        now_ms, self._time.ms = self._time.ms, (was.began_ms if was is not None else 0) or self._time.ms
        result = await self._launcher.run(own, turn, scopes)
        self._time.ms = now_ms
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # the launcher made a failure of it
            raise asyncio.CancelledError
        fact = result.fact
        if isinstance(fact, f.NodeSuspended):  # it waits for a time
            output = {"status": "completed", "due_ms": fact.due_ms, "resumed_ms": fact.due_ms}
            payload = Payload(encode(output), assigned(own.node, output))
            return Result(f.NodeDone(now_ms, own.key, own.number), payload)
        return result

"""What the sans-IO core costs, alone: CPU microseconds per node from the first fact to the last, each answered at once.

The floor is one bare asyncio task per node on uvloop, in the same graph, started by counting in-edges: the least a
program that runs nodes as tasks can do. Then come costs that would show if anything grew with what is open, or with
what has been, instead of with what happens.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from benchmarks import shapes
from benchmarks.measure import Figure, best, cpu_of, on_loop
from compiler.plan import Plan
from executor.core import commands as c
from executor.core import events as e
from executor.core import facts as f
from executor.core.decide import commands_of, decide
from executor.core.evolve import fold
from executor.core.state import State

Answer = Callable[[Plan, c.RunNode], f.Fact]
ERROR = e.ErrorInfo("boom", "it broke", retryable=True)
ITERATIONS = 10_000


def nodes(repeat: int) -> Iterator[Figure]:
    """decide + evolve per node, beside a bare task per node."""
    graphs = (
        ("chain of 10,000", shapes.chain(10_000)),
        ("fan of 5,000", shapes.fan(5_000)),
        ("layers, 10,000 nodes and 30,000 edges", shapes.layered(10_000, 30_000)),
    )
    for name, out in graphs:
        yield _nodes(f"core: {name}", repeat, shapes.graph(name, out), 0, out, len(out))
    loop = shapes.container("loop", 2)
    size = 2 * ITERATIONS
    yield _nodes(f"core: loop of {ITERATIONS:,} x 2", repeat, loop, ITERATIONS, shapes.chain(size), size)


def growth(repeat: int) -> Iterator[Figure]:
    """Per node, large beside small: 1 is a cost that does not grow."""
    large, small = shapes.graph("large", shapes.fan(20_000)), shapes.graph("small", shapes.fan(200))
    ours, floor = best(
        repeat, lambda: run(large, 0).cpu_s / 20_002, lambda: min(run(small, 0).cpu_s for _ in range(20)) / 202
    )
    yield Figure("core: fan of 20,000 beside fan of 200", "us/node", ours * 1e6, floor * 1e6, 1.3, 1.1)
    stamps = [run(shapes.container("loop", 2), ITERATIONS).turns for _ in range(repeat)]
    last = min(at[-1] - at[-1001] for at in stamps) / 1000
    first = min(at[1000] - at[0] for at in stamps) / 1000
    yield Figure("core: loop, last 1,000 rounds beside first", "us/round", last * 1e6, first * 1e6, 1.2, 1.0)


def folding(repeat: int) -> Iterator[Figure]:
    """The state from a journal."""
    for name, plan, size in (
        ("chain of 10,000", shapes.graph("chain", shapes.chain(10_000)), 0),
        ("loop of 10,000 x 2", shapes.container("loop", 2), 10_000),
    ):
        journal = run(plan, size).journal
        [took_s] = best(repeat, partial(_fold, plan, journal))
        yield Figure(f"core: fold, {name}", "us/event", took_s / len(journal) * 1e6)


def trouble(repeat: int) -> Iterator[Figure]:
    """Branches that do not simply succeed, 1,000 open beside 100: per branch, what else is open must not matter."""
    cases: tuple[tuple[str, Plan, Answer], ...] = (
        ("retried once", shapes.container("parallel", retry=shapes.TWICE), fail_first),
        ("waits once", shapes.container("parallel"), suspend),
        ("fails alone", shapes.container("parallel", on_branch_error="continue"), fail),
    )
    for name, plan, answer in cases:
        large, small = best(
            max(1, repeat - 1),
            partial(_per_branch, plan, 1_000, answer),
            partial(_per_branch, plan, 100, answer),
        )
        yield Figure(f"core: 1,000 branches, each {name} ÷ 100", "us", large * 1e6, small * 1e6)


def _fold(plan: Plan, journal: list[e.Event]) -> float:
    return cpu_of(lambda: fold(plan, journal))


def _per_branch(plan: Plan, size: int, answer: Answer) -> float:
    return run(plan, size, answer).cpu_s / size


class Run:
    """One run from start to end: its CPU time, its journal, and the moment of each test of a loop."""

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self.journal: list[e.Event] = []
        self.turns: list[float] = []


def succeed(plan: Plan, command: c.RunNode) -> f.Fact:
    return f.NodeDone(0, command.key, command.attempt)


def fail_first(plan: Plan, command: c.RunNode) -> f.Fact:
    if command.attempt == 1:
        return f.NodeErred(0, command.key, 1, ERROR, retry_at_ms=1000)
    return f.NodeDone(1000, command.key, command.attempt)


def fail(plan: Plan, command: c.RunNode) -> f.Fact:
    return f.NodeErred(0, command.key, command.attempt, ERROR)


def suspend(plan: Plan, command: c.RunNode) -> f.Fact:
    return f.NodeSuspended(0, command.key, command.attempt, "timer", 60_000)


def run(plan: Plan, size: int, answer: Answer = succeed) -> Run:
    """Retries and waits come due at once, in order; a container opens `size` scopes."""
    observed = Run()
    state = State.new(plan)

    def go() -> None:
        todo: deque[c.Command] = deque()
        now_ms = 0

        def feed(fact: f.Fact) -> None:
            events = decide(plan, state, fact)
            observed.journal.extend(events)
            todo.extend(commands_of(plan, state, events))

        feed(f.StartRequested(0, "r"))
        while todo:
            command = todo.popleft()
            match command:
                case c.RunNode():
                    which = plan.nodes[command.key[1]].sentinel
                    if which is None:
                        feed(answer(plan, command))
                    elif which == "start":
                        feed(f.RegionSizeKnown(now_ms, command.key, command.attempt, size))
                    else:
                        observed.turns.append(time.process_time())
                        feed(f.LoopTested(now_ms, command.key, command.attempt, len(observed.turns) < size))
                case c.SetTimer():
                    now_ms = max(now_ms, command.due_ms)
                    feed(f.TimerFired(now_ms, command.key, command.attempt))
                case _:
                    pass

    observed.cpu_s = cpu_of(go)
    assert state.ended == "succeeded", (plan.name, state.ended, state.error)
    return observed


def _nodes(name: str, repeat: int, plan: Plan, size: int, out: Sequence[Sequence[int]], count: int) -> Figure:
    ours, floor = best(repeat, lambda: run(plan, size).cpu_s, lambda: bare_tasks(out))
    return Figure(name, "us/node", ours / count * 1e6, floor / count * 1e6, 6, 3)


def bare_tasks(out: Sequence[Sequence[int]]) -> float:
    """CPU seconds for one task per node of the graph."""
    waiting = [0] * len(out)
    for targets in out:
        for target in targets:
            waiting[target] += 1

    async def main() -> None:
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        left = len(out)
        tasks: set[asyncio.Task[None]] = set()

        def start(n: int) -> None:
            task = loop.create_task(step(n))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        async def step(n: int) -> None:
            nonlocal left
            left -= 1
            for target in out[n]:
                waiting[target] -= 1
                if not waiting[target]:
                    start(target)
            if not left:
                ended.set_result(None)

        start(0)
        await ended

    return cpu_of(lambda: on_loop(main))


BENCHMARKS: dict[str, Callable[[int], Iterator[Figure]]] = {
    "core": nodes,
    "growth": growth,
    "fold": folding,
    "trouble": trouble,
}

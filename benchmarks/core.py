"""What the sans-IO core costs, alone: CPU microseconds per node from the first fact to the last, each answered at once.

The floor is one bare asyncio task per node on uvloop, in the same graph, started by counting in-edges: the least a
program that runs nodes as tasks can do. Then come costs that would show if anything grew with what is open, or with
what has been, instead of with what happens.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence

from benchmarks import shapes
from benchmarks.measure import cpu_of, on_uvloop
from benchmarks.sample import program
from benchmarks.sequence import Sampled
from benchmarks.statistics import Target
from compiler.plan import Plan
from executor.kernel.core import commands as c
from executor.kernel.core import events as e
from executor.kernel.core import facts as f
from executor.kernel.core.commands import commands_of
from executor.kernel.core.decide import decide
from executor.kernel.core.evolve import fold
from executor.kernel.core.state import State

Answer = Callable[[Plan, c.RunNode], f.Fact]
ERROR = e.ErrorInfo("boom", "it broke", retryable=True)
ITERATIONS = 10_000


def nodes(graph: str) -> list[float]:
    """decide + evolve: microseconds per node."""
    if graph == "loop":
        return [run(shapes.container("loop", 2), ITERATIONS).cpu_s / (2 * ITERATIONS) * 1e6]
    out = GRAPHS[graph]()
    return [run(shapes.graph(graph, out), 0).cpu_s / len(out) * 1e6]


def bare_nodes(graph: str) -> list[float]:
    """The floor: a bare task per node."""
    out = shapes.chain(2 * ITERATIONS) if graph == "loop" else GRAPHS[graph]()
    return [bare_tasks(out) / len(out) * 1e6]


def fan(size: str) -> list[float]:
    """Microseconds per node; a small fan many times."""
    plan, times = shapes.graph("fan", shapes.fan(int(size))), max(1, 4_000 // int(size))
    return [min(run(plan, 0).cpu_s for _ in range(times)) / (int(size) + 2) * 1e6]


def rounds(which: str) -> list[float]:
    """Microseconds per round, of the first thousand or the last thousand of a long loop."""
    turns = run(shapes.container("loop", 2), ITERATIONS).turns
    first, last = (0, 1000) if which == "first" else (-1001, -1)
    return [(turns[last] - turns[first]) / 1000 * 1e6]


def folding(which: str) -> list[float]:
    """The state from a journal: microseconds per event."""
    plan, size = (shapes.container("loop", 2), ITERATIONS) if which == "loop" else (_long_chain(), 0)
    journal = run(plan, size).journal
    return [cpu_of(lambda: fold(plan, journal)) / len(journal) * 1e6]


def trouble(case: str, size: str) -> list[float]:
    """Branches that do not simply succeed: microseconds per branch."""
    plan, answer = CASES[case]()
    return [run(plan, int(size), answer).cpu_s / int(size) * 1e6]


def _long_chain() -> Plan:
    return shapes.graph("chain", shapes.chain(10_000))


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

    return cpu_of(lambda: on_uvloop(main))


GRAPHS: dict[str, Callable[[], list[list[int]]]] = {
    "chain": lambda: shapes.chain(10_000),
    "fan": lambda: shapes.fan(5_000),
    "layers": lambda: shapes.layered(10_000, 30_000),
}
CASES: dict[str, Callable[[], tuple[Plan, Answer]]] = {
    "retried": lambda: (shapes.container("parallel", retry=shapes.TWICE), fail_first),
    "waits": lambda: (shapes.container("parallel"), suspend),
    "fails": lambda: (shapes.container("parallel", on_branch_error="continue"), fail),
}
NAMES = {
    "chain": "chain of 10,000",
    "fan": "fan of 5,000",
    "layers": "layers, 10,000 nodes and 30,000 edges",
    "loop": f"loop of {ITERATIONS:,} x 2",
    "retried": "retried once",
    "waits": "waits once",
    "fails": "fails alone",
}
GROWTH = [
    Sampled(
        "core: fan of 20,000 ÷ fan of 200", "us/node", program(fan, 20_000), program(fan, 200), Target(1.3), share=3
    ),
    Sampled(
        "core: loop, last 1,000 rounds ÷ first",
        "us/round",
        program(rounds, "last"),
        program(rounds, "first"),
        Target(1.2),
        share=3,
    ),
]
BENCHMARKS = {
    "core": [
        Sampled(f"core: {NAMES[name]}", "us/node", program(nodes, name), program(bare_nodes, name), Target(6), share=3)
        for name in (*GRAPHS, "loop")
    ],
    "fold": [
        Sampled(f"core: fold, {NAMES[name]}", "us/event", program(folding, name), share=3) for name in ("chain", "loop")
    ],
    "trouble": [
        Sampled(
            f"core: 1,000 branches, each {NAMES[name]} ÷ 100",
            "us",
            program(trouble, name, 1_000),
            program(trouble, name, 100),
            share=3,
        )
        for name in CASES
    ],
}

"""Durable work through the engine: chains, fans, loops, many runs, a pause, each beside its floor (`floors.py`).

Milliseconds per step from `submit` to the end of the run, on a fresh database each time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

from benchmarks import floors, workloads
from benchmarks.measure import Figure, best, folder, on_loop
from benchmarks.workloads import Document, Noop, all_ended, engine_on

CHAIN, FAN, ITERATIONS, BODY, RUNS, RUN_STEPS, PAUSES = 1_000, 2_000, 1_000, 3, 200, 20, 20


def chain(repeat: int) -> Iterator[Figure]:
    ours, floor, inline = best(
        repeat, lambda: once(workloads.chain(CHAIN), CHAIN), lambda: floors.runs(1, CHAIN), lambda: floors.inline(CHAIN)
    )
    note = f"{ours / inline:.2f} x a commit in the loop's own thread ({inline / CHAIN * 1e3:.3f} ms)"
    yield _per_step(f"W1 chain of {CHAIN:,} steps", CHAIN, ours, floor, 1.5, 1.2, note)


def fan(repeat: int) -> Iterator[Figure]:
    ours, floor = best(repeat, lambda: once(workloads.fan(FAN), FAN + 2), lambda: floors.fan(FAN))
    yield _per_step(f"W2 1 -> {FAN:,} -> 1", FAN + 2, ours, floor, 6, 3)


def loop(repeat: int) -> Iterator[Figure]:
    steps = ITERATIONS * BODY
    ours, floor = best(
        max(1, repeat - 1), lambda: once(workloads.loop(ITERATIONS, BODY), steps), lambda: floors.runs(1, steps)
    )
    yield _per_step(f"W3 loop of {ITERATIONS:,} x {BODY} steps", steps, ours, floor, 1.5, 1.2)


def runs(repeat: int) -> Iterator[Figure]:
    steps = RUNS * RUN_STEPS
    ours, floor = best(
        repeat, lambda: once(workloads.chain(RUN_STEPS), steps, RUNS), lambda: floors.runs(RUNS, RUN_STEPS)
    )
    yield _per_step(f"W4 {RUNS} runs x {RUN_STEPS} steps", steps, ours, floor, 8, 4)


def resume(repeat: int) -> Iterator[Figure]:
    ours, floor = best(repeat, _resume, lambda: min(floors.resume() for _ in range(PAUSES)))
    name = "W5 answer to start of the next step"
    yield Figure(name, "ms", ours * 1e3, floor * 1e3, 5, 2, note=f"the least of {PAUSES}")


def once(document: Document, steps: int, runs: int = 1) -> float:
    """Seconds for `runs` runs of `document`, which make `steps` steps together, on a fresh engine."""

    async def main() -> float:
        noop = Noop()
        with folder() as path:
            async with engine_on(path, noop) as engine:
                await engine.workflows.compile(document)
                reached = noop.after(steps)
                began = time.perf_counter()
                await asyncio.gather(*(engine.submit(document) for _ in range(runs)))
                await reached
                await all_ended(engine)
                took_s = time.perf_counter() - began
        assert noop.calls == steps
        return took_s

    return on_loop(main)


def _resume() -> float:
    """Seconds from the call of `answer` to the start of the step behind it; the run had left memory."""

    async def main() -> float:
        noop = Noop()
        took_s = []
        with folder() as path:
            async with engine_on(path, noop) as engine:
                for _ in range(PAUSES):
                    run = (await engine.submit(workloads.pause())).run
                    await all_ended(engine)
                    [wait] = await engine.waits.list("pending", run)
                    assert wait.link is not None
                    reached = noop.after(1)
                    began = time.perf_counter()
                    await engine.answer(wait.link.rpartition("/")[2], {}, "yes", "a tester")
                    await reached
                    took_s.append(noop.called_at - began)
                    await all_ended(engine)
        return min(took_s)

    return on_loop(main)


def _per_step(name: str, steps: int, ours: float, floor: float, must: float, aim: float, note: str = "") -> Figure:
    return Figure(name, "ms/step", ours / steps * 1e3, floor / steps * 1e3, must, aim, note=note)


BENCHMARKS: dict[str, Callable[[int], Iterator[Figure]]] = {
    "chain": chain,
    "fan": fan,
    "loop": loop,
    "runs": runs,
    "resume": resume,
}

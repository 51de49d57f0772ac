"""The durable workloads on LangGraph with its SQLite checkpointer and `durability="sync"`: a step is on disk before the
next one starts. The state is as small as it can be. A graph is compiled before the clock starts.

One run is faster with the synchronous API, which is used where there is one run; concurrent runs have the other.
"""

from __future__ import annotations

import asyncio
import operator
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from benchmarks.measure import folder
from benchmarks.sizes import BODY, CHAIN, FAN, ITERATIONS, PAUSE_S, PAUSES, RUN_STEPS, RUNS

Graph = Any
OUTPUT = {"ok": True}


class Chained(TypedDict):
    ok: bool


class Fanned(TypedDict):
    outputs: Annotated[list[dict[str, bool]], operator.add]


class Looped(TypedDict):
    rounds: int


def _step(state: Chained) -> Chained:
    return {"ok": True}


async def _async_step(state: Chained) -> Chained:
    return {"ok": True}


def chain() -> list[float]:
    return _once(_chain(CHAIN, _step), OUTPUT, CHAIN)


def fan() -> list[float]:
    def step(state: Fanned) -> Fanned:
        return {"outputs": [OUTPUT]}

    def join(state: Fanned) -> Fanned:
        assert len(state["outputs"]) == FAN + 1
        return {"outputs": [OUTPUT]}

    graph = StateGraph(Fanned)
    names = [f"s{n}" for n in range(FAN)]
    for name in ("source", *names):
        graph.add_node(name, step)
    graph.add_node("join", join)
    graph.add_edge(START, "source")
    for name in names:
        graph.add_edge("source", name)
    graph.add_edge(names, "join")
    graph.add_edge("join", END)
    return _once(graph, {"outputs": []}, FAN + 2)


def loop() -> list[float]:
    def step(state: Looped) -> Looped:
        return {"rounds": state["rounds"]}

    def last(state: Looped) -> Looped:
        return {"rounds": state["rounds"] + 1}

    graph = StateGraph(Looped)
    names = [f"s{n}" for n in range(BODY)]
    for name in names:
        graph.add_node(name, last if name == names[-1] else step)
    for source, target in zip([START, *names], names, strict=False):
        graph.add_edge(source, target)
    graph.add_conditional_edges(names[-1], lambda state: names[0] if state["rounds"] < ITERATIONS else END)
    return _once(graph, {"rounds": 0}, ITERATIONS * BODY)


def runs() -> list[float]:
    async def main() -> list[float]:
        with folder() as path:
            async with AsyncSqliteSaver.from_conn_string(str(path / "langgraph.db")) as saver:
                await saver.setup()
                graph = _chain(RUN_STEPS, _async_step).compile(checkpointer=saver)
                began = time.perf_counter()
                await asyncio.gather(*(graph.ainvoke(OUTPUT, _config(run), durability="sync") for run in range(RUNS)))
                return [(time.perf_counter() - began) / RUN_STEPS / RUNS * 1e3]

    return asyncio.run(main())


def resume() -> list[float]:
    called_at = 0.0
    took_ms = []

    def ask(state: Chained) -> Chained:
        return {"ok": bool(interrupt("Go on?"))}

    def step(state: Chained) -> Chained:
        nonlocal called_at
        called_at = time.perf_counter()
        return {"ok": True}

    graph = StateGraph(Chained)
    graph.add_node("ask", ask)
    graph.add_node("step", step)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "step")
    graph.add_edge("step", END)
    with _compiled(graph) as compiled:
        for run in range(PAUSES):
            compiled.invoke(OUTPUT, _config(run), durability="sync")
            time.sleep(PAUSE_S)
            began = time.perf_counter()
            compiled.invoke(Command(resume=True), _config(run), durability="sync")
            took_ms.append((called_at - began) * 1e3)
    return took_ms


def _chain(size: int, step: Any) -> StateGraph:
    graph = StateGraph(Chained)
    names = [f"s{n}" for n in range(size)]
    for name in names:
        graph.add_node(name, step)
    for source, target in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(source, target)
    return graph


def _once(graph: StateGraph, state: dict[str, Any], steps: int) -> list[float]:
    with _compiled(graph) as compiled:
        began = time.perf_counter()
        compiled.invoke(state, _config(0), durability="sync")
        return [(time.perf_counter() - began) / steps * 1e3]


@contextmanager
def _compiled(graph: StateGraph) -> Iterator[Graph]:
    with folder() as path, SqliteSaver.from_conn_string(str(path / "langgraph.db")) as saver:
        saver.setup()
        yield graph.compile(checkpointer=saver)


def _config(run: int) -> dict[str, Any]:
    return {"configurable": {"thread_id": str(run)}, "recursion_limit": 1_000_000}

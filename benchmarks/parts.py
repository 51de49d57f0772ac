"""Single parts: compile, expressions, the store's group commit, recovery of a long run."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator

import orjson

from benchmarks import floors, shapes, workloads
from benchmarks.measure import Figure, best, cpu_of, folder, on_loop
from benchmarks.workloads import LIMITS, Noop
from compiler import plan as plans
from compiler.compile import compile_document
from executor.blocks.registry import Registry
from executor.core import events as e
from executor.http.client import GuardedClient
from executor.journal.codec import Codec
from executor.runtime.clock import SystemClock
from executor.runtime.links import Links
from executor.runtime.parts import Parts
from executor.runtime.recover import recover
from executor.sandbox.bound import Bound
from executor.sandbox.sandbox import Sandbox
from executor.services import Services
from executor.store.rows import Append, NewRun, Record
from executor.store.sqlite.store import SQLiteStore

BLOCKS, EVENTS, COMMITTERS, COMMITS, EXPRESSIONS = 1_000, 100_000, 64, 150, 300


def compiling(repeat: int) -> Iterator[Figure]:
    """Layers of blocks with a reference each, parsed from bytes, all diagnostics included. The floor reads the JSON and
    counts in-edges."""
    blocks = {f"b{n}": {**workloads.noop(f"b{n}"), "params": {"text": f"<b{n - 10}.ok>"}} for n in range(10, BLOCKS)}
    blocks |= {f"b{n}": workloads.noop(f"b{n}") for n in range(10)}
    edges = [("start", f"b{n}") for n in range(10)] + [(f"b{n - 10}", f"b{n}") for n in range(10, BLOCKS)]
    edges += [(f"b{n - 11}", f"b{n}") for n in range(20, BLOCKS)]
    data = orjson.dumps(workloads.document("layers", blocks, [*edges]))
    registry = Registry.load(extra=[_Texted()])

    def ours() -> float:
        compiled = compile_document(data, registry, limits=LIMITS)
        assert compiled.plan is not None, compiled.diagnostics[:3]
        return 0.0

    def floor() -> None:
        document = orjson.loads(data)
        waiting = dict.fromkeys(document["blocks"], 0)
        for edge in document["edges"]:
            waiting[edge["target"]] += 1

    took_s, least_s = best(repeat, lambda: cpu_of(ours), lambda: cpu_of(floor))
    yield Figure(f"compile {BLOCKS:,} blocks", "ms", took_s * 1e3, least_s * 1e3, 100, 30, absolute=True)


class _Texted(Noop):
    """A step with a text that holds a reference."""

    def __init__(self) -> None:
        super().__init__()
        self.spec = type(self.spec)(
            **{name: getattr(self.spec, name) for name in self.spec.__struct_fields__}
            | {"params": {"type": "object", "properties": {"text": {"type": "string"}}}}
        )


def expression(repeat: int) -> Iterator[Figure]:
    """One condition on the event loop, from the call to its value."""
    call = Bound('__v["a"].score > 10 && __v["b"] === "yes"', {"a": {"score": 11, "tags": ["x", "y"]}, "b": "yes"})

    async def main() -> float:
        sandbox = Sandbox(threads=1)
        took_s = []
        for n in range(EXPRESSIONS):
            began = time.perf_counter()
            assert await sandbox.evaluate([call], now_ms=0, seed=str(n)) == [True]
            took_s.append(time.perf_counter() - began)
        sandbox.close()
        return sorted(took_s)[EXPRESSIONS // 10]

    [took_s] = best(repeat, lambda: on_loop(main))
    note = f"a tenth of {EXPRESSIONS} calls took less"
    yield Figure("expression on the loop", "us", took_s * 1e6, None, 200, 100, absolute=True, note=note)


def appending(repeat: int) -> Iterator[Figure]:
    """Appends of one event by 64 runs at a time, as many as come back; the floor writes a row of its own table."""
    ours, floor = best(repeat, _appends, lambda: floors.runs(COMMITTERS, COMMITS))
    count = COMMITTERS * COMMITS
    name = f"append, {COMMITTERS} committers"
    yield Figure(name, "us/row", ours / count * 1e6, floor / count * 1e6, note=f"{count / ours:,.0f} rows/s")


def _appends() -> float:
    async def main() -> float:
        with folder() as path:
            store = SQLiteStore(path / "weft.db")
            await store.open()
            ids = [f"{n:032x}" for n in range(COMMITTERS)]
            for id in ids:
                await store.create_run(NewRun(id, "w", None, "h", b"{}", b"{}", (_record(1),), 1))
            rows = await store.claim("me", 2, 1_000_000, COMMITTERS)

            async def commit(id: str, epoch: int) -> None:
                for seq in range(1, COMMITS + 1):
                    await store.append(Append(id, epoch, seq, (_record(seq + 1),), 3))

            began = time.perf_counter()
            await asyncio.gather(*(commit(row.id, row.epoch) for row in rows))
            took_s = time.perf_counter() - began
            await store.close()
            return took_s

    return on_loop(main)


def _record(seq: int) -> Record:
    return Record(seq, 1_790_000_000_000, "node.succeeded", "step", "", 1, None, floors.OUTPUT)


def recovery(repeat: int) -> Iterator[Figure]:
    """A run of 100,000 events, read from disk and folded into state and values. The floor only reads the rows."""
    plan = shapes.graph("long", shapes.chain(EVENTS // 2))
    codec = Codec(plan)
    journal: list[e.Event] = [e.RunStarted("r")]
    for n in range(EVENTS // 2):
        journal.append(e.NodeStarted(((), n), 1))
        journal.append(e.NodeSucceeded(((), n), 1))
    del journal[EVENTS:]
    records = tuple(
        codec.to_record(seq, 1_790_000_000_000, event, floors.OUTPUT if isinstance(event, e.NodeSucceeded) else None)
        for seq, event in enumerate(journal, 1)
    )
    ir = plans.encode(plan)
    with folder() as path:

        async def fill() -> None:
            store = SQLiteStore(path / "weft.db")
            await store.open()
            await store.create_run(NewRun("r", "w", None, plan.hash, ir, b"null", records, 1))
            await store.close()

        on_loop(fill)

        async def ours() -> float:
            store = SQLiteStore(path / "weft.db")
            await store.open()
            parts = _parts(store)
            row = await store.get_run("r")
            assert row is not None
            await recover(parts, row)  # the plan is read and decoded once per process
            began = time.perf_counter()
            _, facts = await recover(parts, row)
            took_s = time.perf_counter() - began
            assert len(facts) == 2, facts
            await parts.services.close()
            await store.close()
            return took_s

        def floor() -> float:
            db = sqlite3.connect(path / "weft.db")
            began = time.perf_counter()
            rows = db.execute("SELECT * FROM events WHERE run_id = 'r' ORDER BY seq").fetchall()
            took_s = time.perf_counter() - began
            assert len(rows) == EVENTS
            db.close()
            return took_s

        took_s, least_s = best(repeat, lambda: on_loop(ours), floor)
    yield Figure(f"recover a run of {EVENTS:,} events", "s", took_s, least_s, 0.5, 0.1, absolute=True)


def _parts(store: SQLiteStore) -> Parts:
    return Parts.make(
        store,
        registry=Registry([]),
        services=Services(sandbox=Sandbox(threads=1), http=GuardedClient(allow_private=())),
        clock=SystemClock(),
        links=Links(b"0" * 32, "http://127.0.0.1"),
    )


BENCHMARKS: dict[str, Callable[[int], Iterator[Figure]]] = {
    "compile": compiling,
    "expression": expression,
    "append": appending,
    "recovery": recovery,
}

"""Single parts: compile, expressions, programs, the store's group commit, recovery of a long run."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
from msgspec.structs import replace

from benchmarks import floors, shapes, workloads
from benchmarks.measure import cpu_of, folder, on_uvloop
from benchmarks.sample import program
from benchmarks.sequence import Sampled
from benchmarks.statistics import Target
from benchmarks.workloads import LIMITS, Noop
from compiler import plan as plans
from compiler.compile import compile_document
from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox import Language
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.kernel.core import events as e
from executor.kernel.journal.codec import Codec
from executor.kernel.journal.reader import load_plan
from executor.kernel.process.clock import SystemClock
from executor.kernel.run import loaded
from executor.kernel.run.links import Links
from executor.kernel.run.loaded import LoadedRun, replay
from executor.kernel.run.recover import recover
from executor.kernel.run.snapshots import snapshot_of
from executor.kernel.store.run_rows import Append, NewRun, Record
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.values.payload import Bound
from executor.service.parts import Parts

BLOCKS, EVENTS, COMMITTERS, COMMITS, EXPRESSIONS = 1_000, 100_000, 64, 150, 300
WARM, PROGRAMS = 10, 100


def compiling() -> list[float]:
    """Milliseconds for layers of blocks with a reference each, parsed from bytes, all diagnostics included; the first
    document of the process."""
    data = _layers()
    registry = Registry.load(extra=[_Texted()])

    def compile_it() -> None:
        compiled = compile_document(data, registry, limits=LIMITS)
        assert compiled.plan is not None, compiled.diagnostics[:3]

    return [cpu_of(compile_it) * 1e3]


def bare_compiling() -> list[float]:
    """The floor reads the JSON and counts in-edges."""
    data = _layers()

    def count() -> None:
        document = orjson.loads(data)
        waiting = dict.fromkeys(document["blocks"], 0)
        for edge in document["edges"]:
            waiting[edge["target"]] += 1

    return [cpu_of(count) * 1e3]


def _layers() -> bytes:
    blocks = {f"b{n}": {**workloads.noop(f"b{n}"), "params": {"text": f"<b{n - 10}.ok>"}} for n in range(10, BLOCKS)}
    blocks |= {f"b{n}": workloads.noop(f"b{n}") for n in range(10)}
    edges = [("start", f"b{n}") for n in range(10)] + [(f"b{n - 10}", f"b{n}") for n in range(10, BLOCKS)]
    edges += [(f"b{n - 11}", f"b{n}") for n in range(20, BLOCKS)]
    return orjson.dumps(workloads.document("layers", blocks, [*edges]))


class _Texted(Noop):
    """A step with a text that holds a reference."""

    def __init__(self) -> None:
        super().__init__()
        self.spec = type(self.spec)(
            **{name: getattr(self.spec, name) for name in self.spec.__struct_fields__}
            | {"params": {"type": "object", "properties": {"text": {"type": "string"}}}}
        )


def expression() -> list[float]:
    """Microseconds of one condition on the event loop, from the call to its value."""
    call = Bound('__v["a"].score > 10 && __v["b"] === "yes"', {"a": {"score": 11, "tags": ["x", "y"]}, "b": "yes"})

    async def main() -> list[float]:
        sandbox = Sandbox(threads=1)
        took_us = []
        for n in range(EXPRESSIONS):
            began = time.perf_counter()
            assert await sandbox.evaluate([call], now_ms=0, seed=str(n)) == [True]
            took_us.append((time.perf_counter() - began) * 1e6)
        sandbox.close()
        return took_us

    return on_uvloop(main)


def javascript() -> list[float]:
    """Milliseconds of one warm program in JavaScript, from the call to its result."""
    return _programs("return __v['a'].map(n => n + 1)", "javascript")


def python() -> list[float]:
    """The same in Python, for which each call has a new interpreter."""
    return _programs("return [n + 1 for n in __v['a']]", "python")


def _programs(source: str, language: Language) -> list[float]:
    code = Bound(source, {"a": [1, 2, 3]})

    async def main() -> list[float]:
        sandbox = Sandbox(threads=1)
        took_ms = []
        for n in range(WARM + PROGRAMS):
            began = time.perf_counter()
            result = await sandbox.run_code(code, now_ms=0, seed=str(n), timeout_ms=60_000, language=language)
            assert result == ([2, 3, 4], "")
            took_ms.append((time.perf_counter() - began) * 1e3)
        sandbox.close()
        return took_ms[WARM:]

    return on_uvloop(main)


def appending() -> list[float]:
    """Appends of one event by 64 runs at a time: microseconds per row."""
    return [on_uvloop(_appends) / COMMITTERS / COMMITS * 1e6]


def bare_appending() -> list[float]:
    """The floor writes a row of its own table."""
    return [ms * 1e3 for ms in floors.runs(str(COMMITTERS), str(COMMITS))]


async def _appends() -> float:
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


def _record(seq: int) -> Record:
    return Record(seq, 1_790_000_000_000, "node.succeeded", "step", "", 1, None, floors.OUTPUT)


def recovery() -> list[float]:
    """Seconds to read a run of 100,000 events from disk and fold it into state and values."""

    with _long_run() as path:
        return [on_uvloop(lambda: _recovered(path, 0))]


def recovery_with_snapshot() -> list[float]:
    """Milliseconds for the same run when a snapshot has all but the last events: half as many as are between two."""
    with _long_run() as path:
        return [on_uvloop(lambda: _recovered(path, EVENTS - loaded.EVERY // 2)) * 1e3]


async def _recovered(path: Path, saved: int) -> float:
    """Seconds. `saved`: the snapshot is of so many events, 0: there is none."""
    store = SQLiteStore(path)
    await store.open()
    parts = _parts(store)
    (row,) = await store.claim("me", 2, 1_000_000, 1, "r")
    if saved:
        run = LoadedRun.empty(replace(row, seq=saved), await load_plan(store, row.plan_hash), {})
        await replay(store, run, saved)
        assert await store.release("r", row.epoch, row.seq, None, "running", await snapshot_of(run))
        del run
    await recover(parts, row)  # the plan is read and decoded once per process
    began = time.perf_counter()
    loop, facts = await recover(parts, row)
    took_s = time.perf_counter() - began
    assert len(facts) == 2, facts
    assert loop._run.saved.seq == saved
    await parts.services.close()
    await store.close()
    return took_s


def bare_recovery() -> list[float]:
    """The floor only reads the rows."""
    with _long_run() as path:
        db = sqlite3.connect(path)
        db.execute("SELECT count(*), max(length(run_id)) FROM events").fetchall()  # the file is in memory, as for ours
        began = time.perf_counter()
        rows = db.execute("SELECT * FROM events WHERE run_id = 'r' ORDER BY seq").fetchall()
        took_s = time.perf_counter() - began
        assert len(rows) == EVENTS
        db.close()
        return [took_s]


@contextmanager
def _long_run() -> Iterator[Path]:
    """The database of a run of `EVENTS` events."""
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

    async def fill(path: Path) -> None:
        store = SQLiteStore(path)
        await store.open()
        await store.create_run(NewRun("r", "w", None, plan.hash, plans.encode(plan), b"null", records, 1))
        await store.close()

    with folder() as where:
        path = where / "weft.db"
        on_uvloop(lambda: fill(path))
        yield path


def _parts(store: SQLiteStore) -> Parts:
    return Parts.make(
        store,
        registry=Registry([]),
        services=Services(sandbox=Sandbox(threads=1), http=GuardedClient(allow_private=())),
        clock=SystemClock(),
        links=Links(b"0" * 32, "http://127.0.0.1"),
    )


BENCHMARKS = {
    "compile": [
        Sampled(
            f"compile {BLOCKS:,} blocks",
            "ms",
            program(compiling),
            program(bare_compiling),
            Target(100, of="value"),
            "CPU time of the first document of a process",
            share=2,
        )
    ],
    "expression": [
        Sampled("expression on the loop", "us", program(expression), None, Target(200, of="value"), share=3)
    ],
    "programs": [
        Sampled("a program in JavaScript, warm", "ms", program(javascript), None, Target(1, of="value"), share=3),
        Sampled(
            "a program in Python, warm",
            "ms",
            program(python),
            None,
            Target(6, of="value"),
            "after `weft python build`; a new interpreter for each call",
            share=3,
        ),
    ],
    "append": [
        Sampled(f"append, {COMMITTERS} committers", "us/row", program(appending), program(bare_appending), share=3),
    ],
    "recovery": [
        Sampled(
            f"recover a run of {EVENTS:,} events",
            "s",
            program(recovery),
            program(bare_recovery),
            Target(0.5, of="value"),
            share=4,
        ),
        Sampled(
            f"recover it with a snapshot, {loaded.EVERY // 2:,} events later",
            "ms",
            program(recovery_with_snapshot),
            None,
            Target(60, of="value"),
            share=4,
        ),
    ],
}

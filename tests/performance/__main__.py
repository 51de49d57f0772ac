"""Counts the instructions and calls of a step. Unlike a time, a count does not depend on the machine and its load.

python -m tests.performance             prints what a step costs, and fails where it is over 5 % more than recorded
python -m tests.performance --record    records it, in counts.json beside this file
python -m tests.performance --json      prints it with each function, as it would be recorded
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tests.performance.counts import FILE, Counter, Recorded, as_json, recorded, worse
from tests.performance.turns import Loop, Turns

SECRET, WARM = "a secret for tests only", 2
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # a sync is one call anywhere


async def runs(counter: Counter, path: str, document: dict[str, Any], count: int = 1) -> None:
    from benchmarks.workloads import Noop
    from executor.open.embed import open_engine

    async with open_engine(path, blocks=[Noop()]) as engine:
        for _ in range(WARM):
            await engine.run(document)
        with counter.counting():
            await asyncio.gather(*(engine.run(document) for _ in range(count)))


async def answers(counter: Counter, path: str, count: int) -> None:
    """From the call of `answer` to the next step of a run that had left memory."""
    from benchmarks.workloads import Noop, pause
    from executor.open.embed import open_engine

    noop = Noop()
    async with open_engine(path, blocks=[noop]) as engine:
        for n in range(WARM + count):
            run = (await engine.submit(pause())).run
            assert (await engine.wait_finished(run, 30)).status == "waiting"
            [wait] = await engine.waits.list("pending", run)
            assert wait.link is not None
            reached = noop.after(1)
            with counter.counting(n >= WARM):
                await engine.answer(wait.link, {}, "yes", "a tester")
                await reached
            assert (await engine.wait_finished(run, 30)).status == "succeeded"


async def posts(counter: Counter, path: str, count: int) -> None:
    """Requests to the application, one after the other."""
    from benchmarks.serving import posted
    from server.app import build_engine, create_app
    from server.settings import Settings

    settings = Settings(secret_key=SECRET, token="the-token", db_path=path)
    engine = await build_engine(settings)
    app, body = create_app(settings, engine), posted()
    headers = {"host": "127.0.0.1:8765", "authorization": "Bearer the-token", "content-type": "application/json"}
    headers["content-length"] = str(len(body))
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/api/runs",
        "raw_path": b"/api/runs",
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 8765),
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    try:
        for n in range(WARM + count):
            with counter.counting(n >= WARM):
                await app({**scope, "state": {}}, receive, send)
            assert sent[0]["status"] in (200, 202), sent
            sent.clear()
    finally:
        await engine.close()


def count_all() -> Recorded:
    from benchmarks import workloads
    from executor.kernel.store import writer

    programs: dict[str, tuple[int, Callable[..., Coroutine[Any, Any, None]]]] = {
        "W1, a step of a chain": (50, partial(runs, document=workloads.chain(50))),
        "W2, one of a hundred parallel steps": (100, partial(runs, document=workloads.fan(100))),
        "W3, a step in a loop": (50, partial(runs, document=workloads.loop(25, 2))),
        "W4, a step of fifty runs": (500, partial(runs, document=workloads.chain(10), count=50)),
        "W1, a step of a chain of 500": (500, partial(runs, document=workloads.chain(500))),
        "W2, one of a thousand parallel steps": (1_000, partial(runs, document=workloads.fan(1_000))),
        "W3, a step in a loop of 250": (500, partial(runs, document=workloads.loop(250, 2))),
        "W4, a step of 200 runs": (2_000, partial(runs, document=workloads.chain(10), count=200)),
        "W5, an answer": (10, partial(answers, count=10)),
        "POST /api/runs": (20, partial(posts, count=20)),
    }
    found = {}
    for name, (steps, program) in programs.items():
        counter = Counter()
        turns = Turns(counter.arrive)
        setattr(writer, SimpleQueue.__name__, turns.new_queue)
        with (
            tempfile.TemporaryDirectory(dir=MEMORY) as folder,
            asyncio.Runner(loop_factory=partial(Loop, turns)) as runner,
        ):
            runner.run(program(counter, str(Path(folder, "weft.db"))))
        assert turns.queues, "the writer has no SimpleQueue any more"
        found[name] = counter.costs(steps)
    return Recorded(f"{sys.version_info[0]}.{sys.version_info[1]}", found)


def main() -> int:
    if os.environ.get("PYTHONHASHSEED") != "0":
        environ = {**os.environ, "PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, "-m", "tests.performance", *sys.argv[1:]], environ)
    time.monotonic = time.perf_counter = lambda: 0.0  # before weft is imported: nothing takes long, or is due
    gc.disable()
    found = count_all()
    if "--json" in sys.argv:
        print(as_json(found).decode())
        return 0
    for name, costs in found.workloads.items():
        print(f"{costs.total.instructions:9,.1f} instructions {costs.total.calls:7,.1f} calls  {name}")
    if "--record" in sys.argv:
        FILE.write_bytes(as_json(found))
        return 0
    before = recorded()
    if found.python != before.python:
        print(f"recorded with Python {before.python}: nothing to compare with")
        return 0
    messages = [worse(name, before.workloads[name], costs) for name, costs in found.workloads.items()]
    print(*filter(None, messages), sep="\n\n")
    return int(any(messages))


if __name__ == "__main__":
    raise SystemExit(main())

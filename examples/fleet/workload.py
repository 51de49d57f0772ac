"""Runs without end, started and checked through the servers as a client would. `Counts` has what a client can see."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import orjson
from msgspec import Struct

from server.client import ApiError, AsyncClient, ServerUnreachable

WORKFLOW: Final = "fleet-demo"
REQUEST_S: Final = 5.0
PAUSE_S: Final = 0.3  # before the next server is asked
STARTING_MAX: Final = 64
LOOK_S: Final = 0.5
LOOK_MAX: Final = 40  # runs asked for in one round, those open longest first
RUN_S: Final = 1.0  # sooner none has ended


class Counts(Struct):
    """`started` are runs that a server has accepted. Of those, `wrong` had a wrong result, and `lost` are known to no
    server."""

    started: int = 0
    ended: int = 0
    wrong: int = 0
    lost: int = 0
    slowest_ms: int = 0


def document() -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(Path(__file__).with_name("workflow.json").read_bytes())
    return found


def expected(n: int) -> int:
    """Return the workflow's result for this input: three times the double, and 0 + 1 + 2."""
    return 6 * n + 3


class Workload:
    def __init__(self, urls: Sequence[str], token: str, per_s: float) -> None:
        self.per_s = per_s
        self.counts = Counts()
        self._clients = tuple(AsyncClient(url, token, patience_s=0) for url in urls)
        self._turn = itertools.cycle(self._clients)
        self._open: dict[str, tuple[int, float]] = {}  # what went in, and when
        self._room = asyncio.Semaphore(STARTING_MAX)

    @property
    def open(self) -> int:
        return len(self._open)

    async def run(self) -> None:
        """Start and check runs until cancelled."""
        async with AsyncExitStack() as stack:
            for client in self._clients:
                await stack.enter_async_context(client)
            await self._ask("deploy", document(), WORKFLOW)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._start_all(tasks))
                tasks.create_task(self._look_at_all())

    async def sign_in_link(self, server: int) -> str:
        """Make a sign-in link for the editor of one server. Raises ApiError, ServerUnreachable."""
        made = await self._clients[server].sign_in_link()
        return str(made["url"])

    async def _start_all(self, tasks: asyncio.TaskGroup) -> None:
        for n in itertools.count(1):
            await self._room.acquire()  # while no server answers, starts do not pile up
            tasks.create_task(self._start(n)).add_done_callback(lambda _: self._room.release())
            await asyncio.sleep(1 / self.per_s)

    async def _start(self, n: int) -> None:
        """Start a run with a key: repeating the call gives the same run, whichever server answers."""
        started = await self._ask("start", WORKFLOW, input={"n": n}, idempotency_key=f"demo-{n}")
        self._open[started["run"]] = (n, time.monotonic())
        self.counts.started += 1

    async def _look_at_all(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            now_s = time.monotonic()
            due = [run for run, (_, since_s) in self._open.items() if now_s - since_s > RUN_S][:LOOK_MAX]
            for run in due:
                await self._look_at(run)

    async def _look_at(self, run: str) -> None:
        n, since_s = self._open[run]
        try:
            row = await self._ask("get_run", run)
        except ApiError as error:
            if error.status == 404:
                self.counts.lost += 1
                del self._open[run]
            return
        if row["status"] in ("queued", "running", "waiting"):
            return
        del self._open[run]
        self.counts.ended += 1
        right = row["status"] == "succeeded" and (row["output"] or {}).get("result") == expected(n)
        self.counts.wrong += not right
        self.counts.slowest_ms = max(self.counts.slowest_ms, round((time.monotonic() - since_s) * 1000))

    async def _ask(self, method: str, *args: Any, **named: Any) -> Any:
        """Call one server after the other, until one answers."""
        while True:
            client = next(self._turn)
            try:
                async with asyncio.timeout(REQUEST_S):
                    return await getattr(client, method)(*args, **named)
            except ApiError as error:
                if error.status < 500 and error.status != 429:
                    raise
            except (ServerUnreachable, TimeoutError):
                pass
            await asyncio.sleep(PAUSE_S)

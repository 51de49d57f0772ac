"""A process of a crash test: opens the database, starts the run or finds it, plays it to its end.

Work in forked processes, which may be killed: each begins with the memory that this process has now, and nothing
that it changes there comes back.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Coroutine
from functools import cache
from pathlib import Path
from typing import Any, Final, Self

import msgspec
import orjson
from msgspec import Struct, field

from executor.blocks.connectors.stored import connectors
from executor.blocks.llm.endpoints import Endpoints
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.kernel.handler.base import Block
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.store import Store
from executor.open.engine import Engine
from executor.open.testing.engines import BEGIN_MS, LEASE_MS, SECRET, ManualClock
from executor.open.testing.outside import Entered, Outside, WatchedClient, watched
from executor.open.testing.play import finish
from executor.open.testing.scripted_http import ScriptedHttp

DATABASE: Final = "weft.db"
_KEY: Final = "crash-test"
_RESULT: Final = "result.json"
_CLOCK: Final = "clock"


class Workflow(Struct, frozen=True):
    document: Any
    input: Any
    blocks: list[Any]
    answers: dict[str, Any]
    env: dict[str, str]
    secrets: tuple[str, ...]
    endpoints: Endpoints
    allow_private: tuple[str, ...]
    outside: Outside
    http: ScriptedHttp | None = None


class Result(Struct, frozen=True):
    """The end of the run. `nodes`: statuses by key; `repeated`: keys that had succeeded before this process began, and
    that it ran; `asked`: blocks with a question about a lost attempt."""

    run: str
    status: str
    output: Any
    error: str | None
    variables: dict[str, Any]
    nodes: dict[str, str]
    repeated: tuple[str, ...] = ()
    asked: tuple[str, ...] = field(default=())

    def end(self) -> dict[str, Any]:
        described = {
            "status": self.status,
            "output": self.output,
            "error": None if self.error is None else self.error.partition(":")[0],
            "variables": self.variables,
            "nodes": self.nodes,
        }
        text = orjson.dumps(described, option=orjson.OPT_SORT_KEYS).replace(self.run.encode(), b"<run>")
        found: dict[str, Any] = orjson.loads(text)
        return found

    @classmethod
    def read(cls, folder: Path) -> Self:
        return msgspec.json.decode((folder / _RESULT).read_bytes(), type=cls)


class Process:
    """One on the database in `folder`. `fault` is called at each point of a commit, once it has opened."""

    def __init__(self, workflow: Workflow, folder: Path, fault: Callable[[str], None] | None = None) -> None:
        self._workflow = workflow
        self._folder = folder
        self._fault = fault
        self._armed = False

    async def play(self) -> None:
        had = set() if self._fault is not None else await self._succeeded()
        entered = Entered(self._folder / f"entered-{'killed' if self._fault else 'played'}")
        clock = ManualClock(self._begin_ms())
        self._note(clock.now_ms())
        engine = await self._open(clock, entered)
        try:
            self._armed = True
            run = (await engine.submit(self._workflow.document, input=self._workflow.input, idempotency_key=_KEY)).run
            view = await finish(engine, run, self._workflow.answers, before_move=self._note)
            runs = await engine.store.list_runs()  # this one, and those that it started
            waits = [wait for one in runs for wait in await engine.waits.list(run=one.id, status=None)]
            result = Result(
                run=run,
                status=view.status,
                output=view.output,
                error=None if view.error is None else f"{view.error['code']}: {view.error['message']}",
                variables=view.variables,
                nodes={node.key: node.status for node in view.nodes},
                repeated=tuple(sorted(key for _, key in had & entered.keys())),
                asked=tuple(sorted({wait.block for wait in waits if wait.kind == "attention"})),
            )
            (self._folder / _RESULT).write_bytes(msgspec.json.encode(result))
        finally:
            self._armed = False
            await engine.close(grace_s=0)

    async def make(self) -> None:
        store = self._store()
        await store.open()
        await store.close()

    def _store(self) -> Store:
        return SQLiteStore(self._folder / DATABASE, fault=self._point)

    async def _succeeded(self) -> set[tuple[str, str]]:
        if not (self._folder / _CLOCK).exists():
            return set()
        engine = await self._open(ManualClock(self._begin_ms()), Entered(self._folder / "none"), work=False)
        try:
            found: set[tuple[str, str]] = set()
            for run in await engine.store.list_runs():
                view = await engine.runs.view(run.id)
                found |= {(run.id, node.key) for node in view.nodes if node.status == "succeeded"}
            return found
        finally:
            await engine.close(grace_s=0)

    async def _open(self, clock: ManualClock, entered: Entered, work: bool = True) -> Engine:
        workflow = self._workflow
        sandbox = Sandbox(threads=1)
        http = WatchedClient(workflow.allow_private) if workflow.http is None else workflow.http.client(WatchedClient)
        http.outside = workflow.outside
        installed = Registry.load([*connectors(), *workflow.blocks], sandbox=sandbox)
        blocks: list[Block] = [installed.handler(type) for type in installed.types()]
        return await Engine.open(
            self._store(),
            registry=Registry(watched(blocks, entered), sandbox),
            services=Services(
                sandbox=sandbox,
                http=http,
                env=workflow.env,
                secrets=frozenset(workflow.secrets),
                endpoints=workflow.endpoints,
                base_url="http://test",
            ),
            secret=SECRET,
            clock=clock,
            lease_ms=LEASE_MS,
            work=work,
        )

    def _point(self, name: str) -> None:
        if self._armed and self._fault is not None:
            self._fault(name)

    def _begin_ms(self) -> int:
        path = self._folder / _CLOCK
        last_ms = int(path.read_text()) if path.exists() else BEGIN_MS
        return last_ms + LEASE_MS + 1

    def _note(self, now_ms: int) -> None:
        (self._folder / _CLOCK).write_text(str(now_ms))


# --- forked processes ---


CHILD_S_MAX: Final = 60.0
_POLL_S: Final = 0.003
ERROR_FILE: Final = "error"
DONE, BROKEN = 0, 3


async def in_child(work: Callable[[], Coroutine[Any, Any, None]], folder: Path) -> int:
    """Return the exit code: DONE, BROKEN (`folder/error` has the error), or -9. Raises RuntimeError on a system without
    fork."""
    if not hasattr(os, "fork"):
        raise RuntimeError("crash tests need a system with fork, such as Linux or macOS")
    _ready()
    child = _start(work, folder)
    until_s = time.monotonic() + CHILD_S_MAX
    try:
        while True:
            done, status = os.waitpid(child, os.WNOHANG)  # noqa: ASYNC222  # it does not wait
            if done:
                child = 0
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > until_s:
                (folder / ERROR_FILE).write_text(f"it did not end within {CHILD_S_MAX:g} s")
                return BROKEN
            await asyncio.sleep(_POLL_S)
    finally:
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)  # noqa: ASYNC222  # it was killed


@cache
def _ready() -> None:
    """Import all blocks, and read weft's connectors, once here: in each child it would be a fifth of its work."""
    Registry.load(connectors()).catalogue()


def _start(work: Callable[[], Coroutine[Any, Any, None]], folder: Path) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # its warning that this process may have threads; see the how-to
        child = os.fork()
    if child:
        return child
    code = BROKEN
    try:
        signal.set_wakeup_fd(-1)  # that of the parent's event loop
        asyncio._set_running_loop(None)
        logging.disable(logging.CRITICAL)
        asyncio.run(work())
        code = DONE
    except BaseException:
        (folder / ERROR_FILE).write_text(traceback.format_exc())
    finally:
        os._exit(code)

"""The run-time side of a block type: a spec (compiler.catalog) and an async handler.

A handler gets a StepContext with its params already resolved, and returns an Outcome: `Done`, `Suspend`, or (sentinels
only) `Sized` / `Tested`. It raises BlockError to fail; any other exception is a non-retryable `internal_error`. It
must not keep state between calls: attempts may run in any process, more than once.

A handler that is entered again (its process ended, it is tried again, a wait of it is over) begins at its first line.
Its calls of `ctx.step` and `ctx.wait` are numbered in the order in which they are made, and finished ones return
their recorded results at once. So a handler must make the same calls with the same inputs each time: times, random
numbers and data from outside belong in steps.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from msgspec import Struct

from compiler.catalog import BlockSpec, Catalog
from compiler.plan import Cache, Node, RunnerName
from executor.errors import BlockError
from executor.kernel.core.events import StepEffect, WaitKind
from executor.kernel.handler.durable import DurableCalls
from executor.kernel.handler.needs import Connections, Http, Services
from executor.kernel.process.observe import current
from executor.kernel.store.run_rows import NewRun
from executor.kernel.store.topics.cache import CacheRow
from executor.kernel.values.files import FilesOfRun
from executor.kernel.values.payload import Bound

_making = threading.Lock()


class Over:
    """True once the attempt has ended: its run was cancelled, its time is over, or its run is another worker's.
    Whatever the code returns then is ignored. Can be read in any thread.

    while not ctx.cancelled:
        work()
    """

    __slots__ = ("_event", "_over")

    def __init__(self) -> None:
        self._over = False
        self._event: threading.Event | None = None  # made by the first that waits: most attempts have none

    def __bool__(self) -> bool:
        return self._over

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait in a thread until the attempt is over, or for so many seconds. Return True if it is over."""
        with _making:
            if self._event is None:
                self._event = threading.Event()
        if not self._over:  # `end` sees the event, or this sees the end
            self._event.wait(timeout_s)
        return self._over

    def end(self) -> None:
        self._over = True
        if self._event is not None:
            self._event.set()


StepKind = Literal["model", "tool", "step"]


class Stepped(Struct, frozen=True):
    """A step's output with its usage and cost (see StepFinished); `work` may return it instead of a plain output.
    `keep` returns the row that stores the output, as JSON, for later runs."""

    output: Any = None
    usage: Mapping[str, int] = {}
    cost: float | None = None
    prices: str = ""
    cached: bool = False
    keep: Callable[[bytes], Awaitable[CacheRow | None]] | None = None


class Leaving(BaseException):
    """Ends the handler, which is entered again when its wait is over. Not an Exception: `except Exception` lets it
    pass."""


PatchOp = Literal["set", "merge", "del", "append", "increment"]


class Patch(Struct, frozen=True):
    """One change of a workflow variable. `path` is `$.name`, `$.name.field[0]`, `$["odd name"]`; value is JSON."""

    op: PatchOp
    path: str
    value: Any = None


class Done(Struct, frozen=True):
    """The result of a finished block. `output` is any JSON value. `route` is the handle to follow, or None to follow
    none (every out-edge dies). `response`: the block ends the run; {"status", "headers", "body"} is the response of the
    run, `body` its output. `next`: the block ends the run, and this one continues it."""

    output: Any = None
    route: str | None = "out"
    patches: Sequence[Patch] = ()
    response: Mapping[str, Any] | None = None
    next: NewRun | None = None


class Suspend(Struct, frozen=True):
    """Pause durably. `due_ms` (Unix ms) ends a timer and expires every other kind.

    request   what the person who answers sees (JSON): title, text, show, ...
    schema    JSON Schema of the answer's fields
    actions   ids of the named answers (approval); the answer's action becomes the route if that handle is wired, else
              `out`
    on_expire an action id, or fail | continue | skip
    name, correlation   for signals
    child     the run that is started with the pause; its end ends it
    messages  (channel, JSON of the target) to be sent once the pause is on disk: see executor.service.notifications
    remind_ms when they are sent again (Unix ms), unless the pause has ended
    """

    kind: WaitKind
    request: Mapping[str, Any] = {}
    schema: Mapping[str, Any] | None = None
    actions: Sequence[str] = ()
    due_ms: int | None = None
    on_expire: str = "fail"
    name: str | None = None
    correlation: str | None = None
    messages: Sequence[tuple[str, bytes]] = ()
    remind_ms: int | None = None
    child: NewRun | None = None


class Memory(Protocol):
    """The memory of agents between runs. Both methods are for the work of a step; they raise BlockError."""

    async def recall(self, scope: str, key: str, turns: int) -> list[list[dict[str, Any]]]:
        """Return the last turns, each a list of messages, in the order in which they ended."""

    async def remember(self, scope: str, key: str, node: str, messages: Sequence[Mapping[str, Any]]) -> bool:
        """Add the turn of this node, once. Returns False if it was there."""


class StepResults(Protocol):
    """The cached results of a step."""

    async def find(self) -> bytes | None:
        """Return an earlier output, as JSON, or None."""

    async def row(self, output: bytes) -> CacheRow | None:
        """Return the row that stores an output, or None if it cannot be cached."""


MakeSuspend = Callable[[], Awaitable[Suspend]]


class Steps(Protocol):
    def step(
        self, kind: StepKind, name: str, input: Any, work: Callable[[], Awaitable[Any]], effect: StepEffect
    ) -> Awaitable[Any]: ...

    def wait(self, suspend: Suspend | MakeSuspend, name: str) -> Awaitable[Any]: ...

    def step_from_thread(
        self, kind: StepKind, name: str, input: Any, work: Callable[[], Any], effect: StepEffect
    ) -> Any: ...

    def wait_from_thread(self, suspend: Suspend | MakeSuspend, name: str) -> Any: ...


class ChildRequest(Struct, frozen=True):
    """A run that a handler wants started: of a stored workflow, or of a document (`definition`)."""

    workflow: str | None = None
    definition: Mapping[str, Any] | None = None
    version: int | None = None
    trigger: str | None = None
    input: Any = None


class Sized(Struct, frozen=True):
    """Returned by a start sentinel: open `count` scopes. `items` (each): the list that `<loop.item>` reads."""

    count: int
    items: Sequence[Any] | None = None


class Tested(Struct, frozen=True):
    """Returned by the end sentinel of a loop: another round, or leave."""

    again: bool


Outcome = Done | Suspend | Sized | Tested


class Access(Protocol):
    """The attempt as its StepContext asks it."""

    @property
    def run_id(self) -> str: ...
    @property
    def workflow(self) -> str: ...
    @property
    def key_text(self) -> str: ...
    @property
    def idempotency_key(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def node(self) -> Node: ...
    @property
    def number(self) -> int: ...
    @property
    def services(self) -> Services: ...
    @property
    def connections(self) -> Connections: ...
    def clock(self) -> int: ...
    def emit(self, text: str) -> None: ...
    def log(self, *values: object) -> None: ...
    async def evaluate(self, calls: Sequence[Bound]) -> list[Any]: ...
    async def checkpoint(self, value: Any) -> None: ...
    def checkpoint_from_thread(self, value: Any) -> None: ...
    def waiting(self) -> AbstractContextManager[Any]: ...
    def queueing(self) -> AbstractContextManager[Any]: ...
    def heartbeat(self) -> None: ...
    def over(self) -> Over: ...
    def memory(self) -> Memory: ...
    def results_of(
        self, step: str, params: Mapping[str, Any], cache: Cache, schema: dict[str, Any] | None
    ) -> StepResults: ...
    def steps(self) -> Steps: ...
    async def durable_calls(self, code: object) -> DurableCalls: ...
    def callback_url(self, wait: str) -> str: ...
    async def prepare_child(self, request: ChildRequest) -> NewRun: ...
    async def cancel_child(self, run: str) -> None: ...
    async def prepare_next(self, input: Any) -> NewRun: ...
    async def repeat_wanted(self) -> bool: ...


class StepContext(Struct, eq=False):
    """The input of one attempt, and its access to the engine.

    params           resolved; texts that are JavaScript arrive as Bound
    now_ms           the time of the start, Unix ms
    wired            the handles that lead to other blocks
    turn             end sentinels: number of iterations done so far; start sentinels: 0
    count            end sentinels: the count the start sentinel gave (for, each: all iterations)
    broke            end sentinels: a break block ran in the iteration that just ended
    last_checkpoint  the last checkpoint of an earlier attempt of this key in this run, secrets redacted, or None
    steps            its steps, once `step` or `wait` were used
    calls            those of a durable function
    """

    own: Access
    params: dict[str, Any]
    input: Any
    variables: Mapping[str, Any]
    now_ms: int
    wired: frozenset[str] = frozenset()
    turn: int = 0
    count: int = 0
    broke: bool = False
    last_checkpoint: Any = None
    steps: Steps | None = None
    calls: DurableCalls | None = None

    @property
    def run_id(self) -> str:
        return self.own.run_id

    @property
    def workflow(self) -> str:
        return self.own.workflow

    @property
    def key(self) -> str:
        """The node key as text, e.g. `send@fan[2]`; the same in each attempt, as is `idempotency_key`."""
        return self.own.key_text

    @property
    def block(self) -> str:
        return self.own.node.block

    @property
    def name(self) -> str:
        return self.own.node.name

    @property
    def type(self) -> str:
        return self.own.type

    @property
    def attempt(self) -> int:
        return self.own.number

    @property
    def idempotency_key(self) -> str:
        return self.own.idempotency_key

    @property
    def runner(self) -> RunnerName:
        """The place where the policy wants the work done; not inline only if the spec of the block has it in
        `runners`."""
        return self.own.node.policy.runner

    @property
    def services(self) -> Services:
        return self.own.services

    @property
    def connections(self) -> Connections:
        """Credentials by the names of stored connections."""
        return self.own.connections

    @property
    def clock(self) -> Callable[[], int]:
        """The time, Unix ms; `now` is the same as a datetime."""
        return self.own.clock

    def emit(self, text: str) -> None:
        """Send a piece of live text (tokens); journaled when the attempt ends, the last 16 KiB of it. May be called in
        a thread."""
        self.own.emit(text)

    def log(self, *values: object) -> None:
        """Keep a line of text with the run, as `print`: `ctx.log("rows", n)`; at most 200 lines and 16 KiB per attempt.
        May be called in a thread."""
        self.own.log(*values)

    def evaluate(self, calls: Sequence[Bound]) -> Awaitable[list[Any]]:
        """Run Bound sources in the sandbox, one call: list in, list out; raises BlockError."""
        return self.own.evaluate(calls)

    def checkpoint(self, value: Any) -> Awaitable[None]:
        """Keep any JSON value of at most 1 MiB, in the place of the one before, for the next attempt of this key; on
        disk when it returns. Raises BlockError, and Fenced: the run is another worker's, stop."""
        return self.own.checkpoint(value)

    def checkpoint_from_thread(self, value: Any) -> None:
        """`checkpoint` for code in a thread, which waits for it; not for the event loop."""
        self.own.checkpoint_from_thread(value)

    def waiting(self) -> AbstractContextManager[Any]:
        """`with ctx.waiting():` around a wait for something that this server has too little of (a connection, a
        thread): the time limit of the attempt does not run inside."""
        return self.own.waiting()

    def queueing(self) -> AbstractContextManager[Any]:
        """The same around a wait for others of this server's runs, in which the time limit runs."""
        return self.own.queueing()

    def heartbeat(self) -> None:
        """Report that the handler is alive, from any thread: with `policy.heartbeat_timeout_ms` an attempt that reports
        too rarely has failed. Without the policy it does nothing."""
        self.own.heartbeat()

    def prepare_child(self, request: ChildRequest) -> Awaitable[NewRun]:
        """Make a run for Suspend.child, and store nothing; raises BlockError."""
        return self.own.prepare_child(request)

    def prepare_next(self, input: Any) -> Awaitable[NewRun]:
        """Make the run for Done.next from its input, and store nothing; raises BlockError."""
        return self.own.prepare_next(input)

    def repeat_wanted(self) -> Awaitable[bool]:
        """Return True if the attempt before was lost and a person chose to repeat it."""
        return self.own.repeat_wanted()

    @property
    def cancelled(self) -> Over:
        """True once the attempt is over, for code in threads, which cannot be stopped: `if ctx.cancelled`,
        `ctx.cancelled.wait(5)`."""
        return self.own.over()

    @property
    def memory(self) -> Memory:
        return self.own.memory()

    @property
    def now(self) -> datetime:
        """The time in UTC, by the engine's clock. In a step whose output is stored it stays the same."""
        return datetime.fromtimestamp(self.clock() / 1000, UTC)

    @property
    def http(self) -> Http:
        """Requests by the rules of this server: `(await ctx.http.get(url)).raise_for_status().json()`."""
        return self.services.http_for(self.idempotency_key, self.waiting, self.clock)

    @property
    def files(self) -> FilesOfRun:
        """The files of this run: `await ctx.files.read(value)`, `(await ctx.files.save(data, "a.csv")).value`."""
        if self.services.files is None:
            raise BlockError("files are not available here", code="files_not_available", retryable=False)
        return FilesOfRun(self.services.files, self.run_id)

    def step(
        self,
        kind: StepKind,
        name: str,
        input: Any,
        work: Callable[[], Awaitable[Any]],
        *,
        effect: StepEffect = "write",
    ) -> Awaitable[Any]:
        """Do `work` once, even if this process ends: its output (any JSON value, or a `Stepped`) is in the journal when
        this returns, and the next entry of this handler gets it without doing it again. The result or the error is
        stored without secrets: a BlockError, or `step_failed` for other exceptions.

        `input` is not stored, but compared: the same call must have the same kind, name and input in each entry. If the
        process ends meanwhile, a step with effect none or read is done again; for a write a person decides. Calls are
        numbered as they are made, also those that are then awaited side by side. Not inside the work of a step. Raises
        Leaving."""
        return self._steps().step(kind, name, input, work, effect)

    def wait(self, suspend: Suspend | MakeSuspend, *, name: str = "") -> Awaitable[Any]:
        """Wait, and return the answer, the output of the child run or the payload of the signal. The handler does not
        stay in memory meanwhile: this raises Leaving, and the handler is entered again. Raises BlockError if the wait
        fails, as a block that waits does. Steps under way are finished before. `suspend` may be a function that makes
        it (`prepare_child`): it is called when the wait has not begun. Waits that are awaited side by side are open at
        the same time, up to 20: the handler is entered again when all of them are over."""
        return self._steps().wait(suspend, name)

    def step_from_thread(
        self, kind: StepKind, name: str, input: Any, work: Callable[[], Any], *, effect: StepEffect = "write"
    ) -> Any:
        """`step` for code in a thread, where `work` is called; not for the event loop."""
        return self._steps().step_from_thread(kind, name, input, work, effect)

    def wait_from_thread(self, suspend: Suspend | MakeSuspend, *, name: str = "") -> Any:
        """`wait` for code in a thread; not for the event loop."""
        return self._steps().wait_from_thread(suspend, name)

    async def durable_calls(self, code: object) -> DurableCalls:
        """Begin an entry of a durable function: its calls take the place of `step` and `wait`. `code`: what it runs."""
        self.calls = await self.own.durable_calls(code)
        return self.calls

    def _steps(self) -> Steps:
        if self.steps is None:
            self.steps = self.own.steps()
        return self.steps


def context() -> StepContext:
    """Return the context of the attempt, inside of a step, of a function of a `python` block or of a block type; also
    in what these call and in threads that `asyncio.to_thread` starts. Raises RuntimeError outside."""
    found: StepContext | None = current()
    if found is None:
        raise RuntimeError(
            "weft.context() works while a run executes a step: there is no run here. A workflow function and a unit "
            "test have no context. Call it inside of the step, and test the step in a run, with weft.testing."
        )
    return found


class Block(Protocol):
    """A block type. Sentinels of a container share one Block: `run` is then called for the end the context names
    (`type` is `loop:start`, `loop:end`, `parallel:start` or `parallel:end`)."""

    @property
    def spec(self) -> BlockSpec: ...

    async def run(self, ctx: StepContext) -> Outcome: ...


class Registry(Catalog, Protocol):
    def handler(self, type: str) -> Block:
        """Raises NotFound(block_type_unknown)."""


def sees_all(registry: Registry, type: str) -> bool:
    """Return True if blocks of this type may read all variables and the input, beside their params: as code of users
    does, which gets the context of its attempt."""
    if type in ("python", "durable", "variables") or registry.get(type) is None:
        return True
    return not holds_handles(registry.handler(type))


def holds_handles(block: Block) -> bool:
    """Blocks of weft hold handles of secrets, which the clients of weft open; those of other packages get the
    values."""
    module = type(block).__module__
    return (
        module.startswith(("executor.blocks.types.", "executor.blocks.connectors."))
        and module != "executor.blocks.types.typed"
    )

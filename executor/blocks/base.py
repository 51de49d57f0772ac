"""What a block is at run time: a spec (compiler.catalog) and an async handler. One file per block type in this folder.

A handler gets a Context with its params already resolved, and returns an Outcome: `Done`, `Suspend`, or (sentinels
only) `Sized` / `Tested`. It raises BlockError to fail; any other exception is a non-retryable `internal_error`.
It must not keep state between calls: attempts may run in any process, more than once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from compiler.catalog import BlockSpec
from executor.core.events import WaitKind
from executor.sandbox import Bound

if TYPE_CHECKING:
    from executor.services import Services
    from executor.store.rows import NewRun

PatchOp = Literal["set", "merge", "del", "append", "increment"]


@dataclass(frozen=True, slots=True)
class Patch:
    """One change of a workflow variable. `path` is `$.name`, `$.name.field[0]`, `$["odd name"]`; value is JSON."""

    op: PatchOp
    path: str
    value: Any = None


@dataclass(frozen=True, slots=True)
class Done:
    """`output` is any JSON value. `route`: the handle to follow; None: none (every out-edge dies).
    `response`: the block ends the run; {"status", "headers", "body"} is the response of the run, `body` its output."""

    output: Any = None
    route: str | None = "out"
    patches: Sequence[Patch] = ()
    response: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Suspend:
    """Pause durably. `due_ms` (Unix ms) ends a timer and expires every other kind.

    request   what a person is shown (JSON): title, text, show, ...
    schema    JSON Schema of the answer's fields
    actions   ids of the named answers (approval); the answer's action becomes the route if that handle is wired, else
              `out`
    on_expire an action id, or fail | continue | skip
    name, correlation   for signals
    child     the run that is started with the pause; its end ends it
    messages  (channel, JSON of the target) to be sent once the pause is on disk: see executor.notifications
    """

    kind: WaitKind
    request: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, Any] | None = None
    actions: Sequence[str] = ()
    due_ms: int | None = None
    on_expire: str = "fail"
    name: str | None = None
    correlation: str | None = None
    messages: Sequence[tuple[str, bytes]] = ()
    child: NewRun | None = None


@dataclass(frozen=True, slots=True)
class ChildRequest:
    """A run that a handler wants started: of a stored workflow, or of a document (`definition`)."""

    workflow: str | None = None
    definition: Mapping[str, Any] | None = None
    version: int | None = None
    trigger: str | None = None
    input: Any = None


@dataclass(frozen=True, slots=True)
class Sized:
    """From a start sentinel: open `count` scopes. `items` (each): the list that `<loop.item>` reads."""

    count: int
    items: Sequence[Any] | None = None


@dataclass(frozen=True, slots=True)
class Tested:
    """From an end sentinel of a loop: go round again, or leave."""

    again: bool


Outcome = Done | Suspend | Sized | Tested


@dataclass(slots=True)
class Context:
    """What one attempt knows.

    params           resolved; texts that are JavaScript arrive as Bound
    key              the node key as text, e.g. `send@fan[2]`; stable over attempts, as is idempotency_key
    turn             end sentinels: number of iterations done so far; start sentinels: 0
    count            end sentinels: the count the start sentinel gave (for, each: all iterations)
    broke            end sentinels: a break block ran in the iteration that just ended
    emit             sends a piece of live text (tokens); journaled when the attempt ends, the last 16 KiB of it
    log              keeps a line of text with the run: `ctx.log("rows", n)`, as `print`; at most 200 lines and 16 KiB
                     per attempt. Both may be called in a thread
    evaluate         runs Bound sources in the sandbox, one call: list in, list out; raises BlockError
    checkpoint       keeps any JSON value of at most 1 MiB, in the place of the one before, for the next attempt of this
                     key; on disk when it returns. Raises BlockError, and Fenced: the run is another worker's, stop
    checkpoint_from_thread  the same for code in a thread, which waits for it; not for the event loop
    last_checkpoint  what an earlier attempt of this key in this run kept last, secrets redacted; None: nothing
    waiting          `with ctx.waiting():` around a wait for something that this server has too little of (a connection,
                     a thread): the time limit of the attempt does not run inside
    queueing         the same around a wait for others of this server's runs, in which the time limit runs
    prepare_child    makes a run for Suspend.child, and stores nothing; raises BlockError. None: not available here
    """

    run_id: str
    workflow: str
    key: str
    block: str
    name: str
    type: str
    attempt: int
    idempotency_key: str
    params: dict[str, Any]
    input: Any
    variables: Mapping[str, Any]
    now_ms: int
    services: Services
    emit: Callable[[str], None]
    evaluate: Callable[[Sequence[Bound]], Awaitable[list[Any]]]
    checkpoint: Callable[[Any], Awaitable[None]]
    checkpoint_from_thread: Callable[[Any], None]
    last_checkpoint: Any = None
    wired: frozenset[str] = frozenset()
    turn: int = 0
    count: int = 0
    broke: bool = False
    log: Callable[..., None] = lambda *values: None
    waiting: Callable[[], AbstractContextManager[Any]] = nullcontext
    queueing: Callable[[], AbstractContextManager[Any]] = nullcontext
    prepare_child: Callable[[ChildRequest], Awaitable[NewRun]] | None = None


class Block(Protocol):
    """A block type. Sentinels of a container share one Block: `run` is then called for the end the context names
    (`type` is `loop:start`, `loop:end`, `parallel:start` or `parallel:end`)."""

    @property
    def spec(self) -> BlockSpec: ...

    async def run(self, ctx: Context) -> Outcome: ...

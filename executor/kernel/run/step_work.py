"""The two events of a step, for steps of handlers (`steps.py`) and of durable functions (`durable.py`): its start is on
disk before its work begins, its end before anything follows from it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from compiler.keys import NodeKey
from executor.errors import BlockError
from executor.kernel.core.events import (
    ErrorInfo,
    StepEffect,
    StepFinished,
    StepKind,
    StepOnLost,
    StepRetrying,
    StepStarted,
    UpdateAnswered,
)
from executor.kernel.core.facts import WaitStep
from executor.kernel.handler.base import Stepped, Suspend
from executor.kernel.process.tracebacks import traceback_of
from executor.kernel.run.border import Border
from executor.kernel.run.call_site import CallSite
from executor.kernel.run.results import Settled, StepEvent, StepNote, Stored, Stream
from executor.kernel.store.topics.cache import CacheRow
from executor.kernel.store.topics.store import Store
from executor.kernel.values.money import USD_MAX
from executor.kernel.values.payload import dump
from executor.kernel.values.payload import encode as encode_payload
from executor.kernel.values.schema import ASIDE_BYTES

NAME_MAX: Final = 200  # characters
SHOWN_BYTES: Final = 1_024  # of the JSON of an input
REASON_MAX: Final = 2_000  # characters, of an update that is refused
USAGE_MAX: Final = 20  # counts of one step
NO_SITE: Final = CallSite()
NO_KEY: Final[NodeKey] = ((), -1)  # the key of the moment is filled in when a note is recorded


class StepJournal(Struct, frozen=True):
    """Records the steps of an attempt. `keep` takes a note, or a line of the log, to the loop of the run,
    `keep_quietly` a note to its next turn, which `flush` begins; `open` opens waits and closes those of other steps,
    and raises BlockError if a request is not JSON."""

    store: Store
    run_id: str
    keep: Callable[[str | StepNote, Stream], None]
    keep_quietly: Callable[[StepNote], None]
    flush: Callable[[], None]
    open: Callable[[Sequence[tuple[Suspend, WaitStep]], tuple[int, ...]], None]
    loop: asyncio.AbstractEventLoop

    async def record(
        self, event: StepStarted | StepFinished, output: bytes | None = None, cached: CacheRow | None = None
    ) -> Stored:
        """Record the event and wait until it is on disk. Raises BlockError if the attempt is over."""
        done: asyncio.Future[Stored] = self.loop.create_future()
        self.keep(StepNote(event, output, partial(_settle, done), cached), "log")
        return await done

    def note(self, event: StepEvent, output: bytes | None = None, cached: CacheRow | None = None) -> None:
        """Record the event with the next append, which `flush` begins at the latest."""
        self.keep_quietly(StepNote(event, output, cached=cached))


def _settle(done: asyncio.Future[Stored], stored: Stored | BlockError) -> None:
    if done.done():
        return
    if isinstance(stored, BlockError):
        done.set_exception(stored)
    else:
        done.set_result(stored)


class Call(Struct, frozen=True):
    n: int
    kind: StepKind
    name: str
    input_hash: str
    effect: StepEffect
    site: CallSite = NO_SITE
    shown: Any = None
    on_lost: StepOnLost = ""

    def started(self, attempt: int) -> StepStarted:
        site = self.site
        return StepStarted(
            NO_KEY, attempt, self.n, self.kind, self.name, self.input_hash, self.effect,
            site.line, site.task, site.above, site.group, self.shown, self.on_lost,
        )  # fmt: skip

    def wait_step(self, lost: bool) -> WaitStep:
        site = self.site
        return WaitStep(self.n, self.name, self.input_hash, lost, site.line, site.task, site.above, site.group)


class Ended(Struct, frozen=True):
    """The end of a step. `error` is None if it has an output."""

    at_ms: int
    output: bytes | None = None
    error: ErrorInfo | None = None

    def value(self) -> Any:
        return None if self.output is None else orjson.loads(self.output)

    def result(self, raised: BaseException | None = None) -> Any:
        """Return its output. Raises BlockError: it has failed. `raised`: by what, if that was now."""
        if (info := self.error) is None:
            return self.value()
        asked = raised if isinstance(raised, BlockError) else None
        raise BlockError(
            info.message,
            code=info.code,
            retryable=info.retryable,
            hint=info.hint,
            traceback=info.traceback,
            retry_at_ms=None if asked is None else asked.retry_at_ms,
            deferred=None if asked is None else asked.deferred,
        ) from raised


class StepWork:
    """The steps of one attempt. Its methods raise BlockError if the attempt is over.

    Their ends are on disk when the methods return. With `now_ms` they are on disk together with what begins next, and
    that is the time at which the steps ended.
    """

    __slots__ = ("_attempt", "_journal", "_now_ms", "border", "masks")

    def __init__(
        self, attempt: int, journal: StepJournal, border: Border, now_ms: Callable[[], int] | None = None
    ) -> None:
        self._attempt = attempt
        self._journal = journal
        self.border = border
        self._now_ms = now_ms
        self.masks: dict[bytes, bytes] = {}

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._journal.loop

    def call(
        self,
        n: int,
        kind: StepKind,
        name: str,
        input: Any,
        effect: StepEffect,
        site: CallSite | None = None,
        on_lost: StepOnLost = "",
    ) -> Call:
        return new_call(self.border, n, kind, name, input, effect, site, self.masks, on_lost)

    async def begin(self, call: Call) -> None:
        await self._journal.record(call.started(self._attempt))

    def begin_then(self, call: Call, then: Settled) -> None:
        """Record its start, and call `then` when that is on disk, or is refused."""
        self._journal.keep(StepNote(call.started(self._attempt), done=then), "log")

    async def finish(self, call: Call, result: Any) -> Ended:
        stepped = result if isinstance(result, Stepped) else Stepped(result)
        try:
            data = await self._encoded(stepped.output)
            counts, cost = _counts(stepped.usage), _cost(stepped.cost)
        except BlockError as error:
            return await self.fail(call, error)
        prices, is_cached = stepped.prices[:NAME_MAX], stepped.cached
        event = StepFinished(NO_KEY, self._attempt, call.n, counts, cost, prices, cached=is_cached)
        row = None if stepped.keep is None else await stepped.keep(data)
        return Ended(await self._end(event, data, row), data)

    async def fail(self, call: Call, error: BaseException, work: Any = None) -> Ended:
        """`work`: what raised `error`, if it is code of users."""
        info = self._shown(error, work)
        return Ended(await self._end(StepFinished(NO_KEY, self._attempt, call.n, error=info)), error=info)

    async def _end(self, event: StepFinished, output: bytes | None = None, cached: CacheRow | None = None) -> int:
        if self._now_ms is None:
            return (await self._journal.record(event, output, cached)).at_ms
        event = replace(event, ended_ms=self._now_ms())
        self._journal.note(event, output, cached)
        return event.ended_ms

    def retry(self, call: Call, times: int, due_ms: int, error: BaseException) -> None:
        """Record its failure number `times`, with what begins next."""
        self._journal.note(StepRetrying(NO_KEY, self._attempt, call.n, times, due_ms, self._shown(error)))

    def _shown(self, error: BaseException, work: Any = None) -> ErrorInfo:
        traceback = getattr(error, "traceback", "") if work is None else traceback_of(error, work)
        return self.border.shown(replace(_info_of(error), traceback=traceback))

    def answered(self, name: str, update: str, answer: Any, refused: str | None) -> tuple[UpdateAnswered, bytes]:
        """Return the event of an answer, and its output. Raises BlockError: it is no JSON value, or too large."""
        reason = None if refused is None else self.border.redactor.redact(refused)[:REASON_MAX]
        return UpdateAnswered(NO_KEY, self._attempt, update, name, reason), self.border.clean(answer, dump(answer))

    def mark(self, call: Call) -> None:
        """Record a call of which nothing is awaited, with the next append."""
        now_ms = 0 if self._now_ms is None else self._now_ms()
        self._journal.note(call.started(self._attempt))
        self._journal.note(StepFinished(NO_KEY, self._attempt, call.n, ended_ms=now_ms))

    def cancel(self, call: Call) -> None:
        """Record that it was cancelled, with the next append."""
        self._journal.note(StepFinished(NO_KEY, self._attempt, call.n, error=CANCELLED))
        self._journal.flush()

    async def _encoded(self, output: Any) -> bytes:
        """JSON without secrets. Raises BlockError."""
        data = dump(output)
        if len(data) > ASIDE_BYTES:
            data = await asyncio.to_thread(self.border.clean, output, data)
        else:
            data = self.border.clean(output, data)
        if (full := self.border.full(len(data))) is not None:
            raise BlockError(full.message, code=full.code, retryable=False, hint=full.hint)
        return data


CANCELLED: Final = ErrorInfo("cancelled", "the step was cancelled", retryable=True)


def new_call(
    border: Border,
    n: int,
    kind: StepKind,
    name: str,
    input: Any,
    effect: StepEffect = "none",
    site: CallSite | None = None,
    masks: Mapping[bytes, bytes] = MappingProxyType({}),
    on_lost: StepOnLost = "",
) -> Call:
    """With `site` the input is shown. `masks`: see `DurableCalls.mask`."""
    name = border.redactor.redact(name)[:NAME_MAX]
    data = border.redactor.redact_json(encode_payload(input, is_sorted=True))
    for text, mask in masks.items():
        data = data.replace(text, mask)
    given = b"\0".join((kind.encode(), name.encode(errors="backslashreplace"), data))
    input_hash = hashlib.sha256(given).hexdigest()[:32]
    if site is not None and site.group:
        site = replace(site, group=border.redactor.redact(site.group)[:NAME_MAX])
    shown = None if site is None else shown_of(data)
    return Call(n, kind, name, input_hash, effect, site or NO_SITE, shown, on_lost)


def shown_of(data: bytes) -> Any:
    """Return a value that is JSON, or the beginning of its text if it is long."""
    if len(data) <= SHOWN_BYTES:
        return orjson.loads(data)
    return data[:SHOWN_BYTES].decode(errors="ignore") + "…"


def _info_of(error: BaseException) -> ErrorInfo:
    if isinstance(error, BlockError):
        return ErrorInfo(
            error.code, error.message, error.retryable, None, error.hint, type=error.type, args=error.arguments
        )
    if isinstance(error, TimeoutError):
        return ErrorInfo("timeout", str(error) or "the step took too long", True)
    return ErrorInfo("step_failed", f"{type(error).__name__}: {error}", True)


def _cost(usd: float | None) -> float | None:
    if usd is not None and not 0 <= usd <= USD_MAX:
        message = f"the cost of a step is a number of US dollars from 0 to {USD_MAX}, not {usd}"
        raise BlockError(message, code="payload_invalid", retryable=False)
    return usd


def _counts(usage: Mapping[str, int]) -> dict[str, int]:
    if len(usage) > USAGE_MAX or not all(isinstance(n, int) for n in usage.values()):
        message = f"the usage of a step is at most {USAGE_MAX} whole numbers by name"
        raise BlockError(message, code="payload_invalid", retryable=False)
    return {str(name)[:NAME_MAX]: int(n) for name, n in usage.items()}

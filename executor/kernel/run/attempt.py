"""The parts of one attempt while it runs: notes of its steps, its log and live text, its time limit.

Lines of the log go to the journal as they come, those of a quarter of a second together. Live text goes to readers at
once (`node.delta`) and to the journal when the attempt ends. Both are bounded, and secrets are taken out first.
Output after the end of the attempt is dropped. The time limit does not run while the attempt waits for what this
server has too little of: such a wait has nothing to do with the other side, and an attempt that ends for it would
make the queue longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock
from types import coroutine
from typing import Any, Final, Literal, TypeVar, cast

from executor.errors import BlockError
from executor.kernel.core.events import StepFinished, StepStarted
from executor.kernel.values.redact import RedactedStream, Redactor


class StepNote:
    """The event of a step for the run's loop to record. `done` is set when the event is on disk, or is None if nothing
    waits for that. The key of `event` is filled in when it is recorded: the run may have moved to another plan by
    then."""

    __slots__ = ("done", "event", "output")

    def __init__(
        self,
        event: StepStarted | StepFinished,
        output: bytes | None = None,
        done: asyncio.Future[None] | None = None,
    ) -> None:
        self.event = event
        self.output = output
        self.done = done

    def stored(self) -> None:
        """Note that the event is on disk."""
        if self.done is not None and not self.done.done():
            self.done.set_result(None)

    def refuse(self) -> None:
        """Refuse the event: the attempt was over, so it is not recorded."""
        if self.done is not None and not self.done.done():
            message = f"attempt {self.event.attempt} has ended: its step {self.event.n} was not recorded"
            self.done.set_exception(BlockError(message, code="attempt_over", retryable=False))


# The bounds of the log of one attempt.
LINES_MAX: Final = 200
LOG_BYTES_MAX: Final = 16 * 1024
TEXT_BYTES_MAX: Final = 16 * 1024
JOIN_S: Final = 0.25

Stream = Literal["log", "text"]
Keep = Callable[[str | StepNote, Stream], None]


class AttemptLog:
    """The log of one attempt. `keep` journals a message; `emit` sends a piece of live text to readers."""

    __slots__ = (
        "_bytes",
        "_count",
        "_deltas",
        "_emit",
        "_ended",
        "_keep",
        "_left_out",
        "_lines",
        "_lock",
        "_loop",
        "_redactor",
        "_text",
        "_timer",
    )

    def __init__(self, redactor: Redactor, keep: Callable[[str, Stream], None], emit: Callable[[str], None]) -> None:
        self._redactor = redactor
        self._keep = keep
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._deltas: RedactedStream | None = None  # from the first piece to the end: it refers to this object
        self._lock = Lock()
        self._lines: list[str] = []
        self._count = self._bytes = self._left_out = 0
        self._text = ""
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False

    # --- from the handler, in any thread ---

    def log(self, *values: object) -> None:
        """Keep a line, as `print` would write it; several when a value has line breaks."""
        lines = unicode(self._redactor.redact(" ".join(map(str, values)))).rstrip("\n").split("\n")
        with self._lock:
            if self._ended:
                return
            for line in lines:
                self._add(line)
        self._on_loop(self._flush_soon)

    def emit(self, text: str) -> None:
        """Send a piece of live text."""
        self._on_loop(partial(self._deltas_once, text))

    # --- on the loop ---

    def end(self) -> None:
        """Journal what is left; nearly always nothing."""
        with self._lock:
            self._ended = True
            if not (self._count or self._left_out) and self._deltas is None:
                return
        if self._deltas is not None:
            self._deltas.end()
            self._deltas = None
        with self._lock:
            if self._left_out:
                lines = f"{self._left_out} more line{'' if self._left_out == 1 else 's'}"
                self._lines.append(f"({lines} omitted: a log has at most {LINES_MAX} lines and 16 KiB per attempt)")
        self._flush()
        if self._text:
            data = self._text.encode()
            cut = data[-TEXT_BYTES_MAX:].decode(errors="ignore")
            self._keep(cut if len(data) <= TEXT_BYTES_MAX else f"…{cut}", "text")

    def _add(self, line: str) -> None:
        room = LOG_BYTES_MAX - self._bytes
        if self._count == LINES_MAX or room <= 0:
            self._left_out += 1
            return
        data = line.encode()
        if len(data) > room:
            line = data[:room].decode(errors="ignore") + "…"
        self._count += 1
        self._bytes += len(data) + 1
        self._lines.append(line)

    def _flush_soon(self) -> None:
        """Flush the first line at once, those that follow it soon together."""
        if self._timer is None and not self._ended:
            self._flush()
            self._timer = self._loop.call_later(JOIN_S, self._flush_again)

    def _flush_again(self) -> None:
        self._timer = None
        if self._lines and not self._ended:
            self._flush_soon()

    def _flush(self) -> None:
        with self._lock:
            lines, self._lines = self._lines, []
        if self._timer is not None and self._ended:
            self._timer.cancel()
        if lines:
            self._keep("\n".join(lines), "log")

    def _deltas_once(self, text: str) -> None:
        if self._ended:
            return
        if self._deltas is None:
            self._deltas = self._redactor.stream(self._emit_text)
        self._deltas(text)

    def _emit_text(self, text: str) -> None:
        text = unicode(text)
        self._text = (self._text + text)[-TEXT_BYTES_MAX - 1 :]  # one more than is kept marks that it was cut
        self._emit(text)

    def _on_loop(self, call: Callable[[], None]) -> None:
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:  # a thread
            here = False
        if here:
            call()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)


def unicode(text: str) -> str:
    """Surrogates without their other half, as in names of files that are no UTF-8, are written out: \\udce9."""
    return text.encode("utf-8", "backslashreplace").decode()


T = TypeVar("T")

LOOKS_PER_HEARTBEAT: Final = 4  # so that silence is noticed late by a quarter of its limit at most


class OutOfTime(TimeoutError):
    """The time is over, and `queued_s` of it went by in a queue."""

    def __init__(self, queued_s: float) -> None:
        super().__init__()
        self.queued_s = queued_s


class NoHeartbeat(TimeoutError):
    """The handler sent no heartbeat in time."""

    def __init__(self, every_s: float) -> None:
        super().__init__(f"the block sent no heartbeat for {every_s:g} s")


class TimeLimit:
    """`around` is called once. `heartbeat_s`: the longest time without a heartbeat, 0 for any.
    It is `asyncio.timeout` for one handler, at a third of its price, and for nothing if the handler ends without a
    wait."""

    __slots__ = (
        "_beaten",
        "_heard_at_s",
        "_heart",
        "_heartbeat_s",
        "_late",
        "_left_s",
        "_loop",
        "_queued_s",
        "_silent",
        "_task",
        "_timer",
        "_waits",
    )

    def __init__(self, seconds: float, heartbeat_s: float = 0.0) -> None:
        self._left_s = seconds
        self._heartbeat_s = heartbeat_s
        self._heard_at_s = 0.0
        self._beaten = False
        self._heart: asyncio.TimerHandle | None = None
        self._silent = False
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[Any] | None = None
        self._waits = 0
        self._queued_s = 0.0
        self._late = False

    @coroutine
    def around(self, handler: Awaitable[T]) -> Generator[Any, Any, T]:
        """Raises TimeoutError: NoHeartbeat, and OutOfTime if a second of it or more went by in a queue."""
        steps = handler.__await__()
        began = self._loop.time()
        try:
            waits_for = next(steps)
        except StopIteration as ended:  # it waited for nothing, as most do: no timer was needed
            return cast(T, ended.value)
        task = self._task = asyncio.current_task()
        assert task is not None
        cancelling = task.cancelling()
        self._left_s -= self._loop.time() - began
        self._heard_at_s = self._loop.time() if self._beaten else began
        if not self._waits:
            self._start()
        try:
            return (yield from _rest(steps, waits_for))
        except asyncio.CancelledError as cancelled:
            if self._late and task.cancelling() <= cancelling + 1:  # it was not cancelled from outside as well
                raise self._why() from cancelled
            raise
        finally:
            self._stop()
            self._task = None
            if self._late:
                task.uncancel()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """No time passes inside. Parts of a handler that run side by side may each be waiting."""
        self._waits += 1
        if self._waits == 1 and self._timer is not None:
            self._stop()
            self._left_s = self._timer.when() - self._loop.time()
        try:
            yield
        finally:
            self._waits -= 1
            if not self._waits and self._task is not None and not self._late:
                self._heard_at_s = self._loop.time()
                self._start()

    @contextmanager
    def queueing(self) -> Iterator[None]:
        """Count the time inside as queueing. The error of an attempt that reaches its limit names that time."""
        began = self._loop.time()
        try:
            yield
        finally:
            self._queued_s += self._loop.time() - began

    def heartbeat(self) -> None:
        """The handler is alive; from any thread. It only leaves a mark: some loops do not know the time in threads."""
        self._beaten = True

    def _start(self) -> None:
        self._timer = self._loop.call_later(max(0.0, self._left_s), self._expire)
        if self._heartbeat_s:
            self._heart = self._loop.call_later(self._heartbeat_s / LOOKS_PER_HEARTBEAT, self._listen)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._heart is not None:
            self._heart.cancel()

    def _listen(self) -> None:
        now_s = self._loop.time()
        if self._beaten:
            self._beaten, self._heard_at_s = False, now_s
        if now_s - self._heard_at_s < self._heartbeat_s:
            self._heart = self._loop.call_later(self._heartbeat_s / LOOKS_PER_HEARTBEAT, self._listen)
        elif not self._late:
            self._silent = True
            self._expire()

    def _why(self) -> TimeoutError:
        if self._silent:
            return NoHeartbeat(self._heartbeat_s)
        return OutOfTime(self._queued_s) if self._queued_s >= 1 else TimeoutError()

    def _expire(self) -> None:
        if self._late:
            return
        self._late = True
        assert self._task is not None
        self._task.cancel()


def _rest(steps: Generator[Any, Any, T], waits_for: Any) -> Generator[Any, Any, T]:
    """A coroutine that has begun, and waits for this."""
    try:
        while True:
            try:
                sent = yield waits_for
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:
                waits_for = steps.throw(error)
            else:
                waits_for = steps.send(sent)
    except StopIteration as ended:
        return cast(T, ended.value)

"""The present work of this process, for lines of the log, traces and metrics: the run and attempt of the current
task, ids of spans, histograms.

Ids of spans follow from the run and the place in it, so a trace that is exported twice, by any process, is the same
one. The content of a trace is read from the journal: `executor/service/telemetry`.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple


class Doing(NamedTuple):
    """`node`: the node key as text, None between attempts."""

    run: str
    workflow: str
    node: str | None = None
    attempt: int | None = None


_context: ContextVar[Any] = ContextVar("context", default=None)
_doing: ContextVar[Doing | Callable[[], Doing] | None] = ContextVar("doing", default=None)


def begin(doing: Doing | Callable[[], Doing]) -> None:
    """Set the context for the rest of this task, and for tasks that it makes. A function is called only when a line is
    logged."""
    _doing.set(doing)


def doing() -> Doing | None:
    now = _doing.get()
    return now() if callable(now) else now


@contextmanager
def inside(context: Any) -> Generator[None]:
    """Set the context that `current` returns while a function of the user is called."""
    token = _context.set(context)
    try:
        yield
    finally:
        _context.reset(token)


def current() -> Any:
    """Return the context of the attempt whose function calls this; None outside."""
    return _context.get()


ENDED_MAX: Final = 10_000  # runs that wait to be exported; of more the oldest are left out
OPEN_MAX: Final = 10_000  # open runs with events that are not exported yet; others are exported when they end
REQUESTS_MAX: Final = 10_000  # requests that wait to be exported; of more the oldest are left out
KNOWN_MAX: Final = 10_000
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?")
_parent: ContextVar[str | None] = ContextVar("traceparent", default=None)


class Parent(NamedTuple):
    """Hexadecimal: 32 and 16 digits."""

    trace: str
    span: str


def parent_of(text: str | None) -> Parent | None:
    """Parse the header `traceparent` of W3C Trace Context. Returns None if it is not valid."""
    found = _TRACEPARENT.fullmatch(text) if text else None
    if found is None or not (found[1].strip("0") and found[2].strip("0")):
        return None
    return Parent(found[1], found[2])


def trace_id(root: str) -> str:
    """Return the trace id of a run without a parent, and of the runs below it."""
    return hashlib.sha256(f"weft trace {root}".encode()).hexdigest()[:32]


def run_span(run: str) -> str:
    return _span(run)


def node_span(run: str, key: str) -> str:
    return _span(run, key)


def attempt_span(run: str, key: str, attempt: int) -> str:
    return _span(run, key, str(attempt))


def step_span(run: str, key: str, attempt: int, n: int) -> str:
    return _span(run, key, str(attempt), str(n))


def _span(*parts: str) -> str:
    return hashlib.sha256("\0".join(("weft span", *parts)).encode()).hexdigest()[:16]


@contextmanager
def with_parent(traceparent: str | None) -> Iterator[None]:
    """Give the runs made inside this parent, if it is valid."""
    token = _parent.set(traceparent if parent_of(traceparent) is not None else None)
    try:
        yield
    finally:
        _parent.reset(token)


def present_parent() -> str | None:
    return _parent.get()


class Served(NamedTuple):
    """A request of the API that continued the trace of its caller. `span` is its own, below that of the caller."""

    caller: Parent
    span: str
    method: str
    route: str
    status: int
    start_ms: int
    end_ms: int


class Tracing:
    """The traces of a process that exports them. `endpoint`: the URL of traces by OTLP over HTTP. `recorded_trace`:
    reads the parent and the root of a run from its journal; the exporter sets it. `open`: runs with events that are not
    exported yet, and since when, the oldest first."""

    def __init__(self, endpoint: str, headers: dict[str, str] | None = None) -> None:
        self.endpoint = endpoint
        self.headers = headers or {}
        self.ended: deque[str] = deque()
        self.open: dict[str, float] = {}
        self.requests: deque[Served] = deque(maxlen=REQUESTS_MAX)
        self.left_out = 0
        self.wake = asyncio.Event()
        self.recorded_trace: Callable[[str], Awaitable[str | None]] | None = None
        self._trace_of: dict[str, str] = {}

    def run_grew(self, run: str) -> None:
        """Note that events of a run that has not ended are on disk."""
        if run not in self.open and len(self.open) < OPEN_MAX:
            self.open[run] = time.monotonic()

    def served(self, request: Served) -> None:
        self.requests.append(request)
        self.wake.set()

    def run_ended(self, run: str) -> None:
        """Note that the end of the run is on disk."""
        self.open.pop(run, None)
        if len(self.ended) >= ENDED_MAX:
            self.ended.popleft()
            self.left_out += 1
        self.ended.append(run)
        self.wake.set()

    async def traceparent(self, run: str, key: str, attempt: int) -> str | None:
        """Return the header that an attempt sends along, so that its requests are below it in the trace, or None if it
        is not known now."""
        trace = self._trace_of.get(run)
        if trace is None:
            trace = None if self.recorded_trace is None else await self.recorded_trace(run)
            if trace is None:
                return None
            if len(self._trace_of) >= KNOWN_MAX:
                self._trace_of.pop(next(iter(self._trace_of)))
            self._trace_of[run] = trace
        return f"00-{trace}-{attempt_span(run, key, attempt)}-01"


class Histogram:
    """`bounds` in rising order. `counts[n]`: values above the bound before and up to bound n; the last: above all. Each
    has one thread that observes; others may read, and may miss the last value."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self.counts)

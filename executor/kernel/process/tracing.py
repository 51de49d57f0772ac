"""The traces of this process, for its exporter: ids of spans, runs and requests to be exported.

Ids of spans follow from the run and the place in it, so a trace that is exported twice, by any process, is the same
one. The content of a trace is read from the journal: `executor/service/telemetry`.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from executor.kernel.process.observe import Parent

ENDED_MAX: Final = 10_000  # runs that wait to be exported; of more the oldest are left out


OPEN_MAX: Final = 10_000  # open runs with events that are not exported yet; others are exported when they end


REQUESTS_MAX: Final = 10_000  # requests that wait to be exported; of more the oldest are left out


KNOWN_MAX: Final = 10_000


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
        if run not in self.open and len(self.open) < OPEN_MAX:
            self.open[run] = time.monotonic()

    def served(self, request: Served) -> None:
        self.requests.append(request)
        self.wake.set()

    def run_ended(self, run: str) -> None:
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

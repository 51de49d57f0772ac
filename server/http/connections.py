"""Connections before they are requests: bounded in number, in time and in bytes. They have no credential yet, so
nothing here may cost much.

uvicorn waits for a request without a limit, and httptools copies an incomplete header again with each piece that
arrives. The bounds (server/settings.py, `Limits`):

1. A connection has `head_s` for the head of a request, counted from when it was made or from its first byte. Bytes
   after an answer that are not part of a request have the same time.
2. At most `head_bytes` may arrive without a head ending or a byte of a body arriving: this bounds URL, headers,
   trailers and extensions of chunks alike.
3. At most `connections` are open. To make room for another, the connection that has waited longest without a whole
   request is closed, so slow clients cannot keep others out. The new connection is closed only if none waits.
4. At most `waiting_per_address` of one other machine (IPv6: one /64) may be without a whole request. Loopback and
   WEFT_BEHIND_PROXY are exempt: they are the users of this machine, and reverse proxies.
5. At most `requests` are answered at a time, event streams included; the next one gets 503.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from executor.kernel.process.repeated import Repeated
from server.http.errors import PROBLEM_JSON, problem
from server.http.request import EXCHANGE
from server.http.security import Proxies
from server.reach import is_loopback
from server.settings import Limits

RETRY_AFTER_S = 5
JOINED_BYTES_MAX = 64 * 1024  # a larger body is not copied
LIVE = "weft.live"  # in the scope of an answer without an end: it is over when its reader leaves
_log = logging.getLogger("weft.server")


class Connections(ServerState):
    """All connections of one server. `descriptors` is the number of files and sockets the process may open, or None if
    unbounded."""

    def __init__(self, limits: Limits, descriptors: int | None = None, proxies: Proxies | None = None) -> None:
        super().__init__()
        self.limits = limits
        self.proxies = proxies or Proxies()
        self.connections_max = limits.connections
        if descriptors is not None:  # the database, outgoing calls and modules need some as well
            self.connections_max = min(self.connections_max, max(descriptors - 512, descriptors // 2))
        self.requests_max = min(limits.requests, self.connections_max - self.connections_max // 10)
        self._waiting: dict[Connection, None] = {}  # without a whole request, longest first
        self._waiting_of: Counter[str] = Counter()
        self._logged = Repeated()

    def update_waiting(self, connection: Connection) -> None:
        """Update the count of idle connections. Call it whenever the connection has received a whole request or
        answered one."""
        if connection.is_waiting == (connection in self._waiting):
            return
        if connection.is_waiting:
            self._waiting[connection] = None
            self._waiting_of[connection.network] += 1
        else:
            self.forget(connection)

    def forget(self, connection: Connection) -> None:
        if connection in self._waiting:
            del self._waiting[connection]
            self._waiting_of[connection.network] -= 1
            if not self._waiting_of[connection.network]:
                del self._waiting_of[connection.network]

    def enter(self, connection: Connection) -> None:
        """Admit a new connection that is already in `connections`. Over the limit it, or one that has waited longer, is
        closed."""
        if connection.network and self._waiting_of[connection.network] >= self.limits.waiting_per_address:
            self._drop(connection, f"{connection.network} has too many idle connections open")
            return
        if len(self.connections) > self.connections_max:
            longest = next(iter(self._waiting), connection)
            self._drop(longest, f"{self.connections_max} connections are open, which is the limit")
        if connection in self.connections:
            self.update_waiting(connection)

    def has_room(self) -> bool:
        if len(self.tasks) < self.requests_max:
            return True
        self._warn(f"{self.requests_max} requests are in progress, which is the limit; more requests get 503")
        return False

    def abort_answered(self) -> None:
        """Close the connections that have no request in progress, even if their clients have not read the answers."""
        for connection in list(self.connections):
            if isinstance(connection, Connection) and not connection.is_busy:
                connection.transport.abort()

    def _drop(self, connection: Connection, why: str) -> None:
        self.forget(connection)
        self.connections.discard(connection)
        connection.transport.abort()
        self._warn(f"{why}; the longest idle ones are closed")

    def _warn(self, message: str) -> None:
        if self._logged.due("full"):
            _log.warning("%s", message)


class Connection(HttpToolsProtocol):
    """See the module text. A client that ends its side after a request still gets the answer."""

    server_state: Connections

    def __init__(
        self,
        config: Config,
        server_state: Connections,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.server_state = server_state
        self.network = ""  # key under which connections are counted together; empty: not counted
        self._in_head = False
        self._in_body = False
        self._moved = False  # a head ended or a byte of a body came, in this read
        self._unmoved_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._half_closed = False

    @property
    def is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def is_waiting(self) -> bool:
        return self._in_head or self._in_body or not self.is_busy

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        self.network = "" if self.server_state.proxies.has(address) else _network(address)
        self._limit_time()
        self.server_state.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        self.server_state.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._moved = False
        super().data_received(data)
        if self.transport.is_closing():
            return
        self._unmoved_bytes = 0 if self._moved else self._unmoved_bytes + len(data)
        if self._unmoved_bytes > self.server_state.limits.head_bytes:
            self._refuse(431, "headers_too_large", "The headers and the URL are too large.")
            return
        if self._in_head or not self.is_busy:
            self._limit_time()
        else:
            self._cancel_deadline()
        self.server_state.update_waiting(self)

    def eof_received(self) -> bool | None:  # type: ignore[override] # uvicorn: None
        """True keeps the other direction open."""
        if self.is_waiting or self.cycle.scope.get(LIVE):
            return None
        self._half_closed = True
        return True

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True

    def on_headers_complete(self) -> None:
        self._in_head, self._in_body, self._moved = False, True, True
        self.app = self.config.loaded_app if self.server_state.has_room() else _overloaded
        super().on_headers_complete()  # it makes the task of the request, which begins later
        self.scope[EXCHANGE] = WholeExchange(self.cycle)  # type: ignore[typeddict-unknown-key]  # a key of weft

    def on_body(self, body: bytes) -> None:
        self._moved = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body, self._moved = False, True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing() or self.is_busy:
            return
        if self._half_closed:
            self.transport.close()
            return
        if self._in_body:
            self._limit_time()
        self.server_state.update_waiting(self)

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: the request is answered as if it had not asked for another protocol, as RFC 9110 permits."""

    def _limit_time(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.server_state.limits.head_s, self._too_late)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        self._deadline = None
        if self._in_head:
            self._refuse(408, "headers_timeout", "The headers did not arrive in time.")
        else:
            self.transport.abort()

    def _refuse(self, status: int, code: str, detail: str) -> None:
        """Answer, unless an answer is under way or stuck, and close."""
        self._cancel_deadline()
        if self.is_busy or self.transport.get_write_buffer_size():
            self.transport.abort()
            return
        body = bytes(problem(status, code, detail).body)
        head = (b"content-type: %s" % PROBLEM_JSON.encode(), b"content-length: %d" % len(body), b"connection: close")
        self.transport.write(STATUS_LINE[status] + b"\r\n".join((*head, b"", body)))
        self.transport.close()


class WholeExchange:
    """An `Exchange` with a request that has its whole body: two messages, each with a coroutine of its own, and two
    writes to the socket cost a fifth of what the server spends on the start of a run."""

    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle

    def body(self) -> bytes | None:
        cycle = self._cycle
        if cycle.more_body or cycle.disconnected or cycle.waiting_for_100_continue:
            return None
        cycle.flow.resume_reading()
        whole, cycle.body = bytes(cycle.body), bytearray()
        cycle.message_event.clear()  # the next message is the end of the connection
        return whole

    def send(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes | memoryview) -> bool:
        """See Exchange. What uvicorn refuses is left to it, and so is what it would not write as these bytes."""
        cycle = self._cycle
        if cycle.response_started or cycle.disconnected or cycle.flow.write_paused or len(body) > JOINED_BYTES_MAX:
            return False
        length = b"%d" % len(body)
        given = dict(headers)
        if given.get(b"content-length") != length or not all(map(_is_plain, given)):
            return False
        if HEADER_VALUE_RE.search(b"\t".join([value for _, value in headers])):
            return False
        lines = [b"%s: %s\r\n" % pair for pair in (*cycle.default_headers, *headers)]
        end = b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n"
        sent = b"" if cycle.scope["method"] == "HEAD" else body
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.message_event.set()
        cycle.transport.write(b"".join((STATUS_LINE[status], *lines, end, sent)))
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()
        return True


@lru_cache(maxsize=256)
def _is_plain(name: bytes) -> bool:
    """Return whether uvicorn writes a header of this name, and takes nothing from it."""
    return name == name.lower() and not HEADER_RE.search(name) and name not in (b"connection", b"transfer-encoding")


async def _overloaded(scope: Scope, receive: Receive, send: Send) -> None:
    answer = problem(
        503,
        "too_many_requests_open",
        "This server is at its limit of concurrent requests.",
        hint="Try again later.",
        headers={"Retry-After": str(RETRY_AFTER_S)},
    )
    await answer(scope, receive, send)


def _network(address: str) -> str:
    if not address or is_loopback(address):
        return ""
    if ":" not in address:
        return address
    try:
        return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))
    except ValueError:
        return address

"""The HTTP client of all blocks: guarded addresses, bounded time, bounded bodies, redirects followed by hand."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any

from executor.blocks.http.addresses import Allowed, Guard, Own, Resolve, resolve

if TYPE_CHECKING:
    from executor.blocks.http.backend import GuardedBackend
    from executor.blocks.http.exchanges import Answer, Exchanges, Waiting

MIB = 1024 * 1024
CONNECTIONS_MAX = 100  # per process, for http and for https; further requests wait for one
_EXCHANGES = "executor.blocks.http.exchanges"


class GuardedClient:
    """Shared by all blocks of a process; belongs to the event loop of its first request. `allow_private`: the entries
    of `Allowed`. `own`: the server of this process; of it `/demo/` and `/hooks/` alone can be reached. `connections`:
    requests at the same time, for http and for https each; further ones wait. `pool`: makes the pools of connections,
    for tests."""

    def __init__(
        self,
        allow_private: Sequence[str] = (),
        *,
        own: Own | None = None,
        resolve: Resolve = resolve,
        connections: int = CONNECTIONS_MAX,
        pool: Callable[..., Any] | None = None,
    ) -> None:
        self._allowed = Allowed(allow_private)
        self._allow_private = tuple(allow_private)
        self._own = own
        self._resolve = resolve
        self._connections = connections
        self._pool = pool
        self._exchanges: Exchanges | None = None

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        timeout_s: float = 30.0,
        max_bytes: int = 5 * MIB,
        follow_redirects: bool = True,
        waiting: Waiting | None = nullcontext,
    ) -> Answer:
        """Send one request and read the whole answer, whatever its status. `timeout_s` is for all of it, redirects
        included, from the moment at which there is a connection for it; `max_bytes` is for the body, unpacked.
        `waiting` is entered while the request waits for one of the connections. If it is None, the request does not
        wait: the caller sends a bounded number at the same time. Raises BlockError. Retryable: http_timeout,
        http_connection; out_of_resources, which costs no attempt. Not: address_refused, response_too_large,
        redirect_refused, too_many_redirects, url_invalid."""
        exchanges = self._exchanges or await self._begin()
        return await exchanges.request(
            method, url, headers or {}, content, timeout_s, max_bytes, follow_redirects, waiting
        )

    def guard(self, places: Iterable[str] = ()) -> GuardedBackend:
        """Return a backend for another client. `places`: more `host:port` that may be private. Loads httpcore."""
        from executor.blocks.http.backend import GuardedBackend

        return GuardedBackend(self._guard(Allowed([*self._allow_private, *places])))

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host that clients of other protocols may dial. Raises like `Guard.addresses`."""
        return await self._guard(self._allowed).addresses(host, port)

    async def close(self) -> None:
        if self._exchanges is not None:
            await self._exchanges.close()

    def _guard(self, allowed: Allowed) -> Guard:
        return Guard(allowed, self._resolve, own_port=self._own.port if self._own else None)

    async def _begin(self) -> Exchanges:
        """Load httpx and httpcore beside the event loop, which takes a tenth of a second."""
        if _EXCHANGES not in sys.modules:
            await asyncio.to_thread(import_module, _EXCHANGES)
        from executor.blocks.http.exchanges import Exchanges

        if self._exchanges is None:  # another request may have been quicker
            self._exchanges = Exchanges(self._allowed, self._own, self._resolve, self._connections, self._pool)
        return self._exchanges

"""Makes the connections of the HTTP client, to permitted addresses alone."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterable

import httpcore

from executor.blocks.http.addresses import ALLOW_HINT, Address, Allowed, Guard, Resolve, refused, resolve
from executor.blocks.http.response import BoundedHead
from executor.errors import is_exhausted, not_begun


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Dials only what `Guard` permits; see there for the arguments. TLS and the Host header still see the name."""

    def __init__(
        self, allowed: Allowed, resolve: Resolve = resolve, *, own_port: int | None = None, hint: str = ALLOW_HINT
    ) -> None:
        self._guard = Guard(allowed, resolve, own_port=own_port, hint=hint)
        self._dialler = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """`timeout` is for the name and all its addresses together. Raises httpcore's errors, and BlockError:
        address_refused when no address is permitted, out_of_resources when this machine cannot dial."""
        try:
            async with asyncio.timeout(timeout):
                return await self._connect(host, port, local_address, socket_options)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"no connection to {host} within {timeout:g} s") from error

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None
    ) -> httpcore.AsyncNetworkStream:
        raise refused("a unix socket", self._guard.hint)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _connect(
        self, host: str, port: int, local_address: str | None, options: Iterable[httpcore.SOCKET_OPTION] | None
    ) -> httpcore.AsyncNetworkStream:
        try:
            permitted = await self._guard.addresses(host, port)
        except (OSError, UnicodeError) as error:
            if is_exhausted(error):
                raise not_begun(f"{host}:{port}", error) from error
            raise httpcore.ConnectError(f"the host name {host} cannot be resolved: {error}") from error
        problem: Exception | None = None
        for text in permitted:
            try:
                stream = await self._dialler.connect_tcp(
                    text, port, local_address=local_address, socket_options=options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout, OSError) as error:
                problem = error
                continue
            if self._is_own(stream, host, ipaddress.ip_address(text), port):
                await stream.aclose()
                raise refused(f"{host}:{port}", self._guard.hint)
            return BoundedHead(stream)
        if problem is not None and is_exhausted(problem):
            raise not_begun(f"{host}:{port}", problem) from problem
        raise httpcore.ConnectError(f"no connection to {host}:{port}: {problem}") from problem

    def _is_own(self, stream: httpcore.AsyncNetworkStream, host: str, address: Address, port: int) -> bool:
        """Return True if both ends have the same address: this machine was reached by one of its outer addresses."""
        if port != self._guard.own_port or self._guard.names(host, address, port):
            return False
        ours, theirs = stream.get_extra_info("client_addr"), stream.get_extra_info("server_addr")
        return bool(ours and theirs and ours[0] == theirs[0])

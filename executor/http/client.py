"""The HTTP client of all blocks: guarded addresses, bounded time, bounded bodies, redirects followed by hand."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import anyio
import httpcore
import httpx

from executor.errors import BlockError
from executor.exhausted import is_exhausted, not_begun
from executor.http import addresses
from executor.http.addresses import Allowed, GuardedBackend, Resolve, resolve
from executor.http.bounded import BoundedHead
from executor.http.own import Own

T = TypeVar("T")
Waiting = Callable[[], AbstractContextManager[Any]]
_Reach = Literal["own", "public", "allowed"]

MIB = 1024 * 1024
CONNECTIONS_MAX = 100  # of a process, for http and for https; further requests wait for one
PACKED_FACTOR = 2  # a packed body may be this much larger than what it may unpack to
PACKED_FILES_MAX = 1000  # gzip files that are strung together; each costs, also one of nothing
_CONNECT_S = 5.0
_REDIRECTS_MAX = 5
_REDIRECTS = {301, 302, 303, 307, 308}
_WITHOUT_EFFECT = ("GET", "HEAD")
_HOST = re.compile(r"[^\s%/\\@?#]+")
_OWN_HINT = (
    "use a Run workflow block to start a workflow; the operator can allow more with WEFT_ALLOW_PRIVATE=host:port"
)
_REDIRECT_HINT = (
    "a redirect from a public to a private address is followed only if the URL of the block has the same host"
)
# What may go along to another origin. Everything else that the caller set may be a secret.
_HARMLESS = frozenset({"accept", "accept-language", "content-type", "user-agent"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `headers`: names in lower case, repeated ones joined by commas; `url`: after redirects;
    `ms`: from sending to the last byte."""

    status: int
    reason: str
    headers: dict[str, str]
    body: bytes
    url: str
    ms: int


class GuardedClient:
    """Shared by all blocks of a process; belongs to the event loop of its first request.

    allow_private   exceptions from "public addresses only": `*`, `10.0.0.0/8`, `127.0.0.1:8765`, `build.local`
    own             the server of this process: of it `/demo/` and `/hooks/` alone can be reached
    resolve         name -> addresses
    connections     requests at the same time, for http and for https each; further ones wait
    """

    def __init__(
        self,
        allow_private: Sequence[str] = (),
        *,
        own: Own | None = None,
        resolve: Resolve = resolve,
        connections: int = CONNECTIONS_MAX,
    ) -> None:
        self._allowed = Allowed(allow_private)
        self._own = own
        own_port = own.port if own else None
        self._backends: dict[_Reach, GuardedBackend] = {
            "allowed": GuardedBackend(self._allowed, resolve, own_port=own_port),
            "public": GuardedBackend(Allowed(), resolve, own_port=own_port, hint=_REDIRECT_HINT),
            "own": GuardedBackend(Allowed(own.places if own else ()), resolve),
        }
        # A connection that is there is not judged again, so requests that may reach different places share none.
        self._pools: dict[tuple[_Reach, bool], httpcore.AsyncConnectionPool] = {}  # second: with TLS
        # A request that is cancelled while the pool has it wait may take a connection with it: none waits there.
        self._room = {tls: asyncio.Semaphore(connections) for tls in (False, True)}

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
        `waiting` is entered while the request waits for one of the connections. None: it does not wait, the caller
        sends a bounded number at the same time.

        Raises BlockError. Retryable: http_timeout, http_connection; out_of_resources, which costs no attempt.
        Not: address_refused, response_too_large, redirect_refused, too_many_redirects, url_invalid.
        """
        hop = _Hop.first(method.upper(), _parse(url), dict(headers or {}), content)
        room = self._room[hop.url.scheme == "https"]
        if waiting is None:
            return await self._within(hop, timeout_s, max_bytes, follow_redirects)
        with waiting() if room.locked() else nullcontext():
            await room.acquire()
        try:
            return await self._within(hop, timeout_s, max_bytes, follow_redirects)
        finally:
            room.release()

    async def close(self) -> None:
        while self._pools:
            await self._pools.popitem()[1].aclose()

    async def _within(self, hop: _Hop, timeout_s: float, max_bytes: int, follow_redirects: bool) -> Answer:
        started = time.monotonic()
        try:
            async with asyncio.timeout(timeout_s):
                for _ in range(_REDIRECTS_MAX + 1):
                    found = await _unbroken(self._exchange(hop, max_bytes, follow_redirects))
                    if not isinstance(found, _Hop):
                        return _answer(hop, *found, round((time.monotonic() - started) * 1000))
                    hop = found
        except BlockError as error:
            if hop.came_from is not None:
                error.deferred = None  # the first request was made
            raise
        except (TimeoutError, httpcore.TimeoutException) as error:
            raise BlockError(
                f"{hop.shown}: no response within {timeout_s:g} s"
                if isinstance(error, TimeoutError)
                else f"{hop.shown}: {error}",
                code="http_timeout",
            ) from error
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol, OSError) as error:
            local = isinstance(error, httpcore.LocalProtocolError | httpcore.UnsupportedProtocol)
            reason = str(error) or type(error).__name__
            raise BlockError(f"{hop.shown}: {reason}", code="http_connection", retryable=not local) from error
        message = f"{hop.shown}: more than {_REDIRECTS_MAX} redirects"
        raise BlockError(message, code="too_many_redirects", retryable=False)

    async def _exchange(
        self, hop: _Hop, max_bytes: int, follow_redirects: bool
    ) -> _Hop | tuple[httpcore.Response, bytes]:
        """One request: where it is to go next, or the answer and its body."""
        pool = await self._pool(self._reach(hop), hop.url.scheme == "https")
        response = await self._send(pool, hop)
        try:
            follow = hop.follow(response) if follow_redirects else None
            return follow or (response, await _read(response, max_bytes))
        finally:
            await response.aclose()

    def _reach(self, hop: _Hop) -> _Reach:
        """Which places this hop may lead to. Raises BlockError(address_refused, redirect_refused)."""
        if self._own is not None and self._own.is_at(hop.url):
            if hop.came_from is not None and not self._own.is_at(hop.came_from):
                raise hop.refused_redirect("goes from another server to this one")
            if self._own.opens(hop.url):
                return "own"
            if not self._allowed.names_url(hop.url.host, hop.port):
                message = f"{hop.shown}: on this server, workflows can reach only /demo/ and /hooks/"
                raise BlockError(message, code="address_refused", retryable=False, hint=_OWN_HINT)
        # A public place must not choose which of the allowed private ones is asked.
        return "public" if hop.from_public and hop.url.host != hop.named else "allowed"

    async def _send(self, pool: httpcore.AsyncConnectionPool, hop: _Hop) -> httpcore.Response:
        headers = httpx.Headers(hop.all_headers(), encoding="latin-1")
        request = httpx.Request(hop.method, hop.url, headers=headers, content=hop.content)
        response = await pool.handle_async_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=_once(hop.content or b""),
                extensions={"timeout": {"connect": _CONNECT_S}},
            )
        )
        stream = response.extensions.get("network_stream")
        if isinstance(stream, BoundedHead):
            stream.head_is_complete()
        return response

    async def _pool(self, reach: _Reach, tls: bool) -> httpcore.AsyncConnectionPool:
        """Reading the certificates takes 0.15 s: not on the event loop, and not for plain HTTP."""
        key = reach, tls
        if key not in self._pools:
            context = await asyncio.to_thread(_tls_context) if tls else None
            if key not in self._pools:  # another request may have been quicker
                self._pools[key] = httpcore.AsyncConnectionPool(
                    ssl_context=context,
                    max_connections=None,  # `_room` is the bound
                    max_keepalive_connections=20,
                    keepalive_expiry=30,
                    network_backend=self._backends[reach],
                )
        return self._pools[key]


def _tls_context() -> ssl.SSLContext:
    try:
        return httpx.create_ssl_context(trust_env=False)
    except OSError as error:
        raise (not_begun("the certificates", error) if is_exhausted(error) else error) from error


@dataclass(frozen=True, slots=True)
class _Hop:
    """One request on the way of redirects. `named`: the host that the caller wrote; `came_from`: what led here, None
    for the first; `from_public`: a public address has answered on the way."""

    method: str
    url: httpx.URL
    headers: dict[str, str]
    content: bytes | None
    named: str
    came_from: httpx.URL | None = None
    from_public: bool = False

    @classmethod
    def first(cls, method: str, url: httpx.URL, headers: dict[str, str], content: bytes | None) -> _Hop:
        return cls(method, url, headers, content, url.host)

    @property
    def shown(self) -> str:
        """For messages: without the query, which may hold secrets."""
        return f"{self.method} {self.url.copy_with(query=None, fragment=None)}"

    @property
    def port(self) -> int:
        return self.url.port or {"http": 80, "https": 443}[self.url.scheme]

    def all_headers(self) -> dict[str, str]:
        ours = {"User-Agent": "weft", "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
        given = {name.lower() for name in self.headers}
        return {name: value for name, value in ours.items() if name.lower() not in given} | self.headers

    def follow(self, response: httpcore.Response) -> _Hop | None:
        """The next hop; None when this is no redirect. Raises BlockError(redirect_refused)."""
        location = _header(response, b"location")
        if response.status not in _REDIRECTS or location is None:
            return None
        try:
            url = _without_fragment(self.url.join(location))
        except (httpx.InvalidURL, ValueError):
            raise self.refused_redirect("goes to an invalid URL") from None
        if not _can_be_dialled(url) or url.userinfo:
            raise self.refused_redirect("goes to a URL that is not http or https")
        method, content, headers = self.method, self.content, self.headers
        if (response.status == 303 and method != "HEAD") or (response.status in (301, 302) and method == "POST"):
            method, content = "GET", None
            headers = {name: value for name, value in headers.items() if name.lower() != "content-type"}
        if _origin(url) != _origin(self.url):
            if content is not None or method not in _WITHOUT_EFFECT:
                raise self.refused_redirect(f"to {url.host} would send the request and its data to another server")
            headers = {name: value for name, value in headers.items() if name.lower() in _HARMLESS}
        from_public = self.from_public or _is_public_peer(response)
        return _Hop(method, url, headers, content, self.named, self.url, from_public)

    def refused_redirect(self, why: str) -> BlockError:
        return BlockError(f"{self.shown}: the redirect {why}", code="redirect_refused", retryable=False)


async def _read(response: httpcore.Response, max_bytes: int) -> bytes:
    """The body, unpacked. Stops as soon as it is too long: a small packed body can unpack to any size."""
    unpack = _unpacker(_header(response, b"content-encoding"))
    parts: list[bytes] = []
    size = packed = 0
    async for chunk in response.aiter_stream():
        if unpack is not None:
            packed += len(chunk)
            if packed > PACKED_FACTOR * max_bytes:  # packing may hold as much of nothing as it likes
                raise _too_large(PACKED_FACTOR * max_bytes, "compressed body")
            try:
                chunk = unpack.feed(chunk, max_bytes - size + 1)
            except zlib.error as error:
                message = f"the compressed body cannot be read: {error}"
                raise BlockError(message, code="http_connection") from error
        size += len(chunk)
        if size > max_bytes:
            raise _too_large(max_bytes)
        parts.append(chunk)
    return b"".join(parts)


class _Unpacker:
    """gzip, or deflate with or without its zlib header. Gives at most `most` bytes per feed; one more is too many."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=47)
        self._begun = False
        self._files = 1

    def feed(self, chunk: bytes, most: int) -> bytes:
        try:
            out = self._inflate.decompress(chunk, most)
        except zlib.error:
            if self._begun:
                raise
            self._inflate = zlib.decompressobj(wbits=-15)
            out = self._inflate.decompress(chunk, most)
        self._begun = self._begun or bool(chunk)
        while self._inflate.eof and self._inflate.unused_data and len(out) < most:  # gzip files may be strung together
            self._files += 1
            if self._files > PACKED_FILES_MAX:
                raise zlib.error(f"more than {PACKED_FILES_MAX} files in one")
            rest, self._inflate = self._inflate.unused_data, zlib.decompressobj(wbits=47)
            out += self._inflate.decompress(rest, most - len(out))
        return out


def _unpacker(encoding: str | None) -> _Unpacker | None:
    name = (encoding or "identity").strip().lower()
    if name in ("identity", ""):
        return None
    if name in ("gzip", "x-gzip", "deflate"):
        return _Unpacker()
    raise BlockError(
        f"the body is compressed with {name[:40]!r}, which was not requested", code="http_encoding", retryable=False
    )


def _too_large(max_bytes: int, what: str = "body") -> BlockError:
    message = f"the {what} of the response is larger than {max_bytes} bytes"
    return BlockError(message, code="response_too_large", retryable=False)


def _is_public_peer(response: httpcore.Response) -> bool:
    """Is it a public address that answered? When the connection cannot tell, yes."""
    stream = response.extensions.get("network_stream")
    peer = stream.get_extra_info("server_addr") if stream is not None else None
    return peer is None or addresses.is_public(ipaddress.ip_address(peer[0].partition("%")[0]))


def _answer(hop: _Hop, response: httpcore.Response, body: bytes, ms: int) -> Answer:
    headers: dict[str, str] = {}
    for raw_name, raw_value in response.headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    reason = response.extensions.get("reason_phrase", b"").decode("latin-1")
    return Answer(response.status, reason, headers, body, str(hop.url), ms)


def _header(response: httpcore.Response, name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in response.headers if key.lower() == name), None)


def _parse(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text.strip())
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise _url_invalid(str(error)) from None
    if not _can_be_dialled(url):
        raise _url_invalid("it must start with http:// or https:// and have a host; a port can be up to 65535")
    if url.userinfo:
        raise _url_invalid("it cannot contain a user or password; use the Authorization header")
    return _without_fragment(url)


def _can_be_dialled(url: httpx.URL) -> bool:
    """http or https, a host, and a port that there is: larger ones are another port by the time they are dialled."""
    try:
        named = _HOST.fullmatch(url.host) is not None
    except ValueError:  # it begins with xn--, and no name is behind that
        return False
    return url.scheme in ("http", "https") and named and (url.port is None or 0 < url.port < 65536)


def _url_invalid(why: str) -> BlockError:
    return BlockError(f"the URL cannot be used: {why}", code="url_invalid", retryable=False)


def _without_fragment(url: httpx.URL) -> httpx.URL:
    return url.copy_with(fragment=None)


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)


async def _unbroken(work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives. asyncio cancels at any `await`, also where httpcore takes a connection or gives it back, and
    then the pool has lost it for ever. A scope of anyio stays out of what httpcore shields, so it is that which cancels
    the work, in a task of its own."""
    scope = anyio.CancelScope()

    async def within() -> T:
        with scope:
            return await work
        raise asyncio.CancelledError

    task = asyncio.create_task(within())
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # it may fail when nobody waits any more
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        scope.cancel()
        await asyncio.wait([task])
        raise


async def _once(content: bytes) -> AsyncIterator[bytes]:
    if content:
        yield content

"""Requests, redirects and answers over httpcore and httpx, which are loaded with this file."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import ssl
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Literal, TypeVar

import anyio
import httpcore
import httpx

from executor.blocks.http import addresses
from executor.blocks.http.addresses import Allowed, Guard, Own, Resolve
from executor.blocks.http.backend import BoundedHead, GuardedBackend, header_of, read_body
from executor.blocks.http.binding import check_place, counts, is_bound, opened, opened_bytes
from executor.blocks.http.handles import has_handle, in_authority, in_first_form
from executor.blocks.http.parts import parts_of
from executor.errors import BlockError, is_exhausted, not_begun

_REDIRECTS = {301, 302, 303, 307, 308}
_WITHOUT_EFFECT = ("GET", "HEAD")
_URL_MAX = 65536  # httpx's limit
_HOST = re.compile(r"[^\s%/\\@?#]+")
# Headers that may go along to another origin. Everything else that the caller set may be a secret.
_HARMLESS = frozenset({"accept", "accept-language", "content-type", "user-agent"})


@dataclass(frozen=True, slots=True)
class Hop:
    """One request in a chain of redirects. `named`: the host that the caller wrote; `came_from`: the URL that
    redirected here, or None for the first; `from_public`: a public address has answered earlier in the chain."""

    method: str
    url: httpx.URL
    headers: dict[str, str]
    content: bytes | None
    named: str
    came_from: httpx.URL | None = None
    from_public: bool = False

    @classmethod
    def first(cls, method: str, url: httpx.URL, headers: dict[str, str], content: bytes | None) -> Hop:
        return cls(method, url, headers, content, url.host)

    @property
    def shown(self) -> str:
        """The request for messages, without the query, which may hold secrets. The target of a redirect is not shown if
        a secret was sent: the server may have put parts of the secret into the address."""
        if self.came_from is not None and is_bound():
            return f"{self.method} {self.named}, after a redirect"
        return f"{self.method} {self.url.copy_with(query=None, fragment=None)}"

    @property
    def port(self) -> int:
        return origin(self.url)[2]

    def all_headers(self) -> dict[str, str]:
        ours = {"User-Agent": "weft", "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
        present = {name.lower() for name in self.headers}
        return {name: value for name, value in ours.items() if name.lower() not in present} | self.headers

    def follow(self, response: httpcore.Response) -> Hop | None:
        """Return the next hop, or None if this is not a redirect. Raises BlockError(redirect_refused)."""
        location = header_of(response, b"location")
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
        if origin(url) != origin(self.url):
            if content is not None or method not in _WITHOUT_EFFECT:
                to = "" if is_bound() else f" to {url.host}"
                raise self.refused_redirect(f"would send the request and its data{to or ' to another server'}")
            headers = {name: value for name, value in headers.items() if name.lower() in _HARMLESS}
        from_public = self.from_public or _is_public_peer(response)
        return Hop(method, url, headers, content, self.named, self.url, from_public)

    def refused_redirect(self, why: str) -> BlockError:
        return BlockError(f"{self.shown}: the redirect {why}", code="redirect_refused", retryable=False)


def parse_url(text: str) -> httpx.URL:
    """Return the URL without its fragment. Raises BlockError: url_invalid, without any part of the URL;
    secret_misplaced."""
    if in_authority(text):
        message = "a secret cannot be in the scheme, the host or the port of a URL"
        hint = "write them out in the block; secrets can be in the path, the query, the headers and the body"
        raise BlockError(message, code="secret_misplaced", retryable=False, hint=hint)
    try:
        url = httpx.URL(text.strip())
    except (httpx.InvalidURL, ValueError, TypeError):
        raise _url_invalid(_problem_with(text.strip())) from None
    if not _can_be_dialled(url):
        raise _url_invalid("it must start with http:// or https:// and have a host; a port can be up to 65535")
    if url.userinfo:
        raise _url_invalid("it cannot contain a user or password; use the Authorization header")
    return _without_fragment(url)


def _can_be_dialled(url: httpx.URL) -> bool:
    """Check the scheme, the host and the port: a larger number is another port by the time it is dialled."""
    try:
        named = _HOST.fullmatch(url.host) is not None
    except ValueError:  # begins with xn--, followed by no name
        return False
    return url.scheme in ("http", "https") and named and (url.port is None or 0 < url.port < 65536)


def opened_url(url: httpx.URL) -> httpx.URL:
    text = str(url)
    if not has_handle(text):
        return url
    try:
        made = httpx.URL(opened(text).replace("#", "%23"))
    except (httpx.InvalidURL, ValueError, TypeError):
        raise _url_invalid("a secret in it has characters that a URL cannot have") from None
    if origin(made) != origin(url) or made.userinfo:
        raise _url_invalid("a secret in it changes where it leads to")
    return made


def _problem_with(text: str) -> str:
    if any(not char.isprintable() for char in text):
        return "it has a character that cannot be printed"
    if len(text) > _URL_MAX:
        return f"it has more than {_URL_MAX} characters"
    return "its host or port is not valid"


def _url_invalid(why: str) -> BlockError:
    return BlockError(f"the URL cannot be used: {why}", code="url_invalid", retryable=False)


def _without_fragment(url: httpx.URL) -> httpx.URL:
    return url.copy_with(fragment=None)


def origin(url: Any) -> tuple[str, str, int]:
    """Return the scheme, the host and the port that is dialled. `url` is of httpx or httpx2."""
    return url.scheme, url.host, addresses.place_of(url)[1]


def _is_public_peer(response: httpcore.Response) -> bool:
    """Return True if a public address answered, or if the connection does not have the address."""
    stream = response.extensions.get("network_stream")
    peer = stream.get_extra_info("server_addr") if stream is not None else None
    return peer is None or addresses.is_public(ipaddress.ip_address(peer[0].partition("%")[0]))


T = TypeVar("T")
Waiting = Callable[[], AbstractContextManager[Any]]
_Reach = Literal["own", "public", "allowed"]

_CONNECT_S = 5.0
_CHECKED_ASIDE_BYTES = 256 * 1024
# They request a part of the answer, in which a part of a secret would not be found.
_OF_PARTS = frozenset({"range", "if-range", "a-im"})
_REDIRECTS_MAX = 5
_OWN_HINT = (
    "use a Run workflow block to start a workflow; the operator can allow more with WEFT_ALLOW_PRIVATE=host:port"
)
_REDIRECT_HINT = (
    "a redirect from a public to a private address is followed only if the URL of the block has the same host"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request. `headers`: names in lower case, repeated ones joined by commas; `url`: after redirects;
    `ms`: from sending to the last byte."""

    status: int
    reason: str
    headers: dict[str, str]
    body: bytes
    url: str
    ms: int


# Errors before any part of a request was sent.
_NOT_SENT = (httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.PoolTimeout)


class Pools(Generic[T]):
    """The pools of connections of one backend, for http and for https; belongs to an event loop."""

    def __init__(self, make: Callable[..., T], backend: Any) -> None:
        self._make = make
        self._backend = backend
        self._pools: dict[bool, T] = {}

    async def pool(self, tls: bool) -> T:
        """Reading the certificates takes 0.15 s: not on the event loop, and not for plain HTTP."""
        if tls not in self._pools:
            context = await asyncio.to_thread(tls_context) if tls else None
            if tls not in self._pools:  # another request may have been quicker
                self._pools[tls] = self._make(
                    ssl_context=context,
                    max_connections=None,  # the clients over it have the bound
                    max_keepalive_connections=20,
                    keepalive_expiry=30,
                    network_backend=self._backend,
                )
        return self._pools[tls]

    async def close(self) -> None:
        while self._pools:
            pool: Any = self._pools.popitem()[1]
            await pool.aclose()


class Exchanges:
    """The exchanges of one GuardedClient, which describes the arguments."""

    def __init__(
        self,
        allowed: Allowed,
        own: Own | None,
        resolve: Resolve,
        connections: int,
        pool: Callable[..., Any] | None = None,
    ) -> None:
        self._allowed = allowed
        self._own = own
        own_port = own.port if own else None
        guards: dict[_Reach, Guard] = {
            "allowed": Guard(self._allowed, resolve, own_port=own_port),
            "public": Guard(Allowed(), resolve, own_port=own_port, hint=_REDIRECT_HINT),
            "own": Guard(Allowed(own.places if own else ()), resolve),
        }
        # A connection that is there is not judged again, so requests that may reach different places share none.
        make = pool or httpcore.AsyncConnectionPool
        self._pools = {reach: Pools(make, GuardedBackend(guard)) for reach, guard in guards.items()}
        # A request that is cancelled while the pool has it wait may take a connection with it: none waits there.
        self._room = {tls: asyncio.Semaphore(connections) for tls in (False, True)}

    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes | None,
        timeout_s: float,
        max_bytes: int,
        follow_redirects: bool,
        waiting: Waiting | None,
    ) -> Answer:
        hop = Hop.first(method.upper(), parse_url(url), dict(headers), content)
        part = next((name for name in headers if name.lower() in _OF_PARTS), None)
        if part is not None and counts():
            message = f"a request with a secret cannot have the header {part}: the answer would have parts of it"
            raise BlockError(message, code="secret_misplaced", retryable=False)
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
        for pools in self._pools.values():
            await pools.close()

    async def _within(self, hop: Hop, timeout_s: float, max_bytes: int, follow_redirects: bool) -> Answer:
        started = time.monotonic()
        try:
            async with asyncio.timeout(timeout_s):
                for _ in range(_REDIRECTS_MAX + 1):
                    found = await unbroken(self._exchange(hop, max_bytes, follow_redirects))
                    if not isinstance(found, Hop):
                        return _answer(hop, *found, int((time.monotonic() - started) * 1000))
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
                uncertain=not isinstance(error, _NOT_SENT),
            ) from error
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol, OSError) as error:
            local = isinstance(error, httpcore.LocalProtocolError | httpcore.UnsupportedProtocol)
            # Messages of the libraries about a request, and about an answer that is not HTTP, quote it.
            quotes = is_bound() and isinstance(error, httpcore.ProtocolError)
            reason = "the request or the answer is not valid HTTP" if quotes else str(error) or type(error).__name__
            raise BlockError(
                f"{hop.shown}: {reason}",
                code="http_connection",
                hint="look at its URL and headers: a param or a secret in them may be empty" if local else "",
                retryable=not local,
                uncertain=not isinstance(error, _NOT_SENT) or hop.came_from is not None,
            ) from error
        message = f"{hop.shown}: more than {_REDIRECTS_MAX} redirects"
        raise BlockError(message, code="too_many_redirects", retryable=False)

    async def _exchange(
        self, hop: Hop, max_bytes: int, follow_redirects: bool
    ) -> Hop | tuple[httpcore.Response, bytes]:
        host, chosen = hop.url.raw_host.decode("ascii"), hop.came_from is not None
        await check_request(hop.url.scheme, host, hop.port, str(hop.url), hop.headers, hop.content, chosen=chosen)
        pool = await self._pools[self._reach(hop)].pool(hop.url.scheme == "https")
        response = await self._send(pool, hop)
        try:
            follow = hop.follow(response) if follow_redirects else None
            return follow or (response, await read_body(response, max_bytes))
        finally:
            await response.aclose()

    def _reach(self, hop: Hop) -> _Reach:
        """Return which places this hop may lead to. Raises BlockError(address_refused, redirect_refused)."""
        if self._own is not None and self._own.is_at(hop.url):
            if hop.came_from is not None and not self._own.is_at(hop.came_from):
                raise hop.refused_redirect("goes from another server to this one")
            if self._own.opens(hop.url):
                return "own"
            if not self._allowed.names_url(hop.url.host, hop.port):
                message = f"{hop.shown}: on this server, workflows can reach only /demo/ and /hooks/"
                raise BlockError(message, code="address_refused", retryable=False, hint=_OWN_HINT)
        # A public place must not choose among the allowed private ones.
        return "public" if hop.from_public and hop.url.host != hop.named else "allowed"

    async def _send(self, pool: httpcore.AsyncConnectionPool, hop: Hop) -> httpcore.Response:
        headers = httpx.Headers(opened_headers(hop.all_headers()), encoding="latin-1")
        content = None if hop.content is None else opened_bytes(hop.content)
        request = httpx.Request(hop.method, opened_url(hop.url), headers=headers, content=content)
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
                content=content,
                extensions={"timeout": {"connect": _CONNECT_S}},
            )
        )
        stream = response.extensions.get("network_stream")
        if isinstance(stream, BoundedHead):
            stream.head_is_complete()
        return response


async def check_request(
    scheme: str,
    host: str,
    port: int,
    url: str,
    headers: Mapping[str, str],
    content: bytes | None,
    *,
    chosen: bool = False,
) -> None:
    if not is_bound():
        return
    check = partial(check_place, scheme, host, port, parts_of(url, headers, content), chosen=chosen)
    if content is not None and len(content) > _CHECKED_ASIDE_BYTES:  # secrets are looked for in all of it
        await asyncio.to_thread(check)
    else:
        check()


def tls_context() -> ssl.SSLContext:
    """Make a context with the certificates that httpx brings. Takes 0.15 s. Raises BlockError(out_of_resources)."""
    try:
        return httpx.create_ssl_context(trust_env=False)
    except OSError as error:
        raise (not_begun("the certificates", error) if is_exhausted(error) else error) from error


def _answer(hop: Hop, response: httpcore.Response, body: bytes, ms: int) -> Answer:
    headers = dict(httpx.Headers(response.headers, encoding="latin-1").items())
    reason = response.extensions.get("reason_phrase", b"").decode("latin-1")
    return Answer(response.status, reason, headers, body, in_first_form(str(hop.url)), ms)


def opened_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Put the values of secrets into the headers. Raises BlockError(params_invalid) if one cannot be there."""
    found = dict(headers)
    for name, text in headers.items():
        if has_handle(text):
            value = found[name] = opened(text).strip()
            if any(not (" " <= char <= "~" or "\xa0" <= char <= "\xff") for char in value):
                message = f"a secret in the header {name} has characters that cannot be in a header"
                raise BlockError(message, code="params_invalid", retryable=False)
    return found


async def unbroken(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` in a task of its own and return its result. asyncio cancels at any `await`, also where httpcore
    takes a connection or gives it back, and then the pool has lost it for ever. A scope of anyio does not cancel what
    httpcore shields, so the work is cancelled through one."""
    scope = anyio.CancelScope()

    async def within() -> T:
        with scope:
            return await work
        raise asyncio.CancelledError

    task = asyncio.create_task(within())
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # a failure after its caller has left
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        scope.cancel()
        await asyncio.wait([task])
        raise

"""The whole middleware: checks that run before routing, on every request (size of the headers, Host, origin, content
type, declared body size), and what every answer has, errors among them.

Plain ASGI, because middleware that wraps responses would buffer event streams. The rules:

1. Host is one of ours, port included. A page that rebinds its own name to 127.0.0.1 sends its own name here: 421. From
   one of our proxies X-Forwarded-Host must be ours too, and does not replace Host: a page can send it.
2. A request a browser marks as coming from another site (Sec-Fetch-Site, Origin) is refused, except a top-level
   navigation by GET, which is how people follow links. Other ports of this host are other sites too.
3. A body must be application/json, which a page of another site cannot send without a preflight that is never granted
   (there are no CORS headers). Resume pages, public forms and chats also take plain form posts, for browsers without
   JavaScript (the first two with files, too), and routes that other systems post to take any body: they check
   credentials that a browser would not send along. Files are uploaded as application/octet-stream, which needs the same
   preflight.
4. Headers of one of our proxies replace address and scheme of the client (server/http/security.py). Answers to requests
   that reached the proxy over TLS have Strict-Transport-Security.
5. HTML gets a policy that allows scripts and styles of this server alone, no frames, no referrer, no sniffing.

Browsers send `Origin: null` with a form post from a page whose policy is no-referrer. On resume pages, public forms and
chats that is accepted: the token in the path is the credential there, and a page of another site does not have a
visitor's token."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Final
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from executor.blocks.connectors import openapi
from executor.kernel.run.meters import now_s
from executor.kernel.values.files import too_large
from server.http.errors import (
    BodyTooLarge,
    CrossSite,
    HeadersTooLarge,
    Misdirected,
    Stopping,
    UnsupportedMedia,
    answer_to,
    problem_of,
    unexpected,
)
from server.http.request import EXCHANGE, SIZE_HINT, Exchange, headers_of
from server.reach import is_loopback
from server.settings import Settings
from server.variables import network

ACTOR: Final = "weft.actor"  # in the scope of a request: the credential it came with, as the audit names it
REQUEST_ID: Final = b"x-request-id"
_log = logging.getLogger("weft.access")
_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")  # of a proxy or a client; others are replaced

HTTPS_ONLY = (b"strict-transport-security", b"max-age=31536000")
HOST = b"x-forwarded-host"


class Proxies:
    """The proxies in `networks`, which are addresses or networks. Raises ValueError."""

    def __init__(self, networks: Sequence[str] = ()) -> None:
        self._networks = [network(text) for text in networks]

    def __bool__(self) -> bool:
        return bool(self._networks)

    def has(self, address: str) -> bool:
        if not self._networks:
            return False
        try:
            found = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        return any(found in each for each in self._networks)

    def passed_on(self, scope: Scope) -> bool:
        """Return whether the request comes from one of our proxies. If so, set its `client` and `scheme` to those of
        the proxy's own client."""
        peer = scope.get("client")
        if peer is None or not self.has(peer[0]):
            return False
        hops, schemes = _values(scope, b"x-forwarded-for"), _values(scope, b"x-forwarded-proto")
        scope["client"] = (self._client(hops, peer[0]), 0)
        if schemes and schemes[-1].lower() in ("http", "https"):
            scope["scheme"] = schemes[-1].lower()
        return True

    def _client(self, hops: Sequence[str], peer: str) -> str:
        """Return the address of the client. A value that is not an address ends the walk: then the proxy that wrote it
        is the client."""
        last = peer
        for hop in reversed(hops):
            address = _address(hop)
            if address is None:
                return last
            last = address
            if not self.has(address):
                return address
        return last


def forwarded_hosts(scope: Scope) -> list[str]:
    return [value.lower() for value in _values(scope, HOST)]


def _values(scope: Scope, name: bytes) -> list[str]:
    sent = (value.decode("latin-1") for key, value in scope["headers"] if key == name)
    return [part.strip() for line in sent for part in line.split(",")]


def _address(hop: str) -> str | None:
    """Return the address in `address`, `address:port` or `[address]:port`."""
    if hop.startswith("["):
        hop = hop[1:].partition("]")[0]
    elif hop.count(":") == 1:
        hop = hop.partition(":")[0]
    try:
        return str(ipaddress.ip_address(hop))
    except ValueError:
        return None


SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
FORM_PREFIXES = ("/resume/", "/forms/", "/chat/")
STOPPING_HINT = "Try again. The write may still have been done; the same Idempotency-Key returns its result."
FILE_FORM_PREFIXES = ("/resume/", "/forms/")
LARGER_BODIES = {"/api/connectors/openapi": openapi.BYTES_MAX}  # larger than the settings permit, as the route defines
ANY_BODY_PREFIXES = ("/callbacks/", "/hooks/")
UPLOAD_PATH, UPLOAD_MEDIA = "/api/files", "application/octet-stream"
UPLOAD_HINT = f"Send its bytes alone, as {UPLOAD_MEDIA}. `?name=` and `?media_type=` say what they are."
_HTML = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}

NOSNIFF = (b"x-content-type-options", b"nosniff")
HTML_POLICY = [(name.lower().encode(), value.encode()) for name, value in _HTML.items()]
OTHER_POLICY = [(b"referrer-policy", b"no-referrer")]
SEEN_MAX = 64
ROUTE = "weft.route"  # in the scope of a request: its method and path, as in the table
NO_ROUTE = "(none)"
Answered = Callable[[str, str, float], None]  # route, status, and when the request arrived, see ProcessMeters.answered


class Guard:
    """See the module text."""

    def __init__(self, app: ASGIApp, settings: Settings, answered: Answered | None = None) -> None:
        self.app = app
        self._answered = answered
        self._limits = settings.limits
        self._proxies = Proxies(settings.proxies)
        self._file_bytes = settings.file_bytes
        self._own_names = {"localhost", "127.0.0.1", "[::1]"} | ({settings.host.lower()} if settings.host else set())
        public = [urlsplit(settings.public_url).netloc] if settings.public_url else []
        self._configured = {name.lower() for name in (*settings.allowed_hosts, *public)}
        self._seen: set[tuple[str, int | None]] = set()  # hosts that are ours, with the port of the server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # lifespan; there are no websocket routes
            await self.app(scope, receive, send)
            return
        answer = Answer(scope, send, self._answered)
        try:
            self._check(scope, answer)
            await self.app(scope, receive, answer)
        except asyncio.CancelledError:  # the server gives up on the request while it stops
            if answer.has_begun:
                raise
            await answer.send(problem_of(Stopping(hint=STOPPING_HINT)), receive)
        except Exception as error:
            found = None if answer.has_begun else answer_to(error, scope["method"], scope["path"])
            if found is not None:
                await answer.send(found, receive)
                return
            if not answer.has_begun:
                await answer.send(unexpected(), receive)
            raise  # uvicorn logs it

    def _check(self, scope: Scope, answer: Answer) -> None:
        passed_on = bool(self._proxies) and self._proxies.passed_on(scope)
        answer.is_https = passed_on and scope["scheme"] == "https"
        sent, headers = scope["headers"], headers_of(scope)
        if sum(map(len, chain.from_iterable(sent))) > self._limits.header_bytes:
            raise HeadersTooLarge(f"The headers are larger than {self._limits.header_bytes} bytes.")
        has_one_host = [name for name, _ in sent].count(b"host") == 1
        self._check_host(_text(headers, b"host").lower() if has_one_host else None, scope)
        for host in forwarded_hosts(scope) if passed_on else ():
            self._check_host(host, scope)
        self._check_origin(headers, scope)
        if scope["method"] not in SAFE_METHODS:
            self._check_body(headers, scope["path"], scope["method"])

    def _check_host(self, host: str | None, scope: Scope) -> None:
        """Raise if Host is not ours. `host` is None if there is no such header, or several."""
        if host is not None:
            server = scope.get("server") or (None, None)
            if (host, server[1]) in self._seen:
                return
            if self._is_ours(host, server[1]):
                if len(self._seen) < SEEN_MAX:
                    self._seen.add((host, server[1]))
                return
        raise Misdirected(hint="If clients use this name for the server, add it to WEFT_ALLOWED_HOSTS.")

    def _is_ours(self, authority: str, listening: int | None) -> bool:
        name, port = _split_authority(authority)
        if name is None:
            return False
        if authority in self._configured or name in self._configured:
            return True
        return name in self._own_names and (port or 80) == (listening or 80)

    def _check_origin(self, headers: Mapping[bytes, bytes], scope: Scope) -> None:
        site = headers.get(b"sec-fetch-site", b"none")
        navigates = scope["method"] in SAFE_METHODS and headers.get(b"sec-fetch-mode") == b"navigate"
        if site not in (b"same-origin", b"none") and not navigates:
            raise CrossSite()
        if b"origin" not in headers:
            return
        origin = _text(headers, b"origin")
        if origin == "null":
            if scope["path"].startswith(FORM_PREFIXES):
                return
            raise CrossSite()
        try:
            authority = urlsplit(origin).netloc.lower()
        except ValueError:  # brackets with no address in them
            raise CrossSite() from None
        if authority != _text(headers, b"host").lower() and authority not in self._configured:
            raise CrossSite()

    def _check_body(self, headers: Mapping[bytes, bytes], path: str, method: str) -> None:
        length = headers.get(b"content-length")
        media = _text(headers, b"content-type").partition(";")[0].strip().lower()
        if path == UPLOAD_PATH and media == UPLOAD_MEDIA:
            if length is not None and length.isdigit() and int(length) > self._file_bytes:
                raise too_large(self._file_bytes)
            return
        # No body at all: the origin check above is what keeps other sites out.
        absent = not media and b"transfer-encoding" not in headers and length in (None, b"0")
        if path == UPLOAD_PATH and method == "POST" and not absent:
            raise UnsupportedMedia(
                f"A file cannot be uploaded as {media or 'a body without a type'}.", hint=UPLOAD_HINT
            )
        if media == "multipart/form-data" and path.startswith(FILE_FORM_PREFIXES):
            most = self._file_bytes + self._limits.request_bytes
            if length is not None and length.isdigit() and int(length) > most:
                raise too_large(self._file_bytes)
            return
        most = LARGER_BODIES.get(path, self._limits.request_bytes)
        if length is not None and length.isdigit() and int(length) > most:
            raise BodyTooLarge(f"The body is larger than {most} bytes.", hint=SIZE_HINT)
        if media == "application/json" or path.startswith(ANY_BODY_PREFIXES):
            return
        if absent:
            return
        if media == "application/x-www-form-urlencoded" and path.startswith(FORM_PREFIXES):
            return
        raise UnsupportedMedia(
            f"The content type {media or '(none)'} is not supported here.", hint="Send application/json."
        )


class Answer:
    """The `send` of one request. When the answer begins, it gets the headers that every answer has, is counted under
    the route as it is in the table, as a path may have anything in it, and is logged."""

    __slots__ = ("_answered", "_began_s", "_scope", "_send", "has_begun", "is_https")

    def __init__(self, scope: Scope, send: Send, answered: Answered | None) -> None:
        self._scope = scope
        self._send = send
        self._answered = answered
        self._began_s = now_s()
        self.has_begun = False
        self.is_https = False  # the client speaks TLS with one of our proxies

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begin(message)
        await self._send(message)

    async def send(self, response: Response, receive: Receive) -> None:
        """Send a response: at once, if it has its body and the server can."""
        exchange: Exchange | None = self._scope.get(EXCHANGE)
        if exchange is None or type(response).__call__ is not Response.__call__ or response.background is not None:
            await response(self._scope, receive, self)
            return
        head: Message = {"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers}
        self._begin(head)
        if not exchange.send(response.status_code, head["headers"], response.body):
            await self._send(head)
            await self._send({"type": "http.response.body", "body": response.body})

    def _begin(self, message: Message) -> None:
        self.has_begun = True
        message["headers"] = self._headers(message.get("headers", ()))
        if self._answered is not None:
            self._answered(self._scope.get(ROUTE, NO_ROUTE), str(message["status"]), self._began_s)
        if _log.isEnabledFor(logging.INFO):
            self._write_log(message)

    def _headers(self, given: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Add the security headers: the whole policy on HTML, unless the route set its own."""
        sent = dict(given)
        policy = [pair for pair in _policy(sent.get(b"content-type", b"")) if pair[0] not in sent]
        others = [pair for pair in given if pair[0] != NOSNIFF[0]]
        return [*others, NOSNIFF, *policy, *((HTTPS_ONLY,) if self.is_https else ())]

    def _write_log(self, message: Message) -> None:
        """Log the request. The answer names it in `X-Request-Id`, with the value that the client sent if it is well
        formed."""
        scope = self._scope
        sent = next((value for name, value in scope["headers"] if name == REQUEST_ID), b"")
        request_id = sent if _ID.fullmatch(sent) else uuid.uuid4().hex.encode()
        message["headers"].append((REQUEST_ID, request_id))
        query = scope["query_string"].decode("latin-1")
        client = scope.get("client")
        request = {
            "id": request_id.decode(),
            "method": scope["method"],
            "path": quote(scope["path"]) + ("?" + query if query else ""),
            "route": scope.get(ROUTE),
            "status": message["status"],
            "ms": round((now_s() - self._began_s) * 1000, 1),
            "actor": scope.get(ACTOR),
            "client": None if client is None else client[0],
            "http": scope["http_version"],
        }
        text = '%(client)s "%(method)s %(path)s HTTP/%(http)s" %(status)d %(ms).1f ms %(actor)s %(id)s'
        _log.info(text, request, extra={"request": request})


def is_cross_site(headers: Headers) -> bool:
    """Return whether another site caused the request. For event streams, which only our own pages and programs should
    open: not even a navigation."""
    return headers.get("sec-fetch-site", "none") not in ("same-origin", "none")


def _text(headers: Mapping[bytes, bytes], name: bytes) -> str:
    return headers.get(name, b"").decode("latin-1")


def _policy(content_type: bytes) -> Sequence[tuple[bytes, bytes]]:
    return HTML_POLICY if content_type.startswith((b"text/html", b"image/svg")) else OTHER_POLICY


def _split_authority(authority: str) -> tuple[str | None, int | None]:
    """Split `name[:port]`; an IPv6 address keeps its brackets. Return (None, None) for other forms."""
    name, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        name, port = authority, ""
    if (
        not name
        or any(c in name for c in "/@?#\\ \t")
        or (colon and not authority.endswith("]") and not (port.isdecimal() and len(port) <= 5))
    ):
        return None, None
    if ":" in name and not (name.startswith("[") and name.endswith("]")):
        return None, None
    return name, int(port) if port else None


def warn_of_open_bind(settings: Settings) -> str | None:
    """A sentence for the operator when other machines can reach this server."""
    if is_loopback(settings.host):
        return None
    return f"listening on {settings.host}: the token is sent unencrypted unless a proxy in front adds TLS"

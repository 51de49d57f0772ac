"""The requests of a chain of redirects: which URLs can be dialled, and which headers go along to another server."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

import httpcore
import httpx

from executor.blocks.http import addresses
from executor.blocks.http.binding import is_bound, opened
from executor.blocks.http.handles import has_handle, in_authority
from executor.blocks.http.response import header_of
from executor.errors import BlockError

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
        """Return the request of the caller."""
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
        """The port that is dialled."""
        return self.url.port or {"http": 80, "https": 443}[self.url.scheme]

    def all_headers(self) -> dict[str, str]:
        """Return the headers of the request, with defaults for those that the caller did not set."""
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
        if _origin(url) != _origin(self.url):
            if content is not None or method not in _WITHOUT_EFFECT:
                to = "" if is_bound() else f" to {url.host}"
                raise self.refused_redirect(f"would send the request and its data{to or ' to another server'}")
            headers = {name: value for name, value in headers.items() if name.lower() in _HARMLESS}
        from_public = self.from_public or _is_public_peer(response)
        return Hop(method, url, headers, content, self.named, self.url, from_public)

    def refused_redirect(self, why: str) -> BlockError:
        """Return the error of a redirect that is not followed. Never retryable."""
        return BlockError(f"{self.shown}: the redirect {why}", code="redirect_refused", retryable=False)


def parse_url(text: str) -> httpx.URL:
    """Return the URL without its fragment. Raises BlockError: url_invalid, in words that have no part of the URL; and
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
    """Return True for http or https, a host, and a valid port: a larger number is another port by the time it is
    dialled."""
    try:
        named = _HOST.fullmatch(url.host) is not None
    except ValueError:  # begins with xn--, followed by no name
        return False
    return url.scheme in ("http", "https") and named and (url.port is None or 0 < url.port < 65536)


def opened_url(url: httpx.URL) -> httpx.URL:
    """Put the values of secrets into the URL. Raises BlockError: url_invalid, secret_misplaced."""
    text = str(url)
    if not has_handle(text):
        return url
    try:
        made = httpx.URL(opened(text).replace("#", "%23"))
    except (httpx.InvalidURL, ValueError, TypeError):
        raise _url_invalid("a secret in it has characters that a URL cannot have") from None
    if _origin(made) != _origin(url) or made.userinfo:
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


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)


def _is_public_peer(response: httpcore.Response) -> bool:
    """Return True if a public address answered, or if the connection does not have the address."""
    stream = response.extensions.get("network_stream")
    peer = stream.get_extra_info("server_addr") if stream is not None else None
    return peer is None or addresses.is_public(ipaddress.ip_address(peer[0].partition("%")[0]))

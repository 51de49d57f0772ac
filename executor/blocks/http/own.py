"""This server as requests of its own workflows see it: two kinds of paths are open to them, the API is not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    import httpx

# A single name after the folder. A proxy in front of the server could read the excluded characters as another path.
_DOOR = re.compile(r"/(?:demo|hooks)/(?P<name>[^/\\\x00-\x1f\x7f]+)")
_ENCODED_AGAIN = re.compile(r"%(?:2e|2f|5c|25|00)", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}


class Own:
    """`authority`: `host:port` where this process listens. `urls`: how else it is reached, each perhaps with a path in
    front (WEFT_BASE_URL)."""

    def __init__(self, authority: str, urls: Iterable[str] = ()) -> None:
        self._authority = authority
        self._urls = tuple(urls)

    @property
    def port(self) -> int:
        return next(iter(self._fronts))[1]

    @cached_property
    def _fronts(self) -> dict[tuple[str, int], str]:
        """The path in front, by place; where this process listens comes first. Read with the first request: until then
        no httpx is needed."""
        import httpx

        fronts = {_place(httpx.URL(f"http://{self._authority}")): ""}
        for text in self._urls:
            url = httpx.URL(text)
            fronts.setdefault(_place(url), url.path.rstrip("/"))
        return fronts

    @property
    def places(self) -> list[str]:
        """`host:port` of each, as in WEFT_ALLOW_PRIVATE."""
        return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self._fronts]

    def is_at(self, url: httpx.URL) -> bool:
        """Return True if this URL, as it is spelled, leads to this server."""
        front = self._fronts.get(_place(url))
        return front is not None and (not front or f"{url.path}/".startswith(f"{front}/") or not _plain(url))

    def opens(self, url: httpx.URL) -> bool:
        """Return True for `/demo/<name>` or `/hooks/<name>` of this server, in a spelling that means nothing else
        anywhere."""
        front = self._fronts.get(_place(url))
        path = url.raw_path.partition(b"?")[0].decode("ascii")
        if front is None or not path.startswith(front):
            return False
        raw = path[len(front) :]
        found = _DOOR.fullmatch(unquote(raw))
        # Slashes must be slashes before decoding, and a dot, a slash or a percent sign is not encoded at all.
        return (
            found is not None
            and raw.count("/") == 2
            and found["name"] not in (".", "..")
            and not _ENCODED_AGAIN.search(raw)
        )


def _place(url: httpx.URL) -> tuple[str, int]:
    return url.host.lower().rstrip("."), url.port or _PORTS.get(url.scheme, 0)


def _plain(url: httpx.URL) -> bool:
    """Return True if no proxy could read the path as another one."""
    path = url.raw_path.partition(b"?")[0].decode("ascii")
    return not (_ENCODED_AGAIN.search(path) or "\\" in path or "//" in path)

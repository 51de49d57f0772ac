"""The network addresses that blocks may reach. An address is checked at the moment of dialling.

Checking a URL beforehand protects from nothing: a name may resolve to something else a moment later. So the guard sits
below the HTTP library, where the connection is made, and everything passes it: redirects, odd spellings of addresses,
names with several addresses.

Of this server two kinds of paths are open to requests of its own workflows; the API is not.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import unquote

from executor.errors import BlockError

if TYPE_CHECKING:
    import httpx


Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

# Global by the registry, but not places on the Internet that one can mean.
_NEVER_V4 = [ipaddress.IPv4Network(text) for text in ("192.88.99.0/24", "192.0.0.0/24")]  # 6to4 relays, protocols
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
_NEVER_V6 = [
    ipaddress.IPv6Network(text)
    for text in ("2001::/23", "2002::/16", "3fff::/20")  # protocols and Teredo, 6to4, documentation
]
ALLOW_HINT = "to allow it, start the server with WEFT_ALLOW_PRIVATE={place}"
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class Allowed:
    """The operator's list of exceptions: `*`, networks (`10.0.0.0/8`), addresses or names, with or without `:port`.
    Raises ValueError for an entry that is none of these."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._everything = False
        self._networks: list[Network] = []
        # Names are texts, so no host can pass for an address.
        self._places: set[tuple[str | Address, int | None]] = set()
        for entry in map(str.strip, entries):
            if entry == "*":
                self._everything = True
            elif "/" in entry:
                self._networks.append(ipaddress.ip_network(entry, strict=False))
            elif entry:
                self._places.add(_place(entry))

    def permits(self, host: str, address: Address, port: int) -> bool:
        if self._everything or is_public(address) or any(address in network for network in self._networks):
            return True
        return any((place, number) in self._places for place in _places(host, address) for number in (port, None))

    def names(self, host: str, address: Address, port: int) -> bool:
        """Return True if this very `host:port` or `address:port` is on the list."""
        return any((place, port) in self._places for place in _places(host, address))

    def names_url(self, host: str, port: int) -> bool:
        """Return True if the list has the place as it is in the URL, before anything is resolved."""
        return _place(f"[{host}]:{port}" if ":" in host else f"{host.rstrip('.')}:{port}") in self._places


def _places(host: str, address: Address) -> set[str | Address]:
    return {host.lower().rstrip("."), address, unwrapped(address)}


def is_public(address: Address) -> bool:
    """Return False for what is private, local, reserved or multicast, and for tunnels to such."""
    address = unwrapped(address)
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast and not any(address in net for net in _NEVER_V4)
    return address in _GLOBAL_V6 and address.is_global and not any(address in net for net in _NEVER_V6)


def unwrapped(address: Address) -> Address:
    """Return the IPv4 address inside an IPv4-mapped or NAT64 one."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


class Guard:
    """Decides which addresses of a host may be dialled, for every protocol. `own_port`: where this server listens; on
    this machine that port is dialled only if `allowed` names it, port included. `hint` is for refusals; `{place}` in it
    is what was refused."""

    def __init__(
        self, allowed: Allowed, resolve: Resolve, *, own_port: int | None = None, hint: str = ALLOW_HINT
    ) -> None:
        self._allowed = allowed
        self._resolve = resolve
        self.own_port = own_port
        self.hint = hint

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the permitted addresses, at least one. Raises OSError and UnicodeError if the name cannot be resolved,
        BlockError(address_refused) if no address is permitted."""
        found = await self._resolve(host, port)
        permitted = [text for text in found if self._permits(host, ipaddress.ip_address(text), port)]
        if not permitted:
            raise self.refusal(host, port)
        return permitted

    def refusal(self, host: str, port: int) -> BlockError:
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return refused(place, self.hint.replace("{place}", place))

    def names(self, host: str, address: Address, port: int) -> bool:
        return self._allowed.names(host, address, port)

    def _permits(self, host: str, address: Address, port: int) -> bool:
        here = unwrapped(address)
        if port == self.own_port and (here.is_loopback or here.is_unspecified):
            return self._allowed.names(host, address, port)
        return self._allowed.permits(host, address, port)


def refused(what: str, hint: str) -> BlockError:
    message = f"{what} is a private or local address, which blocks cannot reach"
    return BlockError(message, code="address_refused", retryable=False, hint=hint)


async def resolve(host: str, port: int) -> list[str]:
    """Return all addresses of a name, or of an address in any spelling that the system reads. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(item[4][0]) for item in found))


def _place(entry: str) -> tuple[str | Address, int | None]:
    host, port = entry, ""
    if entry.startswith("["):
        host, _, port = entry[1:].partition("]")
        port = port.removeprefix(":")
    elif entry.count(":") == 1:
        host, _, port = entry.partition(":")
    if port and not (port.isdecimal() and 0 < int(port) < 65536):
        raise ValueError(f"{entry!r} is neither a network nor host:port")
    number = int(port) if port else None
    try:
        return ipaddress.ip_address(host), number
    except ValueError:
        return host.lower().rstrip("."), number


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
        """The path in front, by place; where this process listens comes first. Until it is read, no httpx is needed."""
        import httpx

        fronts = {place_of(httpx.URL(f"http://{self._authority}")): ""}
        for text in self._urls:
            url = httpx.URL(text)
            fronts.setdefault(place_of(url), url.path.rstrip("/"))
        return fronts

    @property
    def places(self) -> list[str]:
        return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self._fronts]

    def is_at(self, url: httpx.URL) -> bool:
        """Return True if this URL, as it is spelled, leads to this server."""
        front = self._fronts.get(place_of(url))
        return front is not None and (not front or f"{url.path}/".startswith(f"{front}/") or not _plain(url))

    def opens(self, url: httpx.URL) -> bool:
        """Return True for `/demo/<name>` or `/hooks/<name>` here, in a spelling that means nothing else anywhere."""
        front = self._fronts.get(place_of(url))
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


def place_of(url: httpx.URL) -> tuple[str, int]:
    """Return the host and the port that is dialled."""
    return url.host.lower().rstrip("."), url.port or _PORTS.get(url.scheme, 0)


def _plain(url: httpx.URL) -> bool:
    """Return True if no proxy could read the path as another one."""
    path = url.raw_path.partition(b"?")[0].decode("ascii")
    return not (_ENCODED_AGAIN.search(path) or "\\" in path or "//" in path)

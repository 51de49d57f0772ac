"""Headers in which reverse proxies describe the requests that they pass on.

Headers count only on connections from the addresses in WEFT_BEHIND_PROXY: any client can send them. Each proxy appends
to X-Forwarded-For the address that called it, so the header is read from its end: everything to the left of the first
address that is not one of our proxies was written by the client. `Forwarded` (RFC 7239) is not read: a proxy that sets
X-Forwarded-For passes `Forwarded` on as the client wrote it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from starlette.types import Scope

from server.variables import network

HTTPS_ONLY = (b"strict-transport-security", b"max-age=31536000")
HOST = b"x-forwarded-host"


class Proxies:
    """The proxies in `networks`, which are addresses or networks. Raises ValueError."""

    def __init__(self, networks: Sequence[str] = ()) -> None:
        self._networks = [network(text) for text in networks]

    def __bool__(self) -> bool:
        return bool(self._networks)

    def has(self, address: str) -> bool:
        """Return whether one of our proxies has this address."""
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
    """The values of X-Forwarded-Host, in lower case."""
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

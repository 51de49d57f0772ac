from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from server.process import _bind
from server.settings import Settings


def test_callers_queue_while_the_server_starts() -> None:
    """Runs go on before requests are taken, and may call this very server: they must wait, not be refused."""
    with _bind(Settings(port=0)) as listener, socket.create_connection(listener.getsockname(), timeout=5) as early:
        early.sendall(b"GET /healthz HTTP/1.1\r\n")
        taken, _ = listener.accept()
        with taken:
            assert taken.recv(3) == b"GET"


def test_an_address_in_use_is_reported() -> None:
    told = r"cannot listen on .* choose another --port"
    with _bind(Settings(port=0)) as listener, pytest.raises(OSError, match=told):
        _bind(Settings(port=listener.getsockname()[1]))


def test_a_server_that_has_nothing_to_do_loads_no_library_for_what_it_may_do() -> None:
    later = ("aiosmtplib", "httpcore", "httpx", "jsonschema", "networkx", "rich", "wasmtime")
    code = f"import sys, server.process; print([name for name in {later} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"

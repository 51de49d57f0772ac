"""The guard that keeps tests and their processes on this machine: `tests/support/loopback`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.loopback.sitecustomize import VARIABLE, is_here

OUTSIDE = [
    "import socket; socket.create_connection(('192.0.2.1', 80), 1)",
    "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
    "import socket; socket.getaddrinfo('weft-has-no-such-name.net', 80)",
    "import asyncio; asyncio.run(asyncio.open_connection('192.0.2.1', 80))",
]
HERE = "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname(), 5)"


def _tried(source: str, tmp_path: Path) -> tuple[int, str]:
    noted = tmp_path / "noted"
    noted.touch()
    environ = {**os.environ, VARIABLE: str(noted)}
    done = subprocess.run([sys.executable, "-c", source], env=environ, capture_output=True, check=False, timeout=60)
    return done.returncode, noted.read_text()


@pytest.mark.parametrize("source", OUTSIDE)
def test_a_process_of_a_test_does_not_get_out(source: str, tmp_path: Path) -> None:
    code, noted = _tried(source, tmp_path)
    assert code != 0 and noted.startswith("-c: ")


def test_this_machine_can_be_reached(tmp_path: Path) -> None:
    assert _tried(HERE, tmp_path) == (0, "")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", "localhost", "0.0.0.0", "127.0.0.1."]
)
def test_what_is_here(host: str) -> None:
    assert is_here(host)
    assert not is_here("10.0.0.1") and not is_here("example.com") and not is_here("::ffff:8.8.8.8")

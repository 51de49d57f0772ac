from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from server.process import _bind
from server.settings import Settings

ROOT = Path(__file__).parents[3]


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


# Run by a server that is ready: send a run from a thread, print the libraries before and after it, and stop.
SERVED = """
import json, os, signal, sys, threading, urllib.request
from server.process import serve
from server.settings import load_settings

def go(url, before):
    document = {"format": "weft/1", "name": "n", "blocks": {"start": {"type": "start"}}, "edges": []}
    with open("weft.token") as file:
        headers = {"Authorization": "Bearer " + file.read().strip(), "Content-Type": "application/json"}
    body = json.dumps({"document": document, "input": {}}).encode()
    asked = urllib.request.Request(url.split("/sign-in")[0] + "/api/runs?wait=5", body, headers)
    with urllib.request.urlopen(asked, timeout=30) as answer:
        print("answered", json.load(answer)["status"])
    print("before", *before)
    print("after", *sys.modules)
    os.kill(os.getpid(), signal.SIGTERM)

serve(load_settings(), lambda url: threading.Thread(target=go, args=(url, [*sys.modules])).start())
"""


def test_a_server_that_has_nothing_to_do_loads_no_library_for_what_it_may_do(tmp_path: Path) -> None:
    """No library that only some requests and blocks need is loaded before the server is ready, nor by its first run."""
    done = subprocess.run(
        [sys.executable, "-c", SERVED],
        env={**os.environ, "WEFT_DATA": ".", "WEFT_PORT": "0", "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    words = {line.split()[0]: set(line.split()[1:]) for line in done.stdout.splitlines()}
    assert words["answered"] == {"succeeded"}
    rare = {
        "aiosmtplib", "compiler.imports.sim", "httpcore", "httpx", "jsonschema", "networkx", "prometheus_client",
        "pydantic", "rich", "wasmtime",
    }  # fmt: skip
    assert not rare & words["before"]
    assert not rare & words["after"]
    assert "anyio._backends._asyncio" in words["before"], "no descriptor may be left for it later"

"""A real server process on a free port of 127.0.0.1, with its database in a fresh folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import SyncServerProcess


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[..., SyncServerProcess]]:
    """Start a server; calling it again starts another on the same database."""
    started: list[SyncServerProcess] = []

    def start(**environ: str) -> SyncServerProcess:
        started.append(SyncServerProcess(tmp_path, environ))
        return started[-1]

    yield start
    for server in started:
        if server.running:
            server.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncServerProcess]:
    """For the tests of a file that leave the server as it is: each start costs most of a second."""
    folder = tmp_path_factory.mktemp("server")
    started = SyncServerProcess(folder, {}, log=folder / "log")
    try:
        yield started
        assert started.stop() == 0
    finally:
        if started.running:
            started.kill()


@pytest.fixture
def asking() -> dict[str, Any]:
    """Waits for a person, calls the demo endpoint, which fails twice, then ends."""
    return {
        "format": "weft/1",
        "name": "asking",
        "blocks": {
            "start": {"type": "start", "name": "Start"},
            "ask": {
                "type": "approval",
                "name": "Ask",
                "params": {
                    "title": "Go on?",
                    "fields": {"type": "object", "properties": {"note": {"type": "string"}}},
                    "actions": ["approve", "reject"],
                },
            },
            "call": {
                "type": "http",
                "name": "Call",
                "params": {
                    "method": "POST",
                    "url": "${WEFT_BASE_URL}/demo/echo?fail=2",
                    "body": {"note": "<ask.note>"},
                },
                "policy": {"retry": {"max_attempts": 4, "initial_ms": 20}},
            },
        },
        "edges": [{"source": "start", "target": "ask"}, {"source": "ask", "target": "call"}],
    }

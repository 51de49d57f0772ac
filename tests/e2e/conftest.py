"""A real server process on a free port of 127.0.0.1, with its database in a fresh folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
READY = "weft is ready: "


class ServerProcess:
    """`url` has no trailing slash. `kill` is kill -9, `stop` is SIGTERM and returns the exit code. `log`: a file that
    takes what the server writes to stderr. `python`: one that has weft installed, instead of this checkout. There is no
    token unless `environ` has WEFT_TOKEN."""

    def __init__(
        self, folder: Path, environ: dict[str, str], log: Path | None = None, python: Path | None = None
    ) -> None:
        own = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
        with log.open("wb") if log is not None else nullcontext() as stderr:
            self._process = subprocess.Popen(
                [python or sys.executable, "-m", "server", "serve"],
                cwd=folder if python else ROOT,
                env={**own, "WEFT_DB": str(folder / "weft.db"), "WEFT_PORT": "0", "WEFT_TOKEN": "off", **environ},
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        self.pid = self._process.pid
        self.folder = folder
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line.startswith(READY):
            self.kill()
            raise AssertionError(f"the server did not start: {line!r}")
        self._printed = line.removeprefix(READY).strip()
        self.url = self._printed.partition("/sign-in#")[0].rstrip("/")

    def sign_in_link(self) -> str:
        """What it printed for browsers; only a server whose token is its own (WEFT_TOKEN is empty) does."""
        assert "/sign-in#" in self._printed, self._printed
        return self._printed

    def kill(self) -> None:
        self._process.kill()
        self._end()

    def stop(self, timeout_s: float = 60) -> int:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(timeout_s)
        self._end()
        return self._process.returncode

    def signal_stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def _end(self) -> None:
        self._process.wait(30)
        if self._process.stdout:
            self._process.stdout.close()

    @property
    def running(self) -> bool:
        return self._process.poll() is None


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[..., ServerProcess]]:
    """Start a server; calling it again starts another on the same database."""
    started: list[ServerProcess] = []

    def start(**environ: str) -> ServerProcess:
        started.append(ServerProcess(tmp_path, environ))
        return started[-1]

    yield start
    for server in started:
        if server.running:
            server.kill()


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

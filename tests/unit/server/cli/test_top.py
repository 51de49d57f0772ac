"""`weft top`: its frames, in a pipe, on a terminal that cannot move its cursor, and on one that can."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from executor.open.engine import Engine
from server.cli.top import frame
from tests.support.server import SyncServerProcess

ROOT = Path(__file__).parents[4]


async def test_one_frame_has_what_is_open_and_what_was_done(
    weft: Callable[..., Any], engine: Engine, hello: dict[str, Any], asking: dict[str, Any]
) -> None:
    await engine.wait_finished((await engine.submit(hello, input={})).run, 30)
    await engine.submit(asking, input={"text": "x"})
    shown = await weft("top", "--once")
    assert shown.exit_code == 0, shown.output
    assert re.search(r"^ended +1 succeeded  0 failed  0 cancelled$", shown.output, re.MULTILINE)
    assert re.search(r"^set +1 +[\d.]+ ms +[\d.]+ s$", shown.output, re.MULTILINE)
    assert "POOL" in shown.output and "WORKER" in shown.output


def stats(**process: Any) -> dict[str, Any]:
    counted = {
        "worker": "w-1",
        "runs_active": 0,
        "attempts_active": 0,
        "runs_started": 0,
        "runs_ended": {},
        "commits": 0,
        "changes": 0,
        "write_retries": 0,
        "event_streams": 0,
        "event_loop_lag_ms": 0.0,
        "blocks": [],
    }
    return {
        "at_ms": process.pop("at_ms", 1_000),
        "runs_open": {},
        "queues": [{"pool": "gpu\x1b[2J", "runs": 7, "oldest_ms": 2_500}],
        "timer_lag_ms": 4_000,
        "schedule_lag_ms": 0,
        "waits_open": {},
        "notifications_pending": 0,
        "database_bytes": 3 * 1024 * 1024,
        "workers": [],
        "process": {**counted, **process},
    }


def test_rates_are_of_the_time_between_two_frames() -> None:
    lines = frame(stats(at_ms=3_000, runs_started=10, commits=50), stats(at_ms=1_000, runs_started=4, commits=10))
    assert "a second  3.0 started  0.0 ended  0.0 attempts  20.0 commits" in lines


def test_another_server_that_answers_has_its_own_counters() -> None:
    lines = frame(stats(at_ms=3_000, runs_started=10, worker="w-2"), stats())
    assert "a second  0.0 started  0.0 ended  0.0 attempts  0.0 commits" in lines


def test_names_cannot_reach_the_terminal_as_commands() -> None:
    text = "\n".join(frame(stats(), None))
    assert "\x1b" not in text and "gpu" in text
    assert "timers 4.0 s late" in text and "3 MiB" in text


@pytest.mark.parametrize(("term", "screen"), [("xterm", True), ("dumb", False)])
def test_on_a_terminal_it_is_renewed_until_it_is_interrupted(tmp_path: Path, term: str, screen: bool) -> None:
    server = SyncServerProcess(tmp_path, {})
    leader, follower = pty.openpty()
    try:
        command = [sys.executable, "-m", "server", "--url", server.url, "top", "--every", "0.2"]
        environment = {**os.environ, "TERM": term, "COLUMNS": "100", "LINES": "40"}
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env=environment,
            start_new_session=True,
            # A shell starts what is behind `&` with this signal ignored, and so do those that this starts.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - it does nothing else
        )
        try:
            text = b""
            until_s = time.monotonic() + 60
            while text.count(b"weft top") < 3 and time.monotonic() < until_s:
                if select.select([leader], [], [], 0.2)[0]:
                    text += os.read(leader, 65_536)
            assert text.count(b"weft top") >= 3
            assert (b"\x1b[?1049h" in text) is screen
            process.send_signal(signal.SIGINT)
            while process.poll() is None and time.monotonic() < until_s:
                if select.select([leader], [], [], 0.1)[0]:
                    text += os.read(leader, 65_536)
            assert process.returncode == 130
        finally:
            process.kill()
            process.wait(10)
    finally:
        os.close(leader)
        os.close(follower)
        server.kill()

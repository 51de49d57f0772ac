"""A function that held up the event loop for eight seconds left no trace in the log."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

import httpx
import pytest

from server.watchdog import Watchdog
from tests.e2e.edge import serving
from tests.support.until import until

FUNCTION = "tests.e2e.functions:stand_still"


async def test_the_log_names_the_function_that_holds_up_the_event_loop(tmp_path: Path) -> None:
    document = {
        "format": "weft/1",
        "name": "still",
        "blocks": {"start": {"type": "start"}, "still": {"type": "python", "params": {"function": "stand_still"}}},
        "edges": [{"source": "start", "target": "still"}],
    }
    async with serving(tmp_path, WEFT_FUNCTIONS=FUNCTION) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            answer = await client.post("/api/runs?wait=60", json={"document": document})
            assert answer.json()["status"] == "succeeded", answer.text
        await until(lambda: not ("moves again" not in (tmp_path / "log").read_text()))
        log = (tmp_path / "log").read_text()
    assert "the event loop has been standing still for" in log and "in stand_still (functions.py:" in log
    assert log.count("standing still") == 1


def test_a_loop_that_moves_is_not_mentioned(caplog: pytest.LogCaptureFixture) -> None:
    dog = Watchdog(still_s=30, check_s=0.001)
    with caplog.at_level(logging.WARNING, "weft.server"):
        dog.start()
        for _ in range(50):
            dog.beat()
            time.sleep(0.002)
        dog.stop()
    assert caplog.messages == []
    while any(thread.name == "weft-watchdog" for thread in threading.enumerate()):
        time.sleep(0.001)

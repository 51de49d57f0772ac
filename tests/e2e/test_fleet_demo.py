"""`weft demo --fleet` as a user runs it: members are killed, all runs end as they must, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

pytest.importorskip("psycopg")
pytestmark = pytest.mark.proof

State = dict[str, Any]
WITHIN_S = 90.0


@pytest.fixture
def demo() -> Iterator[subprocess.Popen[str]]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
    command = [sys.executable, "-m", "server", "demo", "--fleet", "--port", "0", "--workers", "2"]
    with subprocess.Popen(command, env=own, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def until(page: httpx.Client, true: Callable[[State], bool]) -> State:
    end = time.monotonic() + WITHIN_S
    while True:
        state: State = page.get("state").json()
        if true(state):
            return state
        assert time.monotonic() < end, state
        time.sleep(0.2)


def test_members_are_killed_and_no_run_is_lost(demo: subprocess.Popen[str]) -> None:
    assert demo.stdout is not None
    url = next(line.split()[-1] for line in demo.stdout if line.startswith("The fleet is ready: "))
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as page:
        first = until(page, lambda state: state["counts"]["ended"] >= 10)
        assert [each["state"] for each in first["members"]] == ["running"] * 5
        for name in ("worker 1", "server 1", "database"):
            page.post(f"members/{name}/kill").raise_for_status()
            page.post(f"members/{name}/start").raise_for_status()
        page.post("members/worker 2/freeze").raise_for_status()
        ended = until(page, lambda state: state["members"][3]["state"] == "running")["counts"]["ended"]
        until(page, lambda state: state["counts"]["ended"] >= ended + 30)
        page.post("members/worker 2/continue").raise_for_status()
        page.post("members/worker 1/stop").raise_for_status()
        ended = until(page, lambda state: state["members"][3]["state"] == "ended")["counts"]["ended"]
        last = until(page, lambda state: state["counts"]["ended"] >= ended + 30)
    assert (last["counts"]["wrong"], last["counts"]["lost"]) == (0, 0)
    assert [each["starts"] > 1 for each in last["members"]] == [True, True, False, True, False]
    demo.send_signal(signal.SIGINT)
    assert demo.wait(60) == 0
    for each in last["members"]:
        assert each["pid"] is None or not _is_alive(each["pid"]), each


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True

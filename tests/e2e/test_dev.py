"""`weft dev`: a real process whose file is edited, broken and mended, and which is killed while a run waits."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.server import ROOT

FLOW = """
import weft


@weft.step(effect="none")
def greet(who: str) -> str:
    return f"Hello {who}"


@weft.workflow
async def greeting(who: str):
    words = await greet(who)
    answer = await weft.approve(f"Send {words}!")
    return {"words": words, "action": answer.action}
"""


class Dev:
    """`lines`: what it has printed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reading = asyncio.create_task(self._read())

    async def said(self, pattern: str, timeout_s: float = 60) -> re.Match[str]:
        async with asyncio.timeout(timeout_s):
            while True:
                for line in self.lines:
                    if match := re.search(pattern, line):
                        self.lines.remove(line)
                        return match
                await asyncio.sleep(0.02)

    async def end(self, number: signal.Signals) -> int:
        if self.process.returncode is None:
            self.process.send_signal(number)
        await self.process.wait()
        await self._reading
        assert self.process.returncode is not None
        return self.process.returncode

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            self.lines.append(line.decode())


Start = Callable[[], Awaitable[Dev]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Of `flow.py` in the temporary folder. Two of them share the database."""
    started: list[Dev] = []

    async def begin() -> Dev:
        own = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "server", "dev", str(tmp_path / "flow.py")),
            *("--port", "0", "--db", str(tmp_path / "weft.db")),
            cwd=ROOT,
            env={**own, "WEFT_TOKEN": "off", "WEFT_LEASE_MS": "1000", "PYTHONUNBUFFERED": "1"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        started.append(Dev(process))
        return started[-1]

    yield begin
    for dev in started:
        await dev.end(signal.SIGTERM)


async def test_it_deploys_each_good_text_and_survives_the_bad_ones_and_a_kill(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "flow.py"
    file.write_text(FLOW)
    dev = await start()
    await dev.said("greeting version 1 is active")
    url, page = (await dev.said(r"(http://127.0.0.1:\d+)(/w/\w+)")).groups()
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        draft = (await client.get(page.replace("/w/", "/api/drafts/"))).json()
        assert draft["document"]["blocks"]["greet"]["output_schema"] == {"type": "string"}
        first = await _waiting(client, "ada")

        file.write_text(FLOW.replace("Hello", "Good morning").replace("Send", "Post"))
        await dev.said("greeting version 2 is active")
        second = await _waiting(client, "eve")

        file.write_text(FLOW + "\nif greeting:\n")
        await dev.said("SyntaxError|IndentationError")
        await dev.said("flow.py has errors: the last good version continues")
        file.write_text(FLOW.replace("return {", "if words:\n        pass\n    return {"))
        await dev.said(r"flow.py, line 14: a traced value has no truth value")
        assert (await client.get("/api/workflows/greeting")).json()["version"] == 2

        await dev.end(signal.SIGKILL)
        await _gone(client)

    file.write_text(FLOW.replace("Hello", "Good morning").replace("Send", "Post"))
    again = await start()
    await again.said("greeting version 2 is unchanged")
    url = (await again.said(r"(http://127.0.0.1:\d+)/w/")).group(1)
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        assert await _answered(client, first) == {"words": "Hello ada", "action": "approve"}
        assert await _answered(client, second) == {"words": "Good morning eve", "action": "approve"}
    assert await again.end(signal.SIGTERM) == 0


async def test_a_file_that_is_broken_at_first_is_waited_for(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "flow.py"
    file.write_text("import weft\n")
    dev = await start()
    await dev.said("flow.py has no workflow")
    await dev.said("flow.py has errors: waiting for a change")
    file.write_text(FLOW)
    await dev.said("greeting version 1 is active")


async def test_what_the_file_and_its_steps_print_is_shown(start: Start, tmp_path: Path) -> None:
    printing = FLOW.replace("import weft\n", "import weft\n\nprint('reading', __file__)\n", 1)
    (tmp_path / "flow.py").write_text(printing.replace("    return f", "    print('greeting', who)\n    return f", 1))
    dev = await start()
    await dev.said("greeting version 1 is active")
    url = (await dev.said(r"(http://127.0.0.1:\d+)/w/")).group(1)
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        await _waiting(client, "ada")
    await dev.said("greeting ada")
    await dev.said("^reading .*flow.py")
    await dev.said("^reading .*flow.py")  # by the check, and by the server


RETRIED = """
import asyncio

import weft


@weft.step(effect="read", retries=weft.Retry(50, first=0.2, factor=1))
async def look() -> str:
    print("look")
    await asyncio.sleep(0.1)
    raise LookupError("not yet")


@weft.durable
async def looks() -> str:
    return await look()
"""


async def test_a_kill_ends_the_server_at_once_and_costs_no_tries(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "flow.py"
    file.write_text(RETRIED)
    dev = await start()
    await dev.said("looks version 1 is active")
    url = (await dev.said(r"(http://127.0.0.1:\d+)/w/")).group(1)
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        run = (await client.post("/api/workflows/looks/runs", json={"input": {}})).json()["run"]
        for _ in range(2):
            await dev.said("look$")
        await dev.end(signal.SIGKILL)
        await _gone(client)
    file.write_text(RETRIED.replace('raise LookupError("not yet")', 'return "found"'))
    again = await start()
    await again.said("looks version 2 is active")
    url = (await again.said(r"(http://127.0.0.1:\d+)/w/")).group(1)
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        assert (await _ended(client, run))["output"] == "found"
        events = (await client.get(f"/api/runs/{run}/events", headers={"accept": "application/json"})).text
    assert "LookupError" in events
    assert "BrokenPipe" not in events


DURABLE = """
import weft


@weft.step(effect="none")
async def greet(who: str) -> str:
    return f"Hello {who}"


@weft.durable
async def greeting(who: str) -> str:
    words = await greet(who)
    answer = await weft.signal("go", type=str)
    return f"{words} {answer}"
"""


async def test_open_runs_of_a_durable_function_go_over_a_save_and_those_that_part_are_shown(
    start: Start, tmp_path: Path
) -> None:
    file = tmp_path / "flow.py"
    file.write_text(DURABLE)
    dev = await start()
    await dev.said("greeting version 1 is active")
    url = (await dev.said(r"(http://127.0.0.1:\d+)/w/")).group(1)
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        run = await _waiting(client, "ada")
        file.write_text(DURABLE.replace('return f"{words}', 'return f"{words}!'))
        await dev.said("greeting version 2 is active")
        await dev.said("1 open run continues with this text")

        file.write_text(DURABLE.replace("greet(who)", 'greet(f"dear {who}")'))
        await dev.said("greeting version 3 is active")
        await dev.said(
            rf'run {run} of greeting does not fit.*: flow\.py:12: call 1 is `flow\.greet\(who="dear ada"\)` now, '
            rf'and was `flow\.greet\(who="ada"\)`'
        )
        await dev.said("weft.patched")
        file.write_text(DURABLE.replace('return f"{words}', 'return f"{words}?'))
        await dev.said("1 open run continues with this text")
        assert (await client.post(f"/api/runs/{run}/signals/go", json={"payload": "Eve"})).is_success
        assert (await _ended(client, run))["output"] == "Hello ada? Eve"


async def _waiting(client: httpx.AsyncClient, who: str) -> str:
    body = {"input": {"who": who}}
    run = (await client.post("/api/workflows/greeting/runs", json=body)).json()["run"]
    async with asyncio.timeout(30):
        while (await client.get(f"/api/runs/{run}")).json()["status"] != "waiting":
            await asyncio.sleep(0.02)
    return str(run)


async def _answered(client: httpx.AsyncClient, run: str) -> Any:
    waits = (await client.get("/api/waits")).json()["waits"]
    token = next(wait["link"] for wait in waits if wait["run"] == run).rpartition("/")[2]
    assert (await client.post(f"/resume/{token}", json={"action": "approve"})).status_code == 200
    return (await _ended(client, run))["output"]


async def _ended(client: httpx.AsyncClient, run: str) -> Any:
    async with asyncio.timeout(30):
        while (shown := (await client.get(f"/api/runs/{run}")).json())["status"] != "succeeded":
            await asyncio.sleep(0.02)
    return shown


async def _gone(client: httpx.AsyncClient) -> None:
    """The server ends with `weft dev`, however that ends."""
    async with asyncio.timeout(30):
        while True:
            try:
                await client.get("/healthz")
            except httpx.TransportError:
                return
            await asyncio.sleep(0.05)

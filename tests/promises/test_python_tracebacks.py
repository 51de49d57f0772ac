"""A function of a user that raises leaves the frames of the user's files, wherever its error is shown."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import weft
import weft.testing
from executor.kernel.process.tracebacks import TRACEBACK_BYTES
from tests.support.command import weft as command
from tests.support.python_flow import FAILING
from tests.support.server import ROOT, SyncServerProcess

SECRET = "hunter2-hunter2"


def helper(prices: dict[str, int]) -> int:
    return prices["missing"]  # the line


def plain(name: str) -> int:
    return helper({name: 1})


async def waits(name: str) -> int:
    await asyncio.sleep(0)
    return helper({name: 1})


async def asks(name: str, ctx: Any) -> Any:
    async def work() -> int:
        return helper({name: 1})

    return await ctx.step("step", "look", name, work)


def asks_in_thread(name: str, ctx: Any) -> Any:
    return ctx.step_from_thread("step", "look", name, lambda: helper({name: 1}))


async def chooses(name: str) -> int:
    try:
        return helper({name: 1})
    except KeyError as error:
        raise weft.BlockError("sold out", code="sold_out", retryable=False) from error


async def handles(name: str, ctx: Any) -> str:
    try:
        return str(await asks(name, ctx))
    except weft.BlockError:
        return "handled"


@weft.block(type="looks")
def looks(name: str) -> int:
    return helper({name: 1})


class Looks:
    """A block type without `@weft.block`."""

    spec = looks.spec

    async def run(self, ctx: Any) -> Any:
        return helper({ctx.params["name"]: 1})


def tells(name: str) -> None:
    raise ValueError(f"cannot sign in with {os.environ.get('NO_SUCH', SECRET)}")


def recurses(name: str) -> None:
    try:
        recurses(name)
    except RecursionError:
        raise ValueError("x" * 100_000) from None


FUNCTIONS: dict[str, Callable[..., Any]] = {
    one.__name__: one for one in (plain, waits, asks, asks_in_thread, chooses, handles, tells, recurses)
}


def document(type: str, params: dict[str, Any], **policy: Any) -> dict[str, Any]:
    return {
        "format": "weft/1",
        "name": "fails",
        "blocks": {"start": {"type": "start"}, "work": {"type": type, "params": params, "policy": policy}},
        "edges": [{"source": "start", "target": "work"}],
    }


def calls(function: str, **policy: Any) -> dict[str, Any]:
    return document("python", {"function": function, "arguments": {"name": "a"}}, **policy)


def is_the_line(traceback: str) -> None:
    """It leads to the line that failed, by frames of this file only."""
    assert f'File "{__file__}", line ' in traceback and ", in helper" in traceback
    assert 'return prices["missing"]  # the line' in traceback
    assert "KeyError: 'missing'" in traceback
    files = {line.split('"')[1] for line in traceback.splitlines() if line.startswith('  File "')}
    assert files == {__file__}


@pytest.mark.parametrize("function", ["plain", "waits", "asks", "asks_in_thread", "chooses"])
async def test_a_function_that_raises(function: str) -> None:
    async with weft.open(functions=FUNCTIONS) as engine:
        run = await engine.run(calls(function), timeout_s=30)
        assert run.error is not None
        is_the_line(run.error["traceback"])
        assert f"in {function}" in run.error["traceback"]
        (failed,) = [event async for event in engine.stream(run.id) if event.type == "node.failed"]
        assert failed.data["error"]["traceback"] == run.error["traceback"]


@pytest.mark.parametrize("runner", ["process"])
async def test_in_another_process(runner: str) -> None:
    async with weft.open(functions=FUNCTIONS, processes=1) as engine:
        for function in ("plain", "chooses"):
            run = await engine.run(calls(function, runner=runner), timeout_s=60)
            assert run.error is not None
            is_the_line(run.error["traceback"])


@pytest.mark.parametrize("block", [looks, Looks()])
async def test_a_block_type_of_a_user(block: Any) -> None:
    async with weft.open(blocks=[block]) as engine:
        run = await engine.run(document("looks", {"name": "a"}), timeout_s=30)
        assert run.error is not None
        is_the_line(run.error["traceback"])
    ran = await weft.testing.run_block(block, {"name": "a"})
    assert ran.error is not None
    is_the_line(ran.error["traceback"])


async def test_a_step_that_fails_has_it_also_when_the_block_goes_on() -> None:
    async with weft.open(functions=FUNCTIONS) as engine:
        run = await engine.run(calls("handles"), timeout_s=30)
        assert run.output == "handled"
        (step,) = [event async for event in engine.stream(run.id) if event.type == "step.finished"]
        is_the_line(step.data["error"]["traceback"])


async def test_each_attempt_has_its_own_and_values_have_none() -> None:
    flow = calls("plain", retry={"max_attempts": 2, "initial_ms": 1})
    flow["blocks"]["after"] = {"type": "function", "params": {"code": "return <work.error>"}}
    flow["edges"].append({"source": "work", "target": "after", "handle": "error"})
    async with weft.open(functions=FUNCTIONS) as engine:
        run = await engine.run(flow, timeout_s=30)
        assert run.status == "succeeded", run.error
        assert run.output["result"]["code"] == "function_failed"
        assert "traceback" not in run.output["result"]
        detail = await engine.runs.node(run.id, "work")
        assert len(detail.attempts) == 2
        for attempt in detail.attempts:
            assert attempt.error is not None
            is_the_line(attempt.error["traceback"])


async def test_secrets_are_not_in_it(tmp_path: Path) -> None:
    async with weft.open(
        tmp_path / "weft.db", functions=FUNCTIONS, env={"KEY": SECRET}, secrets=["KEY"], processes=1
    ) as engine:
        for policy in ({}, {"runner": "process"}):
            run = await engine.run(calls("tells", **policy), timeout_s=60)
            assert run.error is not None
            assert "ValueError: cannot sign in with [redacted]" in run.error["traceback"]
    assert not [path for path in tmp_path.iterdir() if SECRET.encode() in path.read_bytes()]


async def test_it_has_a_limit() -> None:
    async with weft.open(functions=FUNCTIONS) as engine:
        run = await engine.run(calls("recurses"), timeout_s=30)
        assert run.error is not None
        traceback = run.error["traceback"]
        assert len(traceback.encode()) <= TRACEBACK_BYTES
        assert "in recurses" in traceback and "\n  ...\n" in traceback


async def test_blocks_of_weft_have_none() -> None:
    async with weft.open() as engine:
        for type, params in (("function", {"code": "throw new Error('x')"}), ("http", {"url": "http://127.0.0.1:1"})):
            run = await engine.run(document(type, params), timeout_s=30)
            assert run.status == "failed" and run.error is not None
            assert "traceback" not in run.error


def test_the_command_line_and_the_api_show_it(tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(FAILING)
    server = SyncServerProcess(tmp_path, {"WEFT_FUNCTIONS": str(file)})
    environ = {"WEFT_URL": server.url, "WEFT_TOKEN": None}
    try:
        ran = command("run", str(file), "--follow", environ=environ)
        assert f'File "{file}", line 5, in helper' in ran.stderr
        with httpx.Client(base_url=server.url) as client:
            (row,) = client.get("/api/runs").json()["runs"]
            assert row["error"]["code"] == "function_failed" and "traceback" not in row["error"]
            detail = client.get(f"/api/runs/{row['id']}/nodes/price").json()
            assert f'File "{file}", line 5, in helper' in detail["error"]["traceback"]
        for words in (("why", row["id"]), ("why", row["id"], "price"), ("events", row["id"])):
            shown = command(*words, environ=environ).stdout
            assert shown.count(f'File "{file}", line 5, in helper') == 1, shown
    finally:
        server.kill()


async def test_the_terminal_of_weft_dev_has_all_frames(tmp_path: Path) -> None:
    file, environ = tmp_path / "shop.py", {**os.environ, "WEFT_TOKEN": "off", "PYTHONUNBUFFERED": "1"}
    file.write_text(FAILING)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "server", "dev", str(file), "--port", "0", "--db", str(tmp_path / "weft.db")),
        cwd=ROOT,
        env=environ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            while b"http://127.0.0.1" not in (line := await process.stdout.readline()):
                assert line
            url = line.decode().partition("http://")[2].partition("/w/")[0]
            async with httpx.AsyncClient(base_url=f"http://{url}") as client:
                started = await client.post("/api/workflows/order/runs", json={"input": {"name": "a"}})
                assert started.is_success, started.text
            printed = ""
            while "KeyError: 'missing'" not in printed:
                printed += (line := await process.stdout.readline()).decode()
                assert line, printed
        assert f'File "{file}", line 5, in helper' in printed
        assert str(ROOT / "executor" / "blocks" / "types" / "typed.py") in printed
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()

"""The wheel of weft-client in an environment without weft: typed, and against a real server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from docs import client_wheel, release
from tests.support.environments import INSTALL_S, installed, unhashed
from tests.support.server import SyncServerProcess

SIZE_MAX_MB = 9  # with bytecode and all that it needs
PROGRAM = """
import asyncio
import sys

from weft_client import ApiError, AsyncClient, Client, Event, RunFailed, ServerUnreachable, answers

FLOW = {
    "format": "weft/1",
    "name": "payment",
    "blocks": {
        "start": {"type": "start"},
        "ask": {"type": "approval", "params": {"title": "Pay <input.amount>?", "actions": ["approve", "reject"]}},
    },
    "edges": [{"source": "start", "target": "ask"}],
}


def block(client: Client) -> answers.RunDetail:
    client.deploy(FLOW)
    run = client.run("payment", {"amount": 120})
    client.answer(run["waits"][0], "approve")
    return client.wait_for(run["id"])


async def follow(client: AsyncClient) -> list[str]:
    found: list[str] = []
    async with client:
        started = await client.start("payment", {"amount": 7})
        async for event in client.follow(started["run"]):
            seen: Event = event
            found.append(seen.type)
            if seen.type == "wait.opened":
                (wait,) = (await client.waits(run=started["run"]))["waits"]
                await client.answer(wait, "reject")
    return found


with Client() as client:
    print(block(client)["output"])
    try:
        client.run("nothing")
    except ApiError as error:
        print(error.status, error.code)
    try:
        Client("http://127.0.0.1:9").health()
    except ServerUnreachable as error:
        print(type(error).__name__)
events = asyncio.run(follow(AsyncClient()))
print(events[0], events[-1])
print(sorted({"weft", "server", "executor", "compiler"} & set(sys.modules)), RunFailed.__module__)
"""

pytestmark = [pytest.mark.proof, pytest.mark.timeout(INSTALL_S + 200), pytest.mark.xdist_group("wheel")]


def test_the_clients_without_weft(tmp_path: Path) -> None:
    wheel = client_wheel.build(tmp_path)
    folder = tmp_path / "environment"
    python = installed(folder, ["-c", unhashed(tmp_path), str(wheel)]) / "python"
    size_mb = sum(path.lstat().st_blocks * 512 for path in folder.rglob("*")) / 1024**2
    assert size_mb < SIZE_MAX_MB

    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--python-executable", python, program],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr

    server = SyncServerProcess(tmp_path / "server", {})
    try:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("WEFT_", "PYTHON"))}
        done = subprocess.run(
            [python, program], cwd=tmp_path, env={**own, "WEFT_URL": server.url}, capture_output=True, text=True,
            check=False, timeout=100,
        )  # fmt: skip
    finally:
        server.kill()
    assert done.returncode == 0, done.stderr
    output, refused, unreachable, events, modules = done.stdout.splitlines()
    assert "'action': 'approve'" in output
    assert (refused, unreachable) == ("404 workflow_not_found", "ServerUnreachable")
    assert (events, modules) == ("run.started run.finished", "[] weft_client.errors")


def test_the_wheel_has_the_version_of_weft(tmp_path: Path) -> None:
    assert client_wheel.build(tmp_path).name == f"weft_client-{release.version()}-py3-none-any.whl"

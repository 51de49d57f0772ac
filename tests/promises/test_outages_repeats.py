"""A cancel whose answer was lost can be sent again: it gets the first answer, by HTTP, Python and the command line."""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path

import pytest

from server.client import ApiError, AsyncClient, RunFailed
from tests.support.documents import document
from tests.support.place import Place
from tests.support.server import ROOT, ServerProcess, free_port

WAITS = document("waits", "start a", blocks={"a": {"type": "wait", "params": {"seconds": 600}}})
ENDS = document("ends", "start a", blocks={"a": {"type": "set"}})


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        return tmp_path / "weft.db"
    pytest.importorskip("psycopg")
    address: str = request.getfixturevalue("postgres")
    return address


async def weft_cancel(url: str, run: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "server", "--url", url, "cancel", run]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()


async def test_a_repeated_cancel_is_answered_like_the_first(place: Place, tmp_path: Path) -> None:
    server = await ServerProcess.start(place, free_port(random.Random()), tmp_path / "log")
    try:
        await server.ready()
        async with AsyncClient(server.url) as client:
            run = (await client.start(WAITS))["run"]
            for _ in range(3):
                assert (await client.cancel(run))["status"] in ("cancelling", "cancelled")
            with pytest.raises(RunFailed, match="was cancelled"):
                await client.wait_for(run)
            assert await client.cancel(run) == {"run": run, "cancelled": True, "status": "cancelled"}
            first, again = [await weft_cancel(server.url, run) for _ in range(2)]
            assert first == again and first[0] == 0, first
            done = (await client.start(ENDS))["run"]
            assert (await client.wait_for(done))["status"] == "succeeded"
            with pytest.raises(ApiError) as refused:
                await client.cancel(done)
            assert (refused.value.status, refused.value.code) == (409, "run_ended")
            code, said = await weft_cancel(server.url, done)
            assert code != 0 and "already ended" in said, said
    finally:
        await server.clean_up()

"""SQL on SQLite files runs in processes of its own: what it does to itself, it does not do to the server."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.server import ServerProcess, free_port
from tests.support.sql_children import is_alive, is_computing, sql_children
from tests.support.until import until

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
LARGE = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000) "
    "SELECT i, hex(randomblob(180)) AS text FROM n"
)
IN_MEMORY = f"SELECT {', '.join(f'hex(zeroblob(2000000 - {n}))' for n in range(100))}"  # 400 MB in one row
ROWS = 400_000
FILL = (
    f"INSERT INTO rows WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {ROWS}) "
    "SELECT i, hex(randomblob(20)) FROM n"
)
GROWTH_MAX = 128 * 1024  # KiB of the server, for answers of 4 MiB one after another; a row in memory has 400,000


def document(query: str, *, read_only: bool = True, **policy: Any) -> dict[str, Any]:
    params = {"database": "shop.db", "query": query, "read_only": read_only, "max_rows": 10_000, "timeout_s": 300}
    return {
        "format": "weft/1",
        "name": "sql",
        "blocks": {"start": {"type": "start"}, "ask": {"type": "sql", "params": params, "policy": policy}},
        "edges": [{"source": "start", "target": "ask"}],
    }


class Asked:
    """A server on the files of `folder`, with the child processes that it has."""

    def __init__(self, server: ServerProcess, client: httpx.AsyncClient, folder: Path) -> None:
        self.server = server
        self._client = client
        self.file = folder / "shop.db"

    async def begin(self, query: str, **more: Any) -> str:
        response = await self._client.post("/api/runs", json={"document": document(query, **more)})
        assert response.status_code == 202, response.text
        run: str = response.json()["run"]
        return run

    async def state(self, run: str) -> dict[str, Any]:
        response = await self._client.get(f"/api/runs/{run}")
        assert response.status_code == 200, response.text
        state: dict[str, Any] = response.json()
        return state

    async def ended(self, run: str) -> dict[str, Any]:
        async def look() -> dict[str, Any] | None:
            state = await self.state(run)
            return state if state["status"] not in ("queued", "running") else None

        return await until(look)

    async def cancel(self, run: str) -> None:
        response = await self._client.post(f"/api/runs/{run}/cancel", json={})
        assert response.status_code in (200, 202), response.text

    async def child(self) -> int:
        (pid,) = await until(lambda: sql_children(self.server.pid))
        return pid

    async def is_written(self) -> None:
        """A query is changing the file, and pages of the change are in it already."""
        before = self.file.stat().st_size
        await until(lambda: self.file.stat().st_size > before + 100_000)

    def memory_kib(self) -> int:
        """The most that the server has had."""
        lines = Path(f"/proc/{self.server.pid}/status").read_text(encoding="ascii").splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


@pytest.fixture
async def asked(tmp_path: Path) -> AsyncIterator[Asked]:
    folder = tmp_path / "databases"
    folder.mkdir()
    with closing(sqlite3.connect(folder / "shop.db")) as db:
        db.execute("CREATE TABLE rows (n INTEGER, text TEXT)")
    server = await ServerProcess.start(tmp_path / "weft.db", free_port(random.Random()), tmp_path / "log")
    try:
        await server.ready()
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            yield Asked(server, client, folder)
    finally:
        await server.clean_up()


async def test_queries_without_an_end_and_large_answers_leave_the_server_alone(asked: Asked) -> None:
    small = await asked.ended(await asked.begin("SELECT 1 AS n"))
    assert small["status"] == "succeeded", small
    before = asked.memory_kib()
    endless = [await asked.begin(ENDLESS) for _ in range(4)]
    await until(lambda: len(sql_children(asked.server.pid)) >= 4)
    for _ in range(8):
        ended = await asked.ended(await asked.begin(LARGE))
        assert ended["status"] == "succeeded", ended
    too_large = await asked.ended(await asked.begin(IN_MEMORY))
    assert too_large["error"]["code"] == "sql_too_large", too_large
    assert asked.memory_kib() - before < GROWTH_MAX
    assert [(await asked.state(run))["status"] for run in endless] == ["running"] * 4  # all this was beside them
    children = sql_children(asked.server.pid)
    for run in endless:
        await asked.cancel(run)
        assert (await asked.ended(run))["status"] == "cancelled"
    await until(lambda: sum(map(is_alive, children)) <= len(children) - 4)


async def test_a_crash_is_one_attempt_and_nothing_is_changed_twice(asked: Asked) -> None:
    once = await asked.begin(ENDLESS, retry={"max_attempts": 1})
    pid = await asked.child()
    await until(lambda: is_computing(pid))
    os.kill(pid, signal.SIGSEGV)
    crashed = await asked.ended(once)
    assert (crashed["status"], crashed["error"]["code"]) == ("failed", "sql_crashed"), crashed
    assert "SIGSEGV" in crashed["error"]["message"]

    again = await asked.begin(FILL, read_only=False)
    await asked.is_written()
    os.kill(await asked.child(), signal.SIGSEGV)
    assert (await asked.ended(again))["status"] == "succeeded"
    with closing(sqlite3.connect(asked.file)) as db:
        assert db.execute("SELECT count(*), count(DISTINCT n) FROM rows").fetchone() == (ROWS, ROWS)


async def test_the_processes_end_with_a_server_that_is_killed(asked: Asked) -> None:
    await asked.begin(ENDLESS)
    await asked.begin(FILL.replace(str(ROWS), str(10**9)), read_only=False)
    await asked.is_written()
    children = await until(lambda: found if len(found := sql_children(asked.server.pid)) == 2 else None)
    os.kill(asked.server.pid, signal.SIGKILL)  # it alone
    await until(lambda: not any(map(is_alive, children)))
    with closing(sqlite3.connect(asked.file)) as db:
        assert db.execute("SELECT count(*) FROM rows").fetchone() == (0,)


SCRIPT = """
import asyncio, sys
import weft

document = {document!r}
print("a program without a guard", flush=True)

async def main():
    async with weft.open(sqlite_folders=[{folder!r}]) as engine:
        run = await engine.run(document, timeout_s=60)
        print(run.status, run.output, flush=True)

asyncio.run(main())
"""


def test_a_program_that_embeds_weft_is_not_run_twice(tmp_path: Path) -> None:
    """A child process does not import it."""
    sqlite3.connect(tmp_path / "shop.db").close()
    script = tmp_path / "program.py"
    script.write_text(SCRIPT.format(document=document("SELECT 6 * 7 AS n"), folder=str(tmp_path)))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=100)
    lines = done.stdout.splitlines()
    assert lines[0] == "a program without a guard" and len(lines) == 2, done.stdout
    assert lines[1].startswith("succeeded") and "'n': 42" in lines[1]
    assert done.stderr == ""

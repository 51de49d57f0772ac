"""A run that changes files at an SFTP server, killed at each commit: each change is made once, also where other
programs take the files away and put new ones in their places. No one is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.engine import Engine
from executor.open.testing.crashes import killer
from executor.open.testing.engines import BEGIN_MS, LEASE_MS, SECRET, ManualClock
from executor.open.testing.process import DONE, ERROR_FILE, in_child
from tests.support.documents import chain
from tests.support.runs import ended
from tests.support.sftp import Sftp, sftp

pytestmark = pytest.mark.proof

COMMITS_MAX = 60


class Process:
    """The `nth` process on this database. It is killed by `fault`, or plays the run until it has ended."""

    def __init__(self, path: Path, server: Sftp, nth: int, fault: Callable[[str], None] | None = None) -> None:
        self._path, self._server, self._nth, self._fault = path, server, nth, fault
        self._armed = False

    def _point(self, name: str) -> None:
        if self._armed and self._fault is not None:
            self._fault(name)

    async def work(self) -> None:
        sandbox = Sandbox(threads=1)
        engine = await Engine.open(
            SQLiteStore(self._path, fault=self._point),
            registry=Registry.load(sandbox=sandbox),
            services=Services(sandbox=sandbox, http=GuardedClient(("127.0.0.1",))),
            secret=SECRET,
            clock=ManualClock(BEGIN_MS + self._nth * 2 * LEASE_MS),
            lease_ms=LEASE_MS,
        )
        try:
            if self._nth == 0:
                await engine.connections.put("files", self._server.connection(), [self._server.place])
            self._armed = True
            run = (await engine.submit(changing(self._server.place), idempotency_key="once")).run
            view = await ended(engine, run)
            assert view.status == "succeeded", view.error
        finally:
            self._armed = False
            await engine.close(grace_s=0)


def changing(place: str) -> dict[str, Any]:
    def at(operation: str, path: str, **more: str) -> dict[str, Any]:
        given = {"operation": operation, "server": place, "connection": "files", "path": path, **more}
        return {"type": "sftp", "params": given}

    put, move = at("write", "/out/a.csv", content="a,b\n"), at("move", "/in/m", to="/done/m")
    return chain("put", "move", "drop", put=put, move=move, drop=at("delete", "/in/d"))


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.timeout(300)
async def test_killed_at_every_commit(moment: Any, tmp_path: Path) -> None:
    async with sftp(tmp_path / "files") as server:
        server.others = True
        for commit in range(1, COMMITS_MAX):
            rmtree(server.root)
            for folder in ("in", "out", "done"):
                (server.root / folder).mkdir(parents=True)
            for name in ("m", "d"):
                (server.root / "in" / name).write_text("it")
            database = tmp_path / f"{commit}.db"
            code = await in_child(Process(database, server, 0, killer(commit, moment)).work, tmp_path)
            assert code in (DONE, -9), (tmp_path / ERROR_FILE).read_text()
            if code != DONE:
                assert await in_child(Process(database, server, 1).work, tmp_path) == DONE
            left = {str(path.relative_to(server.root)).partition("-")[0]: path.read_text() for path in files(server)}
            assert left == {"taken": "a,b\n", "done/m": "it", "in/m": "a new one", "in/d": "a new one"}, commit
            assert len(files(server)) == 4, f"killed {moment} commit {commit}: written twice"
            if code == DONE:
                break
    assert commit > 8


def files(server: Sftp) -> list[Path]:
    return [path for path in server.root.rglob("*") if path.is_file()]

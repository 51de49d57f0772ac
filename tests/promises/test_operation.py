"""What an operator is shown is true: of idle workers, of a file that several processes use, of a user who has left."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from executor.kernel.store.sqlite.store import SQLiteStore
from executor.service.upkeep import conditions
from server.app import build_engine, create_app
from server.metrics import ProcessMeters
from server.metrics.collect import exposition
from server.settings import Settings
from tests.support.documents import document

BASE = "http://127.0.0.1:8765"
ADMIN = {"authorization": "Bearer the-token"}
HOLDS = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("SELECT 1 FROM runs").fetchall()
print(1, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("work", [True, False])
async def test_an_idle_worker_is_counted(work: bool, tmp_path: Path) -> None:
    settings = Settings(db_path=str(tmp_path / "weft.db"), secret_key="a secret", pools=("default", "gpu"))
    engine = await build_engine(settings, work=work)
    try:
        text = (await exposition(engine, ProcessMeters()))[0].decode()
    finally:
        await engine.close()
    assert "weft_workers 0.0" in text, "it holds no lease"
    for pool in ("default", "gpu"):
        assert (f'weft_worker_pools{{pool="{pool}"}} 1.0' in text) == work


@contextmanager
def opened(database: Path) -> Iterator[int]:
    """By another process; its id."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdout.readline()
    try:
        yield process.pid
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell which processes have a file open")
async def test_an_old_sqlite_is_a_warning_while_several_processes_use_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "weft.db"
    store = SQLiteStore(database)
    await store.open()
    await store.close()
    monkeypatch.setattr(conditions, "FIXED_WAL_RESET", (99, 0, 0))
    with ExitStack() as processes:
        levels = [next(iter(conditions.conditions_of_file(database))).level]
        pids = []
        for _ in range(2):
            pids.append(processes.enter_context(opened(database)))
            found = next(iter(conditions.conditions_of_file(database)))
            levels.append(found.level)
    assert levels == ["ok", "ok", "warning"]
    assert all(str(pid) in found.what for pid in pids)


CRON = {"workflow": "flow", "cron": "0 3 * * *"}
TIMED = {"type": "schedule", "params": {"cron": "0 4 * * *"}}


async def test_schedules_of_a_user_who_is_removed_are_named(tmp_path: Path) -> None:
    settings = Settings(db_path=str(tmp_path / "weft.db"), secret_key="a secret", token="the-token")
    engine = await build_engine(settings, work=False)
    transport = httpx.ASGITransport(app=create_app(settings, engine))
    try:
        async with (
            httpx.AsyncClient(transport=transport, base_url=BASE, headers=ADMIN) as admin,
            httpx.AsyncClient(transport=transport, base_url=BASE, headers={"origin": BASE}) as eve,
        ):
            link = (await admin.post("/api/users", json={"id": "eve", "role": "editor"})).json()["url"]
            signed = await eve.post("/login", json={"code": link.rpartition("#")[2].rpartition("=")[2]})
            assert signed.status_code < 400, signed.text
            timed = document("timed", "s a", blocks={"s": TIMED, "a": {"type": "set", "params": {"value": 1}}})
            flow = document("flow", "start a", blocks={"a": {"type": "set", "params": {"value": 1}}})
            for name, workflow in (("flow", flow), ("timed", timed)):
                saved = await eve.post(f"/api/workflows?name={name}", json=workflow)
                assert saved.status_code == 201, saved.text
            for name in ("hers", "off", "given"):
                assert (await eve.put(f"/api/schedules/{name}", json=CRON)).status_code == 201
            await eve.post("/api/schedules/off/disable")
            await admin.put("/api/schedules/given", json=CRON)
            listed = {each["id"]: each["made_by"] for each in (await admin.get("/api/schedules")).json()["schedules"]}
            assert listed == {
                "given": "server-token",
                "hers": "user:eve",
                "off": "user:eve",
                "timed:s": "user:eve",
            }
            removed = (await admin.delete("/api/users/eve")).json()
            assert removed["schedules"] == ["hers", "timed:s"]
            assert (await admin.get("/api/schedules/hers")).json()["enabled"]
    finally:
        await engine.close()

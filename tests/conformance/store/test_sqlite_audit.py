"""A row of the audit and its change are on disk together, or neither is, wherever the process is killed."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

ADD_USERS = """
import asyncio, os, signal, sys
from executor.kernel.process.acting import Act, acting
from executor.kernel.store.topics.people import UserRow
from executor.kernel.store.sqlite.store import SQLiteStore

left = int(sys.argv[3])

def fault(name):
    global left
    if name == sys.argv[2]:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

async def add(store, id):
    with acting(Act("user:ada", "session", "users.add", id, 0)):
        await store.put_user(UserRow(id, id, "viewer", 0))
    print(id, flush=True)

async def main():
    store = SQLiteStore(sys.argv[1], fault=fault)
    await store.open()
    for group in range(20):
        await asyncio.gather(*(add(store, f"u{group}-{n}") for n in range(5)))

asyncio.run(main())
"""


@pytest.mark.parametrize("point", ["write.audited", "tx.group.before_commit", "tx.group.after_commit"])
def test_killed_at(point: str, tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    command = [sys.executable, "-c", ADD_USERS, str(path), point, "23" if point == "write.audited" else "4"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    with contextlib.closing(sqlite3.connect(path)) as db:
        users = {id for (id,) in db.execute("SELECT id FROM users")}
        rows = db.execute("SELECT n, object, hash FROM audit ORDER BY n").fetchall()
        assert db.execute("SELECT n, hash FROM audit_head").fetchall() == [(rows[-1][0], rows[-1][2])]
    assert {object for _, object, _ in rows} == users and len(rows) == len(users)
    assert set(ended.stdout.split()) <= users

"""kill -9 while `weft secret rekey` is at work, again and again, until it is done."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import httpx
import pytest

from executor.blocks.vault.sealing import Keys
from executor.kernel.store.topics.secrets import SecretRow
from tests.support.server import SyncServerProcess
from tests.support.size import size

OLD, NEW = "the old key of this server", "the new key of this server"
COUNT = size(120, 500)
KILLS_MAX = size(3, 6)


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_secrets_are_readable_however_often_rekey_is_killed(tmp_path: Path) -> None:
    server = SyncServerProcess(tmp_path, {"WEFT_SECRET_KEY": OLD})
    with httpx.Client(base_url=server.url) as client:
        for n in range(COUNT):
            client.put(f"/api/secrets/KEY_{n}", json={"value": f"the value {n}", "hosts": []}).raise_for_status()
    server.stop()
    new, both = Keys(digest(NEW)), Keys(digest(NEW), digest(OLD))
    kills = interrupted = 0
    while True:
        server = SyncServerProcess(tmp_path, {"WEFT_SECRET_KEY": NEW, "WEFT_OLD_SECRET_KEY": OLD})
        before = resealed(tmp_path, new)
        if kills == KILLS_MAX:
            left = httpx.post(f"{server.url}/api/secrets/rekey", timeout=60).raise_for_status().json()["resealed"]
            assert left == COUNT - before
            server.stop()
            break
        asking = threading.Thread(target=rekey, args=(server.url,))
        asking.start()
        while resealed(tmp_path, new) == before < COUNT:
            time.sleep(0.001)
        server.kill()
        asking.join()
        kills += 1
        interrupted += before < resealed(tmp_path, new) < COUNT
        assert [both.open(row) for row in rows(tmp_path)] == [f"the value {n}" for n in range(COUNT)]
        if resealed(tmp_path, new) == COUNT:
            break
    assert interrupted
    assert [new.open(row) for row in rows(tmp_path)] == [f"the value {n}" for n in range(COUNT)]


def rekey(url: str) -> None:
    with suppress(httpx.TransportError):  # it is killed
        httpx.post(f"{url}/api/secrets/rekey", timeout=60)


def rows(folder: Path) -> list[SecretRow]:
    with closing(sqlite3.connect(folder / "weft.db", timeout=30)) as db:
        found = db.execute(
            "SELECT name, version, sealed, key_id FROM secrets ORDER BY CAST(substr(name, 5) AS INTEGER)"
        )
        return [SecretRow(name, version, sealed, key_id, (), "", 0) for name, version, sealed, key_id in found]


def resealed(folder: Path, keys: Keys) -> int:
    with closing(sqlite3.connect(folder / "weft.db", timeout=30)) as db:
        found: int = db.execute("SELECT count(*) FROM secrets WHERE key_id = ?", (keys.id,)).fetchone()[0]
    return found


def digest(text: str) -> bytes:
    """The key that a server makes of WEFT_SECRET_KEY."""
    return hashlib.sha256(text.encode()).digest()

"""What a killed backup, restore, export or copy of a database leaves is removed by the next one in the folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from executor.kernel.store.sqlite.store import SQLiteStore
from executor.service.upkeep.backup import Draft
from tests.support.documents import chain, value
from tests.support.runs import engine_on
from tests.support.server import ROOT

Command = Callable[[Path, Path, Any], list[str]]
COMMANDS: dict[str, Command] = {
    "backup": lambda db, target, _: ["backup", str(target), "--db", str(db)],
    "restore": lambda db, target, _: ["restore", str(db), "--db", str(target)],
    "export": lambda db, target, _: ["export", "chain", "--node", "a", "--to", str(target), "--db", str(db)],
    "migrate-store": lambda db, target, postgres: ["migrate-store", postgres, str(target)],
}


def weft(*arguments: str) -> subprocess.Popen[bytes]:
    environ = {name: text for name, text in os.environ.items() if not name.startswith("WEFT_")}
    return subprocess.Popen([sys.executable, "-m", "server", *arguments], cwd=ROOT, env=environ)


def kill_in_the_middle(command: list[str], folder: Path) -> None:
    """kill -9 as soon as there is a draft."""
    process = weft(*command)
    while process.poll() is None and not list(folder.glob("*.part")):
        time.sleep(0.0005)
    process.send_signal(signal.SIGKILL)
    assert process.wait(30) == -9, "it ended before there was a draft"


@pytest.mark.parametrize("name", COMMANDS)
async def test_the_next_one_removes_what_a_killed_one_left(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    store: Any = SQLiteStore(tmp_path / "weft.db")
    postgres = None
    if name == "migrate-store":
        pytest.importorskip("psycopg")
        from executor.kernel.store.postgres.store import PostgresStore

        postgres = request.getfixturevalue("postgres")
        store = PostgresStore(postgres)
    async with engine_on(store) as engine:
        saved = await engine.workflows.save(chain("a", a=value("x" * 500_000)))
        for _ in range(8):
            assert (await engine.run(saved.name, timeout_s=60)).status == "succeeded"
    folder = tmp_path / "folder"
    folder.mkdir()
    command = COMMANDS[name](tmp_path / "weft.db", folder / "target.db", postgres)
    kill_in_the_middle(command, folder)
    assert not (folder / "target.db").exists()
    left = {path.name for path in folder.iterdir()}
    assert left
    other = Draft(folder / "other.db")  # at work
    own = folder / "thesis.part"
    own.write_text("of another program")
    assert weft(*command).wait(120) == 0
    assert not left & {path.name for path in folder.iterdir()}
    assert other.path.exists() and own.exists()
    other.close()
    assert {path.name for path in folder.iterdir()} == {"target.db", "thesis.part"}

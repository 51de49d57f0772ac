"""A database with a bit of everything in it, made once by a real engine; each test gets a copy to read or spoil."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

from executor.kernel.store.sqlite.reading import SQLiteReading, open_reading
from executor.open.engine import Engine
from server.app import build_engine
from server.settings import Settings
from tests.support.documents import document
from tests.support.spoil import let_change, taken_apart

SECRET_KEY = "a secret for tests only"


class Copy:
    """A copy of the database. `run` names the runs in it; `spoil` changes it behind the back of the checksums."""

    def __init__(self, path: Path, run: dict[str, str]) -> None:
        self.path = path
        self.run = run

    def spoil(self, sql: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.path)) as db, db:
            let_change(db)
            with taken_apart(db) if "loose_events" in sql else nullcontext():
                before = db.total_changes
                assert db.execute(sql, values).rowcount or db.total_changes > before, "nothing was spoilt"

    def read(self) -> SQLiteReading:
        return open_reading(self.path)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    folder = tmp_path_factory.mktemp("made")
    return folder / "weft.db", asyncio.run(_make(folder / "weft.db"))


@pytest.fixture
def copy(made: tuple[Path, dict[str, str]], tmp_path: Path) -> Copy:
    path, run = made
    shutil.copy(path, tmp_path / "weft.db")
    return Copy(tmp_path / "weft.db", run)


@pytest.fixture
def db(copy: Copy) -> Iterator[SQLiteReading]:
    with closing(copy.read()) as db:
        yield db


def block(
    type: str, parent: str | None = None, policy: dict[str, Any] | None = None, /, **params: Any
) -> dict[str, Any]:
    return {
        "type": type,
        "name": type,
        "params": params,
        **({"parent": parent} if parent else {}),
        **({"policy": policy} if policy else {}),
    }


async def _make(path: Path) -> dict[str, str]:
    return await make_on(Settings(db_path=str(path), secret_key=SECRET_KEY, allow_private=("127.0.0.1:9",)))


async def make_on(settings: Settings) -> dict[str, str]:
    """Runs of each kind; their ids by name."""
    engine = await build_engine(settings)
    try:
        return {name: await _run(engine, name, data) for name, data in documents().items()}
    finally:
        await engine.close()


async def _run(engine: Engine, name: str, data: dict[str, Any]) -> str:
    stored = name in ("hello", "loops")
    if stored:
        await engine.workflows.save(data)
    submitted = await engine.submit(name if stored else data)
    view = await engine.wait_finished(submitted.run, 60)
    if name == "answered":
        (wait,) = view.waits
        assert wait.link is not None
        await engine.answer(wait.link.rpartition("/")[2], {}, "approve", "Ada")
        view = await engine.wait_finished(submitted.run, 60)
    if name == "cancelled":
        assert view.status == "waiting"
        await engine.cancel(submitted.run, "enough")
        async for _ in engine.follow(submitted.run):
            pass
        view = await engine.runs.view(submitted.run)
    assert view.status in ENDINGS[name], (name, view.status, view.error)
    return submitted.run


ENDINGS = {
    "hello": ("succeeded",),
    "loops": ("succeeded",),
    "big": ("succeeded",),
    "failing": ("failed",),
    "answered": ("succeeded",),
    "asking": ("waiting",),
    "sleeping": ("waiting",),
    "signalled": ("waiting",),
    "cancelled": ("cancelled",),
}


def documents() -> dict[str, dict[str, Any]]:
    flaky = {"retry": {"max_attempts": 2, "initial_ms": 20, "jitter": 0}}
    ask = block("approval", title="All right?")
    return {
        "hello": document("hello", "start greet", blocks={"greet": block("set", value={"text": "hello", "n": 3})}),
        "loops": document(
            "loops",
            "start each",
            "each body say",
            "each fan",
            "fan body work",
            "fan end",
            blocks={
                "each": block("loop", mode="for", count=3),
                "say": block("set", "each", value="<loop.index>"),
                "fan": block("parallel", count=3),
                "work": block("function", "fan", code="return 1"),
                "end": block("set", value="<each.results>"),
            },
        ),
        "big": document("big", "start long", blocks={"long": block("function", code="return 'x'.repeat(300000)")}),
        "failing": document(  # no process listens on port 9
            "failing", "start fail", blocks={"fail": block("http", None, flaky, url="http://127.0.0.1:9/")}
        ),
        "answered": document(
            "answered", "start ask", "ask approve then", blocks={"ask": ask, "then": block("set", value=1)}
        ),
        "asking": document("asking", "start ask", blocks={"ask": ask}),
        "sleeping": document("sleeping", "start sleep", blocks={"sleep": block("wait", seconds=86_400)}),
        "signalled": document("signalled", "start signal", blocks={"signal": block("signal", name="go")}),
        "cancelled": document(
            "cancelled", "start ask", "ask approve after", blocks={"ask": ask, "after": block("set", value=1)}
        ),
    }

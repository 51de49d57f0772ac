"""The engine wires topics: each method has one home, and a few have a shortcut. It opens when its worker has looked."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest

from executor.errors import DatabaseWriteFailed, StoreError
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.embed import open_engine
from executor.open.engine import Engine
from tests.support.runs import engine_on

FOR_EVER_S = 1e6
START: Any = {"format": "weft/1", "name": "start", "blocks": {"start": {"type": "start"}}, "edges": []}

SHORTCUTS = {
    "submit": "runs.submit",
    "run": "runs.run",
    "wait_finished": "runs.wait_finished",
    "cancel": "runs.cancel",
    "follow": "events.follow",
    "stream": "events.stream",
    "answer": "waits.answer",
    "signal": "signals.send",
    "update": "functions.update",
    "query": "functions.query",
}


async def test_shortcuts_lead_to_their_topics() -> None:
    async with open_engine() as engine:
        assert {name for name, value in vars(engine).items() if inspect.isroutine(value)} == set(SHORTCUTS)
        for name, address in SHORTCUTS.items():
            topic, method = address.split(".")
            found = getattr(engine, name)
            assert getattr(found, "__wrapped__", found) == getattr(getattr(engine, topic), method)


def test_the_engine_opens_and_closes_and_does_nothing_else() -> None:
    own = {name for name, value in vars(Engine).items() if inspect.isfunction(value) and not name.startswith("_")}
    assert own == {"stop_working", "close", "healthy", "readable", "ready"}


async def test_a_look_that_fails_does_not_delay_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executor.open.engine.FIRST_CLAIM_S", FOR_EVER_S)
    store = SQLiteStore(tmp_path / "weft.db")

    async def locked(*args: Any, **names: Any) -> list[RunRow]:
        raise DatabaseWriteFailed("the test: locked")

    store.claim = locked  # this store's alone
    async with asyncio.timeout(60), engine_on(store):
        pass


async def test_opening_waits_for_a_look_that_does_not_end_for_so_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executor.open.engine.FIRST_CLAIM_S", 0.01)
    async with asyncio.timeout(60), engine_on(_without_claims(tmp_path)) as engine:
        assert (await engine.runs.row((await engine.submit(START)).run)).status == "queued"


async def test_who_leaves_while_the_engine_opens_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executor.open.engine.FIRST_CLAIM_S", FOR_EVER_S)
    store = _without_claims(tmp_path)
    before = asyncio.all_tasks()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1), engine_on(store):
            pass
    assert asyncio.all_tasks() == before
    with pytest.raises(StoreError, match="closed"):
        await store.ping()


async def test_an_engine_that_does_not_work_looks_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executor.open.engine.FIRST_CLAIM_S", FOR_EVER_S)
    async with asyncio.timeout(60), engine_on(_without_claims(tmp_path), work=False) as engine:
        assert (await engine.runs.row((await engine.submit(START)).run)).status == "queued"


def _without_claims(folder: Path) -> SQLiteStore:
    """A database that takes claims and does not answer them."""
    store = SQLiteStore(folder / "weft.db")

    async def asked(*args: Any, **names: Any) -> list[RunRow]:
        await asyncio.Event().wait()
        raise AssertionError

    store.claim = asked  # this store's alone
    return store

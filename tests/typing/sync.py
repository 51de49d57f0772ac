"""A program without asyncio, as mypy sees it; see traced.py."""

from __future__ import annotations

from collections.abc import Generator
from typing import assert_type

import weft
from executor.kernel.store.run_rows import Record, RunRow
from executor.service.views import RunEvent, RunView
from tests.typing.durable import typed
from weft import Live


@weft.durable(state=int)
async def counting(start: int) -> int:
    return start


@counting.query
def count(state: int) -> str:
    return str(state)


def program() -> None:
    with weft.open_sync("runs.db", workflows=[typed]) as engine:
        assert_type(engine, weft.SyncEngine)
        run = assert_type(engine.run(typed, {"order": "7"}), RunView)
        assert_type(engine.runs.list(), list[RunRow])
        assert_type(engine.stream(run.id), Generator[RunEvent, None, None])
        assert_type(engine.follow(run.id), Generator[list[Record], None, None])
        assert_type(engine.follow(run.id, text=True), Generator[Live, None, None])
        assert_type(engine.query(count, run.id), str)
        engine.run(typed, timeout_s="7")  # type: ignore[arg-type]  # a wrong argument is an error
        _ = engine.chats  # type: ignore[attr-defined]  # not in the stub: only a server uses it
        weft.open_sync(functions=7)  # type: ignore[arg-type]  # the arguments are those of weft.open

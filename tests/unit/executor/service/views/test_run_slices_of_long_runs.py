"""What is shown of a long run is put together in small pieces: between two passes of the event loop there is as much to
do as for a run of a third of its length.

Work is counted in lines of code that were executed, not in time. Slices end at once here.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import executor
from executor.open.engine import Engine
from executor.service.views import run as slices
from tests.support.blocks import Step
from tests.support.cost import no_collector
from tests.support.documents import Json, document
from tests.support.runs import engine_on

SHORT, LONG = 300, 900  # iterations: a page of a journal has 1,000 events, an iteration four
OURS = str(Path(executor.__file__).parent)
ASKED: dict[str, Callable[[Engine, str, str], Awaitable[object]]] = {
    "view": lambda engine, run, other: engine.runs.view(run),
    "graph": lambda engine, run, other: engine.runs.graph(run),
    "state": lambda engine, run, other: engine.history.state(run),
    "state of then": lambda engine, run, other: engine.history.state(run, 1_000),
    "why": lambda engine, run, other: engine.history.why(run),
    "why of a node": lambda engine, run, other: engine.history.why(run, "it"),
    "diff": lambda engine, run, other: engine.history.diff(run, other),
    "node": lambda engine, run, other: engine.runs.node(run, "it@loop#250"),
}


def looped(times: int) -> Json:
    return document(
        "looped",
        "start loop",
        "loop body it",
        blocks={
            "loop": {"type": "loop", "params": {"mode": "for", "count": times, "max": times}},
            "it": {"type": "step", "parent": "loop"},
        },
        settings={"max_executions": 100_000},
    )


class Watch:
    """The most lines of the executor between two passes of the event loop."""

    def __init__(self) -> None:
        self.most = self._lines = 0

    async def during(self, work: Awaitable[object]) -> int:
        passes = asyncio.create_task(self._count())
        await asyncio.sleep(0)
        with no_collector():
            sys.settrace(self._call)
            try:
                await asyncio.ensure_future(work)
            finally:
                sys.settrace(None)
            self.most = max(self.most, self._lines)
            passes.cancel()
        return self.most

    async def _count(self) -> None:
        while True:
            self.most, self._lines = max(self.most, self._lines), 0
            await asyncio.sleep(0)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(OURS) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        self._lines += event == "line"
        return self._line


async def test_what_is_told_of_a_long_run_is_made_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        most: dict[int, dict[str, int]] = {}
        for times in (SHORT, LONG):
            one, other = [(await engine.run(looped(times))).id for _ in range(2)]
            assert (await engine.runs.row(one)).status == "succeeded"
            most[times] = {name: await Watch().during(ask(engine, one, other)) for name, ask in ASKED.items()}
    assert min(most[SHORT].values()) > 0
    grown = {name: (most[SHORT][name], lines) for name, lines in most[LONG].items() if lines > 1.2 * most[SHORT][name]}
    assert not grown, f"lines in one piece of work, of {SHORT} iterations and of {LONG}: {grown}"

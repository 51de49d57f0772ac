"""The bounds of a durable function."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from executor.kernel.journal.codec import data_of
from executor.kernel.run import lane_bounds
from executor.open.testing.engines import engine
from executor.open.testing.play import finish
from tests.support.durable_functions import again


@weft.durable
async def many(steps: int) -> int:
    for n in range(steps):
        await again(str(n))
        if n == 2:
            await weft.sleep(minutes=1)
    return steps


@pytest.mark.parametrize("lanes", [0, 1])
async def test_many_steps_are_logged_once_and_one_too_many_ends_the_function(
    lanes: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lane_bounds, "STEPS_MANY", 3)
    monkeypatch.setattr(lane_bounds, "STEPS_MAX", 6)
    async with engine(workflows=[many], lanes=lanes) as opened:
        for steps, status in ((5, "succeeded"), (6, "failed")):  # the pause is one as well
            caplog.clear()
            run = (await opened.submit(many, steps=steps)).run
            view: Any = await finish(opened, run)
            assert view.status == status
            logged = [data_of(one)["message"] for one in await opened.store.read_events(run) if one.type == "node.log"]
            assert [text for text in logged if "continue_as_new" in text] == logged and len(logged) == 1
            assert sum("continue_as_new" in one.getMessage() for one in caplog.records) == 1
        assert view.error["code"] == "limit_steps" and "continue_as_new" in view.error["hint"]

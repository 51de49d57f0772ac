"""What two runs differ in."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.catalog import BlockSpec
from executor.kernel.handler.base import Done, StepContext
from tests.support.documents import chain
from tests.support.runs import engine_on, settled

pytestmark = pytest.mark.usefixtures("invariants_hold")


class Turn:
    """Block type `step`: puts out the same each time and leaves by the route that the test names."""

    spec = BlockSpec("step", "Turn", "", "flow", handles=("left", "right"))

    def __init__(self) -> None:
        self.route = "left"

    async def run(self, ctx: StepContext) -> Done:
        return Done({"same": True}, route=self.route)


async def test_ends_with_the_same_output_and_another_route_differ(tmp_path: Path) -> None:
    turn = Turn()
    async with engine_on(tmp_path / "weft.db", turn) as engine:
        runs = []
        for route in ("left", "right"):
            turn.route = route
            view = await settled(engine, (await engine.submit(chain("turn"))).run)
            assert view.status == "succeeded"
            runs.append(view.id)
        found = await engine.history.diff(*runs)
        assert [(node.key, node.a.route, node.b.route, node.output) for node in found.nodes] == [
            ("turn", "left", "right", ())
        ]
        assert found.differing == 1 and not found.same

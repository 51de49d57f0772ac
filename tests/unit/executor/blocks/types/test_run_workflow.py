"""run_workflow: what it asks for, and what it hands to the runtime."""

from __future__ import annotations

from typing import Any

import pytest

from executor.blocks.types import run_workflow
from executor.errors import BlockError
from executor.kernel.handler.base import ChildRequest, Suspend
from executor.kernel.store.run_rows import NewRun
from tests.unit.executor.blocks.types.flow import context

MADE = NewRun("c1", "pricing", 3, "hash", b"{}", b"{}", (), 0)


async def _started(params: dict[str, Any]) -> tuple[ChildRequest, Suspend]:
    asked: list[ChildRequest] = []

    async def prepare(request: ChildRequest) -> NewRun:
        asked.append(request)
        return MADE

    outcome = await run_workflow.block.run(context(params, prepare_child=prepare))
    (request,) = asked
    return request, outcome


@pytest.mark.parametrize(
    ("params", "request_"),
    [
        ({"workflow": "pricing"}, ChildRequest("pricing")),
        (
            {"workflow": "pricing", "version": "2", "trigger": "hook", "input": [1]},
            ChildRequest("pricing", None, 2, "hook", [1]),
        ),
        ({"workflow": "", "definition": {"blocks": {}}}, ChildRequest(None, {"blocks": {}})),
        ({"definition": '{"blocks": {}}', "version": ""}, ChildRequest(None, {"blocks": {}})),
    ],
)
async def test_what_it_asks_for(params: dict[str, Any], request_: ChildRequest) -> None:
    request, suspend = await _started(params)
    assert request == request_
    assert suspend == Suspend(
        "child",
        request={"title": "Run of pricing", "run": "c1", "workflow": "pricing", "version": 3},
        child=MADE,
    )


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"workflow": "a", "definition": {"blocks": {}}},
        {"definition": "[1]"},
        {"definition": "no json"},
        {"definition": 5},
        {"workflow": {"name": "a"}},
        {"workflow": "a", "version": 0},
        {"workflow": "a", "version": "latest"},
        {"workflow": "a", "version": 1.5},
        {"workflow": "a", "version": True},
        {"definition": {"blocks": {}}, "version": 1},
    ],
)
async def test_what_it_refuses(params: dict[str, Any]) -> None:
    with pytest.raises(BlockError) as caught:
        await _started(params)
    assert (caught.value.code, caught.value.retryable) == ("params_invalid", False)

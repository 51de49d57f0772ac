"""What a wait asks the runtime to wait for."""

from typing import Any

import pytest

from executor.blocks.types import wait
from executor.kernel.handler.base import Suspend
from tests.unit.executor.blocks.types.pauses import NOW_MS, refused, suspend


@pytest.mark.parametrize(
    ("params", "due_ms"),
    [
        ({"seconds": 0}, NOW_MS),
        ({"seconds": 1.5}, NOW_MS + 1_500),
        ({"seconds": "90"}, NOW_MS + 90_000),
        ({"seconds": "", "until": "2023-11-14T22:13:21Z"}, NOW_MS + 1_000),
        ({"until": "2023-11-14T23:13:21+01:00"}, NOW_MS + 1_000),
        ({"until": "2023-11-14 22:13:21.5"}, NOW_MS + 1_500),
        ({"until": "2023-11-15"}, 1_700_006_400_000),
        ({"until": "1999-01-01T00:00:00Z"}, NOW_MS),
    ],
)
async def test_wait_is_due(params: dict[str, Any], due_ms: int) -> None:
    assert await suspend(wait.block, params) == Suspend("timer", due_ms=due_ms)


@pytest.mark.parametrize(
    "params",
    [{}, {"seconds": -1}, {"seconds": "soon"}, {"seconds": True}, {"seconds": 1e12}, {"seconds": float("nan")},
     {"until": "tomorrow"}, {"until": "2023-13-01"}, {"until": 5}, {"seconds": 1, "until": "2030-01-01"},
     {"until": "9999-12-31T23:59:59-01:00"}, {"until": "9999-12-31T23:59:59.999999Z"}],
)  # fmt: skip
async def test_wait_refuses(params: dict[str, Any]) -> None:
    assert await refused(wait.block, params)

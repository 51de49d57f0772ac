"""What a signal asks the runtime to wait for."""

from typing import Any

import pytest

from executor.blocks.types import signal
from executor.kernel.handler.base import Suspend
from tests.unit.executor.blocks.types.pauses import NOW_MS, refused, suspend


async def test_signal() -> None:
    assert await suspend(
        signal.block, {"name": "paid", "correlation": 42, "expires_in_s": 10, "on_expire": "skip"}
    ) == (
        Suspend(
            "signal",
            request={"title": "paid", "correlation": "42"},
            due_ms=NOW_MS + 10_000,
            on_expire="skip",
            name="paid",
            correlation="42",
        )
    )
    plain = await suspend(signal.block, {"name": "paid", "correlation": ""})
    assert (plain.correlation, plain.due_ms, plain.on_expire) == (None, None, "fail")


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": ""},
        {"name": {}},
        {"name": "a", "on_expire": "approve"},
        {"name": "a\0"},
        {"name": "a", "correlation": "b\0"},
    ],
)
async def test_signal_refuses(params: dict[str, Any]) -> None:
    assert await refused(signal.block, params)

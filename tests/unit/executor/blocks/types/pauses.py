"""What a block asks the runtime to wait for, or why it refuses."""

from typing import Any

import pytest

from executor.errors import BlockError
from executor.kernel.handler.base import Suspend
from tests.unit.executor.blocks.types.flow import context

NOW_MS = 1_700_000_000_000


async def suspend(block: Any, params: dict[str, Any]) -> Suspend:
    outcome = await block.run(context(params, now_ms=NOW_MS))
    assert isinstance(outcome, Suspend)
    return outcome


async def refused(block: Any, params: dict[str, Any]) -> str:
    with pytest.raises(BlockError) as caught:
        await suspend(block, params)
    assert (caught.value.code, caught.value.retryable) == ("params_invalid", False)
    return caught.value.message

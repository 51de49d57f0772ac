from typing import Any

import pytest

from executor.blocks.base import Done
from executor.blocks.set import block
from tests.unit.executor.blocks.flow import context


@pytest.mark.parametrize("value", [None, 0, "", [1], {"a": {"b": None}}])
async def test_the_output_is_the_value(value: Any) -> None:
    assert await block.run(context({"value": value})) == Done(value)


async def test_no_value_is_null() -> None:
    assert await block.run(context({})) == Done(None)

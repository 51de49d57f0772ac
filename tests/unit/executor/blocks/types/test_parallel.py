from typing import Any

import pytest

from compiler.catalog import BRANCHES_MAX
from executor.blocks.types.parallel import block
from executor.errors import BlockError
from executor.kernel.handler import base
from executor.kernel.handler.base import Sized
from tests.unit.executor.blocks.types.flow import context


async def start(**params: Any) -> Any:
    return await block.run(context(params, "parallel:start"))


async def test_count() -> None:
    assert await start(mode="count", count=3) == Sized(3)
    assert await start(count="0") == Sized(0)


async def test_each() -> None:
    assert await start(mode="each", items=["p", "q"]) == Sized(2, ["p", "q"])
    assert await start(items={"k": 1}) == Sized(1, [["k", 1]])
    assert await start(mode="each", items="[]") == Sized(0, [])


async def test_the_end_is_the_end() -> None:
    assert await block.run(context({"mode": "count"}, "parallel:end", turn=3, count=9)) == base.Tested(False)


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"mode": "count"}, "loop_count"),
        ({"mode": "count", "count": -1}, "loop_count"),
        ({"mode": "each"}, "loop_items"),
        ({"mode": "each", "items": ""}, "loop_items"),
        ({"mode": "count", "count": BRANCHES_MAX + 1}, "loop_limit"),
        ({"mode": "all", "count": 1}, "params_invalid"),
    ],
)
async def test_what_is_refused(params: dict[str, Any], code: str) -> None:
    with pytest.raises(BlockError) as caught:
        await start(**params)
    assert (caught.value.code, caught.value.retryable) == (code, False)


async def test_the_most_branches() -> None:
    assert await start(mode="count", count=BRANCHES_MAX) == Sized(BRANCHES_MAX)

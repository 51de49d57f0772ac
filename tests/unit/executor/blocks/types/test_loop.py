from typing import Any

import pytest

from compiler.catalog import LOOP_MAX_DEFAULT
from executor.blocks.types.loop import block
from executor.errors import BlockError
from executor.kernel.handler import base
from executor.kernel.handler.base import Sized
from tests.unit.executor.blocks.types.flow import Throws, context, js

TEST = js("test")


async def start(test: Any = None, **params: Any) -> Any:
    return await block.run(context(params, "loop:start", js={"test": test}))


async def end(turn: int, test: Any = None, *, broke: bool = False, count: int = 0, **params: Any) -> Any:
    return await block.run(context(params, "loop:end", js={"test": test}, turn=turn, broke=broke, count=count))


def refused(code: str) -> Any:
    return pytest.raises(BlockError, check=lambda e: e.code == code and not e.retryable)


async def test_for() -> None:
    assert await start(mode="for", count=3) == Sized(3)
    assert await start(mode="for", count="3") == Sized(3)
    assert await start(mode="for", count=0) == Sized(0)
    assert [await end(turn, mode="for", count=3) for turn in (1, 2, 3)] == [
        base.Tested(True),
        base.Tested(True),
        base.Tested(False),
    ]


async def test_each() -> None:
    assert await start(mode="each", items={"a": 1}) == Sized(1, [["a", 1]])
    assert await start(mode="each", items="['u','v']") == Sized(2, ["u", "v"])
    assert await start(mode="each", items=[]) == Sized(0, [])
    assert await end(1, mode="each", count=2) == base.Tested(True)
    assert await end(2, mode="each", count=2) == base.Tested(False)


async def test_while_is_tested_before_and_after() -> None:
    assert await start(True, mode="while", condition=TEST) == Sized(1)
    assert await start(0, mode="while", condition=TEST) == Sized(0)
    assert await end(1, "x", mode="while", condition=TEST) == base.Tested(True)
    assert await end(1, "", mode="while", condition=TEST) == base.Tested(False)


async def test_until_and_do_while_are_tested_after_only() -> None:
    for mode in ("until", "do_while"):
        assert await start(Throws("not asked"), mode=mode, condition=TEST) == Sized(1)
        for holds in (True, False):
            assert await end(1, holds, mode=mode, condition=TEST) == base.Tested(holds is (mode == "do_while"))


async def test_break_leaves_without_a_test() -> None:
    assert await end(1, Throws("not asked"), broke=True, mode="while", condition=TEST) == base.Tested(False)
    assert await end(1, broke=True, mode="for", count=3) == base.Tested(False)


async def test_the_bound_and_one_past_it() -> None:
    assert await start(mode="for", count=5, max=5) == Sized(5)
    assert await start(mode="each", items=[0] * 5, max="5") == Sized(5, [0] * 5)
    assert await start(mode="for", count=LOOP_MAX_DEFAULT) == Sized(LOOP_MAX_DEFAULT)
    too_many: list[dict[str, Any]] = [
        {"mode": "for", "count": 6, "max": 5},
        {"mode": "each", "items": [0] * 6, "max": 5},
        {"mode": "for", "count": LOOP_MAX_DEFAULT + 1},
    ]
    for given in too_many:
        with refused("loop_limit"):
            await start(**given)
    assert await end(4, True, mode="while", condition=TEST, max=5) == base.Tested(True)
    assert await end(5, False, mode="while", condition=TEST, max=5) == base.Tested(False)
    with refused("loop_limit"):
        await end(5, True, mode="while", condition=TEST, max=5)
    with refused("loop_limit"):
        await end(LOOP_MAX_DEFAULT, True, mode="until", condition=False)
    with refused("loop_limit"):
        await start(True, mode="while", condition=TEST, max=0)


async def test_on_max_exit_leaves_with_what_there_is() -> None:
    assert await start(mode="for", count=6, max=5, on_max="exit") == Sized(5)
    assert (await start(mode="each", items=[0] * 6, max=5, on_max="exit")).count == 5
    assert await end(5, True, mode="while", condition=TEST, max=5, on_max="exit") == base.Tested(False)


@pytest.mark.parametrize("count", [-1, "-1", 1.5, None, "many", True])
async def test_counts_that_are_none(count: Any) -> None:
    with refused("loop_count"):
        await start(mode="for", count=count)
    if count is not None:
        with refused("loop_count"):
            await start(mode="for", count=1, max=count)


@pytest.mark.parametrize("items", ["", None, 3, "x"])
async def test_collections_that_are_none(items: Any) -> None:
    with refused("loop_items"):
        await start(mode="each", items=items)


async def test_a_test_that_throws_fails_the_loop() -> None:
    for run in (
        start(Throws("boom"), mode="while", condition=TEST),
        end(1, Throws("boom"), mode="until", condition=TEST),
    ):
        with pytest.raises(BlockError, match="Evaluation error in loop condition: boom") as caught:
            await run
        assert caught.value.code == "expression_failed"


@pytest.mark.parametrize("condition", [None, "", "  "])
async def test_no_condition(condition: Any) -> None:
    with refused("params_invalid"):
        await start(mode="while", condition=condition)


async def test_literal_conditions() -> None:
    assert await start(mode="while", condition=False) == Sized(0)
    assert await block.run(
        context({"mode": "while", "condition": "1 > 2"}, "loop:start", js={"1 > 2": False})
    ) == Sized(0)


@pytest.mark.parametrize("mode", [None, "forever"])
async def test_a_kind_that_is_none(mode: Any) -> None:
    with refused("params_invalid"):
        await start(mode=mode, count=1)

"""Numbers stay what they are: blocks keep every digit, and JavaScript refuses what it would change."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from executor.open.testing.engines import engine
from executor.open.testing.play import finish
from executor.service.views import RunView
from tests.support.documents import chain

# Ids of 64 bits that JavaScript reads as one number.
IDS = [2**60 + 1, 2**60 + 3]
PRICE = 310.0


@weft.step(effect="none")
def same(x: Any) -> Any:
    return x


@weft.step(effect="none")
def fails(x: Any) -> Any:
    raise ValueError(x)


@weft.workflow
async def side_by_side(ids: list[Any]) -> Any:
    return await weft.each(ids, same)


@weft.workflow
async def in_a_loop(ids: list[Any]) -> Any:
    return await weft.each(ids, same, one_at_a_time=True)


@weft.workflow
async def of_an_inner_list(ids: list[Any]) -> Any:
    async def inner(one: Any) -> Any:
        async def pair(other: Any) -> Any:
            return [one, other]

        return await weft.each(ids, pair)

    return await weft.each(ids, inner)


@weft.workflow
async def chosen(ids: list[Any]) -> Any:
    then = await weft.when((await same(ids[0]) != None) & (ids[0] < ids[1]), lambda: same(ids[0]), lambda: 0)  # noqa: E711 - it is compared with null
    otherwise = await weft.when(await same("a") == "b", lambda: 0, lambda: ids[1])
    return [then, otherwise]


@weft.workflow
async def attempted(ids: list[Any]) -> Any:
    done = await weft.attempt(lambda: same(ids[0]), lambda error: 0)
    failed = await weft.attempt(lambda: fails(1), lambda error: ids[1])
    cleaned = await weft.attempt(lambda: same(ids[2]), finally_=lambda: same(0))
    return [done, failed, cleaned]


WORKFLOWS = [side_by_side, in_a_loop, of_an_inner_list, chosen, attempted]


async def ended(document: Any, **input: Any) -> RunView:
    async with engine(workflows=WORKFLOWS) as opened:
        return await finish(opened, (await opened.submit(document, input=input)).run)


@pytest.mark.parametrize(
    ("flow", "output"),
    [
        (side_by_side, [*IDS, PRICE]),
        (in_a_loop, [*IDS, PRICE]),
        (of_an_inner_list, [[[one, other] for other in (*IDS, PRICE)] for one in (*IDS, PRICE)]),
        (chosen, IDS),
        (attempted, [*IDS, PRICE]),
    ],
)
async def test_a_workflow_function_keeps_every_number(flow: Any, output: Any) -> None:
    run = await ended(flow.document(), ids=[*IDS, PRICE])

    assert (run.status, run.output) == ("succeeded", output)
    assert repr(run.output) == repr(output)  # 310.0 is not 310
    assert "function" not in {block["type"] for block in flow.document()["blocks"].values()}


async def test_failed_items_stand_where_they_failed() -> None:
    @weft.step(effect="none", name="numbers.odd")
    def odd(x: int) -> int:
        if x % 2 == 0:
            raise ValueError("even")
        return x

    @weft.workflow
    async def collected(ids: list[int]) -> Any:
        return [await weft.each(ids, odd, on_error="continue"), await weft.each(ids, odd, on_error="collect")]

    async with engine(workflows=[collected]) as opened:
        run = await finish(opened, (await opened.submit(collected.document(), input={"ids": [IDS[0], 2]})).run)

    [continued, [first, second]] = run.output
    assert (continued, first) == ([IDS[0], None], IDS[0])
    assert second["error"]["message"].endswith("even")


@pytest.mark.parametrize("value", [IDS[0], -IDS[0], {"items": [{"id": 5}, {"id": IDS[1]}]}])
@pytest.mark.parametrize(
    ("type", "params"),
    [
        ("function", {"code": "return <start.x>;"}),
        ("condition", {"cases": [{"id": "a", "when": "[1, 2].includes(<start.x>)"}, {"id": "b"}]}),
    ],
)
async def test_a_number_that_javascript_would_change_is_an_error(type: str, params: Any, value: Any) -> None:
    run = await ended(chain("a", a={"type": type, "params": params}), x=value)

    assert run.error is not None
    assert (run.status, run.error["code"]) == ("failed", "number_inexact")
    number, at = (value, "") if isinstance(value, int) else (IDS[1], ", at .items[1].id")
    assert f"<start.x> has the number {number}{at}, which JavaScript would change to" in run.error["message"]
    assert "Pass it as text" in run.error["hint"]


@pytest.mark.parametrize("value", [2**53, -(2**53), 10**17, "1152921504606846977", 0.1234567890123456, {"a": 1.5e300}])
async def test_what_javascript_keeps_goes_in_and_comes_out(value: Any) -> None:
    run = await ended(chain("a", a={"type": "function", "params": {"code": "return <start.x>;"}}), x=value)

    assert (run.status, run.output["result"]) == ("succeeded", value)


def test_a_condition_with_a_number_that_javascript_would_change_is_refused() -> None:
    @weft.workflow
    async def compared(x: int) -> Any:
        return await weft.when(x == 2**60 + 1, lambda: same(x))

    with pytest.raises(
        weft.DefinitionError, match=r"line \d+: conditions keep whole numbers up to 2\^53: compare 115292150"
    ):
        compared.document()

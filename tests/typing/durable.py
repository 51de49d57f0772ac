"""Durable functions, as mypy sees them; see traced.py."""

from __future__ import annotations

from typing import Any, assert_type

import weft
from weft import Answer, FirstCompleted


@weft.step
async def charge(order: str) -> int:
    return len(order)


@weft.durable
async def other(order: str) -> bytes:
    return order.encode()


async def one(n: int) -> str:
    return str(n)


@weft.durable
async def typed(order: str) -> str:
    assert_type(await charge(order), int)
    assert_type(await other(order), bytes)
    assert_type(await weft.gather(charge(order), other(order)), tuple[int, bytes])
    assert_type(await weft.gather([1, 2], one, at_most=3), list[str])
    assert_type(await weft.first(charge(order), weft.signal("paid", type=str)), FirstCompleted[int | str])
    assert_type(await weft.approve("Send?"), Answer[Any])
    assert_type(await weft.form("How many?", type=int), int)
    await charge(7)  # type: ignore[arg-type]  # a wrong argument is an error
    charge(order)  # type: ignore[unused-coroutine]  # and so is a missing await
    return "typed"

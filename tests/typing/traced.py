"""Workflow functions, as mypy sees them. Nothing here is run: `make lint` checks it, and a `type: ignore` without an
error is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

import weft


@dataclass
class Item:
    what: str
    price: float


@weft.step
def total(prices: list[float]) -> float:
    return sum(prices)


@weft.step
async def fetch(key: int) -> float:
    return key / 2


@weft.step(effect="read", retries=2, timeout=5)
async def receipts(trip: str) -> list[Item]:
    return [Item(trip, 1)]


@weft.step(effect="none", cache=60)
def price(item: Item, factor: float = 1) -> float:
    return item.price * factor


@weft.step
def pay(ctx: weft.StepContext, trip: str, amount: float) -> str:
    return f"{ctx.idempotency_key} {trip} {amount}"


@weft.step(retries=3)
async def tell(ctx: weft.StepContext, text: str) -> bool:
    return bool(ctx.run_id and text)


@weft.step
def first_of_any(value: Any, other: int) -> str:
    return f"{value} {other} {assert_type(weft.context(), weft.StepContext).key}"


@weft.step
def of_object(value: object) -> str:
    return str(value)


@weft.workflow
async def trip(name: str, limit: float) -> str:
    items = assert_type(await receipts(name), list[Item])
    amount = await total(assert_type(await weft.each(items, lambda item: price(item, 2)), list[float]))
    assert_type(await weft.each(items, price), list[float])
    assert_type(await weft.each([1, 2], lambda key: fetch(key + 1)), list[float])
    assert_type(await total(await weft.each([1, 2], lambda key: fetch(key + 1))), float)
    assert_type(await weft.each([1, 2], fetch), list[float])
    assert_type(await weft.each([1, 2], fetch, on_error="continue", concurrency=2), list[float | None])
    assert_type(await weft.each(items, price, on_error="collect"), list[float | dict[str, Any]])
    assert_type(await weft.each([1, 2], fetch, one_at_a_time=True), list[float])
    assert_type(await pay(name, amount), str)
    assert_type(await tell("paid"), bool)
    assert_type(await first_of_any(items, 1), str)
    assert_type(await of_object(items), str)
    return assert_type(await weft.when(amount > limit, lambda: pay(name, amount), lambda: "not paid"), str)


async def later(key: int) -> str:
    return await pay("later", await fetch(key))


@weft.workflow
async def ways(name: str, amount: float) -> None:
    assert_type(await weft.each([1], later), list[str])
    assert_type(await weft.when(amount > 1, lambda: fetch(1), lambda: pay(name, amount)), float | str)
    assert_type(await weft.when(amount > 1, lambda: fetch(1), lambda: fetch(2)), float)
    assert_type(await weft.when(amount > 1, lambda: pay(name, amount), lambda: fetch(2)), str | float)
    assert_type(await weft.when(amount > 1, lambda: receipts(name)), list[Item] | None)
    assert_type(await weft.when(amount > 1, lambda: pay(name, amount)), str | None)
    assert_type(await weft.attempt(lambda: receipts(name), lambda error: [Item(error.code, 0)]), list[Item])
    assert_type(await weft.attempt(lambda: receipts(name), lambda error: fetch(1)), list[Item] | float)
    assert_type(await weft.attempt(lambda: pay(name, 1), lambda error: fetch(1)), str | float)
    assert_type(await weft.attempt(lambda: pay(name, 1), lambda error: None), str | None)
    assert_type(await weft.attempt(lambda: receipts(name), finally_=lambda: pay(name, 0)), list[Item])
    assert_type(await weft.attempt(lambda: pay(name, 1), cancelled=lambda: pay(name, 0)), str)
    assert_type(await weft.call(trip, {"name": name, "limit": 1}), str)
    assert_type(await weft.call(sync, {"name": name}), float)
    assert_type(await sync(name), float)
    assert_type(await weft.attempt(lambda: fetch(1), lambda error: first_of_any(error, 1)), float | str)
    assert_type(await weft.attempt(lambda: fetch(1), lambda error: pay(error.message, 0)), float | str)
    assert_type(await pay.with_options(id="deposit", retries=2)(name, 5), str)
    assert_type(await weft.gather(fetch(1), pay(name, 1)), tuple[float, str])
    assert_type(await weft.gather([1, 2], fetch, at_most=2), list[float])
    assert_type(await weft.sleep(days=1), None)
    answer = assert_type(await weft.approve("Pay?"), weft.Answer[Any])
    assert_type(await weft.signal("paid", type=Item), Item)
    assert_type(await weft.form("Item?", type=Item), Item)
    assert_type((await weft.http("https://example.org")).status, int)
    with weft.when(answer.action == "approve"):
        await pay(name, 1)
    with weft.otherwise():
        await pay(name, 2)


@weft.workflow
async def sync(name: str) -> float:
    return await total([1, 2])


async def as_functions() -> None:
    """Steps outside of a workflow, as in unit tests."""
    assert_type(await receipts("Bergen"), list[Item])
    assert_type(await total([1, 2]), float)


async def mistakes(name: str) -> None:
    await total(["a"])  # type: ignore[list-item]
    await total()  # type: ignore[call-arg]
    await pay(1, 2)  # type: ignore[arg-type]
    await pay(name, amount=2, factor=3)  # type: ignore[call-arg]
    await of_object()  # type: ignore[call-arg]
    await total(await receipts(name))  # type: ignore[arg-type]
    items = receipts(name)
    await weft.each(items, price)  # type: ignore[call-overload]
    fetch(1)  # type: ignore[unused-coroutine]
    await total(await weft.each([1], lambda key: pay(name, key)))  # type: ignore[arg-type, return-value]
    await weft.attempt(lambda: fetch(1), lambda error: total(error.code))  # type: ignore[arg-type]
    await weft.each(await receipts(name), lambda item: item.colour)  # type: ignore[attr-defined]
    total([1])  # type: ignore[unused-coroutine]
    weft.step(effect="rad")  # type: ignore[call-overload]

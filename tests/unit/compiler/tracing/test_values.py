"""What a workflow function cannot do with a traced value: each refusal names the line and what to write instead."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, cast

import pytest

from compiler.builder.errors import DefinitionError
from compiler.tracing.calls import sleep
from compiler.tracing.trace import Call
from compiler.tracing.ways import attempt, each, otherwise, when
from compiler.tracing.workflow import workflow
from executor.blocks.durable.together import first, gather, timeout
from executor.blocks.durable.values import random
from tests.unit.compiler.tracing.shop import load, mail, pay, price, total


async def _if(found: Any) -> None:
    if found.customer == "ada":
        await pay(1)


async def _and(found: Any) -> None:
    await when(found.customer == "ada" and found.customer, lambda: pay(1))


async def _for(found: Any) -> None:
    for _ in found.items:
        pass


async def _unpack(found: Any) -> None:
    _, _ = found.items


async def _escapes_with(found: Any) -> None:
    with when(found.customer == "ada"):
        paid = await pay(1)
    await mail(paid)


async def _escapes_body(found: Any) -> None:
    kept: list[Any] = []

    async def one(item: Any) -> None:
        kept.append(item)
        await mail("x")

    await each(found.items, one)
    await mail(kept[0].name)


async def _late_otherwise(found: Any) -> None:
    with when(found.customer == "ada"):
        await pay(1)
    await pay(2)
    with otherwise():
        await pay(3)


async def _the_same_id(found: Any) -> None:
    await gather(pay.with_options(id="a")(1), pay.with_options(id="a")(2))


async def _forgets_await(found: Any) -> None:
    mail("x")  # type: ignore[unused-coroutine]  # the mistake
    await mail("y")


async def _reads_before_await(found: Any) -> None:
    await mail(load("b").customer)  # type: ignore[attr-defined]  # the mistake


async def _awaits_twice(found: Any) -> None:
    await found


async def _first(found: Any) -> None:
    await first(pay(1), pay(2))


async def _in_time(found: Any) -> None:
    async with timeout(minutes=1):
        await pay(1)


REFUSED: list[tuple[Callable[[Any], Any], str]] = [
    (_if, "has no truth value.*weft.when"),
    (_and, "has no truth value.*write &"),
    (lambda found: not found, "has no truth value.*~"),
    (lambda found: 1 < found.items[0].price < 5, "has no truth value"),
    (_for, "cannot be iterated.*weft.each"),
    (_unpack, "cannot be iterated.*weft.each"),
    (lambda found: [*found.items], "cannot be iterated.*weft.each"),
    (lambda found: len(found.items), "no length yet.*inside a step"),
    (lambda found: int(found.items[0].price), "cannot be computed with.*inside a step"),
    (lambda found: found.items[0].price * 2, "cannot be computed with.*inside a step"),
    (lambda found: "x" + found.customer, "cannot be computed with.*inside a step"),
    (lambda found: "a" in found.customer, "`in` needs the value"),
    (lambda found: found.customer.upper(), "has no field|is a value, not a function"),
    (lambda found: found.items[-1], "counts from the end"),
    (lambda found: found.items[0:2], "field name or a position"),
    (lambda found: found.custommer, 'has no field .custommer.. Did you mean "customer"'),
    (lambda found: found["a.b"], "no reference can name the field"),
    (lambda found: f"{found.items[0].price:.2f}", "cannot be formatted"),
    (lambda found: mail(f"{found.customer}"), "one traced value alone"),
    (lambda found: setattr(found, "customer", "x"), "cannot be changed"),
    (lambda found: mail(found.customer == "x"), "is a condition: use it in weft.when"),
    (lambda found: found.customer == [1], "is compared with a text"),
    (lambda found: when(True, lambda: pay(1)), "use a plain `if`"),
    (lambda found: when(found.customer, otherwise=lambda: pay(1)), "without `then`"),  # type: ignore[call-overload]
    (lambda found: found.items[0].price.amount, "<load.items.0..price> is of type number: it has no 'amount'"),
    (lambda found: each(found.customer, pay), "takes a list: <load.customer> is of type string"),
    (lambda found: each([1, 2], pay), "use a plain `for`"),
    (lambda found: each(found.items, cast(Any, lambda item: None)), "makes no calls"),
    (lambda found: each(found.items, price, one_at_a_time=True, concurrency=2), "side by side"),
    (lambda found: attempt(cast(Any, lambda: None), lambda error: pay(1)), "makes no calls"),
    (lambda found: cast(Any, pay)("much"), "argument amount: Expected `float`"),
    (lambda found: pay(found.customer), "argument amount: <load.customer> is of type string, not number. It is pay"),
    (lambda found: cast(Any, pay)(), "missing a required argument: 'amount'"),
    (lambda found: total([object()]), "cannot be written as JSON|no JSON"),
    (lambda found: mail.with_options(id="no id")("y"), "cannot be an id"),
    (_the_same_id, "two calls have the id 'a'"),
    (
        _forgets_await,
        r"mail is called without `await`. Write `await mail\(…\)`, or await it with others",
    ),
    (lambda found: cast(Any, pay)(load("b")), "load is called without `await`"),
    (_reads_before_await, "load is called without `await`"),
    (_awaits_twice, "a traced value is awaited already"),
    (
        _first,
        "weft.first cannot be drawn. Decide inside a step, or make the",
    ),
    (_in_time, "weft.timeout cannot be drawn"),
    (lambda found: random(), "weft.random cannot be drawn"),
    (lambda found: pay.with_options(retries=-1)(1), "retries, timeout, cache"),
    (_escapes_with, "exists only in a branch or body"),
    (_escapes_body, "exists only in a branch or body"),
    (_late_otherwise, "must follow a `with weft.when"),
]


@pytest.mark.parametrize(("use", "message"), REFUSED, ids=[f"{n}-{m[:24]}" for n, (_, m) in enumerate(REFUSED)])
def test_it_is_refused_with_its_line(use: Callable[[Any], Any], message: str) -> None:
    @workflow
    async def refused(order: str) -> None:
        made = use(await load(order))
        if isinstance(made, Call) or inspect.iscoroutine(made):
            await made

    with pytest.raises(DefinitionError, match=message) as caught:
        refused.document()
    assert caught.value.file == __file__
    begin = use.__code__.co_firstlineno
    assert begin <= caught.value.line <= begin + 8
    assert str(caught.value).startswith(f"test_values.py, line {caught.value.line}: ")


async def test_what_needs_an_event_loop_is_for_steps() -> None:
    """Which runs here, and not where `weft validate` traces."""

    @workflow
    async def refused(order: str) -> None:
        await load(order)
        await asyncio.sleep(1)

    with pytest.raises(DefinitionError, match="awaits only steps") as caught:
        await asyncio.to_thread(refused.document)
    assert caught.value.line == refused.function.__code__.co_firstlineno + 3


def test_an_integer_is_a_number_and_what_is_unknown_is_not_refused() -> None:
    @workflow
    async def fine(order: str, count: int, other: Any) -> None:
        await pay(count)
        await pay(other)
        await pay((await load(order)).items[0].price)

    assert len(fine.document()["blocks"]) == 5


def test_the_line_is_that_of_the_statement() -> None:
    @workflow
    async def refused(order: str) -> None:
        found = await load(order)
        await mail("first")
        if found.customer:
            await mail("second")

    with pytest.raises(DefinitionError) as caught:
        refused.document()
    assert caught.value.line == refused.function.__code__.co_firstlineno + 4


def test_outside_of_a_workflow_there_is_nothing_to_record() -> None:
    with pytest.raises(DefinitionError, match=r"weft.sleep is part of a workflow"):
        sleep(1)  # type: ignore[unused-coroutine]  # it raises before there is one

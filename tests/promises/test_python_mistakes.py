"""Usual mistakes of people who write Python: each is an error, early, that names the line and what to write instead."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import pytest

import weft
from compiler.compile import compile_document
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.types.registry import Registry
from executor.errors import InputInvalid
from executor.open.testing.engines import engine
from tests.support.documents import chain

Flow = Callable[..., Any]


@weft.step(effect="none")
def load(order: str) -> dict[str, Any]:
    return {"order": order}


@weft.step(effect="none")
def mail(text: str) -> str:
    return text


@weft.step(effect="none")
async def fetch(url: str) -> str:
    return url


@weft.workflow
async def inner(order: str) -> Any:
    return await load(order)


async def helper(found: Any) -> Any:
    if found is None:
        return await mail("nothing")
    return await mail(found)


def loaded(order: Any) -> Any:
    return load(order)


async def is_none(order: str, note: str | None = None) -> Any:
    if note is None:  # here
        return await load(order)
    return await mail(note)


async def is_not_none(order: str) -> Any:
    found = await load(order)
    customer = found.customer  # type: ignore[attr-defined]
    return await mail("hi") if customer is not None else None  # here


async def is_none_awaited(order: str) -> Any:
    page = await fetch.with_options(retries=2)(order)
    return await mail("none") if None is page else page  # here


async def is_none_in_a_lambda(orders: list[str]) -> Any:
    return await weft.each(orders, lambda order: mail("none" if order is None else order))  # here


async def is_none_in_a_function_inside(orders: list[str]) -> Any:
    async def one(order: Any) -> Any:
        if (found := await load(order)) is None:  # here
            return await mail("none")
        return found

    return await weft.each(orders, one)


async def is_true(order: str) -> Any:
    found: Any = await weft.when(await load(order) == {}, lambda: load(order))
    return await mail("yes") if found is True else None  # here


async def matches(order: str) -> Any:
    match await load(order):  # here
        case None:
            return await mail("none")
        case {"customer": _}:
            return await mail("someone")
        case _:
            return await mail("else")


async def tries(order: str) -> Any:
    try:
        return await load(order)  # here
    except ValueError:
        return await mail("failed")


async def tries_around_a_helper(order: str) -> Any:
    try:
        found = await weft.each(
            [order],
            load,
        )
    except weft.DefinitionError:
        found = loaded(order)
    try:
        for _ in range(2):
            found = loaded(order)  # here
    except* ValueError:
        await mail("failed")
    return found


async def tries_around_weft(order: str) -> Any:
    try:
        answer = await weft.approve("Go on?")  # here
    except Exception:
        return await mail("failed")
    return answer


async def cleans_up(order: str) -> Any:
    try:
        found = await load(order)
    finally:
        await mail("cleaned up")  # here
    return found


async def suppresses(order: str) -> Any:
    with suppress(ValueError):
        await load(order)  # here
    return await mail("done")


async def hides_an_error(order: str, amount: float) -> Any:
    try:
        total = amount * 2  # here
    except Exception:
        total = 0
    return await mail(f"{order}: {total}")


async def gathers(order: str) -> Any:
    return await asyncio.gather(fetch(order), fetch("b"))  # here


async def is_a_key(order: str) -> Any:
    return await mail({order: "a"}["a"])  # here


async def is_in_a_set(order: str) -> Any:
    return await mail(str({await load(order)}))  # here


async def has_a_reference_in_a_constant(x: str) -> Any:
    return await mail("use <start.x>")  # here


async def has_the_input_in_a_constant(x: str) -> Any:
    return await mail('write <input type="text"> or <input.x>')  # here


async def asks_for_the_type(order: str) -> Any:
    found = await load(order)
    return found if isinstance(found, dict) else None  # here


async def calls_by_position(order: str) -> Any:
    return await weft.call(inner, order_of(order))  # here


def order_of(order: Any) -> str:
    return f"order {order}"


async def calls_with_a_wrong_name(order: str) -> Any:
    return await weft.call(inner, {"oder": order})  # here


async def returns_a_step(order: str) -> Any:  # here
    await load(order)
    return mail


async def awaits_in_a_helper(orders: list[str]) -> Any:
    async def one(order: Any) -> Any:
        await asyncio.sleep(1)  # here
        return await fetch(order)

    return await weft.each(orders, one)


async def is_not_awaited(order: str) -> Any:
    load(order)  # type: ignore[unused-coroutine]  # here
    return await mail(order)


async def is_returned_without_await(order: str) -> Any:
    return mail(order)  # here


MISTAKES: list[tuple[Flow, str]] = [
    (is_none, r"`is` looks at the placeholder.*weft\.when\(value == None"),
    (is_not_none, r"`is` looks at the placeholder.*!= for `is not`"),
    (is_none_awaited, r"`is` looks at the placeholder"),
    (is_none_in_a_lambda, r"`is` looks at the placeholder"),
    (is_none_in_a_function_inside, r"`is` looks at the placeholder"),
    (is_true, r"`is` looks at the placeholder"),
    (matches, r"`match` looks at the placeholder.*match inside a step"),
    (tries, r"`try` around a call catches nothing.*weft\.attempt\(do, failed\)"),
    (tries_around_weft, r"`try` around a call catches nothing"),
    (cleans_up, r"calls in `finally` are no cleanup.*weft\.attempt\(do, finally_=\.\.\.\)"),
    (suppresses, r"`suppress` around a call catches nothing"),
    (hides_an_error, r"cannot be computed with.*Compute inside a step"),
    (gathers, r"awaits only steps and what weft offers, and weft\.gather for calls side by side"),
    (is_not_awaited, r"load is called without `await`\. Write `await load\(…\)`"),
    (is_returned_without_await, r"mail is called without `await`"),
    (is_a_key, r"cannot be a key"),
    (is_in_a_set, r"cannot be a key or in a set"),
    (has_a_reference_in_a_constant, r'<start\.x> in a text is read as a reference.*f"use {value}"'),
    (asks_for_the_type, r"isinstance looks at the placeholder.*inside a step"),
    (calls_by_position, r"inner takes its input by name, as inner\(order: .str.*Write weft\.call\(inner, {"),
    (calls_with_a_wrong_name, r"missing a required argument: 'order'"),
    (returns_a_step, r"of type Step, which cannot be written as JSON"),
    (awaits_in_a_helper, r"awaits only steps.*inside a step"),
    (has_the_input_in_a_constant, r"<input\.x> in a text is read as a reference"),
]


@pytest.mark.parametrize(("mistake", "message"), MISTAKES, ids=[flow.__name__ for flow, _ in MISTAKES])
def test_a_mistake_is_an_error_with_its_line(mistake: Flow, message: str) -> None:
    with pytest.raises(weft.DefinitionError, match=message) as caught:
        weft.workflow(mistake).document()

    assert caught.value.file == __file__
    assert caught.value.line == line_of(mistake)


def test_a_mistake_in_a_function_that_is_called_names_the_line_there() -> None:
    @weft.workflow
    async def calls(order: str) -> Any:
        return await helper(await load(order))

    with pytest.raises(weft.DefinitionError, match=r"`is` looks at the placeholder") as caught:
        calls.document()
    assert caught.value.line == inspect.getsourcelines(helper)[1] + 1


def test_the_first_error_that_was_caught_is_raised() -> None:
    with pytest.raises(weft.DefinitionError, match=r"use a plain `for`") as caught:
        weft.workflow(tries_around_a_helper).document()
    assert caught.value.line == inspect.getsourcelines(tries_around_a_helper)[1] + 2


def test_what_python_knows_while_it_traces_is_no_mistake() -> None:
    async def noted(order: Any, note: Any = None) -> Any:
        return await mail("nothing" if note is None else note)

    @weft.workflow
    async def fine(order: str) -> Any:
        last = None
        for name in ("a", "b"):
            last = (await load(name))["order"] if last is None else (await load(f"{name} {last}"))["order"]
        try:
            settings = json.loads("{")
        except ValueError:
            settings = None
        try:
            last = (await load.with_options(id="raises")(order))["order"]
        except* OSError:
            raise
        if settings is None:
            await mail("a < b and c > d, <b>bold</b>, <nothing.known>, ${NAME}")
        await noted(order)
        return await noted(order, last)

    assert [*fine.document()["blocks"]] == ["start", "load", "load-2", "raises", "mail", "mail-2", "mail-3"]


def test_async_functions_of_each_and_attempt_are_run() -> None:
    async def one(order: Any) -> Any:
        return await fetch(await fetch(order))

    async def failed(error: Any) -> Any:
        return await fetch(error.message)

    @weft.workflow
    async def fine(orders: list[str]) -> Any:
        return [await weft.each(orders, one), await weft.attempt(lambda: fetch("a"), failed)]

    blocks = fine.document()["blocks"]
    assert [blocks[name]["params"]["arguments"]["url"] for name in ("fetch-2", "fetch-4")] == [
        "<fetch>",
        "<attempt.error.message>",
    ]


@pytest.mark.parametrize("input", ["A-1", 5, [1]])
async def test_an_input_that_is_no_object_says_what_it_is(input: Any) -> None:
    async with engine(workflows=[inner]) as opened:
        with pytest.raises(InputInvalid) as caught:
            await opened.run(inner, input)
    assert 'the input is an object: {"order": ...}' in caught.value.hint


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        (2**70, "the number does not fit in 64 bits"),
        ({1, 2}, "set is not a JSON type"),
        ({"a": object()}, "object is not a JSON type"),
        (b"x", "bytes is not a JSON type"),
        ({1: 2}, "a key is not text"),
    ],
)
async def test_an_input_that_is_not_json_says_where(value: Any, wrong: str) -> None:
    @weft.workflow
    async def anything(x: Any) -> Any:
        return [x]

    async with engine() as opened:
        with pytest.raises(InputInvalid, match=rf"^the value at \$\.input\.x(\.a)? is not JSON: {wrong}"):
            await opened.run(anything, {"x": value})


DOCUMENTS: list[tuple[str, str, str, str]] = [
    ("set", "<first.n - 1>", "reference_computes", "write <first.n> - 1"),
    ("set", "one of <first.list.length * 2> items", "reference_computes", "write <first.list.length> * 2"),
    ("set", "<first.a && first.b>", "reference_computes", "write <first.a> && first.b"),
    ("set", "<first.n - 1 ?? 0>", "reference_computes", "write <first.n> - 1"),
    ("condition", "<first.n - 1> > 0", "reference_computes", "write <first.n> - 1"),
    ("function", "return <first.n + 1>;", "reference_computes", "write <first.n> + 1"),
    ("set", "<frist>", "reference_unknown", "Did you mean <first>?"),
    ("set", "Dear <frist>!", "reference_unknown", "Did you mean <first>?"),
    ("set", "<frist.n>", "reference_unknown", "Did you mean <first.n>?"),
    ("condition", "<frist> > 1", "reference_misspelt", "Did you mean <first>?"),
    ("function", "return '<b>' + <frist>;", "reference_misspelt", "Did you mean <first>?"),
]
PROSE = [
    "a < b and c > d",
    "<b>bold</b> and <form>fields</form>",
    "<first.content-type>",
    "<first.name; x> or <first, second>",
    "if (a <first.length && b[0]> 2) {}",
    "<other> <x - 1> <nothing.n - 1>",
    "<first.n ?? -1>",
]


def found_in(type: str, text: str) -> list[tuple[str, str]]:
    params: dict[str, dict[str, Any]] = {
        "set": {"value": text},
        "function": {"code": text},
        "condition": {"cases": [{"id": "a", "when": text}, {"id": "b"}]},
    }
    first = {"type": "set", "params": {"value": {}}}
    document = chain("first", "a", first=first, a={"type": type, "params": params[type]})
    with closing(Sandbox(threads=1)) as sandbox:
        found = compile_document(document, Registry.load(sandbox=sandbox)).diagnostics
    return [(one.code, one.hint) for one in found if one.code not in ("case_unwired", "expression_invalid")]


@pytest.mark.parametrize(("type", "text", "code", "hint"), DOCUMENTS)
def test_a_reference_that_cannot_be_meant_is_a_finding(type: str, text: str, code: str, hint: str) -> None:
    [(found, says)] = found_in(type, text)
    assert found == code
    assert hint in says


@pytest.mark.parametrize("text", PROSE)
def test_what_is_no_reference_is_no_finding(text: str) -> None:
    assert found_in("set", text) == []


def line_of(function: Flow) -> int:
    """Of the comment `# here`."""
    lines, first = inspect.getsourcelines(function)
    return first + next(n for n, line in enumerate(lines) if line.rstrip().endswith("# here"))

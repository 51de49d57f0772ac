"""The `python` block: functions by name, their arguments, and what becomes of their errors."""

from __future__ import annotations

import asyncio
import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from compiler.compile import compile_document
from executor.blocks.base import Context
from executor.blocks.python import Python, import_functions, python_blocks
from executor.blocks.registry import Registry
from executor.errors import BlockError
from executor.threads import FunctionThreads
from tests.unit.executor.blocks.flow import context


def quote(item: str, amount: int = 1) -> dict[str, Any]:
    if amount < 0:
        raise ValueError("a negative amount")
    return {"item": item, "price": 3 * amount, "thread": threading.current_thread() is not threading.main_thread()}


async def mine(ctx: Context, n: int) -> tuple[str, int]:
    return ctx.key, n


def refuse() -> None:
    raise BlockError("sold out", code="sold_out", retryable=False)


def first(of: list[int]) -> int:
    return next(iter(of))


def leave() -> None:
    sys.exit("that was all")


async def leave_too() -> None:
    sys.exit("that was all")


SERVICES = SimpleNamespace(functions=FunctionThreads())
BLOCK = Python({"quote": quote, "mine": mine, "refuse": refuse, "first": first, "leave": leave, "leave_too": leave_too})


async def call(function: Any, **arguments: Any) -> Any:
    return (await BLOCK.run(context({"function": function, "arguments": arguments}, services=SERVICES))).output


async def test_plain_functions_run_in_a_thread_and_others_in_the_loop() -> None:
    assert await call("quote", item="tea", amount=2) == {"item": "tea", "price": 6, "thread": True}
    assert await call("mine", n=4, ctx="not from a document") == (context({}).key, 4)


async def test_what_fails_says_what() -> None:
    with pytest.raises(BlockError, match="quote: ValueError: a negative amount") as failed:
        await call("quote", item="tea", amount=-1)
    assert (failed.value.code, failed.value.retryable) == ("function_failed", True)
    with pytest.raises(BlockError) as own:
        await call("refuse")
    assert (own.value.code, own.value.retryable) == ("sold_out", False)


async def test_a_function_that_stops_an_iteration_has_ended() -> None:
    """asyncio cannot hand StopIteration over from a thread: the block would wait for its time to be over."""
    assert await call("first", of=[1]) == 1
    async with asyncio.timeout(60):
        with pytest.raises(BlockError, match="first: RuntimeError: it raised StopIteration") as failed:
            await call("first", of=[])
    assert failed.value.code == "function_failed"


@pytest.mark.parametrize("function", ["leave", "leave_too"])
async def test_a_function_that_leaves_does_not_take_the_server_along(function: str) -> None:
    with pytest.raises(BlockError, match="SystemExit: that was all") as failed:
        await call(function)
    assert failed.value.code == "function_failed"


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"function": "nope"}, "there is no function 'nope' here"),
        ({"function": "quote"}, "quote: missing a required argument: 'item'"),
        ({"function": "quote", "arguments": {"item": 1, "size": 2}}, "unexpected keyword argument 'size'"),
        ({"function": "quote", "arguments": [1]}, "arguments must be an object"),
    ],
)
async def test_arguments_that_do_not_fit_are_not_tried_again(params: dict[str, Any], said: str) -> None:
    with pytest.raises(BlockError, match=said) as refused:
        await BLOCK.run(context(params, services=SERVICES))
    assert (refused.value.code, refused.value.retryable) == ("params_invalid", False)


def test_documents_choose_among_the_registered_names() -> None:
    blocks: dict[str, Any] = {"start": {"type": "start"}, "q": {"type": "python", "params": {"function": "qoute"}}}
    document = {"format": "weft/1", "blocks": blocks, "edges": [{"source": "start", "target": "q"}]}
    with_none = compile_document(document, Registry.load())
    assert [found.code for found in with_none.diagnostics] == ["block_type_unknown"]
    (found,) = compile_document(document, Registry.load([BLOCK])).diagnostics
    assert (found.code, found.pointer) == ("param_invalid", "/blocks/q/params/function")
    blocks["q"]["params"] = {"function": "quote", "arguments": {"item": "<start.item>"}}
    plan = compile_document(document, Registry.load([BLOCK])).plan
    assert plan is not None
    policy = plan.nodes[1].policy
    assert (policy.on_lost, policy.retry.max_attempts) == ("ask", 1), "it is not known whether it may run twice"


def test_the_editor_is_shown_how_each_is_called() -> None:
    assert "mine(n: 'int')" in BLOCK.spec.description and "ctx" not in BLOCK.spec.description


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ModuleType("weft_test_shop")
    made.quote, made.number = quote, 5  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "weft_test_shop", made)


@pytest.mark.usefixtures("module")
def test_functions_are_named_by_their_place() -> None:
    assert import_functions(["weft_test_shop:quote", "price=weft_test_shop:quote"]) == {"quote": quote, "price": quote}
    assert python_blocks([]) == []


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("named", "said"),
    [
        (["weft_test_shop"], "not have the form package.module:function"),
        (["=weft_test_shop:quote"], "not have the form"),
        (["weft_test_shop:nope"], "has no attribute 'nope'"),
        (["weft_test_shop:number"], "it is not a function"),
        (["weft_test_no_such:quote"], "No module named"),
        (["weft_test_shop:quote", "weft_test_shop:quote"], "two functions have the name 'quote'"),
    ],
)
def test_what_cannot_be_imported_is_named(named: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        import_functions(named)

"""The `python` block: functions by name, their arguments, and what becomes of their errors."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import pytest

from compiler.compile import compile_document
from compiler.tracing.steps import step
from executor.blocks.types.functions import python_blocks
from executor.blocks.types.python import Python, import_functions
from executor.blocks.types.registry import Registry
from executor.errors import BlockError
from executor.kernel.handler.base import StepContext
from executor.kernel.handler.base import context as current
from executor.kernel.process.threads import FunctionThreads
from tests.unit.executor.blocks.types.flow import context


def quote(item: str, amount: int = 1) -> dict[str, Any]:
    if amount < 0:
        raise ValueError("a negative amount")
    return {"item": item, "price": 3 * amount, "thread": threading.current_thread() is not threading.main_thread()}


async def mine(ctx: StepContext, n: int) -> tuple[str, int]:
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
    assert "WEFT_FUNCTIONS=flow.py" in with_none.diagnostics[0].hint
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
        (["weft_test_shop"], "has no function with @weft.step or @weft.durable; write weft_test_shop:function"),
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


class Item(msgspec.Struct):
    name: str
    amount: int = 1


class Priced(msgspec.Struct):
    item: Item
    price: float


@step(effect="read")
def priced(item: Item, factor: float = 2) -> Priced:
    return Priced(item, item.amount * factor)


@step
async def told(items: list[Item], ctx: StepContext) -> str:
    return f"{ctx.key}: {', '.join(item.name for item in items)}"


@step
def wrong() -> dict[str, Any]:
    return {"lock": threading.Lock()}


async def later() -> int:
    return 1


@step
async def forgot() -> int:
    return later()  # type: ignore[return-value]


@step
def keyed(item: Item) -> str:
    return f"{current().key} {item.name}"


@step
async def keyed_later(ctx: StepContext, item: Item) -> list[str]:
    assert current() is ctx
    return [await keyed(item), await asyncio.to_thread(keyed.function, item)]


STEPS = Python({one.function.__name__: one for one in (priced, told, wrong, forgot, keyed, keyed_later)})


async def call_step(name: str, arguments: dict[str, Any]) -> Any:
    return (await STEPS.run(context({"function": name, "arguments": arguments}, services=SERVICES))).output


async def test_a_step_finds_its_context_in_threads_and_functions_that_it_calls() -> None:
    item, key = {"name": "tea", "amount": 3}, context({}).key
    assert await call_step("keyed", {"item": item}) == f"{key} tea"
    assert await call_step("keyed_later", {"item": item}) == [f"{key} tea", f"{key} tea"]
    with pytest.raises(RuntimeError, match=r"weft\.context\(\) works while a run executes a step"):
        await keyed(Item("tea", 3))


async def test_steps_side_by_side_have_a_context_each() -> None:
    async def call_as(key: str) -> Any:
        params = {"function": "keyed_later", "arguments": {"item": {"name": "a", "amount": 1}}}
        return (await STEPS.run(context(params, services=SERVICES, key_text=key))).output

    assert [*await asyncio.gather(call_as("a"), call_as("b"))] == [["a a"] * 2, ["b a"] * 2]


async def test_arguments_of_a_step_have_its_types_and_its_result_is_json() -> None:
    assert await call_step("priced", {"item": {"name": "tea", "amount": 3}}) == {
        "item": {"name": "tea", "amount": 3},
        "price": 6,
    }
    assert await call_step("told", {"items": [{"name": "a"}, {"name": "b"}]}) == f"{context({}).key}: a, b"


@pytest.mark.parametrize(
    ("name", "arguments", "code", "message"),
    [
        (
            "priced",
            {"item": {"name": 3}},
            "params_invalid",
            r"priced: item: Expected `str`, got `int` \(at /item/name\)",
        ),
        ("told", {"items": [{"name": "a"}, {}]}, "params_invalid", r"missing required field.*\(at /items/1\)"),
        ("priced", {}, "params_invalid", "item is required"),
        ("priced", {"item": {"name": "a"}, "n": 1}, "params_invalid", "has no param 'n'"),
        ("wrong", {}, "output_invalid", "wrong returned a value of type dict, which cannot be written as JSON"),
        ("forgot", {}, "output_invalid", "forgot returned a coroutine: put `await` in front of the call"),
    ],
)
async def test_what_does_not_fit_a_step_names_step_and_field(
    name: str, arguments: dict[str, Any], code: str, message: str
) -> None:
    with pytest.raises(BlockError, match=message) as caught:
        await call_step(name, arguments)
    assert caught.value.code == code


async def test_a_step_runs_in_this_process() -> None:
    node = SimpleNamespace(policy=SimpleNamespace(runner="process"))
    ctx = context({"function": "priced", "arguments": {"item": {"name": "a"}}}, services=SERVICES, node=node)
    with pytest.raises(BlockError, match="runs in this process"):
        await STEPS.run(ctx)


def test_arguments_of_steps_are_checked_when_a_document_is_compiled() -> None:
    document = {
        "format": "weft/1",
        "blocks": {
            "start": {"type": "start"},
            "one": {"type": "python", "params": {"function": "priced", "arguments": {"itm": "<start.item>"}}},
            "two": {"type": "set", "params": {"value": "<one.prize>"}},
        },
        "edges": [{"source": "start", "target": "one"}, {"source": "one", "target": "two"}],
    }
    found = compile_document(document, Registry.load([STEPS])).diagnostics
    assert [(one.code, one.pointer, one.message.split(".")[-2]) for one in found] == [
        ("param_invalid", "/blocks/one/params/arguments/itm", "priced has no argument 'itm'"),
        ("required", "/blocks/one/params/arguments", "priced needs the argument 'item'"),
        ("reference_unknown_field", "/blocks/two/params/value", 'prize>: Python "one" has no field "prize"'),
    ]


def test_a_file_may_import_the_steps_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    first, second = tmp_path / "weft_test_sources.py", tmp_path / "weft_test_reader.py"
    first.write_text("import weft\n\n@weft.step\ndef find(q: str) -> str:\n    return q\n")
    second.write_text("from weft_test_sources import find\n")
    try:
        assert list(import_functions([str(first), str(second)])) == ["weft_test_sources.find"]
    finally:
        sys.modules.pop("weft_test_sources", None)
        sys.modules.pop("weft_test_reader", None)


def test_the_steps_of_a_file_are_registered_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    tmp_path.joinpath("weft_test_parts.py").write_text(
        "from compiler.tracing.steps import step\n@step\ndef part() -> int: return 1\n"
    )
    file = tmp_path / "weft_test_flow.py"
    file.write_text(
        "import weft_test_parts as parts\nfrom compiler.tracing.workflow import workflow\n"
        "from compiler.tracing.steps import step\n@step\ndef whole(n: int) -> int: return n\n"
        "@workflow\nasync def flow():\n    return await whole(await parts.part())\n"
    )
    try:
        found = import_functions([str(file)])
        assert sorted(found) == ["weft_test_flow.whole", "weft_test_parts.part"]
        assert import_functions(["weft_test_flow"]) == found == import_functions([str(file)])
        assert list(import_functions(["weft_test_flow:whole"])) == ["weft_test_flow.whole"]
    finally:
        sys.modules.pop("weft_test_flow", None)
        sys.modules.pop("weft_test_parts", None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "has no function with @weft.step"),
        ("x = ", "SyntaxError"),
        ("import weft_test_no_such", "No module named 'weft_test_no_such'"),
        (
            "from compiler.tracing.workflow import workflow\n@workflow\nasync def flow(a):\n    if a: pass\n",
            "weft_test_flow.py, line 4: a traced value has no truth value",
        ),
    ],
)
def test_a_file_without_steps_is_refused(text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    file = tmp_path / "weft_test_flow.py"
    file.write_text(text)
    try:
        with pytest.raises(ValueError, match=said):
            import_functions([str(file)])
    finally:
        sys.modules.pop("weft_test_flow", None)

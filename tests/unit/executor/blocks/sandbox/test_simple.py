from __future__ import annotations

import random
from typing import Any

import pytest

from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.sandbox.simple import Closures, Unsure, compile_simple, evaluate_simple
from executor.errors import SandboxError
from executor.kernel.values.payload import Bound
from tests.support.cost import computes_within
from tests.unit.executor.blocks.sandbox.expressions import random_call
from tests.unit.executor.blocks.sandbox.run import NOW_MS

OUTPUT_BYTES = 1024 * 1024
ASIDE = "/**/"  # a comment is not simple: with it the guest computes what would be the same


def simple(source: str, values: dict[str, Any] | None = None, texts: dict[str, str] | None = None) -> Any:
    closure = compile_simple(source)
    assert closure is not None, source
    return evaluate_simple([closure], [Bound(source, values or {}, texts or {})], OUTPUT_BYTES)[0]


async def outcome(sandbox: Sandbox, calls: list[Bound]) -> str:
    """All that can be seen of it: values with their types, or the error."""
    try:
        return repr(await sandbox.evaluate(calls, now_ms=NOW_MS, seed="s"))
    except SandboxError as error:
        return f"{error.code} {error.message} {error.retryable} {error.extra}"


async def compare(sandbox: Sandbox, seed: int, answers: int) -> None:
    """Random calls, by both ways, until so many of them were simple."""
    dice = random.Random(seed)
    answered = number = 0
    while answered < answers:
        number += 1
        assert number < 20 * answers, "most are for the guest"
        calls = [random_call(dice) for _ in range(dice.choice([1, 1, 1, 1, 2, 3]))]
        closures = [closure for call in calls if (closure := compile_simple(call.source)) is not None]
        if len(closures) < len(calls):  # both ways are one
            continue
        try:
            evaluate_simple(closures, calls, OUTPUT_BYTES)
            answered += 1
        except Unsure:  # the guest decides in any case, if it reads the same as an expression
            assert [sandbox.check_syntax(call.source + ASIDE, "expression") for call in calls] == [None] * len(calls)
            if number % 10:
                continue
        asked = [Bound(call.source + ASIDE, call.values, call.texts) for call in calls]
        guests = await outcome(sandbox, asked)
        if not guests.startswith("number_inexact"):  # the guest refuses what is kept without it
            assert await outcome(sandbox, calls) == guests, (seed, number, calls)


async def test_it_answers_as_the_guest_does(sandbox: Sandbox) -> None:
    await compare(sandbox, seed=1, answers=300)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(100, 112))
async def test_it_answers_as_the_guest_does_many_times(sandbox: Sandbox, seed: int) -> None:
    await compare(sandbox, seed, answers=1_000)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ('__v["start.amount"] > 500 && __v["workflow.status"] !== \'pass\'', True),
        ('__v["list"].length === 2 || false', True),
        ('__v["list"][1] + 1', 8),
        ('__v["list"][2] ?? "none"', "none"),
        ('("Hi " + __t["who"] + "!")', "Hi Ada!"),
        ('__v["start.amount"] % 2 === 0 ? "even" : "odd"', "odd"),
        ('__v["deep"].a.b[0].c', "found"),
        ('__v["deep"].missing', None),
        ('typeof __v["deep"].missing', "undefined"),
        ('__v["none"] == undefined', True),
        ('__v["none"] >= 0', True),
        ('!__v["deep"]', False),
        ('"😀".length', 2),
        ('"\\uffff" < "😀"', False),
        ("1.0", 1),
        ("-0", 0),
        ("0.1 + 0.2", 0.30000000000000004),
        ("7 / 2", 3.5),
        ("6 / 2", 3),
        ("'v' + 1.0", "v1"),
    ],
)
def test_what_is_simple(source: str, result: Any) -> None:
    values = {
        "start.amount": 501,
        "workflow.status": "fail",
        "list": [True, 7],
        "deep": {"a": {"b": [{"c": "found"}]}},
        "none": None,
    }
    assert repr(simple(source, values, {"who": "Ada"})) == repr(result)


@pytest.mark.parametrize(
    "source",
    [
        "", " ", "a", "1 +", "f()", "[1]", "({})", "'a\\n'", "`a`", "/a/", "1n", "0x1", "1e3", "01", "1.", ".5",
        "3in", "a.b", "1 // x", "1 /* x */", "1 <!-- 2", "1 --> 0", "- -1 --1", "a ?? b || c", "1 ?? 2 || 3",
        "1 || 2 ?? 3", "1 ?. 5 : 1", "__v", "__v[0]", "__v['a'](1)", "__v['a']?.b", "x = 1", "1, 2", "1 ** 2", "+1",
        "this", "(1", "1)", "1 2", "'\u2028'", "\u00a01", "new.target", "nul\\u006c", "nullé", "tru\u0065\u0301",
        "9999999999999999", "!" * 30 + "1", "(" * 30 + "1" + ")" * 30, "1" + "+1" * 150, "'" + "x" * 1100 + "'",
        "'\ud83d'", '"\\ud83d"', '"\\x41"', "1 = = 1", "a\\u0062",
    ],
)  # fmt: skip
def test_what_is_for_the_guest(source: str) -> None:
    assert compile_simple(source) is None


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("__v.x.y", None),
        ("__v.x.toString", {}),
        ("__v.x.push", []),
        ("__v.missing", 1),
        ("__v.x === __v.x", {}),
        ("__v.x", {"a": 1}),
        ("__v.x", []),
        ("__v.x + 1", True),
        ("__v.x < 1", "1"),
        ("__v.x == 1", "1"),
        ("__v.x + 1", 2**53),
        ("1 - __v.x", 2**53 + 1),
        ("__v.x", 2**64),
        ("__v.x", 2.0**60),
        ("1 / __v.x", 0),
        ("1 % __v.x", 0),
        ("-__v.x", "1"),
        ("'' + __v.x", 0.5),
        ("true || __v.x", float("nan")),
        ("true || __v.x", "\ud83d\ude00"),
        ("true || __v.x", {"\ud83d": 1}),
        ("true || __v.x", {1: 1}),
        ("true || __v.x", b""),
        ("true || __v.x", "x" * 70_000),
        ("true || __v.x", list(range(3_000))),
        ("__v.x + __v.x", "x" * 10_000),
        ("__v.x[0]", "é"),
        ("__v.x[1.5]", [1]),
        ("__v.x['0']", [1]),
    ],
)
def test_where_it_is_not_sure(source: str, value: Any) -> None:
    with pytest.raises(Unsure):
        simple(source, {"x": value})


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("__v.x", 2**60 + 1),
        ("__v.x === __v.y", False),
        ("__v.x < __v.y", True),
        ("__v.x == null", False),
        ("'id ' + __v.x", f"id {2**60 + 1}"),
        ("__v.row.name", "Ada"),
    ],
)
def test_integers_that_javascript_would_change_are_kept(source: str, result: Any) -> None:
    values = {"x": 2**60 + 1, "y": 2**60 + 3, "row": {"id": 2**60 + 1, "name": "Ada"}}
    assert simple(source, values) == result


def test_nested_beyond_what_is_simple() -> None:
    value: Any = 1
    for _ in range(70):
        value = [value]
    with pytest.raises(Unsure):
        simple("!__v.x", {"x": value})


def test_the_bounds_are_for_all_calls_together() -> None:
    closure = compile_simple("__v.x")
    assert closure is not None
    one = Bound("__v.x", {"x": "x" * 30_000})
    assert evaluate_simple([closure], [one], OUTPUT_BYTES) == ["x" * 30_000]
    with pytest.raises(Unsure):
        evaluate_simple([closure] * 3, [one] * 3, OUTPUT_BYTES)
    with pytest.raises(Unsure):
        evaluate_simple([closure], [one], 30_000)
    with pytest.raises(Unsure):
        evaluate_simple([closure] * 65, [Bound("__v.x", {"x": 1})] * 65, OUTPUT_BYTES)


async def test_one_that_is_not_simple_takes_the_others_with_it(sandbox: Sandbox) -> None:
    spoiler = Bound("(Object.prototype.here = 7)", {})
    calls = [spoiler, Bound("__v.x.here", {"x": {}})]
    assert await sandbox.evaluate(calls, now_ms=NOW_MS, seed="s") == [7, 7]


def test_simple_ones_need_no_guest_and_little_time() -> None:
    sandbox = Sandbox(threads=1)
    call = Bound('__v["a.b"] > 5 && __v["c"] === "x"', {"a.b": 7, "c": "x"})
    coroutines = [sandbox.evaluate([call], now_ms=NOW_MS, seed="s") for _ in range(1_000)]
    with computes_within(0.2):  # 200 µs for one
        for coroutine in coroutines:
            with pytest.raises(StopIteration) as done:  # it never waits: no thread is asked
                coroutine.send(None)
            assert done.value.value == [True]
    assert sandbox.check_syntax(call.source, "expression") is None
    sandbox.close()


def test_closures_are_kept_within_a_bound() -> None:
    closures = Closures()
    first = closures.of("1 + 1")
    assert first is not None and closures.of("1 + 1") is first
    assert closures.of("f()") is None and len(closures) == 2
    assert closures.of("'" + "x" * 1_022 + "'") is not None and len(closures) == 3
    assert closures.of("'" + "x" * 1_023 + "'") is None and len(closures) == 3, "too long to be simple"
    most = 0
    for number in range(5_000):
        assert closures.of(f"{number}") is not None
        most = max(most, len(closures))
    assert 1_000 < most < 3_000

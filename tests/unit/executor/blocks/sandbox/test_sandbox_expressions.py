import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from executor.blocks.sandbox.sandbox import Sandbox
from executor.errors import SandboxError
from executor.kernel.values.payload import Bound
from tests.unit.executor.blocks.sandbox.run import NOW_MS, PATIENT, evaluate

# Numbers as JavaScript has them; texts with everything a text can hold, lone surrogates included.
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(), max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
_QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
_property = settings(max_examples=200, deadline=None, suppress_health_check=_QUIET)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("1 + 1", 2),
        ("__v['agent.score'] > 5 && __v['x.tags'].includes('a')", True),
        ("'Hi ' + __t['who'] + '!'", "Hi Ada!"),
        ("({a: [1, 'x', null, {b: true}]})", {"a": [1, "x", None, {"b": True}]}),
        ("undefined", None),
        ("NaN", None),
        ("-Infinity", None),
        ("[undefined, () => 1, 0/0]", [None, None, None]),
        ("({u: undefined, f() {}, n: 1})", {"n": 1}),
        ("'\\u{1F600}'", "\U0001f600"),
        ("'\\ud800'", "\ud800"),
        ("1 // a comment", 1),
        ("2 /* another */", 2),
        ("(1, 2)", 2),
        ("[3, 4].map(x => x * __v['agent.score'])", [21, 28]),
        ("/^a+$/.test('aaa')", True),
        ("new Date().toISOString()", "2023-11-14T22:13:20.123Z"),
        ("Date.now()", NOW_MS),
        ("new Date(2024, 0, 1).getTimezoneOffset()", 0),
        ("typeof this", "undefined"),
    ],
)
async def test_an_expression_gives_json(sandbox: Sandbox, source: str, result: Any) -> None:
    call = Bound(source, {"agent.score": 7, "x.tags": ["a"]}, {"who": "Ada"})
    assert await sandbox.evaluate([call], now_ms=NOW_MS, seed="s") == [result]


async def test_a_list_is_evaluated_in_order_and_nothing_gives_nothing(sandbox: Sandbox) -> None:
    calls = [Bound(f"__v.n + {n}", {"n": n}) for n in range(20)]
    assert await sandbox.evaluate(calls, now_ms=0, seed="s") == [2 * n for n in range(20)]
    assert await sandbox.evaluate([], now_ms=0, seed="s") == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("__v.missing.field", "TypeError: cannot read property 'field' of undefined"),
        ("nope", "ReferenceError: nope is not defined"),
        ("(() => { throw new RangeError('too far') })()", "RangeError: too far"),
        ("(() => { throw 'plain' })()", "Error: plain"),
        ("(() => { throw {code: 7} })()", 'Error: {"code":7}'),
        ("10n", "TypeError: BigInt are forbidden in JSON.stringify"),
        ("() => 1", "TypeError: the result is a function, which is not JSON"),
        ("Symbol('s')", "TypeError: the result is a symbol, which is not JSON"),
        ("(() => { const o = {}; o.o = o; return o })()", "TypeError: circular reference"),
        ("1 +", "SyntaxError: "),
        ("", "SyntaxError: "),
        ("undeclared = 1", "ReferenceError: undeclared is not defined"),
    ],
)
async def test_what_fails_says_why_and_is_not_tried_again(sandbox: Sandbox, source: str, message: str) -> None:
    with pytest.raises(SandboxError) as caught:
        await evaluate(sandbox, source)
    assert caught.value.code == "expression_failed"
    assert caught.value.message.startswith(message)
    assert caught.value.retryable is False


async def test_the_error_names_the_expression_of_the_list(sandbox: Sandbox) -> None:
    calls = [Bound("1", {}), Bound("2", {}), Bound("__v.a.b", {})]
    with pytest.raises(SandboxError) as caught:
        await sandbox.evaluate(calls, now_ms=0, seed="s")
    assert caught.value.extra["index"] == 2


@_property
@given(value=_JSON)
async def test_a_bound_value_comes_back_as_it_is(sandbox: Sandbox, value: Any) -> None:
    assert await evaluate(sandbox, "__v['a.b']", **{"a.b": value}) == value


@_property
@given(text=st.text(st.characters()))
async def test_any_text_is_data_and_never_source(sandbox: Sandbox, text: str) -> None:
    found = await sandbox.evaluate(
        [Bound("__v['x'] === __t['y']", {"x": text}, {"y": text}), Bound("__t['y'].length", {}, {"y": text})],
        now_ms=0,
        seed="s",
    )
    assert found == [True, len(text.encode("utf-16-le", "surrogatepass")) // 2]


@_property
@given(value=st.floats(allow_nan=False, allow_infinity=False))
async def test_numbers_are_doubles(sandbox: Sandbox, value: float) -> None:
    # JavaScript writes 2.206629125627413e+16 as 22066291256274130: the same double, told by other digits
    assert float(await evaluate(sandbox, "__v.n", n=value)) == value


async def test_names_of_fields_are_only_names(sandbox: Sandbox) -> None:
    trap = {"__proto__": {"admin": True}, "constructor": 1, "toString": 2}
    assert await evaluate(sandbox, "[__v.o.admin === undefined, Object.keys(__v.o).length]", o=trap) == [True, 3]


async def test_large_integers_are_read_as_doubles_that_print_the_same(sandbox: Sandbox) -> None:
    for number in (2**53, -(2**53), 2**53 + 2, 10**18, 12345678901234567000):
        assert await evaluate(sandbox, "[__v.n][0]", n=number) == number


async def test_integers_that_would_become_others_are_refused(sandbox: Sandbox) -> None:
    for number in (2**53 + 1, -(2**53) - 1, 2**63):
        for value, place in ((number, ""), ([0, {"a": number}], r", at \[1\]\.a")):
            with pytest.raises(SandboxError, match=f"^<n> has the number {number}{place}, which JavaScript") as caught:
                await evaluate(sandbox, "[__v.n][0]", n=value)
            assert caught.value.code == "number_inexact"


async def test_what_is_not_json_is_refused(sandbox: Sandbox) -> None:
    for value in (object(), {1, 2}, b"bytes"):
        with pytest.raises(SandboxError, match="not JSON"):
            await evaluate(sandbox, "__v.x", x=value)


async def test_random_numbers_follow_from_the_seed(sandbox: Sandbox) -> None:
    source = "[Math.random(), Math.random(), Math.random()]"
    first = await evaluate(sandbox, source, seed="run:a")
    assert first == await evaluate(sandbox, source, seed="run:a")
    assert first != await evaluate(sandbox, source, seed="run:b")
    assert len(set(first)) == 3
    many = await evaluate(sandbox, "Array.from({length: 5000}, () => Math.random())")
    assert all(0 <= number < 1 for number in many)
    assert abs(sum(many) / len(many) - 0.5) < 0.02


async def test_many_at_once_do_not_mix(sandbox: Sandbox) -> None:
    both = Sandbox(threads=3, limits=PATIENT)
    try:
        found = await asyncio.gather(*(evaluate(both, "__v.n * 2", n=n) for n in range(200)))
    finally:
        both.close()
    assert found == [2 * n for n in range(200)]


async def test_large_values_go_in_and_the_memory_is_freed(sandbox: Sandbox) -> None:
    assert await evaluate(sandbox, "__v.s.length", s="x" * 2_000_000) == 2_000_000
    assert await evaluate(sandbox, "typeof __v.s") == "undefined"


async def test_limits_at_the_bound_and_one_past_it() -> None:
    sandbox = Sandbox(threads=1, limits=replace(PATIENT, expression_source=10, output=20, depth=3))
    try:
        assert await evaluate(sandbox, "'12345678'") == "12345678"
        with pytest.raises(SandboxError, match="more than 10 bytes"):
            await evaluate(sandbox, "'123456789'")
        assert await evaluate(sandbox, "__v.s", s="x" * 15) == "x" * 15  # O, brackets and quotes make 20
        with pytest.raises(SandboxError, match="too large"):
            await evaluate(sandbox, "__v.s", s="x" * 16)
        assert await evaluate(sandbox, "[[[1]]]") == [[[1]]]
        with pytest.raises(SandboxError, match="nested too deeply"):
            await evaluate(sandbox, "[[[[]]]]")
    finally:
        sandbox.close()


async def test_a_result_nested_beyond_any_parser_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError):
        await evaluate(sandbox, "(() => { let a = []; for (let i = 0; i < 3000; i++) a = [a]; return a })()")


async def test_a_closed_sandbox_takes_nothing_more() -> None:
    sandbox = Sandbox(threads=1, limits=PATIENT)
    assert await evaluate(sandbox, "1") == 1
    sandbox.close()
    sandbox.close()
    with pytest.raises(RuntimeError, match="closed"):
        await evaluate(sandbox, "1")

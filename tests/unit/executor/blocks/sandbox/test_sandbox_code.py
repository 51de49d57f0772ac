import asyncio
import time
from typing import Any

import pytest
from msgspec.structs import replace

from executor.blocks.sandbox.sandbox import Sandbox
from executor.errors import SandboxError
from executor.kernel.values.payload import Bound
from tests.unit.executor.blocks.sandbox.run import PATIENT, evaluate, program

# Stopped means stopped by a deadline of 0.3 s; the rest is room for a busy machine.
STOPPED_S = 30.0


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("return 1", 1),
        ("const a = __v.n; return a * 2", 42),
        ("const t = __v.n, v = 1; return t * v", 21),
        ("", None),
        ("return", None),
        ("return await Promise.resolve(3)", 3),
        ("for await (const x of [1, Promise.resolve(2)]) { if (x === 2) return x }", 2),
        ("return (await Promise.all([1, 2].map(async n => n + 1)))", [2, 3]),
        ("await null; await null; return Date.now()", 1_700_000_000_123),
        ("return [1, 2] // done", [1, 2]),
        ("function f() { return f.name }\nreturn f()", "f"),
        ("return (function () { return this === undefined })()", True),
    ],
)
async def test_a_program_returns_json(anywhere: Sandbox, source: str, result: Any) -> None:
    assert await program(anywhere, source, n=21) == (result, "")


async def test_the_console_is_captured(anywhere: Sandbox) -> None:
    source = """
    console.log('text', 1, {a: [true]}, null, undefined);
    console.error(new TypeError('bad'));
    await null;
    console.warn(10n, Symbol('s'));
    """
    expected = 'text 1 {"a":[true]} null undefined\nTypeError: bad\n10 Symbol(s)\n'
    assert await program(anywhere, source) == (None, expected)


async def test_the_console_is_cut_at_its_bound(anywhere: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anywhere, "limits", replace(PATIENT, console=10))
    assert await program(anywhere, "console.log('123456789')") == (None, "123456789\n")
    assert await program(anywhere, "console.log('1234567890'); console.log('more')") == (
        None,
        "1234567890\n[output cut]\n",
    )


async def test_what_was_printed_before_a_failure_is_recorded(anywhere: Sandbox) -> None:
    with pytest.raises(SandboxError, match="TypeError: no") as caught:
        await program(anywhere, "console.log('here'); await null; throw new TypeError('no')")
    assert caught.value.code == "code_failed"
    assert caught.value.extra["stdout"] == "here\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("await new Promise(() => {})", "awaits a promise that nothing will resolve"),
        ("return () => 1", "the result is a function"),
        ("await import('os')", "ReferenceError"),
        ("x = 1", "ReferenceError"),
        ("return 1 +", "SyntaxError"),
        ("return await Promise.reject(new Error('later'))", "Error: later"),
        ("return f(0); function f(n) { return f(n + 1) + 1 }", "Maximum call stack size exceeded"),
    ],
)
async def test_a_program_that_fails_says_why(anywhere: Sandbox, source: str, message: str) -> None:
    with pytest.raises(SandboxError, match=message) as caught:
        await program(anywhere, source)
    assert (caught.value.code, caught.value.retryable) == ("code_failed", False)


@pytest.mark.parametrize(
    "source",
    [
        "for (;;) {}",
        "await null; for (;;) {}",
        "for (;;) await null",
        "(function again() { Promise.resolve().then(again) })(); await new Promise(() => {})",
        "for (;;) { try { await null; for (;;) {} } catch {} }",
        "const p = (async () => { for (;;) {} })(); p.catch(() => {}); return 1",
        "return { toJSON() { for (;;) {} } }",
        "throw { get message() { for (;;) {} } }",
        "console.log({ toString() { for (;;) {} }, toJSON() { return undefined } })",
        "return 'a'.repeat(3e6).indexOf('a'.repeat(1.5e6) + 'b')",
    ],
)
async def test_a_program_is_stopped_in_time(anywhere: Sandbox, source: str) -> None:
    began = time.monotonic()
    with pytest.raises(SandboxError) as caught:
        await program(anywhere, source, timeout_ms=100)
    assert caught.value.code == "code_timeout"
    assert time.monotonic() - began < STOPPED_S
    assert await program(anywhere, "return 1") == (1, "")


async def test_memory_is_bounded(anywhere: Sandbox) -> None:
    with pytest.raises(SandboxError) as caught:
        await program(anywhere, "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))")
    assert caught.value.code == "code_memory"
    assert await program(anywhere, "return 1") == (1, "")


async def test_cancelling_the_caller_stops_the_program(anywhere: Sandbox) -> None:
    task = asyncio.create_task(program(anywhere, "for (;;) {}", timeout_ms=60_000))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    began = time.monotonic()
    assert await program(anywhere, "return 1") == (1, "")  # the only worker is free again
    assert time.monotonic() - began < STOPPED_S


async def test_a_slow_program_does_not_hold_up_expressions(anywhere: Sandbox) -> None:
    task = asyncio.create_task(program(anywhere, "for (;;) {}", timeout_ms=30_000))
    await asyncio.sleep(0.02)
    assert await evaluate(anywhere, "1") == 1
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_event_loop_stays_free_while_guests_run(sandbox: Sandbox) -> None:
    def spun() -> float:
        """Seconds of computing in the other threads, which is the guest's."""
        return time.process_time() - time.thread_time()

    task = asyncio.create_task(program(sandbox, "for (;;) {}", timeout_ms=30_000))
    began, rounds = spun(), 0
    while spun() - began < 0.1 or rounds < 10:
        await asyncio.sleep(0.001)
        rounds += 1
        assert not task.done()  # else the loop stood still until the guest was stopped
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_source_is_bounded(anywhere: Sandbox) -> None:
    most = anywhere.limits.code_source
    assert await program(anywhere, "//" + "x" * (most - 2)) == (None, "")
    with pytest.raises(SandboxError, match="source has more"):
        await program(anywhere, "//" + "x" * (most - 1))


async def test_the_result_is_bounded(anywhere: Sandbox) -> None:
    with pytest.raises(SandboxError, match="too large"):
        await program(anywhere, "return 'x'.repeat(1 << 20)")


async def test_texts_are_bound_too(anywhere: Sandbox) -> None:
    bound = Bound("return __t['a.b'] + __v['a.b'].length", {"a.b": [1, 2]}, {"a.b": "[1,2]"})
    assert await anywhere.run_code(bound, now_ms=0, seed="s", timeout_ms=30_000) == ("[1,2]2", "")

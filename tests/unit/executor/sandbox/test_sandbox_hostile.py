"""Programs that mean harm: each is stopped in time, reaches nothing, and leaves nothing behind."""

import contextlib
import time
from collections.abc import Iterator

import pytest

from executor.errors import SandboxError
from executor.sandbox.guest import Guest
from executor.sandbox.sandbox import Sandbox
from tests.unit.executor.sandbox.run import evaluate, program

# Stopped means stopped by a deadline of 0.3 s; the rest is room for a busy machine.
STOPPED_S = 30.0

# Each must end by itself, fail or be stopped within a second; the sandbox must work afterwards.
_BOMBS = [
    "(() => { for (;;) {} })()",
    "(() => { while (1) try { while (1) {} } catch {} })()",
    "(() => { while (1) try { while (1) {} } finally { continue } })()",
    "(function f() { return f() })()",
    "(function f() { try { f() } finally { f() } })()",
    "(function f() { return [1].map(f) })()",
    "(function f() { return 'a'.replace(/a/, f) })()",
    "new Proxy({}, { get(t, k, r) { return r[k] } }).x",
    "({ get x() { for (;;) {} } }).x",
    "({ toJSON() { for (;;) {} } })",
    "({ [Symbol.toPrimitive]() { for (;;) {} } }) + ''",
    "(() => { throw { get name() { for (;;) {} }, message: 'x' } })()",
    "/(a+)+$/.test('a'.repeat(40) + 'b')",
    "/(x+x+)+y/.test('x'.repeat(40))",
    "/^(([a-z])+.)+[A-Z]([a-z])+$/.test('a'.repeat(40))",
    "/(.*)*(.*)*(.*)*=/.test('x'.repeat(5000))",
    "'x'.repeat(2 ** 30)",
    "'x'.repeat(2 ** 28).split('')",
    "'ab'.padEnd(2 ** 29, 'c')",
    "new Array(2 ** 32 - 1).join('')",
    "new Array(2 ** 32 - 1).fill(0)",
    "Array(1e9).toString()",
    "[...Array(1e8).keys()]",
    "Array.from({ length: 1e9 }, () => 1)",
    "Array.prototype.reverse.call({ length: 2 ** 53 - 1 })",
    "Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)",
    "Array.prototype.includes.call({ length: 2 ** 53 - 1 }, 1)",
    "Array.prototype.splice.call({ length: 2 ** 53 - 1 }, 0, 1)",
    "Array.prototype.sort.call({ length: 2 ** 31 })",
    "new Uint8Array(2 ** 31)",
    "new ArrayBuffer(2 ** 40)",
    "(() => { const a = []; for (;;) a.push(a.length + 'x') })()",
    "(() => { let s = 'x'; for (;;) s += s })()",
    "(() => { const m = new Map(); for (let i = 0; ; i++) m.set(i, { i }) })()",
    "(() => { let o = {}; for (;;) o = { o } })()",
    "9n ** 9999999n",
    "(1n << 100000000n) / 3n",
    "BigInt('9'.repeat(1e6)) * BigInt('9'.repeat(1e6))",
    "'a'.repeat(3e6).indexOf('a'.repeat(1.5e6) + 'b')",
    "'a'.repeat(1e6).replaceAll('a', 'b'.repeat(1e4))",
    "JSON.parse('['.repeat(1e6))",
    "JSON.stringify('\\u0000'.repeat(1e7))",
    "encodeURIComponent('\\u20ac'.repeat(1e7))",
    "'x'.repeat(1e7).normalize('NFKD').normalize('NFC')",
    "(0, eval)('('.repeat(1e5))",
    "new Function('a,'.repeat(1e5) + 'b', 'return 1').length",
    "(() => { for (;;) new Function('return ' + Math.random()) })()",
    "new RegExp('('.repeat(1e5) + ')'.repeat(1e5))",
    "Object.defineProperty([], 'length', { value: 2 ** 32 - 1, writable: true }).concat([1])",
    "(() => { const t = []; t.length = 2 ** 32 - 1; return JSON.stringify(t) })()",
]

# What a way out would have to pass through; each must be undefined or an error.
_ESCAPES = [
    "this.constructor.constructor('return process')()",
    "(() => {}).constructor('return this.process')()",
    "[].constructor.constructor('return require')()",
    "(async () => {}).constructor('return typeof process')().then",
    "globalThis.process",
    "globalThis.require",
    "globalThis.std",
    "globalThis.os",
    "globalThis.Deno",
    "globalThis.WebAssembly",
    "globalThis.fetch",
    "globalThis.setTimeout",
    "globalThis.host_call",
    "globalThis.print",
    "globalThis.scriptArgs",
    "globalThis.load",
    "globalThis.loadScript",
    "new Function('return process')()",
    "(0, eval)('process')",
    "require('fs')",
    "__v.constructor.constructor('return process.env')()",
    "t.constructor.constructor('return os')()",
    "Reflect.construct(Function, ['return std'])()",
    "Object.getPrototypeOf(function* () {}).constructor('return process')().next()",
    "Error.prepareStackTrace = (e, s) => s, new Error().stack[0].getThis().process",
]

_GLOBALS = [
    "AggregateError", "Array", "ArrayBuffer", "AsyncDisposableStack", "BigInt", "BigInt64Array", "BigUint64Array",
    "Boolean", "DOMException", "DataView", "Date", "DisposableStack", "Error", "EvalError",
    "FinalizationRegistry", "Float16Array", "Float32Array", "Float64Array", "Function", "Infinity", "Int16Array",
    "Int32Array", "Int8Array", "InternalError", "Iterator", "JSON", "Map", "Math", "NaN", "Number", "Object",
    "Promise", "Proxy", "RangeError", "ReferenceError", "Reflect", "RegExp", "Set", "SharedArrayBuffer", "String",
    "SuppressedError", "Symbol", "SyntaxError", "TypeError", "URIError", "Uint16Array", "Uint32Array",
    "Uint8Array", "Uint8ClampedArray", "WeakMap", "WeakRef", "WeakSet", "atob", "btoa", "console", "decodeURI",
    "decodeURIComponent", "encodeURI", "encodeURIComponent", "escape", "eval", "globalThis", "isFinite", "isNaN",
    "parseFloat", "parseInt", "performance", "queueMicrotask", "undefined", "unescape",
]  # fmt: skip

# What one evaluation changes, and how the next would see it.
_STAINS = [
    ("Object.prototype.stain = 1", "({}).stain"),
    ("Array.prototype.map = () => 'stain'", "[1].map(x => x)[0] === 1 ? undefined : 'stain'"),
    ("JSON.stringify = () => '\"stain\"'", "JSON.stringify(1) === '1' ? undefined : 'stain'"),
    ("globalThis.stain = 1", "globalThis.stain"),
    ("Object.freeze(Object.prototype)", "Object.isFrozen(Object.prototype) || undefined"),
    ("Math.random = () => 4", "Math.random() === 4 || undefined"),
    ("Date.now = () => 4", "Date.now() === 4 || undefined"),
    ("String.prototype.toJSON = () => 'stain'", "''.toJSON"),
    ("Promise.prototype.then = null", "Promise.prototype.then === null || undefined"),
    ("(0, eval)('var stain = 1')", "globalThis.stain"),
    ("console.log = null", "console.log === null || undefined"),
]


@pytest.fixture(scope="module")
def strict() -> Iterator[Sandbox]:
    """With the limits that users meet."""
    made = Sandbox(threads=1)
    yield made
    made.close()


@pytest.mark.parametrize("source", _BOMBS)
async def test_a_bomb_is_stopped_and_the_sandbox_lives_on(strict: Sandbox, source: str) -> None:
    began = time.monotonic()
    try:
        await evaluate(strict, source)
    except SandboxError as error:
        assert error.code in ("expression_failed", "expression_timeout", "expression_memory"), error
    assert time.monotonic() - began < STOPPED_S
    assert await evaluate(strict, "__v.a + 1", a=1) == 2


@pytest.mark.parametrize("source", _ESCAPES)
async def test_there_is_no_way_out(sandbox: Sandbox, source: str) -> None:
    try:
        found = await evaluate(sandbox, source)
    except SandboxError as error:
        assert error.code == "expression_failed"
    else:
        assert found is None


async def test_the_globals_are_the_language_and_a_console(sandbox: Sandbox) -> None:
    found = await evaluate(sandbox, "Object.getOwnPropertyNames(globalThis).sort()")
    assert found == sorted(_GLOBALS)
    assert await evaluate(sandbox, "Object.getOwnPropertySymbols(globalThis).map(String)") == [
        "Symbol(Symbol.toStringTag)"
    ]


@pytest.mark.parametrize(("stain", "look"), _STAINS)
async def test_nothing_survives_from_one_evaluation_to_the_next(sandbox: Sandbox, stain: str, look: str) -> None:
    with contextlib.suppress(SandboxError):  # it may spoil its own answer
        await evaluate(sandbox, f"(({stain}), 1)")
    assert await evaluate(sandbox, look) is None


@pytest.mark.parametrize(("stain", "look"), _STAINS)
async def test_nothing_survives_from_one_program_to_the_next(sandbox: Sandbox, stain: str, look: str) -> None:
    with contextlib.suppress(SandboxError):
        await program(sandbox, f"{stain}; return 1")
    assert await program(sandbox, f"return {look}") == (None, "")


async def test_a_job_left_behind_does_not_run_in_the_next_program(sandbox: Sandbox) -> None:
    await evaluate(sandbox, "(Promise.resolve().then(() => { globalThis.late = 1 }), 1)")
    assert await evaluate(sandbox, "globalThis.late") is None
    assert await program(sandbox, "await null; return globalThis.late") == (None, "")


def test_old_values_are_gone_from_the_memory() -> None:
    secret = b"correct horse battery staple"
    guest = Guest(memory_bytes=32 << 20, output_bytes=1 << 20)
    request = b'{"kind":"expressions","seed":[1,2,3,4],"calls":[{"s":"__v.s.length","v":{"s":"%s"},"t":{}}]}'
    try:
        for text, expected in ((secret, True), (b"something else", False)):
            assert guest.call(request % text, now_ms=0, soft_ms=20_000, hard_ms=20_000) == b"O[%d]" % len(text)
            instance = guest._instance
            assert instance is not None
            assert (secret in instance.read(0, instance.memory_bytes)) is expected
    finally:
        guest.close()


@pytest.mark.parametrize(
    "source",
    [
        "(Array.prototype.join = null, String.prototype.toString = null, [1])",
        "(JSON.stringify = () => 'O[1,2,3', 1)",
        "({ toJSON: () => ({ toJSON: 1 }) })",
        "(Object.prototype.toJSON = () => 'x', { a: 1 })",
    ],
)
async def test_spoiling_the_answer_hurts_only_oneself(sandbox: Sandbox, source: str) -> None:
    try:
        await evaluate(sandbox, source)
    except SandboxError as error:
        assert error.code == "expression_failed"
    assert await evaluate(sandbox, "[1, {a: 2}]") == [1, {"a": 2}]

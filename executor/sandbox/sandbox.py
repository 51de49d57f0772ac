"""Expressions and programs of users, run in worker threads that each own a guest. See the package for the contract."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import struct
import threading
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

import orjson

from executor.errors import SandboxError
from executor.sandbox import Bound, GuestStopped, Limits
from executor.sandbox.simple import Closure, Closures, Unsure, evaluate_simple
from executor.sandbox.workers import Waiting, Workers

if TYPE_CHECKING:
    from executor.sandbox.guest import Guest

_PARSED_MAX = 4096
CODE_THREADS_MAX = 16  # each may hold the memory of a program
_REPORTED = {"index": int, "stdout": str}
_MATCH = """((pattern, text) => {
  let found
  try { found = new RegExp(pattern, "u") } catch { found = new RegExp(pattern) }
  return found.test(text)
})(__v.pattern, __v.text)"""


class Sandbox:
    """Programs have threads of their own, so that slow ones never delay a condition. The guest lets go of Python's
    lock, so twice as many as there are cores keep the cores busy though one run gets half of them. `threads`: so many
    of each kind instead."""

    def __init__(self, *, threads: int | None = None, limits: Limits | None = None) -> None:
        if find_spec("wasmtime") is None:  # it is loaded for the first guest: too late to say that it is missing
            raise ModuleNotFoundError("the sandbox needs the package wasmtime", name="wasmtime")
        self.limits = limits or Limits()
        cores = os.cpu_count() or 1
        quick, slow = threads or min(4, cores), threads or min(CODE_THREADS_MAX, 2 * cores)
        self._expressions = Workers("weft-expression", quick, quick, self.limits.expression_memory, self.limits.output)
        self._programs = Workers("weft-code", slow, max(1, slow // 2), self.limits.code_memory, self.limits.output)
        self._parsed: set[str] = set()  # expressions that came through once: their second parse is not needed again
        self._closures = Closures()
        self._checking = threading.Lock()
        self._checker: Guest | None = None

    async def evaluate(self, calls: Sequence[Bound], *, now_ms: int, seed: str, owner: str = "") -> list[Any]:
        """Evaluate expressions in order, all in one guest call and one time budget: one result for each. Where all of
        them are simple, no guest is needed for the same results.

        A result is what JSON.stringify makes of it: undefined, NaN and infinities are null; a function, a symbol or a
        BigInt as the result itself is an error. Numbers are doubles: integers beyond 2^53 lose digits on their way in.
        `owner`: the run; runs take turns.
        Raises SandboxError: expression_failed, expression_timeout, expression_memory; `extra["index"]` says which one.
        """
        if not calls:
            return []
        limits = self.limits
        for index, call in enumerate(calls):
            if len(call.source.encode("utf-8", "surrogatepass")) > limits.expression_source:
                raise SandboxError(_too_long(limits.expression_source), code="expression_failed", index=index)
        if not self._expressions.closed and (simple := self._simply(calls)) is not None:
            return simple

        def work(guest: Guest) -> list[Any]:
            answer = _ask(
                guest, _request("expressions", calls, seed, limits.expression_memory, known=self._parsed), "expression",
                now_ms=now_ms, soft_ms=limits.expression_soft_ms, hard_ms=limits.expression_hard_ms,
            )  # fmt: skip
            results = _result(answer, "expression", limits.depth + 1)
            if not isinstance(results, list) or len(results) != len(calls):
                raise SandboxError("the expressions corrupted their own results", code="expression_failed")
            if len(self._parsed) > _PARSED_MAX:
                self._parsed.clear()
            self._parsed.update(call.source for call in calls)
            return results

        return await self._expressions.run(work, owner)

    def _simply(self, calls: Sequence[Bound]) -> list[Any] | None:
        """The results, without the guest. None: it has to be asked. All or none: what one expression does to the
        built-ins, a later one sees."""
        closures: list[Closure] = []
        for call in calls:
            closure = self._closures.of(call.source)
            if closure is None:
                return None
            closures.append(closure)
        try:
            return evaluate_simple(closures, calls, self.limits.output)
        except Unsure:
            return None

    async def run_code(
        self,
        code: Bound,
        *,
        now_ms: int,
        seed: str,
        timeout_ms: int,
        owner: str = "",
        waiting: Waiting | None = None,
    ) -> tuple[Any, str]:
        """Run a program (strict mode; `return` gives the result, `await` works) -> (JSON as above, console text).

        It has no timers, no network and no modules, so a promise that nothing settles is an error. `timeout_ms` is
        capped at `limits.code_max_ms` and begins with the program. Cancelling the caller stops the program.
        `owner`: the run; runs take turns, and one run's programs get half of the threads at most. `waiting` is entered
        until a thread takes the program.
        Raises SandboxError: code_failed, code_timeout, code_memory; `extra["stdout"]` has what was printed, if known.
        """
        limits = self.limits
        if len(code.source.encode("utf-8", "surrogatepass")) > limits.code_source:
            raise SandboxError(_too_long(limits.code_source), code="code_failed", stdout="")
        soft_ms = max(1, min(timeout_ms, limits.code_max_ms))
        stop = threading.Event()

        def work(guest: Guest) -> tuple[Any, str]:
            answer = _ask(
                guest, _request("code", [code], seed, limits.code_memory, console=limits.console), "code",
                now_ms=now_ms, soft_ms=soft_ms, hard_ms=soft_ms + limits.code_grace_ms, jobs=True,
                should_stop=stop.is_set,
            )  # fmt: skip
            pair = _result(answer, "code", limits.depth + 1)
            if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[1], str):
                raise SandboxError("the code corrupted its own result", code="code_failed")
            return pair[0], pair[1]

        try:
            return await self._programs.run(work, owner, waiting)
        except asyncio.CancelledError:
            stop.set()
            raise

    def check_syntax(self, source: str, kind: Literal["expression", "code"]) -> str | None:
        """None when `source` parses, else the engine's message. Never runs it. Blocks the caller, for about 0.1 ms."""
        limits = self.limits
        most = limits.expression_source if kind == "expression" else limits.code_source
        if len(source.encode("utf-8", "surrogatepass")) > most:
            return _too_long(most)
        if kind == "expression" and not source.strip():
            return "SyntaxError: the expression is empty"
        if kind == "expression" and self._closures.of(source) is not None:
            return None
        try:
            answer = self._check(_encode({"kind": "check", "source": source, "form": kind}))
        except GuestStopped as stop:
            return f"SyntaxError: the text is too complex to parse ({stop.reason})"
        message: str | None = orjson.loads(answer[1:])
        return message

    def matches(self, pattern: str, text: str) -> bool:
        """Does this regular expression of JavaScript (flag u, if it is one with it) match somewhere in `text`? Blocks
        the caller, for 100 ms at most. Raises SandboxError: expression_failed (it is none), expression_timeout."""
        call = {"s": _MATCH, "v": {"pattern": pattern, "text": text}, "t": {}, "p": False}
        request = _encode({"kind": "expressions", "calls": [call], "seed": (1, 2, 3, 4)})
        try:
            found = _result(self._check(request), "expression", 2)
        except GuestStopped as stop:
            raise SandboxError(f"pattern {pattern[:80]!r}: {stop.reason}", code="expression_timeout") from None
        return bool(found == [True])

    def _check(self, request: bytes) -> bytes:
        """A short call of the guest that is kept for checks. Raises GuestStopped."""
        limits = self.limits
        with self._checking:
            if self._checker is None:
                from executor.sandbox.guest import Guest  # and with it wasmtime

                self._checker = Guest(memory_bytes=limits.expression_memory, output_bytes=limits.output)
            return self._checker.call(
                request, now_ms=0, soft_ms=limits.expression_soft_ms, hard_ms=limits.expression_hard_ms
            )

    def close(self) -> None:
        """Wait for what runs (it has deadlines) and free all guests. Calls that come later raise RuntimeError."""
        self._expressions.close()
        self._programs.close()
        with self._checking:
            if self._checker is not None:
                self._checker.close()
                self._checker = None


def _request(
    kind: str, calls: Sequence[Bound], seed: str, memory: int, known: Collection[str] = frozenset(), **extra: Any
) -> bytes:
    """Values are encoded one by one and counted: what would not fit into the guest's `memory` bytes is not built here
    either. Raises SandboxError: expression_memory, code_memory."""
    words = struct.unpack("<4I", hashlib.sha256(seed.encode("utf-8", "surrogatepass")).digest()[:16])
    items: list[dict[str, Any]] = []
    for call in calls:
        values: list[bytes] = []
        for name, value in call.values.items():
            values.append(_encode(name) + b":" + _encode(value))
            memory -= len(values[-1])
            if memory < 0:
                code = "code_memory" if kind == "code" else "expression_memory"
                raise SandboxError("out of memory: the values it refers to are too large", code=code)
        items.append(
            {
                "s": orjson.Fragment(_encode(call.source)),
                "v": orjson.Fragment(b"{" + b",".join(values) + b"}"),
                "t": orjson.Fragment(_encode(dict(call.texts))),
                "p": call.source in known,
            }
        )
    return _encode({"kind": kind, "calls": items, "seed": words, **extra})


def _encode(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME)
    except orjson.JSONEncodeError:
        pass  # lone surrogates and integers beyond 64 bits are JSON too
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise SandboxError(f"a bound value is not JSON: {error}", code="expression_failed") from None


def _ask(guest: Guest, request: bytes, kind: str, **how: Any) -> bytes:
    try:
        return guest.call(request, **how)
    except GuestStopped as stop:
        match stop.reason:
            case "timeout":
                raise SandboxError(f"stopped after {how['soft_ms']} ms", code=f"{kind}_timeout") from None
            case "stopped":
                raise SandboxError("stopped: the result is no longer needed", code=f"{kind}_timeout") from None
            case "memory":
                raise SandboxError("out of memory", code=f"{kind}_memory") from None
            case "output":
                raise SandboxError("RangeError: the result is too large", code=f"{kind}_failed") from None
            case "stack":
                raise SandboxError("RangeError: Maximum call stack size exceeded", code=f"{kind}_failed") from None


def _result(answer: bytes, kind: str, depth: int) -> Any:
    """The prelude's answer, read as foreign text: user code may have spoiled the built-ins that made it."""
    try:
        value = _decode(answer[1:])
    except ValueError:
        raise SandboxError("the result is not JSON, or nested too deeply", code=f"{kind}_failed") from None
    if answer[:1] != b"O":
        raise _failure(value, kind)
    if answer.count(b"[") + answer.count(b"{") > depth and not _within(value, depth):
        raise SandboxError("the result is nested too deeply", code=f"{kind}_failed")
    return value


def _decode(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        if b"\\u" not in text:  # lone surrogates are what the standard library reads and orjson refuses
            raise
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _failure(value: Any, kind: str) -> SandboxError:
    report = value if isinstance(value, dict) else {}
    extra = {name: report[name] for name, kind_ in _REPORTED.items() if isinstance(report.get(name), kind_)}
    message = str(report.get("message") or "Error")[:2000]
    if report.get("memory") is True:
        return SandboxError("out of memory", code=f"{kind}_memory", **extra)
    return SandboxError(message, code=f"{kind}_failed", **extra)


def _within(value: Any, depth: int) -> bool:
    level = [value]
    while level:
        if depth == 0:
            return all(not isinstance(item, list | dict) for item in level)
        level = [
            inner
            for item in level
            if isinstance(item, list | dict)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        depth -= 1
    return True


def _too_long(most: int) -> str:
    return f"SyntaxError: the source has more than {most} bytes"

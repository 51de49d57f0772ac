"""Expressions and programs of users, run in worker threads that each own a guest. See the package for the contract."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from compiler.catalog import CodeKind, Finding
from executor.blocks.sandbox import GuestStopped, Language, Limits
from executor.blocks.sandbox.exchange import (
    Elsewhere,
    ask,
    encoded,
    program_result_of,
    request_of,
    result_of,
    stopped,
    too_long,
)
from executor.blocks.sandbox.missing import missing
from executor.blocks.sandbox.simple import Closure, Closures, Unsure, evaluate_simple
from executor.blocks.sandbox.workers import Waiting, Workers
from executor.errors import SandboxError
from executor.kernel.values.payload import Bound

if TYPE_CHECKING:
    from executor.blocks.sandbox.guest import Guest
    from executor.blocks.sandbox.python.guest import PythonGuest

_PARSED_MAX = 4096
_PYTHON_CHECK_MS = 500
CODE_THREADS_MAX = 16  # each may hold the memory of a program
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
        """Evaluate expressions in order, all in one time budget: one result for each, which is the value that
        JSON.stringify writes. An integer beyond 2^53 that would lose digits on its way in is an error. `owner`: the
        run; runs take turns. Raises SandboxError: expression_failed, expression_timeout, expression_memory, with the
        position of the expression in `extra["index"]`; number_inexact."""
        if not calls:
            return []
        limits = self.limits
        for index, call in enumerate(calls):
            if len(call.source.encode("utf-8", "surrogatepass")) > limits.expression_source:
                raise SandboxError(too_long(limits.expression_source), code="expression_failed", index=index)
        if not self._expressions.closed and (simple := self._simply(calls)) is not None:
            return simple

        def work(guest: Guest) -> list[Any]:
            request = request_of("expressions", calls, seed, limits.expression_memory, known=self._parsed)
            soft_ms, hard_ms = limits.expression_soft_ms, limits.expression_hard_ms
            try:
                answer = guest.call(request, now_ms=now_ms, soft_ms=soft_ms, hard_ms=hard_ms)
            except GuestStopped as stop:
                raise stopped(stop.reason, "expression", soft_ms, limits.output) from None
            results = result_of(answer, "expression", limits.depth + 1)
            if not isinstance(results, list) or len(results) != len(calls):
                raise SandboxError("the expressions corrupted their own results", code="expression_failed")
            if len(self._parsed) > _PARSED_MAX:
                self._parsed.clear()
            self._parsed.update(call.source for call in calls)
            return results

        return await self._expressions.run(work, owner)

    def _simply(self, calls: Sequence[Bound]) -> list[Any] | None:
        """Return the results without the guest, or None if it is needed. All or none: an expression may change the
        built-ins that a later one uses."""
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
        elsewhere: Elsewhere | None = None,
        language: Language = "javascript",
    ) -> tuple[Any, str]:
        """Run a program, the body of a function, and return its result and console text. `timeout_ms` is capped at
        `limits.code_max_ms` and begins with the program. Cancelling the caller stops it. `owner`: the run; runs take
        turns, and one run's programs get half of the threads at most. `waiting` is entered until a thread takes the
        program. `elsewhere`: it runs in the guest of another process, with the same bounds. Raises SandboxError:
        code_failed, code_timeout, code_memory; `extra["stdout"]` has the printed text, if known; python_missing,
        number_inexact (JavaScript)."""
        limits = self.limits
        if len(code.source.encode("utf-8", "surrogatepass")) > limits.code_source:
            raise SandboxError(too_long(limits.code_source), code="code_failed", stdout="")
        soft_ms = max(1, min(timeout_ms, limits.code_max_ms))
        memory = limits.python_memory if language == "python" else limits.code_memory
        build = partial(request_of, "code", [code], seed, memory, language=language, console=limits.console, now=now_ms)
        how = {"now_ms": now_ms, "soft_ms": soft_ms, "hard_ms": soft_ms + limits.code_grace_ms}
        try:
            if elsewhere is None:
                return await self._program(build, how, owner, waiting, language)
            where = {"memory_bytes": memory, "output_bytes": limits.output, "language": language}
            return program_result_of(await ask(elsewhere, await asyncio.to_thread(build), **where, **how), limits.depth)
        except GuestStopped as stop:
            raise stopped(stop.reason, "code", soft_ms, limits.output, language) from None

    async def _program(
        self,
        build: Callable[[], bytes],
        how: dict[str, int],
        owner: str,
        waiting: Waiting | None,
        language: Language,
    ) -> tuple[Any, str]:
        stop = threading.Event()

        def work(guest: Guest) -> tuple[Any, str]:
            calling = self._python_guest().call if language == "python" else guest.call
            return program_result_of(calling(build(), **how, jobs=True, should_stop=stop.is_set), self.limits.depth)

        try:
            return await self._programs.run(work, owner, waiting)
        except asyncio.CancelledError:
            stop.set()
            raise

    def _python_guest(self) -> PythonGuest:
        from executor.blocks.sandbox.python.guest import PythonGuest  # and with it wasmtime

        return PythonGuest(memory_bytes=self.limits.python_memory, output_bytes=self.limits.output)

    def check_syntax(self, source: str, kind: CodeKind) -> str | Finding | None:
        """Return None if `source` parses, else the engine's message; a finding if nothing here can run it. Blocks the
        caller for about 0.1 ms; Python for 5. Where Python is not built, every source passes."""
        limits = self.limits
        most = limits.expression_source if kind == "expression" else limits.code_source
        if len(source.encode("utf-8", "surrogatepass")) > most:
            return too_long(most)
        if kind == "expression" and not source.strip():
            return "SyntaxError: the expression is empty"
        if kind == "expression" and self._closures.of(source) is not None:
            return None
        if (reason := missing()) is not None:
            return Finding(reason.code, "", f"{reason.message}.", reason.hint)
        request = encoded({"kind": "check", "source": source, "form": kind})
        try:
            answer = self._check_python(request) if kind == "python" else self._check(request)
        except GuestStopped as stop:
            return f"SyntaxError: the text is too complex to parse ({stop.reason})"
        message: str | None = orjson.loads(answer[1:])
        return message

    def matches(self, pattern: str, text: str) -> bool:
        """Return True if this regular expression of JavaScript matches somewhere in `text`. Blocks the caller, for 100
        ms at most. Raises SandboxError: expression_failed (it is not valid), expression_timeout."""
        call = {"s": _MATCH, "v": {"pattern": pattern, "text": text}, "t": {}, "p": False}
        request = encoded({"kind": "expressions", "calls": [call], "seed": (1, 2, 3, 4)})
        try:
            found = result_of(self._check(request), "expression", 2)
        except GuestStopped as stop:
            raise SandboxError(f"pattern {pattern[:80]!r}: {stop.reason}", code="expression_timeout") from None
        return bool(found == [True])

    def _check_python(self, request: bytes) -> bytes:
        try:
            return self._python_guest().call(request, now_ms=0, soft_ms=_PYTHON_CHECK_MS, hard_ms=_PYTHON_CHECK_MS)
        except SandboxError:
            return b"Onull"

    def _check(self, request: bytes) -> bytes:
        limits = self.limits
        with self._checking:
            if self._checker is None:
                from executor.blocks.sandbox.guest import Guest  # and with it wasmtime

                self._checker = Guest(memory_bytes=limits.expression_memory, output_bytes=limits.output)
            return self._checker.call(
                request, now_ms=0, soft_ms=limits.expression_soft_ms, hard_ms=limits.expression_hard_ms
            )

    def close(self) -> None:
        """Wait for running calls (they have deadlines) and free all guests. Later calls raise RuntimeError."""
        self._expressions.close()
        self._programs.close()
        with self._checking:
            if self._checker is not None:
                self._checker.close()
                self._checker = None

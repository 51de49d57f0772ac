"""A context for the control blocks. Expressions are looked up in a table: what a source gives, or what it throws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

from compiler.plan import Cache
from executor.errors import BlockError
from executor.kernel.handler.base import ChildRequest, Memory, Over, StepContext, StepResults, Steps
from executor.kernel.handler.durable import DurableCalls
from executor.kernel.store.run_rows import NewRun
from executor.kernel.values.payload import Bound


class Throws:
    def __init__(self, message: str) -> None:
        self.message = message


class Sandbox:
    """`calls` lists the sources of each call, in order."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.table = table
        self.calls: list[list[str]] = []

    async def evaluate(self, bound: Sequence[Bound]) -> list[Any]:
        self.calls.append([b.source for b in bound])
        results = []
        for b in bound:
            result = self.table[b.source]
            if isinstance(result, Throws):
                raise BlockError(result.message, code="expression_failed", retryable=False)
            results.append(result)
        return results


def js(source: str) -> Bound:
    return Bound(source, {})


class Own:
    """An attempt of block `b`, without an engine."""

    def __init__(self, type: str, sandbox: Sandbox, **more: Any) -> None:
        self.run_id, self.workflow, self.key_text, self.number = "run", "w", "b", 1
        self.type, self.idempotency_key = type, "run:b"
        self.node: Any = SimpleNamespace(block="b", name="B", policy=SimpleNamespace(runner="inline"))
        self.services: Any = None
        self.connections: Any = None
        self.evaluate = sandbox.evaluate
        self.__dict__.update(more)

    def clock(self) -> int:
        return 0

    def emit(self, text: str) -> None: ...

    def log(self, *values: object) -> None: ...

    async def checkpoint(self, value: Any) -> None: ...

    def checkpoint_from_thread(self, value: Any) -> None: ...

    def waiting(self) -> AbstractContextManager[None]:
        return nullcontext()

    def queueing(self) -> AbstractContextManager[None]:
        return nullcontext()

    def heartbeat(self) -> None: ...

    def over(self) -> Over:
        return Over()

    def memory(self) -> Memory:
        raise BlockError("no memory here")

    def callback_url(self, wait: str) -> str:
        raise BlockError("no callbacks here")

    def results_of(self, step: str, params: Any, cache: Cache, schema: Any) -> StepResults:
        raise BlockError("no results here")

    def steps(self) -> Steps:
        raise BlockError("no steps here")

    async def cancel_child(self, run: str) -> None:
        raise NotImplementedError

    async def prepare_child(self, request: ChildRequest) -> NewRun:
        raise BlockError("no further runs here")

    async def prepare_next(self, input: Any) -> NewRun:
        raise BlockError("no further runs here")

    async def durable_calls(self, code: object) -> DurableCalls:
        raise BlockError("no durable functions here")

    async def repeat_wanted(self) -> bool:
        return False


_OF_CONTEXT = {"variables", "input", "now_ms", "turn", "count", "broke", "wired", "last_checkpoint"}


def context(
    params: dict[str, Any] | None = None, type: str = "x", *, js: Sandbox | Mapping[str, Any] | None = None, **more: Any
) -> StepContext:
    """`more`: fields of the context, and what an attempt has."""
    sandbox = js if isinstance(js, Sandbox) else Sandbox(js or {})
    given: dict[str, Any] = {"input": None, "variables": {}, "now_ms": 0}
    given |= {name: value for name, value in more.items() if name in _OF_CONTEXT}
    own = Own(type, sandbox, **{name: value for name, value in more.items() if name not in _OF_CONTEXT})
    return StepContext(own, params or {}, **given)

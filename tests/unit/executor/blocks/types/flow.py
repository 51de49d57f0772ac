"""A Context for the control blocks. Expressions are looked up in a table: what a source gives, or what it throws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from executor.blocks.services import Services
from executor.errors import BlockError
from executor.kernel.handler.base import Context
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


async def _kept(value: Any) -> None: ...


def context(
    params: dict[str, Any] | None = None, type: str = "x", *, js: Sandbox | Mapping[str, Any] | None = None, **more: Any
) -> Context:
    sandbox = js if isinstance(js, Sandbox) else Sandbox(js or {})
    given: dict[str, Any] = {
        "run_id": "run", "workflow": "w", "key": "b", "block": "b", "name": "B", "type": type, "attempt": 1,
        "idempotency_key": "run:b", "params": params or {}, "input": None, "variables": {}, "now_ms": 0,
        "services": cast(Services, None), "emit": lambda text: None, "evaluate": sandbox.evaluate,
        "checkpoint": _kept, "checkpoint_from_thread": lambda value: None,
    }  # fmt: skip
    return Context(**(given | more))

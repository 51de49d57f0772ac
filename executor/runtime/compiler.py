"""Documents compiled with the blocks and environment names of this process."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection
from functools import partial
from typing import Any, Final

import orjson

from compiler.compile import DEFAULT_LIMITS, Compiled, compile_document
from compiler.diagnostics import CompileError
from compiler.document import Limits
from compiler.plan import Plan
from executor.blocks.registry import Registry

# About 100 blocks, which take 10 ms.
COMPILE_ASIDE_BYTES: Final = 16 * 1024
RESULTS_MAX: Final = 256


class Compiler:
    """Remembers the last results: a document is compiled when it is edited, stored and submitted."""

    def __init__(self, registry: Registry, env_names: Collection[str], limits: Limits = DEFAULT_LIMITS) -> None:
        self._registry = registry
        self._limits = limits
        self._env_names = frozenset(env_names)
        self._results: dict[tuple[str, str | None], Compiled] = {}

    async def compile(self, document: Any, trigger: str | None = None) -> Compiled:
        """Plan and diagnostics; never raises for what is wrong with the document. A large one is compiled in a thread:
        other tasks run meanwhile."""
        data = document if isinstance(document, bytes) else orjson.dumps(document)
        key = (hashlib.sha256(data).hexdigest(), trigger)
        compiled = self._results.get(key)
        if compiled is None:
            work = partial(
                compile_document, data, self._registry, trigger=trigger, limits=self._limits, env_names=self._env_names
            )
            compiled = await asyncio.to_thread(work) if len(data) > COMPILE_ASIDE_BYTES else work()
            if len(self._results) >= RESULTS_MAX:
                self._results.pop(next(iter(self._results)))
            self._results[key] = compiled
        return compiled

    async def plan(self, document: Any, trigger: str | None = None) -> Plan:
        """Raises CompileError."""
        return plan_of(await self.compile(document, trigger))


def plan_of(compiled: Compiled) -> Plan:
    """Raises CompileError."""
    if compiled.plan is None:
        raise CompileError(list(compiled.diagnostics))
    return compiled.plan

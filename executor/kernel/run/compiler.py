"""Documents compiled with the blocks and environment names of this process."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Final

import orjson

from compiler.catalog import CONNECTOR, EVENT, Catalog
from compiler.compile import DEFAULT_LIMITS, Compiled, compile_document
from compiler.diagnostics import CompileError
from compiler.document import Limits
from compiler.plan import Plan
from executor.kernel.handler.needs import Connectors
from executor.kernel.process.threads import aside
from executor.kernel.run.imports import accept

# About 100 blocks, which take 10 ms.
COMPILE_ASIDE_BYTES: Final = 16 * 1024
# To parse Python takes 5 ms for each program, and 300 ms for the first one of a process.
_SLOW: Final = b'"python"'
_CONNECTORS: Final = (b'"' + CONNECTOR.encode(), b'"' + EVENT.encode())
RESULTS_MAX: Final = 256


class Compiler:
    """Remembers the last results: a document is compiled when it is edited, stored and submitted."""

    def __init__(
        self,
        registry: Catalog,
        env_names: Collection[str],
        limits: Limits = DEFAULT_LIMITS,
        stored: Callable[[], frozenset[str]] = frozenset,
        connectors: Connectors | None = None,
    ) -> None:
        """Make the compiler. `stored` returns the names of stored secrets at present; `connectors` are those of the
        database."""
        self._registry = registry
        self._limits = limits
        self._env_names = frozenset(env_names)
        self._stored = stored
        self._connectors = connectors
        self._known: tuple[frozenset[str], int] = frozenset(), 0
        self._results: dict[tuple[str, str | None], Compiled] = {}

    async def compile(self, document: Any, trigger: str | None = None) -> Compiled:
        """Plan and diagnostics; never raises for what is wrong with the document, only StoreError. A large one, or one
        with Python, is compiled in a thread: other tasks run meanwhile."""
        data = document if isinstance(document, bytes) else orjson.dumps(document)
        revision = 0
        if self._connectors is not None:
            if any(prefix in data for prefix in _CONNECTORS):
                await self._connectors.refresh()
            revision = self._connectors.revision
        stored = self._stored() - self._env_names
        if (stored, revision) != self._known:
            self._known = stored, revision
            self._results.clear()
        key = (hashlib.sha256(data).hexdigest(), trigger)
        compiled = self._results.get(key)
        if compiled is None:
            work = partial(self._compile, data, trigger, stored)
            takes_long = len(data) > COMPILE_ASIDE_BYTES or _SLOW in data
            compiled = await aside(work) if takes_long else work()
            if len(self._results) >= RESULTS_MAX:
                self._results.pop(next(iter(self._results)))
            self._results[key] = compiled
        return compiled

    def _compile(self, data: bytes, trigger: str | None, stored: frozenset[str]) -> Compiled:
        env_names, limits = self._env_names | stored, self._limits
        return compile_document(
            accept(data, self._registry, env_names, limits),
            self._registry,
            trigger=trigger,
            limits=limits,
            env_names=env_names,
            stored_secrets=stored,
        )

    async def plan(self, document: Any, trigger: str | None = None) -> Plan:
        """Raises CompileError."""
        return plan_of(await self.compile(document, trigger))


def plan_of(compiled: Compiled) -> Plan:
    """Raises CompileError."""
    if compiled.plan is None:
        raise CompileError(list(compiled.diagnostics))
    return compiled.plan

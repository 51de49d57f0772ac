"""What a process has one of. The engine makes the parts once; run loops and everything the engine offers share them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from compiler.compile import DEFAULT_LIMITS
from compiler.document import Limits
from executor.blocks.registry import Registry
from executor.runtime.children import ChildRuns
from executor.runtime.clock import Clock, Timers
from executor.runtime.compiler import Compiler
from executor.runtime.hub import Hub
from executor.runtime.links import Links
from executor.runtime.owned import OwnedRuns
from executor.runtime.turns import Turns
from executor.services import Services
from executor.store.contract import Store
from executor.values.redact import Redactor


@dataclass(frozen=True, slots=True)
class Parts:
    """`hub` wakes readers, `owned` wakes the run loops of this process."""

    store: Store
    registry: Registry
    services: Services
    clock: Clock
    links: Links
    redactor: Redactor
    compiler: Compiler
    children: ChildRuns
    timers: Timers
    turns: Turns
    hub: Hub
    owned: OwnedRuns

    @classmethod
    def make(
        cls,
        store: Store,
        *,
        registry: Registry,
        services: Services,
        clock: Clock,
        links: Links,
        documents: Limits = DEFAULT_LIMITS,
    ) -> Self:
        compiler = Compiler(registry, services.env, documents)
        return cls(
            store=store,
            registry=registry,
            services=services,
            clock=clock,
            links=links,
            redactor=Redactor({name: services.env[name] for name in services.secrets if name in services.env}),
            compiler=compiler,
            children=ChildRuns(store, clock, services.sandbox.matches, compiler.compile),
            timers=Timers(clock),
            turns=Turns(),
            hub=Hub(),
            owned=OwnedRuns(),
        )

    def wake(self, run: str) -> None:
        """Something was committed for `run` that its readers and its owner need to know."""
        self.hub.signal(run)
        self.owned.wake(run)

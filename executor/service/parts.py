"""The parts that a process has one of. The engine makes them once; run loops and all topics share them."""

from __future__ import annotations

from typing import Self

from compiler.compile import DEFAULT_LIMITS
from compiler.document import Limits
from executor.blocks.connectors.stored import StoredConnectors
from executor.blocks.knowledge.collections import Knowledge
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.blocks.vault.connections import Connections
from executor.blocks.vault.sealing import Keys
from executor.blocks.vault.vault import Vault
from executor.kernel.process.clock import Clock
from executor.kernel.process.lane_cache import LANES_SHARE, LaneCache
from executor.kernel.process.timers import Timers
from executor.kernel.read.hub import Hub
from executor.kernel.read.peers import Peers
from executor.kernel.run import parts as kernel
from executor.kernel.run.children import FurtherRuns
from executor.kernel.run.compiler import Compiler
from executor.kernel.run.links import KeyTimes, Links
from executor.kernel.run.meters import RunMeters
from executor.kernel.run.owned import OwnedRuns
from executor.kernel.run.places import Places
from executor.kernel.store.topics.store import Store
from executor.kernel.values.files import Files
from executor.kernel.values.redact import LiveRedactor


class Parts(kernel.Parts, frozen=True):
    """The parts of the kernel, with everything that topics, triggers and messages use of them."""

    registry: Registry
    services: Services
    vault: Vault
    connections: Connections
    connectors: StoredConnectors

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
        keys: Keys | None = None,
        lease_ms: int = 15_000,
    ) -> Self:
        secrets = {name: services.env[name] for name in services.secrets if name in services.env}
        kept = {name: secret.value for name, secret in services.kept.items()}
        redactor = LiveRedactor({**secrets, **kept, **services.model_keys})
        own, *old = [links.signing_key("uploads", key) for key in range(len(links.key_ids))]
        files = Files(store, clock.now_ms, own, services.limits.file_bytes, redactor.redact, old)
        services.files, services.registry = files, registry
        services.knowledge = Knowledge(store, services.models, clock.now_ms)
        peers = Peers()
        vault = Vault(store, keys, services.env, redactor, clock.now_ms, services.secrets_command, services.kept)
        connectors = StoredConnectors(store, registry)
        compiler = Compiler(registry, services.env, documents, lambda: vault.names, connectors)
        return cls(
            store=store,
            registry=registry,
            services=services,
            clock=clock,
            links=links,
            key_times=KeyTimes(store, links, clock),
            redactor=redactor,
            vault=vault,
            files=files,
            connections=Connections(store, vault, services.http, clock.now_ms, lease_ms),
            connectors=connectors,
            compiler=compiler,
            further_runs=FurtherRuns(store, clock, services.sandbox.matches, compiler.compile),
            timers=Timers(clock),
            hub=Hub(peers),
            owned=OwnedRuns(peers, LaneCache(services.limits.lanes, services.limits.memory_bytes // LANES_SHARE)),
            places=Places(store, peers),
            peers=peers,
            meters=RunMeters(),
        )


class Topic:
    """Operations of one subject, which the engine offers under its name."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._store = parts.store
        self._clock = parts.clock

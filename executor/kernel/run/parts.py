"""The parts that a process has one of, as the kernel sees them. `executor.service.parts` makes them."""

from __future__ import annotations

from msgspec import Struct

from executor.kernel.handler.base import Registry
from executor.kernel.handler.needs import Connections, Connectors, Services, Vault
from executor.kernel.process.clock import Clock
from executor.kernel.process.timers import Timers
from executor.kernel.read.hub import Hub
from executor.kernel.read.peers import Peers
from executor.kernel.run.children import FurtherRuns
from executor.kernel.run.compiler import Compiler
from executor.kernel.run.links import KeyTimes, Links
from executor.kernel.run.meters import RunMeters
from executor.kernel.run.owned import OwnedRuns
from executor.kernel.run.places import Places
from executor.kernel.store.topics.store import Store
from executor.kernel.values.files import Files
from executor.kernel.values.redact import LiveRedactor


class Parts(Struct, frozen=True):
    """The parts of a process. `hub` wakes readers, `owned` wakes the run loops of this process, `peers` those of
    others."""

    store: Store
    registry: Registry
    services: Services
    clock: Clock
    links: Links
    key_times: KeyTimes
    redactor: LiveRedactor
    vault: Vault
    files: Files
    connections: Connections
    connectors: Connectors
    compiler: Compiler
    further_runs: FurtherRuns
    timers: Timers
    hub: Hub
    owned: OwnedRuns
    places: Places
    peers: Peers
    meters: RunMeters

    def wake(self, run: str) -> None:
        self.hub.signal(run)
        self.owned.wake(run)

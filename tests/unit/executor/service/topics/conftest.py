"""Topics stand on Parts alone: there is no engine and no worker here, so runs stay queued until a test writes more."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.kernel.run.links import Links
from executor.service.parts import Parts
from executor.service.topics.events import Events
from executor.service.topics.runs import Runs
from executor.service.topics.waits import Waits
from executor.service.topics.workflows import Workflows
from executor.service.triggers.schedules import Schedules
from tests.support.clock import ManualClock
from tests.support.model_store.store import ModelStore


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    sandbox = Sandbox(threads=1)
    yield sandbox
    sandbox.close()


@pytest.fixture
async def parts(sandbox: Sandbox) -> AsyncIterator[Parts]:
    store = ModelStore()
    await store.open()
    parts = Parts.make(
        store,
        registry=Registry.load(sandbox=sandbox),
        services=Services(sandbox=sandbox, http=GuardedClient()),
        clock=ManualClock(),
        links=Links(b"0" * 32, "http://127.0.0.1"),
    )
    yield parts
    parts.timers.close()
    await parts.services.http.close()
    await store.close()


@pytest.fixture
async def events(parts: Parts) -> AsyncIterator[Events]:
    events = Events(parts)
    yield events
    await events.stop()


@pytest.fixture
def runs(parts: Parts) -> Runs:
    return Runs(parts, Waits(parts), Workflows(parts, Schedules(parts).scheduler))

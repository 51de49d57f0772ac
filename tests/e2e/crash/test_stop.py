"""SIGTERM in the middle of work: the server ends soon, says so with 0, and the next one finishes what it left."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from tests.e2e.crash.conftest import Servers
from tests.e2e.crash.people import People
from tests.e2e.crash.verify import holds
from tests.e2e.crash.workload import Job, jobs
from tests.support.journal import Journal, log_is_clean
from tests.support.service import Service, chain
from tests.support.until import until

pytestmark = pytest.mark.proof

STOPS = 2


async def test_a_stop_under_load_loses_nothing(servers: Servers, service: Service) -> None:
    servers.allow(service)
    slow = chain(service.url)
    service.holds.add("/step/2")
    choose = random.Random(4)
    kinds = [*jobs(), Job("chain", slow, {}, lambda output: None, {})]
    server = await servers.start()
    people = People(server.url, kinds, choose, open_max=24)
    took: list[float] = []
    stopping = asyncio.Event()
    slowly = asyncio.create_task(_answer_slowly(service, stopping), name="the service")
    try:
        people.begin()
        for _ in range(STOPS):
            enough = len(people.ledger.runs) + 15
            await until(lambda: len(people.ledger.runs) >= enough and service.held(), meanwhile=people.check)  # noqa: B023
            began = time.monotonic()
            assert await server.stop(timeout_s=30) == 0
            took.append(time.monotonic() - began)
            server = await servers.start()
        await people.finish(timeout_s=90)
        assert await server.stop(timeout_s=30) == 0
    finally:
        stopping.set()
        await slowly
        await people.close()
    assert people.ledger.counts["streams lost"] >= STOPS, "no client was following: resuming by id was not tried"

    journal = Journal(servers.db)
    journal.is_sound()
    journal.is_dense()
    journal.all_succeeded()
    journal.results_are_recorded_once()
    journal.no_call_to_itself_failed()
    holds(journal, people.ledger)
    log_is_clean(servers.log)
    print(f"stopped after {', '.join(f'{s:.1f}' for s in took)} s; {len(journal.runs)} runs")
    print(f"{sum(journal.lost_attempts().values())} attempts lost; {dict(people.ledger.counts)}")


async def _answer_slowly(service: Service, stopping: asyncio.Event) -> None:
    """A second for each call that is held."""
    while not stopping.is_set():
        waiting = service.held()
        await asyncio.sleep(0.5)
        for call in waiting:
            call.gate.set()

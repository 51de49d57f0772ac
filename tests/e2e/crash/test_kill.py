"""The whole system under kill -9: nothing acknowledged is lost, nothing is recorded twice, no follower misses an event.

Three kills in `make test`, ten in `make check`. WEFT_CRASH_SEED repeats the choices (what they hit still depends on
the machine), WEFT_CRASH_KILLS sets how many kills `make check` does.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time
from pathlib import Path

import pytest

from tests.e2e.crash.people import People
from tests.e2e.crash.verify import holds
from tests.e2e.crash.workload import jobs
from tests.support.journal import Journal, log_is_clean
from tests.support.place import Place
from tests.support.server import ServerProcess, free_port

KILLS = int(os.environ.get("WEFT_CRASH_KILLS", "50"))
SEED = int(os.environ.get("WEFT_CRASH_SEED") or random.SystemRandom().randrange(10**6))
LIFE = 0.6  # of the time that a start takes: at most this long after it is ready, on slow machines, too
KILLED_EARLY = 0.25  # share of the kills that come while the server starts
OPEN_MAX = 12  # runs under way at a time
LEASE_MS = 1_000  # what a killed server held is taken over this much later
# A block that runs at every one of ten kills is asked about: it may be what kills the server (core: LOST_ATTEMPTS_MAX).
# So that few innocent ones get there, the runs may come to their end after every so many kills.
STRETCH = 9


@pytest.mark.parametrize("kills", [3, pytest.param(KILLS, marks=pytest.mark.proof)])
@pytest.mark.timeout(120 + 8 * KILLS)
@pytest.mark.parametrize("place", ["sqlite", "postgres"], indirect=True)
async def test_nothing_is_lost_or_done_twice_over_many_kills(place: Place, tmp_path: Path, kills: int) -> None:
    print(f"WEFT_CRASH_SEED={SEED} WEFT_CRASH_KILLS={kills}")
    choose = random.Random(SEED)
    log, port = tmp_path / "log", free_port(choose)
    began = time.monotonic()
    starts: list[float] = []

    async def start() -> ServerProcess:
        return await ServerProcess.start(place, port, log, WEFT_LEASE_MS=str(LEASE_MS))

    people = People(f"http://127.0.0.1:{port}", jobs(), choose, OPEN_MAX)
    server = await start()
    try:
        people.begin()
        for number in range(1, kills + 1):
            if number % STRETCH == 0:
                starts.append(await server.ready())
                await people.those_under_way(timeout_s=120)
            elif starts and choose.random() < KILLED_EARLY:
                await asyncio.sleep(choose.uniform(0, statistics.median(starts)))
            else:
                starts.append(await server.ready())
                await asyncio.sleep(choose.uniform(0, LIFE * statistics.median(starts)))
            await server.kill()
            people.check()
            server = await start()
        killing_s = time.monotonic() - began
        await server.ready()
        await people.finish(timeout_s=180)
        ledger = people.ledger
        for run, transcript in ledger.transcripts.items():
            journal = (await people.get(f"/api/runs/{run}/events?limit=10000"))["events"]
            assert transcript == journal, f"what the follower of {run} saw is not what is recorded"
        assert await server.stop(timeout_s=30) == 0
    finally:
        await people.close()
        await server.clean_up()

    found = Journal(place)
    found.is_sound()
    found.is_dense()
    found.all_succeeded()
    found.results_are_recorded_once()
    found.no_call_to_itself_failed()
    holds(found, ledger)
    log_is_clean(log)
    assert len(ledger.runs) >= kills, "too little was under way to prove anything"

    lost = found.lost_attempts()
    print(
        f"{len(ledger.runs)} runs, {sum(map(len, found.events.values()))} events, {len(ledger.presses)} answers, "
        f"{sum(lost.values())} attempts lost (at most {max(lost.values(), default=0)} of one node), "
        f"claims of one run at most {max(row['epoch'] for row in found.runs.values())}; {dict(ledger.counts)}\n"
        f"server ready after {statistics.median(starts):.2f} s (median), {max(starts):.2f} s (slowest); "
        f"killing took {killing_s:.1f} s, all {time.monotonic() - began:.1f} s"
    )

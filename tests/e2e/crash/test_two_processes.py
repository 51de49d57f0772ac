"""Two servers on one database: each run has one owner at a time, and who lost a run cannot write to it any more."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest

from tests.e2e.crash.conftest import Servers
from tests.e2e.crash.people import People
from tests.e2e.crash.workload import Job
from tests.support.journal import Journal, log_is_clean
from tests.support.place import Place
from tests.support.server import ServerProcess, free_port, freeze_outside_a_write
from tests.support.service import Service, chain
from tests.support.until import until

pytestmark = pytest.mark.proof

RUNS = 30
STEPS = 5
HELD_STEP = 3
# Of a busy machine, which lets a server wait for a second now and then: one that is not frozen keeps its runs.
LEASE_MS = 5_000


async def test_a_frozen_server_loses_its_runs_and_cannot_write_to_them(
    tmp_path: Path, servers: Servers, service: Service
) -> None:
    """One server is stopped in the middle of its calls, for longer than its lease; the other does them again, and what
    the first one gets to hear when it wakes up is not recorded."""
    servers.allow(service)
    servers.lease(LEASE_MS)
    first_log = tmp_path / "first.log"
    first = await servers.start(log=first_log)
    second = await servers.start(port=free_port(random.Random()))
    job = Job("chain", chain(service.url, STEPS), {}, lambda output: None, {})
    at_first, at_second = (People(server.url, [job], random.Random(0), open_max=RUNS) for server in (first, second))
    service.holds.add(f"/step/{HELD_STEP}")
    try:
        for _ in range(RUNS // 2):
            await at_first.submit(job)
            await at_second.submit(job)
        await until(lambda: len(service.held()) == RUNS)
        lost = {call.key for call in service.held(first.url)}
        assert lost, "the first server got nothing to do"

        await freeze_outside_a_write(first, servers.db)
        taken_over = await _wait_for_calls(service, second, lost)
        service.release(lambda call: call.server == second.url)
        await until(lambda: _runs_over(servers.db) == RUNS, meanwhile=at_second.check)
        late = {call.serial for call in service.held(first.url)}
        service.holds.clear()
        service.release()
        first.thaw()
        await until(lambda: "lost the lease to another worker" in first_log.read_text())
        after = await at_first.submit(job)  # it works on
        await at_first.finish(timeout_s=60)
        await at_second.finish(timeout_s=60)
    finally:
        first.thaw()
        await at_first.close()
        await at_second.close()
    assert (await first.stop(30), await second.stop(30)) == (0, 0)

    journal = Journal(servers.db)
    journal.is_sound()
    journal.is_dense()
    journal.all_succeeded()
    journal.results_are_recorded_once()
    for people in (at_first, at_second):
        for run, transcript in people.ledger.transcripts.items():
            assert [event["seq"] for event in transcript] == [row["seq"] for row in journal.events[run]]
    log_is_clean(servers.log)
    log_is_clean(first_log)
    recorded = {
        json.loads(row["output"])["body"]["serial"]
        for rows in journal.events.values()
        for row in rows
        if row["type"] == "node.succeeded" and row["node"].startswith("step")
    }
    assert len(journal.runs) == RUNS + 1
    assert len(recorded) == (RUNS + 1) * STEPS
    assert late and not recorded & late, "what the frozen server heard late was recorded"
    assert {journal.runs[key.partition(":")[0]]["epoch"] for key in lost} == {2}
    # An effect is repeated only where it was not known whether it had happened, and with the same key.
    assert len(service.calls) - len(recorded) == len(late)
    print(f"{len(lost)} of {RUNS} runs were lost by the frozen server; taken over after {taken_over:.2f} s; {after=}")


async def test_runs_submitted_to_both_are_done_once(servers: Servers, service: Service) -> None:
    servers.allow(service)
    servers.lease(60_000)  # on a busy machine a shorter one runs out
    first = await servers.start()
    second = await servers.start(port=free_port(random.Random()))
    job = Job("chain", chain(service.url, STEPS), {}, lambda output: None, {})
    both = [People(server.url, [job], random.Random(0), open_max=RUNS) for server in (first, second)]
    try:
        for _ in range(RUNS // 2):
            for people in both:
                await people.submit(job)
        for people in both:
            await people.finish(timeout_s=60)
    finally:
        for people in both:
            await people.close()
    assert (await first.stop(30), await second.stop(30)) == (0, 0)

    journal = Journal(servers.db)
    journal.is_sound()
    journal.is_dense()
    journal.all_succeeded()
    journal.results_are_recorded_once()
    assert sorted(journal.runs) == sorted(run for people in both for run, _ in people.ledger.runs.values())
    assert {row["epoch"] for row in journal.runs.values()} == {1}, "a run changed its owner without need"
    assert len(service.calls) == len({call.key for call in service.calls}) == RUNS * STEPS
    assert {call.server for call in service.calls} == {first.url, second.url}, "one of them did nothing"


async def _wait_for_calls(service: Service, server: ServerProcess, keys: set[str]) -> float:
    """Until `server` has made each of these calls. Returns seconds."""
    began = time.monotonic()
    await until(lambda: keys <= {call.key for call in service.held(server.url)})
    return time.monotonic() - began


def _runs_over(db: Place) -> int:
    return sum(row["status"] == "succeeded" for row in Journal(db).runs.values())

"""What must be true when everything has ended."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from executor.kernel.store.sqlite.reading import open_reading
from executor.service.upkeep.findings import Evidence
from executor.service.upkeep.invariants import check
from tests.fleet.clients import Clients
from tests.fleet.moments import Moments
from tests.support.journal import DECISIONS, Journal, key_of

NAMED_MAX = 20


def wrong(db: Path, clients: Clients, moments: Moments, file: Path) -> Iterator[str]:
    journal = Journal(db)
    if journal.integrity != ["ok"] or journal.dangling:
        yield f"the copy is not sound: {journal.integrity} {journal.dangling[:NAMED_MAX]}"
    yield from _runs(journal, clients)
    yield from _moments(journal, moments)
    yield from _results(journal)
    yield from _effects(journal, file)
    yield from _waits(journal, clients)
    yield from _transcripts(journal, clients)
    with closing(open_reading(db)) as connection:
        evidence = Evidence(acknowledged=list(clients.runs), transcripts=clients.transcripts)
        yield from (
            f"{each.invariant} {each.what} (run {each.run} {each.node})"
            for each in check(connection, evidence=evidence)
        )


def _runs(journal: Journal, clients: Clients) -> Iterator[str]:
    for run, job in clients.runs.items():
        row = journal.runs.get(run)
        if row is None:
            yield f"run {run} was acknowledged and is not there"
        elif row["status"] != "succeeded" or json.loads(row["output"]) != job.output:
            yield f"{job.kind} {run} ended as {row['status']} {row['error']} with {row['output']}, not {job.output}"
    children = [row for row in journal.runs.values() if row["parent_run_id"] is not None]
    parents = sum(job.kind == "parent" for job in clients.runs.values())
    delivered = {row["id"] for row in journal.runs.values() if row["workflow"] == "hooked"}
    unwell = sorted(run for run in delivered if journal.runs[run]["status"] != "succeeded")
    if len(delivered) != len(clients.deliveries) or unwell:
        yield f"{len(clients.deliveries)} deliveries started {len(delivered)} runs; {unwell} did not succeed"
    timed = {row["id"] for row in journal.runs.values() if row["workflow"] == "timed"}
    more = set(journal.runs) - set(clients.runs) - {row["id"] for row in children} - delivered - timed
    if more:
        yield f"runs that were not acknowledged, under keys that were: {sorted(more)[:NAMED_MAX]}"
    if len(children) != 3 * parents:
        yield f"{len(children)} child runs of {parents} parents"
    if journal.inbox:
        yield f"{len(journal.inbox)} messages were never taken"


def _moments(journal: Journal, moments: Moments) -> Iterator[str]:
    """Each has one run, and there is none without a moment."""
    rows = [row for row in journal.runs.values() if row["workflow"] == "timed"]
    started = Counter(row["idempotency_key"] for row in rows)
    are_set, may_be_set = (
        {f"cron:{id}:{at_ms}" for id, at_ms in each} for each in (moments.are_set, moments.may_be_set)
    )
    if missed := sorted(are_set - set(started)):
        yield f"{len(missed)} moments of {len(are_set)} have no run: {missed[:NAMED_MAX]}"
    if more := sorted(set(started) - are_set - may_be_set):
        yield f"runs of moments that there were not: {more[:NAMED_MAX]}"
    twice = [key for key, n in (started + Counter(journal.fires)).items() if n > 2 or started[key] > 1]
    if twice:
        yield f"moments that were taken twice: {sorted(twice)[:NAMED_MAX]}"
    if unwell := [row["id"] for row in rows if row["status"] != "succeeded"]:
        yield f"runs of schedules that did not succeed: {unwell[:NAMED_MAX]}"


def _results(journal: Journal) -> Iterator[str]:
    """Each event has its number, each node one result, each attempt one start."""
    for run, rows in journal.events.items():
        if [row["seq"] for row in rows] != list(range(1, journal.runs[run]["seq"] + 1)):
            yield f"the journal of {run} is not dense"
        twice = [key for key, n in Counter(key_of(row) for row in rows if row["type"] in DECISIONS).items() if n > 1]
        if twice:
            yield f"results of {run} that are there twice: {twice}"
        started = Counter((key_of(row), row["attempt"]) for row in rows if row["type"] == "node.started")
        again = [one for one, n in started.items() if n > 1 and not one[0].partition("@")[0].endswith(":end")]
        if again:
            yield f"attempts of {run} that were started twice: {again}"


def _effects(journal: Journal, file: Path) -> Iterator[str]:
    """A step that succeeded was done, and none was done more often than it was started."""
    done = Counter(file.read_text().splitlines())
    started, succeeded = Counter[str](), set()
    for run, rows in journal.events.items():
        for row in rows:
            key = f"{run}:{key_of(row)}"
            if row["type"] == "node.started":
                started[key] += 1
            elif row["type"] == "node.succeeded":
                succeeded.add(key)
    for key, times in done.items():
        if times > started[key]:
            yield f"{key} was done {times} times and started {started[key]} times"
    steps = {key for key in succeeded if key.partition(":")[2].partition("@")[0] in STEPS}
    for key in sorted(steps - set(done))[:NAMED_MAX]:
        yield f"{key} has a result and was never done"


STEPS = {"s1", "s2", "s3", "s4", "s5", "step", "before", "after"}


def _waits(journal: Journal, clients: Clients) -> Iterator[str]:
    for (run, wait), told in clients.winners.items():
        row = journal.waits[run, wait]
        if told != {row["answered_by"]}:
            yield f"{wait} of {run} was answered by {row['answered_by']}, and they were told of {sorted(told)}"


def _transcripts(journal: Journal, clients: Clients) -> Iterator[str]:
    for run, transcript in clients.transcripts.items():
        seen = [(event["seq"], event["at_ms"], event["type"], event["key"], event["attempt"]) for event in transcript]
        there = [
            (row["seq"], row["at_ms"], row["type"], key_of(row) or None, row["attempt"]) for row in journal.events[run]
        ]
        if seen != there:
            yield f"what the follower of {run} saw is not what is recorded"

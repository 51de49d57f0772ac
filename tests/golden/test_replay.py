"""Journals of earlier versions mean today what they meant then: they fold to the state that was stored, and the facts
that were told lead to the same events."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from compiler import plan as plans
from compiler.plan import Plan
from executor.kernel.core import facts as f
from executor.kernel.core.decide import decide
from executor.kernel.core.events import Event
from executor.kernel.core.evolve import evolve
from executor.kernel.core.state import RunPhase, State
from executor.kernel.journal.codec import Codec
from executor.kernel.store.run_rows import Record
from tests.support.recorded import SCHEMAS, Told, facts, restore
from tests.support.snapshots import encode

FACTS: dict[str, Any] = {cls.__name__: cls for cls in get_args(f.Fact)}


class Recorded:
    """One run: its plan, its events, the status of its row, and the facts in the order in which they were told."""

    def __init__(self, db: sqlite3.Connection, run: str, told: list[Told]) -> None:
        self.told = told
        ir, self.status = db.execute(
            "SELECT p.ir, r.status FROM runs AS r JOIN plans AS p ON p.hash = r.plan_hash WHERE r.id = ?", (run,)
        ).fetchone()
        self.plan: Plan = plans.decode(ir)
        codec = Codec(self.plan)
        rows = db.execute(
            "SELECT seq, at_ms, type, node, path, attempt, data, output FROM events WHERE run_id = ? ORDER BY seq",
            (run,),
        )
        self.events: list[Event] = [codec.to_event(Record(*row)) for row in rows]


@pytest.fixture(params=SCHEMAS, ids=lambda schema: f"schema {schema}")
def recorded(request: pytest.FixtureRequest, tmp_path: Path) -> list[Recorded]:
    told = sorted(facts(request.param), key=lambda one: one.run)  # stable: the order within a run stays
    with closing(sqlite3.connect(restore(request.param, tmp_path))) as db:
        stored = {run for (run,) in db.execute("SELECT id FROM runs")}
        by_run = [(run, list(of_run)) for run, of_run in groupby(told, lambda one: one.run)]
        assert {run for run, _ in by_run} >= stored
        # A schedule is tried out when it is made: that run is thrown away.
        return [Recorded(db, run, of_run) for run, of_run in by_run if run in stored]


def test_the_same_facts_lead_to_the_same_events(recorded: list[Recorded]) -> None:
    decided = 0
    for run in recorded:
        state = State.new(run.plan)
        for told in run.told:
            if told.seq > len(run.events):
                break  # it was not committed any more
            if (
                told.seq < state.seq
            ):  # a worker took the run and folded its journal, of which the last events were not yet
                state = State.new(run.plan)
            for event in run.events[state.seq : told.seq]:  # variables are set between two facts
                evolve(run.plan, state, event)
            assert state.seq == told.seq, "a fact was told to a state that is not that of the journal"
            events = decide(run.plan, state, msgspec.convert(told.fact, FACTS[told.type], str_keys=True))
            then = run.events[told.seq : told.seq + told.events]  # cut off where the process was killed
            assert events[: len(then)] == then, told
            assert len(events) == told.events, told
            decided += len(then)
    assert decided > 150


def test_each_journal_folds_to_what_its_row_says(recorded: list[Recorded]) -> None:
    statuses = set()
    for run in recorded:
        state = State.new(run.plan)
        for event in run.events:
            evolve(run.plan, state, event)
        again = State.new(run.plan)
        for event in run.events:
            evolve(run.plan, again, event)
        assert encode(state) == encode(again)
        statuses.add(run.status)
        if state.phase is RunPhase.FINISHED:
            assert state.ended == run.status
        else:
            assert run.status in ("queued", "running", "waiting")
            assert state.parked == (run.status == "waiting")
    # from schema 16 on a run begins in the commit that creates it, so that none may have been queued
    assert statuses | {"queued"} == {"queued", "running", "waiting", "succeeded", "failed", "cancelled"}

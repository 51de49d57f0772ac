"""Journals of durable functions that earlier versions have recorded: this version enters the functions with them, makes
the same calls in the same order, and comes to the same end.

A minor version adds its own at its release: `python -m tests.golden.journals`, see CONTRIBUTING.md. If one of these
tests fails, open runs of users would wait for code that fits after an upgrade: mend the change, not the file.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from executor.kernel.journal.codec import data_of
from executor.kernel.store.run_rows import Record
from executor.service.replay.checking import check
from executor.service.replay.journals import load
from tests.golden.journals import record
from tests.golden.programs import PROGRAMS

FILES = sorted(Path(__file__).parent.glob("journals_*.gz"))
BY_NAME = {program.name: program for program in PROGRAMS}


def test_there_are_some() -> None:
    assert FILES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
async def test_recorded_runs_are_replayed(file: Path) -> None:
    for journal in load(file):
        done = await check(BY_NAME[journal.workflow], journal)
        assert not done.parts, f"{journal.workflow}: {done.parts}"
        assert bool(done.waits) == (journal.status == "waiting")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
async def test_a_run_is_replayed_from_each_of_its_events(file: Path) -> None:
    """A process may have ended after each of them."""
    for journal in load(file):
        begun = next(n for n, one in enumerate(journal.records) if one.node == "body")
        for n in range(begun + 1, len(journal.records)):
            cut = replace(journal, records=journal.records[:n], status="running")
            if cut.end is None:
                done = await check(BY_NAME[journal.workflow], cut)
                assert not done.parts, f"{journal.workflow}, after event {journal.records[n - 1].seq}: {done.parts}"


async def test_this_version_records_what_it_can_replay() -> None:
    for journal in await record():
        done = await check(BY_NAME[journal.workflow], journal)
        assert not done.parts, f"{journal.workflow}: {done.parts}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
async def test_other_calls_are_found(file: Path) -> None:
    """The journal with another step at each place."""
    for journal in load(file):
        for n in {data_of(one)["n"] for one in journal.records if _is_step(one)}:
            records = tuple(
                replace(one, data=(one.data or b"").replace(b'"input_hash":"', b'"input_hash":"0'))
                if _is_step(one) and data_of(one)["n"] == n
                else one
                for one in journal.records
            )
            found = await check(BY_NAME[journal.workflow], replace(journal, records=records))
            assert "when this run first came here" in found.parts


def _is_step(one: Record) -> bool:
    return one.type == "step.started" and data_of(one)["kind"] == "step" and one.node == "body"

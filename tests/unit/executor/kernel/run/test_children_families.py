"""Runs that start runs, and outputs, are bounded in all, and a cancel ends a whole family at once."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from executor.kernel.handler.needs import RunLimits
from executor.kernel.store.sqlite.reading import open_reading
from executor.kernel.store.topics.families import FamilyMax
from executor.open.engine import Engine
from executor.service.upkeep.invariants import check
from tests.support.blocks import Probe
from tests.support.documents import call, caller, document
from tests.support.runs import ended, engine_on, until_event


def bomb(width: int) -> dict[str, Any]:
    """A workflow that starts itself, `width` times. Wide ones reach a bound soon; narrow ones are quick to check."""
    return document(
        "bomb",
        "start fan",
        "fan body again",
        blocks={
            "fan": {"type": "parallel", "params": {"mode": "count", "count": width}},
            "again": {**call("bomb", input={}), "parent": "fan"},
        },
    )


def asked(db: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(db)) as file:
        return [value for (value,) in file.execute(sql).fetchall()]


def findings(db: Path) -> list[Any]:
    with closing(open_reading(db)) as file:
        return list(check(file))


async def grown(engine: Engine, runs: int) -> None:
    async with asyncio.timeout(60):
        while sum((await engine.runs.count()).values()) < runs:
            await asyncio.sleep(0.005)


async def nothing_open(engine: Engine) -> None:
    async with asyncio.timeout(60):
        while (counts := await engine.runs.count())["queued"] + counts["running"] + counts["waiting"]:
            await asyncio.sleep(0.005)


async def test_a_workflow_that_starts_itself_ends_by_itself(tmp_path: Path) -> None:
    db = tmp_path / "weft.db"
    for most, code in ((FamilyMax(open=50, runs=10_000), "limit_family_open"), (FamilyMax(60, 60), "limit_family_")):
        async with engine_on(db, limits=RunLimits(family=most)) as engine:
            await engine.workflows.save(bomb(20))
            run = (await engine.submit("bomb")).run
            view = await ended(engine, run)
            await nothing_open(engine)
            assert view.status == "failed" and view.error is not None and code in view.error["message"]
            family = await engine.store.get_family(run)
            assert family is not None and family.open == 0 and family.runs <= most.runs
    assert findings(db) == []


async def test_cancel_ends_a_family_at_once_also_after_a_restart(tmp_path: Path) -> None:
    db = tmp_path / "weft.db"
    async with engine_on(db) as engine:
        await engine.workflows.save(bomb(5))
        run = (await engine.submit("bomb")).run
        await grown(engine, 300)
        await engine.stop_working(grace_s=0)
        assert await engine.cancel(run, "enough")
    starts, runs = "SELECT count(*) FROM events WHERE type = 'node.started'", "SELECT count(*) FROM runs"
    before = asked(db, starts), asked(db, runs)
    async with engine_on(db) as engine:
        await nothing_open(engine)
    assert (asked(db, starts), asked(db, runs)) == before
    assert asked(db, "SELECT DISTINCT status FROM runs") == ["cancelled"]
    assert findings(db) == []


@pytest.mark.parametrize("size", [1, 2, 40, 150, 400])
async def test_a_stop_in_the_middle_of_growth_frees_every_run(tmp_path: Path, size: int) -> None:
    """Also those that are being created, claimed or recovered."""
    db = tmp_path / "weft.db"
    async with engine_on(db) as engine:
        await engine.workflows.save(bomb(5))
        run = (await engine.submit("bomb")).run
        await grown(engine, size)
        await engine.stop_working(grace_s=0)
        assert asked(db, "SELECT id FROM heads WHERE owner IS NOT NULL") == []
        await engine.cancel(run)
    async with engine_on(db) as engine:
        await nothing_open(engine)
    assert findings(db) == []


async def test_cancel_of_a_run_in_between_ends_what_is_below_it(tmp_path: Path) -> None:
    db = tmp_path / "weft.db"
    async with engine_on(db) as engine:
        await engine.workflows.save(bomb(3))
        parent = (await engine.submit(caller(workflow="bomb"))).run
        await grown(engine, 100)
        [between] = await engine.runs.list(parent=parent)
        assert await engine.cancel(between.id)
        view = await ended(engine, parent)
        assert (view.status, view.error and view.error["code"]) == ("failed", "child_cancelled")
        await nothing_open(engine)
    assert findings(db) == []


def looped(times: int) -> dict[str, Any]:
    return document(
        "looped",
        "start loop",
        "loop body make",
        blocks={
            "loop": {"type": "loop", "params": {"mode": "for", "count": times}},
            "make": {"type": "probe", "params": {"value": "x" * 50_000}, "parent": "loop"},
        },
    )


async def test_a_run_that_puts_out_too_much_fails(tmp_path: Path) -> None:
    db, probe = tmp_path / "weft.db", Probe()
    async with engine_on(db, probe, limits=RunLimits(run_bytes=1_000_000)) as engine:
        view = await ended(engine, (await engine.submit(looped(500))).run)
        assert (view.status, view.error and view.error["code"]) == ("failed", "limit_run_bytes")
        assert view.error is not None and view.error["hint"]
        assert len(probe.seen) == 20  # the 20th does not fit any more: quotes count as well
        fits = await ended(engine, (await engine.submit(looped(5))).run)
        assert fits.status == "succeeded"
    [stored] = asked(db, f"SELECT sum(length(output)) FROM events WHERE run_id = '{view.id}'")
    assert stored <= 1_000_000
    assert findings(db) == []


async def test_the_bound_holds_over_restarts(tmp_path: Path) -> None:
    """What was put out before counts, for it is in the journal."""
    db, limits = tmp_path / "weft.db", RunLimits(run_bytes=1_000_000)
    for _ in range(6):
        probe = Probe()
        async with engine_on(db, probe, limits=limits) as engine:
            if not (rows := await engine.runs.list()):
                await engine.submit(looped(500))
                rows = await engine.runs.list()
            if rows[0].status == "failed":
                break
            async with asyncio.timeout(30):
                while len(probe.seen) < 5 and (await engine.runs.row(rows[0].id)).status != "failed":
                    await asyncio.sleep(0.001)
            await engine.stop_working()
    [stored] = asked(db, "SELECT sum(length(output)) FROM events")
    assert stored <= 1_000_000
    assert asked(db, "SELECT status FROM runs") == ["failed"]


async def test_a_family_that_puts_out_too_much_ends(tmp_path: Path) -> None:
    db = tmp_path / "weft.db"
    several = document(
        "several",
        "start fan",
        "fan body one",
        blocks={
            "fan": {"type": "parallel", "params": {"mode": "count", "count": 20}},
            "one": {**call("looped"), "parent": "fan"},
        },
    )
    async with engine_on(db, Probe(), limits=RunLimits(family_bytes=2_000_000)) as engine:
        await engine.workflows.save(looped(10))
        run = (await engine.submit(several)).run
        await until_event(engine, run, "run.finished")
        await nothing_open(engine)
        view = await engine.runs.view(run)
        assert view.status == "failed" and view.error is not None and "limit_family_bytes" in view.error["message"]
        family = await engine.store.get_family(run)
        assert family is not None and 2_000_000 < family.bytes < 2_000_000 + 21 * 10 * 50_000 + 20 * 510_000
    assert findings(db) == []

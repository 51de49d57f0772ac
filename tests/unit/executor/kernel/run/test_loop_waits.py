"""What a pause puts out goes the same ways whatever ended it: an answer, a time, an expiry."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from executor.kernel.store.sqlite.reading import open_reading
from executor.kernel.store.topics.inbox import SignalRow
from executor.open.engine import Engine
from executor.service.upkeep.doctor import Report, examine
from executor.service.upkeep.findings import Evidence
from executor.service.views import RunView
from tests.support.clock import ManualClock
from tests.support.documents import chain
from tests.support.runs import engine_on, until_event

HOUR_MS = 3_600_000
PAUSES: dict[str, dict[str, Any]] = {
    "timer": {"type": "wait", "params": {"seconds": 60}},
    "expiry": {"type": "approval", "params": {"expires_in_s": 60, "on_expire": "approve"}},
    "answer": {"type": "approval"},
    "signal": {"type": "signal", "params": {"name": "go"}},
}


def examined(path: Path, now_ms: int, evidence: Evidence | None = None) -> Report:
    with closing(open_reading(path)) as db:
        return examine(db, now_ms, evidence=evidence)


async def over(engine: Engine, clock: ManualClock, kind: str, pause: dict[str, Any], **variables: Any) -> RunView:
    """A run of one pause, after the pause has ended in its way."""
    document = chain("p", p=PAUSES[kind] | pause) | {"variables": variables}
    run = (await engine.submit(document)).run
    await until_event(engine, run, "run.parked")
    if kind == "answer":
        [wait] = await engine.waits.list(run=run)
        assert wait.link is not None
        await engine.answer(wait.link.rpartition("/")[2], {}, "approve", "Ada")
    elif kind == "signal":
        await engine.signal(run, "go", 5)
    else:
        clock.advance(61_000)
    await until_event(engine, run, "run.finished")
    return await engine.runs.view(run)


@pytest.mark.parametrize("kind", list(PAUSES))
async def test_the_output_is_assigned(tmp_path: Path, kind: str) -> None:
    clock = ManualClock()
    async with engine_on(tmp_path / "weft.db", clock=clock) as engine:
        view = await over(engine, clock, kind, {"assign": "$.seen"}, seen=None)
        assert view.status == "succeeded"
        assert view.output is not None and view.variables == {"seen": view.output}


@pytest.mark.parametrize("kind", list(PAUSES))
async def test_an_output_that_can_not_be_assigned_fails_the_block(tmp_path: Path, kind: str) -> None:
    """As it does for blocks that do not pause; and the signal is used up."""
    clock = ManualClock()
    async with engine_on(tmp_path / "weft.db", clock=clock) as engine:
        view = await over(engine, clock, kind, {"assign": "$.n.deep"}, n=5)
        assert view.error is not None
        assert (view.status, view.error["code"], view.error["block"]) == ("failed", "patch_failed", "p")
        assert view.variables == {"n": 5}
        assert [signal.taken_by for signal in await engine.signals.list(view.id)] == ["p!1"] * (kind == "signal")
    assert not examined(tmp_path / "weft.db", clock.now_ms()).findings


@pytest.mark.parametrize("kind", ["expiry", "answer", "signal"])
async def test_an_output_that_does_not_fit_fails_the_block(tmp_path: Path, kind: str) -> None:
    clock = ManualClock()
    async with engine_on(tmp_path / "weft.db", clock=clock) as engine:
        view = await over(engine, clock, kind, {"output_schema": {"required": ["note"]}, "assign": "$.seen"}, seen=0)
        assert view.error is not None
        assert (view.status, view.error["code"], view.variables) == ("failed", "output_invalid", {"seen": 0})
    assert not examined(tmp_path / "weft.db", clock.now_ms()).findings


@pytest.mark.parametrize("kind", ["answer", "signal"])
async def test_secrets_that_come_from_outside_are_not_recorded(tmp_path: Path, kind: str) -> None:
    """As little as those that blocks put out; and a wait for a secret gets what it waits for, not another secret."""
    env = {"KEY": "s3cret-of-many-letters", "OTHER": "another-that-is-secret"}
    said = f"it is {env['KEY']}"
    async with engine_on(tmp_path / "weft.db", env=env) as engine:
        pause = {"type": "signal", "params": {"name": "go", "correlation": "${KEY}"}} if kind == "signal" else {}
        run = (await engine.submit(chain("p", p=PAUSES[kind] | pause))).run
        await until_event(engine, run, "run.parked")
        if kind == "signal":
            await engine.signal(run, "go", {"said": "wrong"}, correlation="another", by=said)
            await engine.signal(run, "go", {"said": "wrong"}, correlation=env["OTHER"], by=said)
            await engine.signal(run, "go", {"said": said}, correlation=env["KEY"], dedupe_key=said, by=said)
            assert len(await engine.signals.list(run, "go", env["KEY"])) == 1
        else:
            [wait] = await engine.waits.list(run=run)
            assert wait.link is not None
            await engine.answer(wait.link.rpartition("/")[2], {"said": said}, "approve", said)
        await until_event(engine, run, "run.finished")
        view = await engine.runs.view(run)
    assert (view.output["payload"] if kind == "signal" else view.output)["said"] == "it is [redacted]"
    report = examined(tmp_path / "weft.db", time.time_ns() // 1_000_000, evidence=Evidence(secrets=[*env.values()]))
    assert not report.findings


async def test_a_signal_and_an_expiry_at_the_same_time_leave_row_and_journal_of_one_mind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal was found, but not taken yet, when the time of the wait was over."""
    clock = ManualClock()
    async with engine_on(tmp_path / "weft.db", clock=clock) as engine:
        look = engine.store.unconsumed_signals

        async def slowly(run_id: str) -> list[SignalRow]:
            found = await look(run_id)
            if found:
                clock.advance(61_000)
                for _ in range(100):  # whatever the time leads to has its turn before this is read
                    await engine.store.get_run(run_id)
            return found

        monkeypatch.setattr(engine.store, "unconsumed_signals", slowly)
        pause = {"type": "signal", "params": {"name": "go", "expires_in_s": 60, "on_expire": "continue"}}
        run = (await engine.submit(chain("p", p=pause))).run
        await until_event(engine, run, "run.parked")
        await engine.signal(run, "go", 5)
        await until_event(engine, run, "run.finished")
        [wait] = await engine.store.list_waits(None, run)
        closed = [event async for event in engine.stream(run) if event.type == "wait.closed"]
        assert [event.data["outcome"] for event in closed] == [wait.status]
    assert not examined(tmp_path / "weft.db", clock.now_ms()).findings


async def test_a_signal_that_came_in_time_is_taken_after_the_time(tmp_path: Path) -> None:
    """It was not looked at yet: the server was killed between the two."""
    clock = ManualClock()
    pause = {"type": "signal", "params": {"name": "go", "expires_in_s": 60}}
    async with engine_on(tmp_path / "weft.db", clock=clock) as engine:
        run = (await engine.submit(chain("p", p=pause))).run
        await until_event(engine, run, "run.parked")
    async with engine_on(tmp_path / "weft.db", clock=clock, work=False) as front:
        await front.signal(run, "go", 5)
    clock.advance(61_000)
    async with engine_on(tmp_path / "weft.db", clock=clock) as engine:
        await until_event(engine, run, "run.finished")
        view = await engine.runs.view(run)
    assert (view.status, view.output["payload"]) == ("succeeded", 5)
    assert not examined(tmp_path / "weft.db", clock.now_ms()).findings

"""Schedules in an engine: each moment starts one run, over restarts, over several processes and over clock steps."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from compiler.diagnostics import CompileError
from executor.errors import BadRequest, Conflict, CronInvalid, DatabaseUnavailable, InputInvalid, NotFound, ZoneUnknown
from executor.kernel.values import cron
from executor.open.engine import Engine
from executor.service.triggers import schedules as scheduler
from executor.service.triggers.declared import ScheduleSpec, trigger_id
from tests.support.clock import ManualClock
from tests.support.until import until
from tests.unit.executor.service.triggers.conftest import MONDAY, Open

HOUR, DAY = 3_600_000, 86_400_000
Json = dict[str, Any]


def nightly(**params: Any) -> Json:
    return {
        "format": "weft/1",
        "name": "nightly",
        "blocks": {
            "night": {"type": "schedule", "params": {"cron": "0 3 * * *", **params}},
            "note": {"type": "set", "params": {"value": {"at": "<night.scheduled_at>"}}},
        },
        "edges": [{"source": "night", "target": "note"}],
    }


def waiting(**params: Any) -> Json:
    """A run of it stays open until it is cancelled."""
    document = nightly(**params)
    document["blocks"]["note"] = {"type": "wait", "params": {"seconds": 300_000_000}}
    document["settings"] = {"timeout_s": 31_536_000}  # the clock may be advanced before the run is asleep
    return document


async def ended(engine: Engine, count: int) -> list[Any]:
    """Outputs of `count` ended runs, oldest first; there are no others."""

    async def look() -> bool:
        return (await engine.runs.count())["succeeded"] == count

    await until(look)
    runs = [await engine.runs.view(row.id) for row in await engine.runs.list()]
    assert len(runs) == count
    return [run.output for run in reversed(runs)]


async def outcomes(engine: Engine, id: str = "nightly:night") -> list[str]:
    return [fire.outcome for fire in reversed(await engine.schedules.fires(id))]


async def dealt_with(engine: Engine, count: int, id: str = "nightly:night") -> list[str]:
    async def look() -> list[str] | None:
        found = await outcomes(engine, id)
        return found if len(found) >= count else None

    found: list[str] = await until(look)
    return found


async def settled(engine: Engine) -> None:
    """Rounds until nothing is due, made by hand: whatever the engine's own task does is done as well."""
    while (await engine.schedules.scheduler.deal_with_due())[0]:
        await asyncio.sleep(0)


# --- one moment, one run ---


async def test_a_stored_version_brings_its_schedule(open_engine: Open, clock: ManualClock) -> None:
    engine = await open_engine()
    saved = await engine.workflows.save(nightly(tz="Europe/Berlin", input={"kind": "full"}))
    (schedule,) = await engine.schedules.all("nightly")
    assert (schedule.id, schedule.trigger, schedule.version, schedule.origin) == (
        "nightly:night",
        "night",
        saved.version,
        "document",
    )
    assert schedule.next_run_at_ms == MONDAY + 2 * HOUR, "three o'clock in Berlin"
    assert schedule.upcoming_ms == tuple(MONDAY + 2 * HOUR + n * DAY for n in range(5))
    clock.advance(2 * HOUR)
    assert await ended(engine, 1) == [{"at": MONDAY + 2 * HOUR}]
    schedule = await engine.schedules.get("nightly:night")
    assert schedule.next_run_at_ms == MONDAY + 2 * HOUR + DAY
    run = await engine.runs.view(schedule.last_run_id or "")
    assert run.input == {"kind": "full", "scheduled_at": MONDAY + 2 * HOUR, "fired_at": MONDAY + 2 * HOUR}
    assert run.version == saved.version
    row = await engine.runs.row(run.id)
    assert row.idempotency_key == f"cron:nightly:night:{MONDAY + 2 * HOUR}"


async def test_never_early(open_engine: Open, clock: ManualClock) -> None:
    engine = await open_engine()
    await engine.workflows.save(nightly())
    clock.advance(3 * HOUR - 1)
    await settled(engine)
    assert await engine.runs.list() == []
    clock.advance(1)
    assert await ended(engine, 1) == [{"at": MONDAY + 3 * HOUR}]


async def test_a_restart_between_due_and_fire(open_engine: Open, clock: ManualClock) -> None:
    first = await open_engine(work=False)
    await first.workflows.save(nightly())
    clock.advance(3 * HOUR + 5)  # no server is at work: it is due and has not fired
    await settled_as_front(first)
    second = await open_engine()
    assert await ended(second, 1) == [{"at": MONDAY + 3 * HOUR}]
    third = await open_engine()
    await settled(third)
    assert len(await third.runs.list()) == 1


async def settled_as_front(engine: Engine) -> None:
    """An engine that does not work starts nothing."""
    await asyncio.sleep(0.05)
    assert await engine.runs.list() == []


async def test_two_engines_on_one_file_fire_once(open_engine: Open, clock: ManualClock) -> None:
    # Leases outlast all moments: the engines are not to take runs from each other as well.
    engines = [await open_engine(lease_ms=HOUR), await open_engine(lease_ms=HOUR)]
    await engines[0].workflows.save(nightly(cron="* * * * *", overlap="allow"))
    engines[1].schedules.scheduler.wake()
    for _ in range(20):
        clock.advance(60_000)
        for engine in engines:
            await engine.schedules.scheduler.deal_with_due()
    found = await ended(engines[0], 20)
    assert sorted(output["at"] for output in found) == [MONDAY + n * 60_000 for n in range(1, 21)]
    assert await dealt_with(engines[1], 20) == ["started"] * 20


@pytest.mark.parametrize("step", [-DAY, -HOUR, HOUR, DAY])
async def test_clock_steps_start_nothing_twice(open_engine: Open, clock: ManualClock, step: int) -> None:
    engine = await open_engine()
    await engine.workflows.save(nightly(cron="0 * * * *", overlap="allow"))
    moments = set()
    for n in range(6):
        clock.advance(step if n == 3 else HOUR)
        await settled(engine)
    for row in await engine.runs.list():
        run = await engine.runs.view(row.id)
        assert run.input["scheduled_at"] not in moments
        assert run.input["scheduled_at"] <= run.input["fired_at"]
        moments.add(run.input["scheduled_at"])
    schedule = await engine.schedules.get("nightly:night")
    assert moments and schedule.next_run_at_ms is not None and schedule.next_run_at_ms > max(moments)
    clock.advance(schedule.next_run_at_ms - engine.parts.clock.now_ms())
    await settled(engine)
    assert len(await engine.runs.list()) == len(moments) + 1, "the scheduler continues"


# --- after a standstill ---


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [("one", [4]), ("none", []), ("all", [0, 1, 2, 3, 4])],
)
async def test_what_was_missed(open_engine: Open, clock: ManualClock, catch_up: str, expected: list[int]) -> None:
    engine = await open_engine(work=False)
    await engine.workflows.save(nightly(catch_up=catch_up, overlap="allow"))
    clock.advance(3 * HOUR + 4 * DAY + HOUR)
    engine = await open_engine()
    assert await dealt_with(engine, max(1, len(expected))) == (["started"] * len(expected) or ["missed"])
    found = await ended(engine, len(expected))
    assert sorted(output["at"] for output in found) == [MONDAY + 3 * HOUR + n * DAY for n in expected]
    schedule = await engine.schedules.get("nightly:night")
    assert schedule.next_run_at_ms == MONDAY + 3 * HOUR + 5 * DAY


async def test_a_moment_that_is_a_little_late_is_not_missed(open_engine: Open, clock: ManualClock) -> None:
    engine = await open_engine(work=False)
    await engine.workflows.save(nightly(catch_up="none"))
    clock.advance(3 * HOUR + 59_000)
    engine = await open_engine()
    assert await ended(engine, 1) == [{"at": MONDAY + 3 * HOUR}]


async def test_of_many_that_were_missed_the_last_hundred_run(open_engine: Open, clock: ManualClock) -> None:
    engine = await open_engine(work=False)
    await engine.workflows.save(nightly(cron="* * * * *", catch_up="all", overlap="allow"))
    clock.advance(3 * DAY)
    while (await engine.schedules.scheduler.deal_with_due())[0]:
        pass
    runs = [await engine.runs.view(row.id) for row in await engine.runs.list(limit=1000)]
    assert sorted(run.input["scheduled_at"] for run in runs) == [
        MONDAY + 3 * DAY - n * 60_000 for n in range(99, -1, -1)
    ]


# --- while a run is open ---


async def test_skipped_while_a_run_is_open(open_engine: Open, clock: ManualClock) -> None:
    engine = await open_engine()
    await engine.workflows.save(waiting())
    for n in range(3):
        clock.advance(DAY if n else 3 * HOUR)
        await dealt_with(engine, n + 1)
    assert await outcomes(engine) == ["started", "skipped", "skipped"]
    (row,) = await engine.runs.list()
    await cancelled(engine, row.id)
    clock.advance(DAY)
    assert await dealt_with(engine, 4) == ["started", "skipped", "skipped", "started"]


async def test_one_is_queued_and_starts_when_the_open_run_ends(open_engine: Open, clock: ManualClock) -> None:
    engine = await open_engine()
    await engine.workflows.save(waiting(overlap="queue"))
    for n in range(3):
        clock.advance(DAY if n else 3 * HOUR)
        await dealt_with(engine, n + 1)
    assert await outcomes(engine) == ["started", "queued", "skipped"]
    assert (await engine.schedules.get("nightly:night")).queued_at_ms == MONDAY + 3 * HOUR + DAY
    (row,) = await engine.runs.list()
    await cancelled(engine, row.id)
    assert await dealt_with(engine, 4) == ["started", "queued", "skipped", "started"]
    newest = await engine.runs.view((await engine.runs.list())[0].id)
    assert newest.input["scheduled_at"] == MONDAY + 3 * HOUR + DAY
    assert newest.input["fired_at"] == MONDAY + 3 * HOUR + 2 * DAY


async def test_the_end_of_the_open_run_starts_the_queued_one(
    open_engine: Open, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end is noticed without a look."""
    monkeypatch.setattr(scheduler, "QUEUED_POLL_S", 600.0)
    monkeypatch.setattr(scheduler, "IDLE_MAX_S", 600.0)
    engine = await open_engine()
    await engine.workflows.save(waiting(overlap="queue"))
    for n in range(2):
        clock.advance(DAY if n else 3 * HOUR)
        await dealt_with(engine, n + 1)
    await asyncio.sleep(0.1)  # the scheduler sleeps
    (row,) = await engine.runs.list()
    await cancelled(engine, row.id)
    assert await dealt_with(engine, 3) == ["started", "queued", "started"]


async def cancelled(engine: Engine, run: str) -> None:
    await engine.cancel(run)

    async def look() -> bool:
        return (await engine.runs.row(run)).status == "cancelled"

    await until(look)


# --- what goes wrong ---


async def test_an_error_is_noted_and_the_next_moment_comes(open_engine: Open, clock: ManualClock) -> None:
    engine = await open_engine()
    document = nightly()
    document["blocks"]["start"] = {"type": "start", "params": {"fields": [{"name": "who", "required": True}]}}
    await engine.workflows.save(document, "w")
    spec = ScheduleSpec(workflow="w", cron="0 5 * * *", trigger="start", input={"who": "Ada"})
    await engine.schedules.put("daily", spec)
    # The next version has no such trigger; the schedule is not of that document and stays.
    await engine.workflows.save(nightly(enabled=False), "w")
    clock.advance(5 * HOUR)
    assert await dealt_with(engine, 1, "daily") == ["failed"]
    broken = await engine.schedules.get("daily")
    assert broken.error is not None and "start" in broken.error
    assert broken.next_run_at_ms == MONDAY + 5 * HOUR + DAY
    await engine.workflows.save({**document, "description": "again"}, "w")
    clock.advance(DAY)
    await dealt_with(engine, 2, "daily")
    fixed = await engine.schedules.get("daily")
    assert fixed.error is None and fixed.last_run_id is not None


@pytest.mark.parametrize("error", [DatabaseUnavailable("the disk is away"), RuntimeError("a bug")], ids=type)
async def test_what_goes_wrong_once_does_not_end_the_schedules(
    open_engine: Open, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr("executor.kernel.process.task.RETRY_S", 0.01)
    engine = await open_engine()
    due, failed = engine.store.due_schedules, asyncio.Event()

    async def fails_once(*arguments: Any) -> Any:
        if not failed.is_set():
            failed.set()
            raise error
        return await due(*arguments)

    monkeypatch.setattr(engine.store, "due_schedules", fails_once)
    await engine.workflows.save(nightly())
    async with asyncio.timeout(60):
        await failed.wait()
    clock.advance(3 * HOUR)
    assert await ended(engine, 1) == [{"at": MONDAY + 3 * HOUR}]


async def test_a_zone_that_this_machine_does_not_know_hides_no_other_schedule(
    open_engine: Open, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database moved to another machine: what is known is shown, and the next moment says what is wrong."""
    engine = await open_engine()
    await engine.workflows.save(nightly(tz="Europe/Berlin"))
    await engine.workflows.save({**nightly(), "name": "other"})
    monkeypatch.setattr(cron, "zones", lambda: frozenset({"UTC"}))
    lost, known = await engine.schedules.all()
    assert (lost.id, lost.upcoming_ms) == ("nightly:night", (lost.next_run_at_ms,))
    assert (known.id, len(known.upcoming_ms)) == ("other:night", 5)
    clock.advance(DAY)
    assert await dealt_with(engine, 1) == ["failed"]
    lost = await engine.schedules.get("nightly:night")
    assert (lost.next_run_at_ms, lost.upcoming_ms) == (None, ()) and "Europe/Berlin" in (lost.error or "")


@pytest.mark.parametrize("how", ["stored again", "switched on"])
async def test_a_schedule_whose_zone_was_unknown_continues_when_it_is_known_again(
    open_engine: Open, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    engine = await open_engine()
    await engine.workflows.save(nightly(tz="Europe/Berlin"))
    with monkeypatch.context() as patch:
        patch.setattr(cron, "zones", lambda: frozenset({"UTC"}))
        clock.advance(DAY)
        assert await dealt_with(engine, 1) == ["failed"]
    if how == "stored again":
        await engine.workflows.save(nightly(tz="Europe/Berlin"))
    else:
        await engine.schedules.switch("nightly:night", True)
    night = await engine.schedules.get("nightly:night")
    assert (
        night.next_run_at_ms is not None
        and engine.parts.clock.now_ms() < night.next_run_at_ms <= engine.parts.clock.now_ms() + DAY
    )


async def test_a_document_with_a_broken_schedule_is_no_version(open_engine: Open) -> None:
    engine = await open_engine()
    for params, code in (({"cron": "99 * * * *"}, "cron_invalid"), ({"tz": "Mars/Olympus"}, "timezone_unknown")):
        document = nightly(**params)
        document["blocks"]["start"] = {"type": "start"}  # without a trigger named, this one is compiled
        document["edges"].append({"source": "start", "target": "note"})
        with pytest.raises(CompileError) as refused:
            await engine.workflows.save(document)
        found = [finding for finding in refused.value.diagnostics if finding.code == code]
        assert [finding.severity for finding in found] == ["error"]
        pointer = f"/blocks/night/params/{'cron' if code == 'cron_invalid' else 'tz'}"
        assert (found[0].pointer, found[0].block) == (pointer, "night") and found[0].hint
    document = nightly(input={"amount": "much"})
    document["input"] = {"type": "object", "properties": {"amount": {"type": "number"}}}
    with pytest.raises(InputInvalid) as unfit:
        await engine.workflows.save(document)
    assert unfit.value.pointer == "/blocks/night/params/input/amount"
    assert await engine.schedules.all() == []


async def test_references_in_the_input_are_left_alone(open_engine: Open, clock: ManualClock) -> None:
    engine = await open_engine()
    text = "see <night.scheduled_at> and ${SECRET}"
    document = nightly(input={"deep": {"list": [text]}})
    document["blocks"]["note"]["params"]["value"] = "<night.deep.list[0]>"
    await engine.workflows.save(document)
    clock.advance(3 * HOUR)
    assert await ended(engine, 1) == [text]


# --- switching, changing, asking ---


async def test_switching_off_and_on(open_engine: Open, clock: ManualClock) -> None:
    engine = await open_engine()
    await engine.workflows.save(nightly())
    off = await engine.schedules.switch("nightly:night", False)
    assert (off.enabled, off.next_run_at_ms, off.upcoming_ms) == (False, None, ())
    clock.advance(2 * DAY + HOUR)
    await settled(engine)
    assert await engine.runs.list() == []
    on = await engine.schedules.switch("nightly:night", True)
    assert on.next_run_at_ms == MONDAY + 2 * DAY + 3 * HOUR, "from now on: what lies behind is not made up for"
    await engine.workflows.save({**nightly(), "description": "changed"})
    await engine.schedules.switch("nightly:night", False)
    saved = await engine.workflows.save({**nightly(cron="0 4 * * *"), "description": "changed again"})
    kept = await engine.schedules.get("nightly:night")
    assert (kept.enabled, kept.cron, kept.version) == (False, "0 4 * * *", saved.version)


async def test_switched_on_while_its_times_are_changed(
    open_engine: Open, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next moment is one of the times that it has now: those it had would leave it asleep until January."""
    engine = await open_engine()
    await engine.workflows.save(nightly(enabled=False))
    yearly = ScheduleSpec("nightly", "0 0 1 1 *", enabled=False)
    await engine.schedules.put("mine", yearly)
    get = engine.store.get_schedule

    async def get_and_wait(id: str) -> Any:
        row = await get(id)
        monkeypatch.undo()
        await engine.schedules.put("mine", ScheduleSpec("nightly", "0 5 * * *", enabled=False))
        return row

    monkeypatch.setattr(engine.store, "get_schedule", get_and_wait)
    on = await engine.schedules.switch("mine", True)
    assert (on.enabled, on.cron, on.next_run_at_ms) == (True, "0 5 * * *", MONDAY + 5 * HOUR)


async def test_deleted_while_it_is_switched(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = await open_engine()
    await engine.workflows.save(nightly())
    await engine.schedules.put("mine", ScheduleSpec("nightly", "0 5 * * *"))
    get = engine.store.get_schedule

    async def get_and_wait(id: str) -> Any:
        row = await get(id)
        monkeypatch.undo()
        await engine.schedules.delete(id)
        return row

    monkeypatch.setattr(engine.store, "get_schedule", get_and_wait)
    with pytest.raises(NotFound):
        await engine.schedules.switch("mine", False)


async def test_a_block_that_is_gone_takes_its_schedule_with_it(open_engine: Open) -> None:
    engine = await open_engine()
    await engine.workflows.save(nightly())
    document = nightly()
    document["blocks"]["night"]["enabled"] = False
    document["blocks"]["start"] = {"type": "start"}
    document["blocks"]["note"]["params"] = {"value": 1}
    document["edges"] = [{"source": "start", "target": "note"}]
    await engine.workflows.save(document)
    assert await engine.schedules.all() == []


async def test_a_run_now(open_engine: Open, clock: ManualClock) -> None:
    engine = await open_engine()
    await engine.workflows.save(nightly(input={"kind": "full"}, enabled=False))
    clock.advance(17)
    run = await engine.schedules.run_now("nightly:night")
    assert await ended(engine, 1) == [{"at": MONDAY + 17}]
    schedule = await engine.schedules.get("nightly:night")
    assert (schedule.last_run_id, schedule.next_run_at_ms) == (run, None)
    assert await outcomes(engine) == ["started"]


async def test_one_of_the_api(open_engine: Open, clock: ManualClock) -> None:
    engine = await open_engine()
    document = {
        "format": "weft/1",
        "name": "greet",
        "input": {"type": "object", "properties": {"who": {"type": "string"}}, "additionalProperties": False},
        "blocks": {"start": {"type": "start"}, "say": {"type": "set", "params": {"value": "hello <start.who>"}}},
        "edges": [{"source": "start", "target": "say"}],
    }
    await engine.workflows.save(document)
    spec = ScheduleSpec(workflow="greet", cron="30 1 * * *", input={"who": "Ada"})
    made, new = await engine.schedules.put("morning", spec)
    assert new and made.origin == "api" and made.next_run_at_ms == MONDAY + HOUR + HOUR // 2
    again, new = await engine.schedules.put("morning", spec)
    assert not new and again == made
    clock.advance(2 * HOUR)
    assert await ended(engine, 1) == ["hello Ada"]
    await engine.schedules.delete("morning")
    with pytest.raises(NotFound):
        await engine.schedules.get("morning")
    assert len(await engine.runs.list()) == 1


async def test_what_the_api_refuses(open_engine: Open) -> None:
    engine = await open_engine()
    await engine.workflows.save(nightly())
    put = engine.schedules.put
    with pytest.raises(Conflict, match="belongs to a block"):
        await put("nightly:night", ScheduleSpec(workflow="nightly", cron="* * * * *"))
    with pytest.raises(Conflict, match="belongs to a block"):
        await engine.schedules.delete("nightly:night")
    for id in ("", "a b", "a/b", "x" * 129):
        with pytest.raises(BadRequest):
            await put(id, ScheduleSpec(workflow="nightly", cron="* * * * *"))
    with pytest.raises(CronInvalid):
        await put("a", ScheduleSpec(workflow="nightly", cron="* * *"))
    with pytest.raises(ZoneUnknown):
        await put("a", ScheduleSpec(workflow="nightly", cron="* * * * *", tz="Mars"))
    with pytest.raises(NotFound):
        await put("a", ScheduleSpec(workflow="other", cron="* * * * *"))
    with pytest.raises(CompileError):
        await put("a", ScheduleSpec(workflow="nightly", cron="* * * * *", trigger="note"))
    assert [schedule.id for schedule in await engine.schedules.all()] == ["nightly:night"]


def test_ids_need_no_escaping() -> None:
    assert trigger_id("nightly", "night") == "nightly:night"
    odd = trigger_id("Spesen & Reisen?", "a.b-c_d")
    assert odd.startswith("Spesen-Reisen~") and odd.endswith(":a.b-c_d")
    assert trigger_id("Spesen / Reisen", "b") != trigger_id("Spesen & Reisen", "b")
    for name in ("Ü", "a b", "x" * 200, "a~b"):
        assert set(trigger_id(name, "b")) <= set("abcdefghijklmnopqrstuvwxyz0123456789~:-.x_")

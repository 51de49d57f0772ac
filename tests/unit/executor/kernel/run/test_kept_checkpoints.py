"""How far an attempt came: read by the attempt that follows, and by no other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from executor.blocks.types.python import Python
from executor.errors import BlockError, DatabaseUnavailable, Fenced
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.run import kept as checkpoints
from executor.kernel.store import patience
from executor.kernel.store.topics.snapshots import CheckpointRow
from tests.support.documents import chain, looped
from tests.support.runs import engine_on, outputs, settled, until_event
from tests.support.until import until

Json = dict[str, Any]
RETRY: Json = {"retry": {"max_attempts": 3, "initial_ms": 1, "jitter": 0}, "on_lost": "retry"}
TOLD: Json = {"type": "python", "params": {"function": "told"}, "policy": RETRY}


class Told:
    """The function `told`: notes what each attempt was left, and keeps `keep`; fails as often as `failures` says."""

    def __init__(self, failures: int = 0, keep: Any = "so far") -> None:
        self.left: list[tuple[str, int, Any]] = []
        self.failures = failures
        self.keep = keep

    def block(self) -> Python:
        async def told(ctx: StepContext) -> Any:
            self.left.append((ctx.key, ctx.attempt, ctx.last_checkpoint))
            await ctx.checkpoint(self.keep)
            if ctx.attempt <= self.failures:
                raise ValueError("the test says so")
            return ctx.last_checkpoint

        return Python({"told": told})


async def test_the_next_attempt_is_told_what_the_last_one_kept(tmp_path: Path) -> None:
    told = Told(failures=2)
    async with engine_on(tmp_path / "weft.db", told.block()) as engine:
        run = (await engine.submit(chain("a", a=TOLD))).run
        assert (await settled(engine, run)).status == "succeeded"
        assert told.left == [("a", 1, None), ("a", 2, "so far"), ("a", 3, "so far")]
        detail = await engine.runs.node(run, "a")
        assert detail.checkpoint is not None
        assert (detail.checkpoint.attempt, detail.checkpoint.value) == (3, b'"so far"')
        assert (await engine.runs.node(run, "a", seq=2)).checkpoint is None
        assert (await engine.runs.node(run, "start")).checkpoint is None


async def test_each_iteration_has_its_own(tmp_path: Path) -> None:
    told = Told(failures=1)
    async with engine_on(tmp_path / "weft.db", told.block()) as engine:
        document = looped(2, a=TOLD, b={"type": "set", "params": {}}, last={"type": "set", "params": {}})
        run = (await engine.submit(document)).run
        assert (await settled(engine, run)).status == "succeeded"
    assert told.left == [
        ("a@l#0", 1, None), ("a@l#0", 2, "so far"), ("a@l#1", 1, None), ("a@l#1", 2, "so far"),
    ]  # fmt: skip


async def test_a_run_made_of_another_one_starts_without(tmp_path: Path) -> None:
    told = Told(failures=9)
    async with engine_on(tmp_path / "weft.db", told.block()) as engine:
        source = (await engine.submit(chain("a", a=TOLD))).run
        assert (await settled(engine, source)).status == "failed"
        told.left.clear()
        retried = await engine.lifecycle.retry(source, "a")
        await settled(engine, retried.run)
        second = await until_event(engine, source, "node.started", "a", count=2)
        forked = await engine.lifecycle.fork(source, second)  # attempt 2 was under way
        await settled(engine, forked.run)
    assert [left[1:] for left in told.left] == [
        (1, None), (2, "so far"), (3, "so far"), (3, None), (4, "so far"),
    ]  # fmt: skip


async def test_it_outlives_the_process_and_a_move_to_another_version(tmp_path: Path) -> None:
    told = Told()
    entered = asyncio.Event()

    async def stands(ctx: StepContext) -> None:
        await ctx.checkpoint({"items": 3})
        entered.set()
        await asyncio.Event().wait()

    document = chain("a", "b", name="moved", a=TOLD, b={"type": "set", "params": {"value": 1}})
    async with engine_on(tmp_path / "weft.db", Python({"told": stands})) as engine:
        await engine.workflows.save(document)
        run = (await engine.submit("moved")).run
        await entered.wait()
        await engine.stop_working(grace_s=0)
    document["blocks"]["b"]["params"]["value"] = 2
    async with engine_on(tmp_path / "weft.db", told.block(), work=False) as engine:
        await engine.workflows.save(document)
        assert not (await engine.lifecycle.migrate(run, 2, wait_s=0)).moved  # without a worker
    async with engine_on(tmp_path / "weft.db", told.block()) as engine:
        view = await settled(engine, run)
        assert (view.status, view.version, outputs(view)["b"]) == ("succeeded", 2, 2)
    assert told.left == [("a", 2, {"items": 3})]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("x" * (checkpoints.SIZE_MAX_BYTES - 1), "the checkpoint has 1048577 bytes; the limit is 1048576"),
        ({"when": {1, 2}}, "the value at $.when is not JSON: set is not a JSON type"),
    ],
)
async def test_what_can_not_be_kept_says_why(tmp_path: Path, value: Any, said: str) -> None:
    told = Told(keep=value)
    async with engine_on(tmp_path / "weft.db", told.block()) as engine:
        view = await settled(engine, (await engine.submit(chain("a", a=TOLD))).run)
        assert view.error is not None
        assert said in view.error["message"]
        assert len(told.left) == 1, "it is not tried again"


async def test_the_largest_is_kept(tmp_path: Path) -> None:
    told = Told(failures=1, keep="x" * (checkpoints.SIZE_MAX_BYTES - 2))
    async with engine_on(tmp_path / "weft.db", told.block()) as engine:
        assert (await settled(engine, (await engine.submit(chain("a", a=TOLD))).run)).status == "succeeded"
    assert told.left[1] == ("a", 2, told.keep)


async def test_secrets_are_taken_out(tmp_path: Path) -> None:
    told = Told(failures=1, keep={"with": "key sk-very-secret", "sk-very-secret": 1})
    async with engine_on(tmp_path / "weft.db", told.block(), env={"API_KEY": "sk-very-secret"}) as engine:
        await settled(engine, (await engine.submit(chain("a", a=TOLD))).run)
    assert told.left[1] == ("a", 2, {"with": "key [redacted]", "[redacted]": 1})
    assert all(b"sk-very-secret" not in path.read_bytes() for path in tmp_path.iterdir())


async def test_it_is_no_event(tmp_path: Path) -> None:
    told = Told()
    async with engine_on(tmp_path / "weft.db", told.block()) as engine:
        run = (await engine.submit(chain("a", a=TOLD))).run
        await settled(engine, run)
        types = [record.type for record in await engine.store.read_events(run)]
    assert types == ["run.started", "node.started", "node.succeeded", "node.started", "node.succeeded", "run.finished"]


async def test_who_has_lost_the_run_is_told_and_records_nothing(tmp_path: Path) -> None:
    entered, go_on, said = asyncio.Event(), asyncio.Event(), []

    async def loses(ctx: StepContext) -> str:
        entered.set()
        await go_on.wait()
        try:
            await ctx.checkpoint("too late")
        except Fenced as fenced:
            said.append(fenced.code)
            raise
        return "not recorded"

    async with engine_on(tmp_path / "weft.db", Python({"told": loses})) as engine:
        run = (await engine.submit(chain("a", a=TOLD))).run
        await entered.wait()
        far_ms = engine.parts.clock.now_ms() + 60_000
        (taken,) = await engine.store.claim("another", far_ms, 60_000, run_id=run)
        await engine.store.put_checkpoint(taken.epoch, CheckpointRow(run, "a", 2, far_ms, b'"the other one"'))
        go_on.set()
        await until(lambda: not (len(engine.parts.owned)))
        assert said == ["fenced"]
        kept = await engine.store.get_checkpoint(run, "a")
        assert kept is not None and kept.data == b'"the other one"'
        row = await engine.runs.row(run)
        assert (row.seq, row.epoch, row.lease_owner) == (taken.seq, taken.epoch, "another")


async def test_a_thread_that_was_left_behind_keeps_nothing_more(tmp_path: Path) -> None:
    """It cannot be stopped when its time is over; what the next attempt keeps is safe from it."""
    left: list[Any] = []
    late: list[str] = []
    over: list[Callable[[], object]] = []
    go_on, gone = threading.Event(), threading.Event()

    class Timed(Python):
        """The time of the first attempt is over when that says so, as if it were that of its policy."""

        async def run(self, ctx: StepContext) -> Done:
            async with asyncio.timeout(None) as limit:
                over.append(partial(asyncio.get_running_loop().call_soon_threadsafe, limit.reschedule, 0))
                return await super().run(ctx)

    def slow(ctx: StepContext) -> Any:
        left.append((ctx.attempt, ctx.last_checkpoint))
        if ctx.attempt == 2:
            ctx.checkpoint_from_thread("of the second")
            go_on.set()
            gone.wait(30)
            return None
        ctx.checkpoint_from_thread("of the first")
        over[0]()
        go_on.wait(30)
        try:
            ctx.checkpoint_from_thread("of the first, too late")
        except BlockError as error:
            late.append(error.message)
        gone.set()
        return None

    async with engine_on(tmp_path / "weft.db", Timed({"told": slow})) as engine:
        run = (await engine.submit(chain("a", a=TOLD))).run
        assert (await settled(engine, run)).status == "succeeded"
        kept = await engine.store.get_checkpoint(run, "a")
    assert left == [(1, None), (2, "of the first")]
    assert late == ["attempt 1 of a has ended: its checkpoint was not stored"]
    assert kept is not None and (kept.attempt, kept.data) == (2, b'"of the second"')


async def test_the_event_loop_is_not_made_to_wait_for_itself(tmp_path: Path) -> None:
    async def wrong(ctx: StepContext) -> None:
        ctx.checkpoint_from_thread(1)

    async with engine_on(tmp_path / "weft.db", Python({"told": wrong})) as engine:
        once = TOLD | {"policy": {"retry": {"max_attempts": 1}}}
        view = await settled(engine, (await engine.submit(chain("a", a=once))).run)
        assert view.error is not None
        assert "use `await ctx.checkpoint(value)` here" in view.error["message"]


@pytest.mark.parametrize(("failures", "status"), [(3, "succeeded"), (4, "failed")])
async def test_a_database_that_fails_for_a_moment_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int, status: str
) -> None:
    monkeypatch.setattr(patience, "PAUSES_S", (0, 0, 0))
    told = Told()
    async with engine_on(tmp_path / "weft.db", told.block()) as engine:
        put, left = engine.store.put_checkpoint, [failures]

        async def now_and_then(epoch: int, row: CheckpointRow) -> None:
            left[0] -= 1
            if left[0] >= 0:
                raise DatabaseUnavailable("the test says so")
            await put(epoch, row)

        monkeypatch.setattr(engine.store, "put_checkpoint", now_and_then)
        once = TOLD | {"policy": {"retry": {"max_attempts": 1}}}
        view = await settled(engine, (await engine.submit(chain("a", a=once))).run)
        assert view.status == status
        assert (view.error or {}).get("code") == (None if status == "succeeded" else "db_unavailable")

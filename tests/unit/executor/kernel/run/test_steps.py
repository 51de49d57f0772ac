"""Durable steps inside a handler: what is done once, and what the next entry of the handler gets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from executor.blocks.types.python import Python
from executor.errors import BlockError
from executor.kernel.handler.base import ChildRequest, StepContext, Stepped, Suspend
from executor.kernel.run import steps as runtime_steps
from executor.kernel.values.payload import INLINE_MAX_BYTES
from executor.open.engine import Engine
from executor.service.views import WaitView
from tests.support.documents import chain
from tests.support.runs import engine_on, events_of, outputs, settled, token_of, until_event

pytestmark = pytest.mark.usefixtures("invariants_hold")

Json = dict[str, Any]
RETRY: Json = {"retry": {"max_attempts": 3, "initial_ms": 1, "jitter": 0}, "on_lost": "retry"}
STEPS = ("step.started", "step.finished", "step.lost")


class Works:
    """The function `works`: `handler`, whose steps note in `done` that their work was done. Those in `holding` wait."""

    def __init__(self, handler: Callable[[StepContext, Works], Awaitable[Any]]) -> None:
        self.done: list[str] = []
        self.entries = 0
        self.holding: set[str] = set()
        self.began = asyncio.Event()
        self._handler = handler

    def block(self) -> Python:
        async def works(ctx: StepContext) -> Any:
            self.entries += 1
            return await self._handler(ctx, self)

        return Python({"works": works})

    def work(self, name: str, output: Any = None) -> Callable[[], Awaitable[Any]]:
        async def work() -> Any:
            self.done.append(name)
            self.began.set()
            if name in self.holding:
                await asyncio.Event().wait()
            return name.upper() if output is None else output

        return work


async def submitted(engine: Engine, **policy: Any) -> str:
    works = {"type": "python", "params": {"function": "works"}, "policy": RETRY | policy}
    return (await engine.submit(chain("a", a=works))).run


async def told(engine: Engine, run: str, *types: str) -> list[Json]:
    """Data of the events of these types, those of steps."""
    records = await engine.store.read_events(run)
    return [
        {"type": r.type, **orjson.loads(r.data or b"{}")} | ({"output": r.output} if r.output is not None else {})
        for r in records
        if r.type in (types or STEPS)
    ]


async def lost_in(path: Path, works: Works, step: str) -> str:
    """A run whose process went away in the work of this step."""
    works.holding = {step}
    async with engine_on(path, works.block()) as engine:
        run = await submitted(engine)
        async with asyncio.timeout(30):
            await works.began.wait()
            while step not in works.done:
                await asyncio.sleep(0.01)
        await engine.stop_working(grace_s=0)
    works.holding = set()
    return run


async def question(engine: Engine, run: str, count: int = 1) -> WaitView:
    await until_event(engine, run, "wait.opened", "a", count)
    [wait] = await engine.waits.list(run=run)
    return wait


async def answer(engine: Engine, wait: WaitView, action: str | None, **fields: Any) -> None:
    await engine.waits.answer(token_of(wait.link), fields, action)


async def two(ctx: StepContext, works: Works) -> Any:
    first = await ctx.step("model", "ask", {"b": 1, "a": [2]}, works.work("one"), effect="none")
    return [first, await ctx.step("tool", "search", first, works.work("two"), effect="write")]


async def test_a_retry_repeats_no_finished_step(tmp_path: Path) -> None:
    async def handler(ctx: StepContext, works: Works) -> Any:
        found = await two(ctx, works)
        if ctx.attempt < 3:
            raise ValueError("the test says so")
        return found

    works = Works(handler)
    async with engine_on(tmp_path / "weft.db", works.block()) as engine:
        run = await submitted(engine)
        view = await settled(engine, run)
        assert (view.status, works.done, works.entries) == ("succeeded", ["one", "two"], 3)
        assert outputs(view)["a"] == ["ONE", "TWO"]
        first, _, second, last = await told(engine, run)
        assert first == {
            "type": "step.started", "n": 1, "kind": "model", "name": "ask", "effect": "none",
            "input_hash": first["input_hash"],
        }  # fmt: skip
        assert (second["n"], second["effect"], second["kind"]) == (2, "write", "tool")
        assert last == {"type": "step.finished", "n": 2, "output": b'"TWO"'}


async def test_usage_and_cost_are_in_the_event(tmp_path: Path) -> None:
    async def handler(ctx: StepContext, works: Works) -> Any:
        async def work() -> Stepped:
            return Stepped({"text": "hi"}, {"input_tokens": 7}, 0.25, "2026-11-01")

        return await ctx.step("model", "ask", None, work, effect="none")

    async with engine_on(tmp_path / "weft.db", Works(handler).block()) as engine:
        run = await submitted(engine)
        assert outputs(await settled(engine, run))["a"] == {"text": "hi"}
        [finished] = await told(engine, run, "step.finished")
        assert (finished["usage"], finished["cost"], finished["prices"]) == ({"input_tokens": 7}, 0.25, "2026-11-01")


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -0.01, 1e9])
async def test_a_cost_that_is_no_amount_of_money(tmp_path: Path, cost: float) -> None:
    async def handler(ctx: StepContext, works: Works) -> Any:
        async def work() -> Stepped:
            return Stepped(1, {}, cost)

        return await ctx.step("model", "ask", None, work, effect="none")

    async with engine_on(tmp_path / "weft.db", Works(handler).block()) as engine:
        view = await settled(engine, await submitted(engine))
        assert view.error is not None and view.error["code"] == "payload_invalid"


@pytest.mark.parametrize(("step", "done"), [("one", ["one", "one", "two"])])
async def test_after_a_crash_what_changes_nothing_is_done_again(tmp_path: Path, step: str, done: list[str]) -> None:
    works = Works(two)
    run = await lost_in(tmp_path / "weft.db", works, step)
    async with engine_on(tmp_path / "weft.db", works.block()) as engine:
        assert (await settled(engine, run)).status == "succeeded"
        assert works.done == done
        assert [e["again"] for e in await told(engine, run, "step.lost")] == [True]


@pytest.mark.parametrize(
    ("action", "fields", "output", "done"),
    [
        ("retry", {}, ["ONE", "TWO"], ["one", "two", "two"]),
        ("done", {"output": 7}, ["ONE", 7], ["one", "two"]),
        ("fail", {}, None, ["one", "two"]),
    ],
)
async def test_after_a_crash_a_person_is_asked_about_what_changes_something(
    tmp_path: Path, action: str, fields: Json, output: Any, done: list[str]
) -> None:
    works = Works(two)
    run = await lost_in(tmp_path / "weft.db", works, "two")
    async with engine_on(tmp_path / "weft.db", works.block()) as engine:
        wait = await question(engine, run)
        assert (wait.kind, wait.title) == ("attention", "Step 2 of a was lost")
        assert works.done == ["one", "two"]
        await answer(engine, wait, action, **fields)
        view = await settled(engine, run)
        assert works.done == done
        assert outputs(view).get("a") == output
        if output is None:
            assert view.error is not None
            assert view.error["code"] == "attempt_lost"


async def test_a_step_that_failed_last_is_done_again_by_a_retry(tmp_path: Path) -> None:
    async def handler(ctx: StepContext, works: Works) -> Any:
        first = await ctx.step("step", "one", 1, works.work("one"))

        async def broken() -> Any:
            works.done.append("broken")
            if ctx.attempt == 1:
                raise BlockError("too busy", code="busy")
            return 2

        return [first, await ctx.step("tool", "broken", 2, broken)]

    works = Works(handler)
    async with engine_on(tmp_path / "weft.db", works.block()) as engine:
        run = await submitted(engine)
        assert outputs(await settled(engine, run))["a"] == ["ONE", 2]
        assert works.done == ["one", "broken", "broken"]


async def test_a_failure_after_which_the_handler_continued_stays(tmp_path: Path) -> None:
    async def handler(ctx: StepContext, works: Works) -> Any:
        async def broken() -> Any:
            works.done.append("broken")
            raise ValueError("no such place")

        try:
            await ctx.step("tool", "broken", 1, broken)
        except BlockError as error:
            failure = [error.code, error.message, error.retryable]
        last = await ctx.step("step", "two", failure, works.work("two"))
        if ctx.attempt == 1:
            raise ValueError("the test says so")
        return [failure, last]

    works = Works(handler)
    async with engine_on(tmp_path / "weft.db", works.block()) as engine:
        run = await submitted(engine)
        view = await settled(engine, run)
        assert outputs(view)["a"] == [["step_failed", "ValueError: no such place", True], "TWO"]
        assert works.done == ["broken", "two"]


@pytest.mark.parametrize("in_group", [False, True])
async def test_another_call_in_the_place_of_a_finished_one_is_refused(tmp_path: Path, in_group: bool) -> None:
    async def handler(ctx: StepContext, works: Works) -> Any:
        call = ctx.step("step", "one", ctx.attempt, works.work("one"))
        if in_group:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(asyncio.wait_for(call, 60))
        else:
            await call
        raise ValueError("the test says so")

    works = Works(handler)
    async with engine_on(tmp_path / "weft.db", works.block()) as engine:
        view = await settled(engine, await submitted(engine))
        assert view.error is not None
        assert view.error["code"] == "steps_changed"
        assert (works.done, works.entries) == (["one"], 2)


async def test_steps_side_by_side_are_numbered_as_they_are_called(tmp_path: Path) -> None:
    async def handler(ctx: StepContext, works: Works) -> Any:
        async def work(n: int) -> int:
            await asyncio.sleep(0.05 / (n + 1))
            return n

        calls = [ctx.step("tool", f"t{n}", n, lambda n=n: work(n), effect="read") for n in range(4)]  # type: ignore[misc]  # mypy has no type for a lambda with a default
        found = await asyncio.gather(*calls)
        if ctx.attempt == 1:
            raise ValueError("the test says so")
        return found

    async with engine_on(tmp_path / "weft.db", Works(handler).block()) as engine:
        run = await submitted(engine)
        assert outputs(await settled(engine, run))["a"] == [0, 1, 2, 3]
        started = await told(engine, run, "step.started")
        assert [(e["n"], e["name"]) for e in started] == [(1, "t0"), (2, "t1"), (3, "t2"), (4, "t3")]


async def test_a_large_output_is_a_blob_and_comes_back(tmp_path: Path) -> None:
    large = "x" * (INLINE_MAX_BYTES + 1)

    async def handler(ctx: StepContext, works: Works) -> Any:
        found = await ctx.step("tool", "read", None, works.work("read", large), effect="read")
        if ctx.attempt == 1:
            raise ValueError("the test says so")
        return found == large

    works = Works(handler)
    async with engine_on(tmp_path / "weft.db", works.block()) as engine:
        run = await submitted(engine)
        assert outputs(await settled(engine, run))["a"] is True
        [finished] = await told(engine, run, "step.finished")
        assert finished["size"] == len(large) + 2
        assert works.done == ["read"]


async def test_secrets_are_in_no_event_and_in_no_output(tmp_path: Path) -> None:
    secret = "s3cr3t-value"
    seen: list[Any] = []

    async def handler(ctx: StepContext, works: Works) -> Any:
        seen.append(await ctx.step("tool", f"with {secret}", secret, works.work("x", {"token": secret})))
        seen.append(await ctx.wait(Suspend("approval", {"title": f"use {secret}?"}, None, ("yes",)), name=secret))
        return seen

    async with engine_on(tmp_path / "weft.db", Works(handler).block(), env={"KEY": secret}) as engine:
        run = await submitted(engine)
        await answer(engine, await question(engine, run), "yes")
        await settled(engine, run)
        assert all(secret not in repr(record) for record in await engine.store.read_events(run))
        assert secret not in repr(seen)


async def test_there_is_a_bound_and_no_step_inside_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_steps, "STEPS_MAX", 2)
    codes: list[str] = []

    async def handler(ctx: StepContext, works: Works) -> Any:
        async def nested() -> Any:
            return await ctx.step("step", "inner", None, works.work("inner"))

        for name, work in [("outer", nested), ("two", works.work("two")), ("three", works.work("three"))]:
            try:
                await ctx.step("step", name, None, work)
            except BlockError as error:
                codes.append(error.code)

    works = Works(handler)
    async with engine_on(tmp_path / "weft.db", works.block()) as engine:
        assert (await settled(engine, await submitted(engine))).status == "succeeded"
    assert (codes, works.done) == (["step_nested", "limit_steps"], ["two"])


# --- waits ---


async def asking(ctx: StepContext, works: Works) -> Any:
    """A step, a question, a step, another question, a timer, a step."""
    found = [await ctx.step("step", "one", None, works.work("one"))]
    for n in (1, 2):
        asked = Suspend("approval", {"title": f"question {n}"}, None, ("yes", "no"))
        found.append((await ctx.wait(asked, name=f"question {n}"))["action"])
        found.append(await ctx.step("step", f"after {n}", n, works.work(f"after {n}")))
    await ctx.wait(Suspend("timer", due_ms=ctx.now_ms + 1))
    return [*found, await ctx.step("step", "last", None, works.work("last"))]


async def test_a_handler_asks_several_times_and_is_entered_again_with_each_answer(tmp_path: Path) -> None:
    works = Works(asking)
    run = ""
    for n, action in enumerate(("yes", "no"), 1):  # each time in another process
        async with engine_on(tmp_path / "weft.db", works.block()) as engine:
            run = await submitted(engine) if n == 1 else run
            wait = await question(engine, run, n)
            assert wait.title == f"question {n}"
            assert (await settled(engine, run)).status == "waiting"
            await answer(engine, wait, action)
            await until_event(engine, run, "step.finished", count=2 * n)
    async with engine_on(tmp_path / "weft.db", works.block()) as engine:
        view = await settled(engine, run)
        assert outputs(view)["a"] == ["ONE", "yes", "AFTER 1", "no", "AFTER 2", "LAST"]
        assert works.done == ["one", "after 1", "after 2", "last"]
        assert [e["kind"] for e in await told(engine, run, "step.started")] == [
            "step", "wait", "step", "wait", "step", "wait", "step",
        ]  # fmt: skip


async def test_entries_after_a_wait_cost_no_attempt(tmp_path: Path) -> None:
    failures = [1, 2]

    async def handler(ctx: StepContext, works: Works) -> Any:
        for n in range(3):
            await ctx.wait(Suspend("timer", due_ms=ctx.now_ms + 1), name=f"timer {n}")
        if failures:
            raise BlockError(f"failure {failures.pop()}")
        return "done"

    async with engine_on(tmp_path / "weft.db", Works(handler).block()) as engine:
        run = await submitted(engine)
        assert (await settled(engine, run)).status == "succeeded"
        assert (await events_of(engine, run, "retry.scheduled")) == ["retry.scheduled"] * 2


async def test_a_wait_that_fails_raises_in_the_handler(tmp_path: Path) -> None:
    async def handler(ctx: StepContext, works: Works) -> Any:
        try:
            await ctx.wait(Suspend("signal", name="go", due_ms=ctx.now_ms + 1))
        except BlockError as error:
            return await ctx.step("step", "after", error.code, works.work("after", error.code))

    works = Works(handler)
    async with engine_on(tmp_path / "weft.db", works.block()) as engine:
        run = await submitted(engine)
        assert outputs(await settled(engine, run))["a"] == "wait_expired"


async def test_a_step_under_way_ends_before_the_handler_leaves(tmp_path: Path) -> None:
    async def handler(ctx: StepContext, works: Works) -> Any:
        async def slow() -> str:
            await asyncio.sleep(0.05)
            works.done.append("slow")
            return "slow"

        asked = Suspend("approval", {"title": "OK?"}, None, ("yes",))
        found, answers = await asyncio.gather(ctx.step("tool", "slow", 1, slow), ctx.wait(asked))
        return [found, answers["action"]]

    works = Works(handler)
    async with engine_on(tmp_path / "weft.db", works.block()) as engine:
        run = await submitted(engine)
        await answer(engine, await question(engine, run), "yes")
        assert outputs(await settled(engine, run))["a"] == ["slow", "yes"]
        assert works.done == ["slow"]
        assert await events_of(engine, run, "step.finished", "wait.opened") == [
            "step.finished", "wait.opened", "step.finished",
        ]  # fmt: skip


async def test_a_cancelled_run_ends_its_step_and_its_wait(tmp_path: Path) -> None:
    works = Works(two)
    works.holding = {"one"}
    async with engine_on(tmp_path / "weft.db", works.block()) as engine:
        run = await submitted(engine)
        await until_event(engine, run, "step.started")
        await engine.runs.cancel(run)
        assert (await settled(engine, run)).status == "cancelled"
        [finished] = await told(engine, run, "step.finished")
        assert finished["error"]["code"] == "cancelled"


# --- functions in threads ---


async def test_a_plain_function_has_steps_and_waits(tmp_path: Path) -> None:
    done: list[str] = []

    def works(ctx: StepContext) -> Any:
        def work(name: str) -> str:
            done.append(name)
            return name

        found = [ctx.step_from_thread("tool", "one", 1, lambda: work("one"))]
        asked = Suspend("approval", {"title": "OK?"}, None, ("yes",))
        found.append(ctx.wait_from_thread(asked)["action"])
        found.append(ctx.step_from_thread("tool", "two", 2, lambda: work("two")))
        if ctx.attempt < 3:
            raise ValueError("the test says so")
        return found

    async with engine_on(tmp_path / "weft.db", Python({"works": works})) as engine:
        run = await submitted(engine)
        await answer(engine, await question(engine, run), "yes")
        assert outputs(await settled(engine, run))["a"] == ["one", "yes", "two"]
        assert done == ["one", "two"]


# --- other runs, other ways ---


async def test_a_fork_has_the_steps_it_copies_and_a_new_run_has_none(tmp_path: Path) -> None:
    async def handler(ctx: StepContext, works: Works) -> Any:
        found = [await ctx.step("tool", "one", None, works.work("one"))]
        found.append((await ctx.wait(Suspend("approval", {"title": "OK?"}, None, ("yes", "no"))))["action"])
        return [*found, await ctx.step("tool", "two", None, works.work("two"))]

    works = Works(handler)
    async with engine_on(tmp_path / "weft.db", works.block()) as engine:
        run = await submitted(engine)
        seq = await until_event(engine, run, "wait.opened")
        fork = (await engine.lifecycle.fork(run, seq)).run
        await answer(engine, await question(engine, run), "yes")
        await answer(engine, await question(engine, fork), "no")
        assert outputs(await settled(engine, run))["a"] == ["ONE", "yes", "TWO"]
        assert outputs(await settled(engine, fork))["a"] == ["ONE", "no", "TWO"]
        assert works.done == ["one", "two", "two"]
        again = (await engine.lifecycle.run_from(run, "a")).run
        await answer(engine, await question(engine, again), "yes")
        await settled(engine, again)
        assert works.done == ["one", "two", "two", "one", "two"]


async def test_a_child_run_is_a_step(tmp_path: Path) -> None:
    async def handler(ctx: StepContext, works: Works) -> Any:
        async def child() -> Suspend:
            works.done.append("prepared")
            assert ctx.prepare_child is not None
            return Suspend("child", child=await ctx.prepare_child(ChildRequest(workflow="child")))

        first = await ctx.wait(child, name="first")
        second = await ctx.wait(child, name="second")
        return [first, second, await ctx.step("step", "last", None, works.work("last"))]

    works = Works(handler)
    async with engine_on(tmp_path / "weft.db", works.block()) as engine:
        await engine.workflows.save(chain("c", name="child", c={"type": "set", "params": {"value": 1}}))
        view = await settled(engine, await submitted(engine))
        assert outputs(view)["a"] == [1, 1, "LAST"]
        assert works.done == ["prepared", "prepared", "last"]
        assert len(view.children) == 2


async def test_ahead_of_their_commit_steps_are_durable_all_the_same(tmp_path: Path) -> None:
    async def handler(ctx: StepContext, works: Works) -> Any:
        found = await two(ctx, works)
        await ctx.wait(Suspend("timer", due_ms=ctx.now_ms + 1))
        if ctx.attempt == 2:
            raise ValueError("the test says so")
        return found

    works = Works(handler)
    document = chain("a", a={"type": "python", "params": {"function": "works"}, "policy": RETRY})
    async with engine_on(tmp_path / "weft.db", works.block()) as engine:
        run = (await engine.submit(document | {"settings": {"durability": "ahead"}})).run
        assert outputs(await settled(engine, run))["a"] == ["ONE", "TWO"]
        assert works.done == ["one", "two"]


async def test_a_view_of_the_node_lists_them(tmp_path: Path) -> None:
    async def handler(ctx: StepContext, works: Works) -> Any:
        async def work() -> Stepped:
            return Stepped(1, {"tokens": 7}, 0.25)

        for n in range(2):
            await ctx.step("model", f"ask {n}", n, work, effect="none")

    async with engine_on(tmp_path / "weft.db", Works(handler).block()) as engine:
        run = await submitted(engine)
        node = (await settled(engine, run)).nodes[-1]
        assert (node.steps, node.usage, node.cost) == (2, {"tokens": 14}, 0.5)
        steps = (await engine.runs.node(run, "a")).steps
        assert [(s.n, s.kind, s.name, s.status, s.usage, s.cost) for s in steps] == [
            (1, "model", "ask 0", "succeeded", {"tokens": 7}, 0.25),
            (2, "model", "ask 1", "succeeded", {"tokens": 7}, 0.25),
        ]


async def test_waits_side_by_side_are_open_at_the_same_time(tmp_path: Path) -> None:
    """Two questions and a child run, behind a step that is under way: the handler is entered again once."""

    async def handler(ctx: StepContext, works: Works) -> Any:
        async def child() -> Suspend:
            assert ctx.prepare_child is not None
            await asyncio.sleep(0.02)  # the others are asked meanwhile
            run = await ctx.prepare_child(ChildRequest(workflow="below", input={}))
            return Suspend("child", {"title": "below"}, child=run)

        return await asyncio.gather(
            ctx.step("tool", "search", None, works.work("one"), effect="read"),
            ctx.wait(Suspend("approval", {"title": "First?"}, None, ("yes",)), name="first"),
            ctx.wait(child, name="below"),
            ctx.wait(Suspend("approval", {"title": "Second?"}, None, ("yes",)), name="second"),
        )

    works = Works(handler)
    async with engine_on(tmp_path / "weft.db", works.block()) as engine:
        await engine.workflows.save(chain("a", name="below", a={"type": "set", "params": {"value": 7}}))
        run = await submitted(engine)
        await until_event(engine, run, "wait.opened", "a", 3)
        waits = await engine.waits.list(run=run)
        asked = {wait.request["title"]: wait for wait in waits if wait.kind == "approval"}
        assert sorted(asked) == ["First?", "Second?"] and len({wait.link for wait in waits}) == len(waits)
        await answer(engine, asked["Second?"], "yes")
        await until_event(engine, run, "wait.closed", "a", 2)  # of the child run, too
        view = await engine.runs.view(run)
        assert [node.status for node in view.nodes if node.key == "a"] == ["waiting"]
        assert [wait.id for wait in view.waits] == [asked["First?"].id]
        why = await engine.history.why(run)
        assert [w.reasons for w in why if w.key == "a"] == [("waits for a decision",)]
        await answer(engine, asked["First?"], "yes")
        done = await settled(engine, run)
        found = outputs(done)["a"]
    assert [found[0], found[1]["action"], found[2], found[3]["action"]] == ["ONE", "yes", 7, "yes"]
    assert (works.entries, works.done) == (2, ["one"])


async def test_a_wait_that_is_refused_leaves_those_beside_it(tmp_path: Path) -> None:
    """There is no such workflow: the handler hears of it, and waits for the other."""

    async def handler(ctx: StepContext, works: Works) -> Any:
        async def child() -> Suspend:
            assert ctx.prepare_child is not None
            return Suspend("child", child=await ctx.prepare_child(ChildRequest(workflow="nowhere")))

        asked = ctx.wait(Suspend("approval", {"title": "OK?"}, None, ("yes",)))
        ends: tuple[Any, ...] = await asyncio.gather(asked, ctx.wait(child), return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException) and not isinstance(end, BlockError):
                raise end
        return [end.code if isinstance(end, BlockError) else end["action"] for end in ends]

    works = Works(handler)
    async with engine_on(tmp_path / "weft.db", works.block()) as engine:
        run = await submitted(engine)
        await answer(engine, await question(engine, run), "yes")
        assert outputs(await settled(engine, run))["a"] == ["yes", "workflow_not_found"]


async def test_more_waits_than_may_be_open_follow_when_these_are_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime_steps, "WAITS_MAX", 2)

    async def handler(ctx: StepContext, works: Works) -> Any:
        asked = [ctx.wait(Suspend("approval", {"title": str(n)}, None, ("yes",))) for n in range(3)]
        return [found["action"] for found in await asyncio.gather(*asked)]

    works = Works(handler)
    async with engine_on(tmp_path / "weft.db", works.block()) as engine:
        run = await submitted(engine)
        await until_event(engine, run, "wait.opened", "a", 2)
        first = await engine.waits.list(run=run)
        assert [wait.request["title"] for wait in first] == ["0", "1"]
        for wait in first:
            await answer(engine, wait, "yes")
        await answer(engine, await question(engine, run, 3), "yes")
        assert outputs(await settled(engine, run))["a"] == ["yes"] * 3
    assert works.entries == 3

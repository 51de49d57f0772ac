"""Runs that continue as new, through the engine on a real file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from executor.errors import BlockError
from executor.kernel.process.acting import Act, acting
from executor.kernel.run.children import EVERY_MS, next_run_id
from executor.kernel.store.postgres.store import PostgresStore
from executor.open.engine import Engine
from executor.service.views import RunView
from tests.support.blocks import Hold, Probe
from tests.support.clock import ManualClock
from tests.support.documents import Json, caller, document, value
from tests.support.runs import ended, engine_on, events_of, ran, until_event
from tests.support.until import until

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def counting(upto: int = 3, name: str = "counting", again: Any = None, **more: Any) -> Json:
    """Each run counts one further, until it ends with the sum."""
    blocks: Json = {
        "more": {
            "type": "condition",
            "params": {"cases": [{"id": "more", "when": f"<input.n> < {upto}"}, {"id": "enough"}]},
        },
        "next": {"type": "function", "params": {"code": "return <input.n> + 1"}},
        "again": {"type": "continue_as_new", "params": {"input": again or {"n": "<next.result>"}}},
        "end": value("<input.n>"),
        **more.pop("blocks", {}),
    }
    edges = ["start more", "more more next", "next again", "more enough end", *more.pop("edges", ())]
    return document(name, *edges, blocks=blocks, input=NUMBER, **more)


async def chain_of(engine: Engine, run: str) -> list[RunView]:
    """The views of a run and of all that continue it, once the last of them has ended."""
    views = [await ended(engine, run)]
    while (after := views[-1].continued_as) is not None:
        views.append(await ended(engine, after))
    return views


async def test_the_run_ends_and_the_next_one_begins_with_its_input(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        chain = await chain_of(engine, (await engine.submit(counting(upto=1), input={"n": 0})).run)
        first, second = chain
        assert (first.status, first.output, first.continues) == ("succeeded", None, None)
        assert (first.continued_as, second.continues) == (second.id, first.id)
        assert (second.status, second.input, second.output) == ("succeeded", {"n": 1}, 1)
        assert (second.workflow, second.parent, second.continued_as) == ("counting", None, None)
        assert await events_of(engine, first.id, "run.continuing", "run.finished") == ["run.continuing", "run.finished"]
        again = next(node for node in first.nodes if node.key == "again")
        assert again.output == {"input": {"n": 1}, "version": None}
        assert {run.id for run in await engine.runs.list()} == {second.id, first.id}


async def test_the_input_may_be_computed_and_the_last_run_puts_out(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", clock=(clock := ManualClock())) as engine:
        run: str | None = (await engine.submit(counting(upto=2), input={"n": 0})).run
        views = []
        while run is not None:
            views.append(await ended(engine, run))
            run = views[-1].continued_as
            clock.advance(EVERY_MS)
        assert [view.output for view in views] == [None, None, 2]


async def test_it_does_so_on_postgresql(postgres: str) -> None:
    async with engine_on(PostgresStore(postgres)) as engine:
        await engine.workflows.save(cleaned({"type": "set", "params": {"value": "closed"}}))
        first, second = await chain_of(engine, (await engine.submit("counting", input={"n": 0})).run)
        assert (first.continued_as, second.continues, second.output) == (second.id, first.id, 1)
        assert len(await engine.runs.list()) == 2


async def test_a_run_of_a_saved_workflow_continues_with_the_version_that_is_active(tmp_path: Path) -> None:
    hold = Hold()
    async with engine_on(tmp_path / "weft.db", hold) as engine:
        first = counting(upto=1, blocks={"hold": {"type": "hold"}}, edges=("start hold", "hold next"))
        await engine.workflows.save(first)
        with acting(Act("user:ada", "session", "POST", "x", 0)):
            run = (await engine.submit("counting", input={"n": 0}, priority=7)).run
        await until(lambda: hold.started)
        later = counting(upto=1, blocks={"end": value("version 2")})
        assert (await engine.workflows.save(later)).version == 2
        hold.free.set()
        one, two = await chain_of(engine, run)
        assert (one.version, two.version, two.output) == (1, 2, "version 2")
        started = (await engine.store.read_events(two.id, limit=1))[0].data
        assert orjson.loads(started or b"") == {"run": two.id, "by": "user:ada", "continues": one.id}


async def test_the_next_run_is_due_a_second_after_the_one_before_began(tmp_path: Path) -> None:
    clock = ManualClock()
    async with engine_on(tmp_path / "weft.db", clock=clock) as engine:
        run = (await engine.submit(counting(upto=1), input={"n": 0})).run
        after = (await ended(engine, run)).continued_as
        assert after is not None
        row = await engine.runs.row(after)
        assert (row.status, row.created_at_ms, row.next_run_at_ms) == (
            ("queued", clock.now_ms(), clock.now_ms() + EVERY_MS)
        )
        clock.advance(EVERY_MS)
        assert (await ended(engine, after)).output == 1


LATER = {"type": "wait", "params": {"seconds": 3600}}


async def test_what_is_still_open_is_given_up(tmp_path: Path) -> None:
    hold = Hold()
    async with engine_on(tmp_path / "weft.db", hold) as engine:
        more = {"hold": {"type": "hold"}, "later": LATER}
        workflow = counting(upto=1, blocks=more, edges=("more more hold", "more more later"))
        first, second = await chain_of(engine, (await engine.submit(workflow, input={"n": 0})).run)
        assert {node.key: node.status for node in first.nodes if node.key in more} == {
            ("hold"): "cancelled",
            ("later"): "cancelled",
        }
        assert (await engine.waits.list(None, first.id))[0].status == "cancelled"
        assert second.output == 1


@pytest.mark.parametrize("kind", ["loop", "parallel"])
async def test_it_may_be_reached_inside_a_container_and_twice(tmp_path: Path, kind: str) -> None:
    blocks = {
        "each": {"type": kind, "params": {"mode": "each", "items": [1, 2, 3]}},
        "which": {
            "type": "condition",
            "parent": "each",
            "params": {"cases": [{"id": "first", "when": "<input.n> === 0"}, {"id": "other"}]},
        },
        "again": {"type": "continue_as_new", "parent": "each", "params": {"input": {"n": 1}}},
        "end": {**value("<input.n>"), "parent": "each"},
    }
    edges = ("start each", "each body which", "which first again", "which other end")
    workflow = document("inside", *edges, blocks=blocks, input=NUMBER)
    async with engine_on(tmp_path / "weft.db") as engine:
        first, second = await chain_of(engine, (await engine.submit(workflow, input={"n": 0})).run)
        assert (first.status, second.output["results"]) == ("succeeded", [[1]] * 3)
        assert await events_of(engine, first.id, "run.continuing") == ["run.continuing"]
        assert len(await engine.runs.list()) == 2


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"n": "<input.text>"}, "of the next run: the input does not match its schema at /n"),
        ("<input.text>", "of the next run"),
    ],
)
async def test_an_input_that_does_not_fit_is_an_error_of_the_block(tmp_path: Path, given: Any, says: str) -> None:
    caught = {"caught": value("<again.error>")}
    schema = {**NUMBER, "properties": {"n": {"type": "integer"}, "text": {"type": "string"}}}
    workflow = {**counting(again=given, blocks=caught, edges=("again error caught",)), "input": schema}
    async with engine_on(tmp_path / "weft.db") as engine:
        view = await ran(engine, workflow, input={"n": 0, "text": "many"})
        assert (view.status, view.output["code"], view.continued_as) == ("succeeded", "input_invalid", None)
        assert says in view.output["message"]
        assert len(await engine.runs.list()) == 1


async def test_a_version_that_does_not_suit_is_an_error_of_the_block(tmp_path: Path) -> None:
    hold = Hold()
    async with engine_on(tmp_path / "weft.db", hold) as engine:
        workflow = counting(upto=1, blocks={"hold": {"type": "hold"}}, edges=("start hold", "hold next"))
        await engine.workflows.save(workflow)
        run = (await engine.submit("counting", input={"n": 0})).run
        await until(lambda: hold.started)
        changed = counting(upto=1)
        changed["input"] = {"type": "object", "required": ["m"]}
        changed["blocks"]["again"]["params"] = {"input": {"m": 1}}
        await engine.workflows.save(changed)
        hold.free.set()
        view = await ended(engine, run)
        assert view.error is not None and view.error["code"] == "input_invalid"
        assert "of the next run of version 2" in view.error["message"]


async def test_a_run_that_another_run_waits_for_cannot_continue_as_new(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        await engine.workflows.save(counting(upto=1))
        view = await ran(engine, caller(workflow="counting", input={"n": 0}))
        assert view.error is not None and "continue_as_new_child" in view.error["message"]
        (child,) = view.children
        below = await engine.runs.view(child.run)
        assert (below.status, below.continued_as) == ("failed", None)
        assert (await ran(engine, caller(workflow="counting", input={"n": 1}))).output == 1


async def test_secrets_do_not_go_into_the_next_input(tmp_path: Path) -> None:
    text = {"type": "object", "properties": {"n": {"type": "integer"}, "key": {"type": "string"}}}
    workflow = {**counting(upto=1, again={"n": 1, "key": "${KEY}"}), "input": text}
    async with engine_on(tmp_path / "weft.db", env={"KEY": "hidden value"}) as engine:
        _, second = await chain_of(engine, (await engine.submit(workflow, input={"n": 0})).run)
        assert second.input == {"n": 1, "key": "[redacted]"}


async def content() -> AsyncIterator[bytes]:
    yield b"a,b"


async def test_a_signal_that_the_run_has_not_received_is_for_the_next(tmp_path: Path) -> None:
    hold = Hold()
    blocks = {
        "hold": {"type": "hold"},
        "end": {"type": "signal", "params": {"name": "go"}},
    }
    async with engine_on(tmp_path / "weft.db", hold) as engine:
        workflow = counting(upto=1, blocks=blocks, edges=("more more hold", "hold again"))
        run = (await engine.submit(workflow, input={"n": 0})).run
        await until(lambda: hold.started)
        await engine.signals.send(run, "go", payload={"order": 7})
        hold.free.set()
        _, second = await chain_of(engine, run)
        assert second.output["payload"] == {"order": 7}


async def test_files_of_the_run_go_on_with_the_input(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    workflow = {**counting(upto=1, again={"n": 1, "sheet": "<input.sheet>"}), "input": schema}
    async with engine_on(tmp_path / "weft.db") as engine:
        sheet = (await engine.runs._parts.files.save(content(), "sheet.csv")).value
        _, second = await chain_of(engine, (await engine.submit(workflow, input={"n": 0, "sheet": sheet})).run)
        assert second.input["sheet"] == sheet
        assert await engine.store.files_of_run(second.id, [sheet["id"]]) == [sheet["id"]]


# --- cleanups


def cleaned(close: Json | None = None) -> Json:
    """`close` runs before the end."""
    return counting(upto=1, blocks={"close": close or {"type": "hold"}}, edges=("start finally close",))


async def test_cleanups_come_before_the_end_and_the_next_run(tmp_path: Path) -> None:
    hold = Hold()
    async with engine_on(tmp_path / "weft.db", hold) as engine:
        run = (await engine.submit(cleaned(), input={"n": 0})).run
        await until(lambda: hold.started)
        assert [row.id for row in await engine.runs.list()] == [run]
        hold.free.set()
        first, second = await chain_of(engine, run)
        assert (first.status, first.output, second.output) == ("succeeded", None, 1)


async def test_a_process_that_finds_the_run_in_its_cleanups_makes_the_next_one(tmp_path: Path) -> None:
    before, after = Hold(), Hold()
    after.free.set()
    async with engine_on(tmp_path / "weft.db", before) as engine:
        await engine.workflows.save(cleaned())
        run = (await engine.submit("counting", input={"n": 0})).run
        await until(lambda: before.started)
        await engine.workflows.save({**cleaned(), "description": "another version, which is not the one of the next"})
    async with engine_on(tmp_path / "weft.db", after) as engine:
        first, second = await chain_of(engine, run)
        assert (first.status, first.continued_as) == ("succeeded", second.id)
        assert (second.version, second.input, second.output) == (1, {"n": 1}, 1)
        assert len(await engine.runs.list()) == 2


async def test_after_a_cleanup_that_fails_there_is_no_next_run(tmp_path: Path) -> None:
    probe = Probe()
    probe.outputs = [BlockError("stuck", code="stuck", retryable=False)]
    async with engine_on(tmp_path / "weft.db", probe) as engine:
        view = await ran(engine, cleaned({"type": "probe"}), input={"n": 0})
        assert (view.status, view.continued_as) == ("failed", None)
        assert view.error is not None and view.error["code"] == "stuck"
        assert len(await engine.runs.list()) == 1


async def test_after_a_cancel_there_is_no_next_run(tmp_path: Path) -> None:
    hold = Hold()
    async with engine_on(tmp_path / "weft.db", hold) as engine:
        run = (await engine.submit(cleaned(), input={"n": 0})).run
        await until(lambda: hold.started)
        assert await engine.runs.cancel(run)
        await until_event(engine, run, "run.cancelling")
        hold.free.set()
        view = await ended(engine, run)
        assert (view.status, view.continued_as) == ("cancelled", None)
        assert len(await engine.runs.list()) == 1


async def test_a_fork_of_a_run_that_continues_has_a_next_run_of_its_own(tmp_path: Path) -> None:
    hold = Hold()
    async with engine_on(tmp_path / "weft.db", hold) as engine:
        run = (await engine.submit(cleaned(), input={"n": 0})).run
        await until(lambda: hold.started)
        fork = (await engine.lifecycle.fork(run, await engine_seq(engine, run))).run
        hold.free.set()
        _, second = await chain_of(engine, run)
        forked, other = await chain_of(engine, fork)
        assert other.id != second.id and other.continues == forked.id
        assert (other.input, other.output) == (second.input, second.output)


async def engine_seq(engine: Engine, run: str) -> int:
    return (await engine.runs.row(run)).seq


def test_a_run_has_one_next() -> None:
    assert next_run_id("a", 1) == next_run_id("a", 1) != next_run_id("b", 1)
    assert len(next_run_id("a", 1_800_000_000_000)) == 32

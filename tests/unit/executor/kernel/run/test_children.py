"""Runs that are started by runs, through the engine on a real file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from executor.errors import AlreadyAnswered, BlockError, DatabaseWriteFailed
from executor.kernel.run.children import DEPTH_MAX
from executor.kernel.store.run_rows import Append, Appended
from executor.kernel.store.sqlite.store import SQLiteStore
from tests.support.blocks import Hold, Probe
from tests.support.clock import ManualClock
from tests.support.documents import ASKING, call, caller, document, value
from tests.support.runs import ended, engine_on, events_of, ran, token_of, until_asked

DOUBLE = document(
    "double",
    "start end",
    blocks={"end": value({"n": "<input.n>", "of": "<workflow.unit>"})},
    variables={"unit": "EUR"},
    input={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
)
FAILING = document("failing", "start bad", blocks={"bad": {"type": "probe"}})


async def test_a_block_puts_out_what_its_run_puts_out(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        await engine.workflows.save(DOUBLE)
        view = await ran(engine, caller(workflow="double", input={"n": "<input.amount>"}), input={"amount": 4})
        assert (view.status, view.output) == ("succeeded", {"n": 4, "of": "EUR"})
        (child,) = view.children
        assert (child.workflow, child.version, child.status, child.key, child.attempt) == (
            ("double", 1, "succeeded", "call", 1)
        )
        assert next(node.child for node in view.nodes if node.key == "call") == child.run
        below = await engine.runs.view(child.run)
        assert below.parent is not None and (below.parent.run, below.parent.key) == (view.id, "call")
        assert (below.input, below.output) == ({"n": 4}, {"n": 4, "of": "EUR"})
        assert [row.id for row in await engine.runs.list(parent=view.id)] == [child.run]
        (wait,) = await engine.waits.list(None, view.id)
        assert (wait.kind, wait.status, wait.link) == ("child", "answered", None)
        assert wait.request["run"] == child.run and wait.request["workflow"] == "double"


async def test_a_child_keeps_the_version_it_was_started_with(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        await engine.workflows.save(ASKING)
        parent = (await engine.submit(caller(workflow="asking"))).run
        view = await until_asked(engine, parent)
        changed = {**ASKING, "blocks": {**ASKING["blocks"], "end": value("other")}}
        assert (await engine.workflows.save(changed)).version == 2
        await engine.answer(token_of(view.child_waits[0].link), {}, action="yes", by="Ada")
        assert (await ended(engine, parent)).output == {"by": "Ada"}
        old = await engine.submit(caller(workflow="asking", version=1))
        assert (await until_asked(engine, old.run)).children[0].version == 1
        gone = await ran(engine, caller(workflow="asking", version=9))
        assert gone.error is not None and gone.error["code"] == "workflow_not_found"


async def test_a_document_written_in_a_block_keeps_its_own_references(tmp_path: Path) -> None:
    inner = document("inner", "start end", blocks={"end": value({"n": "<input.n>", "t": "a <start.n>", "x": "${X}"})})
    outer = document(
        "outer",
        "start call",
        blocks={"call": call(definition=inner, input={"n": "<input.n>", "again": "<start.n>"})},
    )
    async with engine_on(tmp_path / "weft.db", env={"X": "hidden value"}) as engine:
        view = await ran(engine, outer, input={"n": 7})
        assert view.output == {"n": 7, "t": "a 7", "x": "[redacted]"}
        (child,) = view.children
        assert (child.workflow, child.version) == ("inner", None)
        assert (await engine.runs.document(child.run)).document == inner


@pytest.mark.parametrize("as_text", [False, True])
async def test_a_document_may_come_from_data(tmp_path: Path, as_text: bool) -> None:
    inner: Any = document("made", "start end", blocks={"end": value("from data")})
    given = orjson.dumps(inner).decode() if as_text else inner
    async with engine_on(tmp_path / "weft.db") as engine:
        view = await ran(engine, caller(definition="<input.plan>"), input={"plan": given})
        assert (view.status, view.output) == ("succeeded", "from data")


@pytest.mark.parametrize(
    ("block", "code", "says"),
    [
        ({"workflow": "none"}, "workflow_not_found", "'none'"),
        ({"workflow": "double", "input": {"n": "many"}}, "input_invalid", "/n"),
        ({"workflow": "double", "trigger": "unknown"}, "child_invalid", "unknown"),
        ({"definition": {"format": "weft/1", "blocks": {"a": {"type": "nothing"}}}}, "child_invalid", "nothing"),
        ({"definition": "<input.text>"}, "params_invalid", "not JSON"),
        ({"workflow": "double", "definition": {}}, "params_invalid", "Choose a workflow"),
        ({"workflow": "<input.none ?? null>"}, "params_invalid", "Choose a workflow"),
        ({"definition": {}, "version": 1}, "params_invalid", "versions"),
    ],
)
async def test_what_can_not_be_started_is_an_error_of_the_block(
    tmp_path: Path, block: dict[str, Any], code: str, says: str
) -> None:
    parent = document(
        "parent", "start call", "call error caught", blocks={"call": call(**block), "caught": value("<call.error>")}
    )
    async with engine_on(tmp_path / "weft.db") as engine:
        await engine.workflows.save(DOUBLE)
        view = await ran(engine, parent, input={"text": "{"})
        assert view.status == "succeeded" and view.output["code"] == code
        assert says in view.output["message"]
        assert view.children == ()


async def test_a_child_that_fails_fails_its_block_and_names_the_run(tmp_path: Path) -> None:
    probe = Probe()
    probe.outputs = [BlockError("no luck", code="unlucky", retryable=False)]
    async with engine_on(tmp_path / "weft.db", probe) as engine:
        await engine.workflows.save(FAILING)
        view = await ran(engine, caller(workflow="failing"))
        (child,) = view.children
        assert (view.status, child.status) == ("failed", "failed")
        assert view.error is not None
        assert (view.error["code"], view.error["block"]) == ("child_failed", "call")
        assert view.error["message"] == f"child run {child.run} failed at block 'bad': unlucky: no luck"
        assert len(probe.seen) == 1  # without a retry policy there is one child


async def test_with_a_retry_policy_each_attempt_is_a_new_child(tmp_path: Path) -> None:
    probe = Probe()
    probe.outputs = [BlockError("no", retryable=False), BlockError("no", retryable=False), "third time"]
    parent = caller(workflow="failing", policy={"retry": {"max_attempts": 3, "initial_ms": 1}})
    async with engine_on(tmp_path / "weft.db", probe) as engine:
        await engine.workflows.save(FAILING)
        view = await ran(engine, parent)
        assert (view.status, view.output) == ("succeeded", "third time")
        assert sorted((child.attempt, child.status) for child in view.children) == [
            (1, "failed"),
            (2, "failed"),
            (3, "succeeded"),
        ]


async def test_a_child_cancelled_by_hand_fails_its_block_at_once(tmp_path: Path) -> None:
    parent = document(
        "parent",
        "start call",
        "call error caught",
        blocks={
            "call": call("asking", policy={"retry": {"max_attempts": 3, "initial_ms": 1}}),
            "caught": value("<call.error.code>"),
        },
    )
    async with engine_on(tmp_path / "weft.db") as engine:
        await engine.workflows.save(ASKING)
        run = (await engine.submit(parent)).run
        view = await until_asked(engine, run)
        await engine.cancel(view.children[0].run, "by hand")
        done = await ended(engine, run)
        assert (done.output, len(done.children)) == ("child_cancelled", 1)


async def test_cancelling_reaches_every_run_below(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        await engine.workflows.save(ASKING)
        await engine.workflows.save(caller("middle", workflow="asking"))
        await engine.workflows.save(caller("upper", workflow="middle"))
        top = (await engine.submit(caller("top", workflow="upper"))).run
        view = await until_asked(engine, top)
        (wait,) = view.child_waits
        assert (wait.kind, wait.workflow) == ("approval", "asking")
        await engine.cancel(top, "enough")
        run = top
        for _ in range(4):
            view = await ended(engine, run)
            assert view.status == "cancelled"
            run = view.children[0].run if view.children else ""
        with pytest.raises(AlreadyAnswered):
            await engine.answer(token_of(wait.link), {}, action="yes")


@pytest.mark.parametrize("end", ["failed", "response"])
async def test_a_parent_that_ends_otherwise_takes_its_children_along(tmp_path: Path, end: str) -> None:
    other: dict[str, Any] = {"type": "response", "params": {"body": "early"}}
    if end == "failed":
        other = {"type": "function", "params": {"code": "throw new Error('no')"}}
    parent = document(
        "parent",
        "start call",
        "start go",
        "go other",
        blocks={"call": call("asking"), "go": {"type": "signal", "params": {"name": "go"}}, "other": other},
    )
    async with engine_on(tmp_path / "weft.db") as engine:
        await engine.workflows.save(ASKING)
        run = (await engine.submit(parent)).run
        child = (await until_asked(engine, run)).children[0].run
        await engine.signal(run, "go")
        assert (await ended(engine, run)).status == ("failed" if end == "failed" else "succeeded")
        below = await ended(engine, child)
        assert below.status == "cancelled"


async def test_every_iteration_and_every_branch_has_its_own_child(tmp_path: Path) -> None:
    parent = document(
        "parent",
        "start fan",
        "fan body each",
        "fan review",
        "review body again",
        "review end",
        blocks={
            "fan": {"type": "parallel", "params": {"items": [1, 2, 3]}},
            "each": {**call("double", input={"n": "<parallel.item>"}), "parent": "fan"},
            "review": {"type": "loop", "params": {"mode": "for", "count": 2}},
            "again": {**call("double", input={"n": "<loop.index>"}), "parent": "review"},
            "end": value({"fan": "<fan.results>", "loop": "<review.results>"}),
        },
    )
    async with engine_on(tmp_path / "weft.db") as engine:
        await engine.workflows.save(DOUBLE)
        view = await ran(engine, parent)
        assert view.output == {
            "fan": [[{"n": n, "of": "EUR"}] for n in (1, 2, 3)],
            "loop": [[{"n": n, "of": "EUR"}] for n in (0, 1)],
        }
        keys = ["again@review#0", "again@review#1", "each@fan[0]", "each@fan[1]", "each@fan[2]"]
        assert sorted(child.key for child in view.children) == keys


async def test_a_workflow_that_calls_itself_stops_at_the_limit(tmp_path: Path) -> None:
    own = document("own", "start call", blocks={"call": call("own")})
    async with engine_on(tmp_path / "weft.db") as engine:
        await engine.workflows.save(own)
        view = await ran(engine, "own")
        assert view.error is not None and view.error["code"] == "child_failed"
        assert view.error["message"].endswith(f"limit_depth: runs are nested more than {DEPTH_MAX} levels deep")
        assert len(view.error["message"]) < 1100
        assert len(await engine.runs.list("own")) == DEPTH_MAX + 1


async def test_waits_below_are_seen_from_above(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        await engine.workflows.save(ASKING)
        await engine.workflows.save(caller("middle", workflow="asking"))
        run = (await engine.submit(caller("top", workflow="middle"))).run
        waiting = await engine.wait_finished(run, 30)  # does not take the parent's nap for the end of the work
        assert waiting.status == "waiting" and waiting.children_active == 0
        (wait,) = waiting.child_waits
        (child,) = waiting.children
        assert (wait.title, wait.run) == ("Pay?", (await engine.runs.view(child.run)).children[0].run)
        assert [own.kind for own in waiting.waits] == ["child"]
        await engine.answer(token_of(wait.link), {}, action="yes", by="Ada")
        assert (await engine.wait_finished(run, 30)).output == {"by": "Ada"}


async def test_a_waiting_run_is_not_shown_with_what_came_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its child ends while the view is put together: it is no run that waits and has no child at work."""
    async with engine_on(tmp_path / "weft.db") as engine:
        await engine.workflows.save(ASKING)
        run = (await engine.submit(caller(workflow="asking"))).run
        (wait,) = (await engine.wait_finished(run, 30)).child_waits
        active = engine.store.count_active_below

        async def answered_meanwhile(of: str, now_ms: int) -> int:
            monkeypatch.undo()
            await engine.answer(token_of(wait.link), {}, action="yes", by="Ada")
            assert (await ended(engine, run)).status == "succeeded"
            return await active(of, now_ms)

        monkeypatch.setattr(engine.store, "count_active_below", answered_meanwhile)
        view = await engine.runs.view(run)
        assert (view.status, view.output) == ("succeeded", {"by": "Ada"})


async def test_a_waiting_run_says_that_it_will_go_on(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        await engine.workflows.save(ASKING)
        run = (await engine.submit(caller(workflow="asking"))).run
        assert (await engine.wait_finished(run, 30)).unread == 0
    async with engine_on(tmp_path / "weft.db", work=False) as front:
        assert await front.cancel(run)
        view = await front.runs.view(run)
        assert (view.status, view.children_active, view.unread) == ("waiting", 0, 1)
    async with engine_on(tmp_path / "weft.db") as engine:
        assert (await ended(engine, run)).unread == 0


async def test_an_end_that_comes_while_the_parent_works_is_not_lost(tmp_path: Path) -> None:
    hold = Hold()
    parent = document(
        "parent",
        "start call",
        "start slow",
        "call end",
        "slow end",
        blocks={"call": call("double", input={"n": 1}), "slow": {"type": "hold"}, "end": value("<call.n>")},
    )
    async with engine_on(tmp_path / "weft.db", hold) as engine:
        await engine.workflows.save(DOUBLE)
        run = (await engine.submit(parent)).run
        async with asyncio.timeout(30):
            while "wait.closed" not in await events_of(engine, run):
                await asyncio.sleep(0.01)
        assert (await engine.runs.view(run)).status == "running"
        hold.free.set()
        assert (await ended(engine, run)).output == 1


async def test_two_engines_share_parents_and_children(tmp_path: Path) -> None:
    db = tmp_path / "weft.db"
    async with engine_on(db, lease_ms=2_000) as one, engine_on(db, lease_ms=2_000) as two:
        await one.workflows.save(DOUBLE)
        runs = []
        for n in range(12):
            engine = (one, two)[n % 2]
            runs.append((await engine.submit(caller(workflow="double", input={"n": n}))).run)
        views = await asyncio.gather(*(ended(two, run) for run in runs))
        assert [view.output["n"] for view in views] == list(range(12))
        assert all(len(view.children) == 1 for view in views)


async def test_a_parent_whose_process_is_gone_hears_of_the_end_days_later(tmp_path: Path) -> None:
    db, clock = tmp_path / "weft.db", ManualClock()
    async with engine_on(db, clock=clock) as engine:
        await engine.workflows.save(ASKING)
        parent = (await engine.submit(caller(workflow="asking"))).run
        link = (await until_asked(engine, parent)).child_waits[0].link
    clock.advance(5 * 86_400_000)
    async with engine_on(db, clock=clock, work=False) as front:  # takes the answer, runs nothing
        await front.answer(token_of(link), {}, action="yes", by="Ada")
        assert (await front.runs.view(parent)).status == "waiting"
    clock.advance(86_400_000)
    async with engine_on(db, clock=clock) as engine:
        assert (await ended(engine, parent)).output == {"by": "Ada"}


class BreakingStore(SQLiteStore):
    """Fails the append that makes a child, before or after it is on disk: as if the process had died there."""

    def __init__(self, path: Path, when: str) -> None:
        super().__init__(path)
        self.when = when
        self.broken = 0

    async def append(self, append: Append) -> Appended:
        breaks = bool(append.children) and not self.broken
        self.broken += breaks
        if breaks and self.when == "before":
            raise DatabaseWriteFailed("before the commit")
        appended = await super().append(append)
        if breaks:
            raise DatabaseWriteFailed("after the commit")
        return appended


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_wait_has_one_child_wherever_its_append_breaks(tmp_path: Path, when: str) -> None:
    store = BreakingStore(tmp_path / "weft.db", when)
    async with engine_on(store, lease_ms=300) as engine:
        await engine.workflows.save(DOUBLE)
        view = await ran(engine, caller(workflow="double", input={"n": 3}))
        assert store.broken == 1
        assert (view.status, view.output) == ("succeeded", {"n": 3, "of": "EUR"})
        assert len(await engine.runs.list("double")) == 1
        assert await events_of(engine, view.id, "wait.opened", "wait.closed") == ["wait.opened", "wait.closed"]


async def test_secrets_do_not_go_on_into_a_child(tmp_path: Path) -> None:
    open_input = document("open", "start end", blocks={"end": value("<input.key>")})
    db = tmp_path / "weft.db"
    async with engine_on(db, env={"KEY": "a very secret value"}) as engine:
        await engine.workflows.save(open_input)
        view = await ran(engine, caller(workflow="open", input={"key": "${KEY}"}))
        assert view.output == "[redacted]"
    for file in (db, db.with_name("weft.db-wal")):
        assert not file.exists() or b"a very secret value" not in file.read_bytes()


async def test_the_output_of_a_child_may_be_large(tmp_path: Path) -> None:
    code = {"type": "function", "params": {"code": "return 'x'.repeat(9e5)"}}
    big = document("big", "start end", blocks={"end": code})
    async with engine_on(tmp_path / "weft.db") as engine:
        await engine.workflows.save(big)
        view = await ran(engine, document("p", "start call", blocks={"call": call("big")}))
        assert view.status == "succeeded", view.error
        assert "x" * 900_000 in orjson.dumps(view.output).decode()
        assert all(len(wait.response or "") < 100 for wait in await engine.waits.list(None, view.id))

"""A recorded run played by the same document, and by others: what is the same, what differs, what would be called."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from executor.errors import BadRequest, Conflict, NotFound
from executor.open.engine import Engine
from executor.open.testing.engines import engine as opened
from executor.open.testing.play import finish
from executor.open.testing.scripted import ScriptedBlock, failure, scripted
from executor.service.replay.compare import RunReplay
from executor.service.replay.play import Play
from executor.service.topics import backtests
from executor.service.topics.reruns import Target

Change = Callable[[dict[str, Any]], Any]
ORDERS: dict[str, Any] = {
    "format": "weft/1",
    "name": "orders",
    "variables": {"seen": 0},
    "blocks": {
        "start": {"type": "start"},
        "sum": {"type": "function", "name": "Sum", "params": {"code": "return <start.amount> * 1"}},
        "limit": {
            "type": "condition",
            "name": "Limit",
            "params": {
                "cases": [{"id": "high", "title": "High", "when": "<sum.result> > 500"}, {"id": "low", "title": "Low"}]
            },
        },
        "ask": {"type": "approval", "name": "Ask", "params": {"title": "Pay <sum.result>?"}},
        "charge": {"type": "charge", "name": "Charge", "params": {"amount": "<sum.result>"}},
        "note": {"type": "set", "name": "Note", "params": {"value": {"receipt": "<charge.id>"}}},
        "lines": {"type": "loop", "name": "Lines", "params": {"mode": "each", "items": "<start.lines>"}},
        "line": {"type": "function", "name": "Line", "parent": "lines", "params": {"code": "return <lines.item> * 2"}},
        "pause": {"type": "wait", "name": "Pause", "params": {"seconds": 3600}},
    },
    "edges": [
        {"source": "start", "target": "sum"},
        {"source": "sum", "target": "limit"},
        {"source": "limit", "handle": "high", "target": "ask"},
        {"source": "limit", "handle": "low", "target": "charge"},
        {"source": "charge", "target": "note"},
        {"source": "start", "target": "lines"},
        {"source": "lines", "handle": "body", "target": "line"},
        {"source": "lines", "target": "pause"},
    ],
}


@pytest.fixture
def charge() -> ScriptedBlock:
    return scripted("charge", {"id": "c-1"})


@pytest.fixture
async def engine(charge: ScriptedBlock) -> AsyncIterator[Engine]:
    async with opened(blocks=[charge]) as made:
        yield made


async def recorded(engine: Engine, amount: Any = 100, document: dict[str, Any] = ORDERS) -> str:
    submitted = await engine.submit(document, input={"amount": amount, "lines": [1, 2]})
    await finish(engine, submitted.run, {"ask": {"action": "approve", "fields": {}}})
    return submitted.run


async def played(engine: Engine, change: Change | None = None, document: dict[str, Any] = ORDERS) -> RunReplay:
    """Play the last run by the document after a change."""
    new = copy.deepcopy(document)
    if change is not None:
        change(new)
    found = await engine.backtests.play(new["name"], document=new, last=1)
    (run,) = found.runs
    return run


def param(block: str, name: str, value: Any) -> Change:
    return lambda document: document["blocks"][block]["params"].__setitem__(name, value)


@pytest.mark.parametrize("amount", [100, 600])
async def test_the_same_document_does_the_same_and_calls_nothing(
    engine: Engine, charge: ScriptedBlock, amount: int
) -> None:
    await recorded(engine, amount)
    calls, commits = len(charge.calls), engine.figures.commits
    run = await played(engine)
    assert (run.result, run.before, run.now, run.differences) == ("same", "succeeded", "succeeded", ())
    assert set(run.blocks.values()) == {"same"}
    assert set(run.blocks) == {"start", "sum", "limit", "lines", "line", "pause"} | (
        {"ask"} if amount > 500 else {"charge", "note"}
    )
    assert len(charge.calls) == calls
    assert engine.figures.commits == commits, "nothing is stored"


async def test_another_branch_is_named_with_what_follows_it(engine: Engine) -> None:
    await recorded(engine, 450)
    run = await played(engine, param("limit", "cases", [{"id": "high", "when": "<sum.result> > 400"}, {"id": "low"}]))
    assert run.result == "other_way"
    assert run.way is not None
    assert (run.way.block, run.way.before, run.way.now) == ("limit", ("Charge",), ("Ask",))
    assert run.now is None, "what a person would answer is not known"
    assert {block: run.blocks[block] for block in ("limit", "ask", "charge", "note")} == {
        "limit": "changed",
        "ask": "would_call",
        "charge": "not_reached",
        "note": "not_reached",
    }


async def test_a_changed_program_is_executed_and_the_first_difference_shown(engine: Engine) -> None:
    await recorded(engine)
    run = await played(engine, param("line", "code", "return <lines.item> * 3"))
    assert (run.result, run.now, run.way) == ("changed", "succeeded", None)
    assert (run.blocks["line"], run.blocks["lines"], run.blocks["sum"]) == ("changed", "changed", "same")
    first = next(each for each in run.differences if each.key == "line@lines#0")
    assert first.value is not None
    assert (first.value.pointer, first.value.a, first.value.b) == ("/result", "2", "3")


async def test_a_program_that_is_written_otherwise_is_the_same(engine: Engine) -> None:
    await recorded(engine)
    run = await played(engine, param("sum", "code", "const n = <start.amount>;\nreturn n"))
    assert run.result == "same"


async def test_chance_and_time_are_those_of_the_recording(engine: Engine) -> None:
    document = copy.deepcopy(ORDERS)
    param("sum", "code", "return [Math.random(), Date.now()].length && <start.amount>")(document)
    param("line", "code", "return [Math.random(), Date.now()]")(document)
    await recorded(engine, document=document)
    run = await played(engine, param("line", "code", "const r = Math.random(); return [r, Date.now()]"), document)
    assert run.result == "same"


async def test_pins_of_a_draft_do_not_count(engine: Engine) -> None:
    await recorded(engine)
    run = await played(engine, lambda document: document["blocks"]["charge"].update(pin={"output": {"id": "pinned"}}))
    assert run.result == "same"


async def test_a_call_with_another_input_is_not_made_and_what_follows_is_unknown(
    engine: Engine, charge: ScriptedBlock
) -> None:
    await recorded(engine)
    calls = len(charge.calls)
    run = await played(engine, param("charge", "amount", "<sum.result> EUR"))
    assert (run.result, run.reason, run.now) == ("would_call", "would call charge", None)
    assert (run.blocks["charge"], run.blocks["note"], run.blocks["line"]) == ("would_call", "unknown", "same")
    (call,) = run.differences
    assert call.value is not None
    assert (call.sends, call.value.pointer, call.value.a, call.value.b) == (True, "/amount", "100", '"100 EUR"')
    assert len(charge.calls) == calls


async def test_an_answer_is_taken_for_a_changed_question(engine: Engine) -> None:
    await recorded(engine, 600)
    run = await played(engine, param("ask", "title", "May we take <sum.result>?"))
    assert (run.result, run.reason, run.now) == ("would_call", "would ask a person", "succeeded")
    (asked,) = run.differences
    assert (asked.answered, asked.sends) == (True, False)


async def test_a_longer_wait_is_over_at_once(engine: Engine) -> None:
    await recorded(engine)
    run = await played(engine, param("pause", "seconds", 864_000))
    assert (run.result, run.now) == ("changed", "succeeded")
    assert run.blocks["pause"] == "changed"
    assert {block for block, result in run.blocks.items() if result != "same"} == {"pause"}


async def test_a_run_that_fails_now(engine: Engine) -> None:
    await recorded(engine)
    run = await played(engine, param("sum", "code", "throw new Error('no')"))
    assert (run.result, run.before, run.now) == ("failed", "succeeded", "failed")
    assert run.reason.startswith("sum: Error: no")
    assert run.blocks["charge"] == "not_reached"


@pytest.mark.parametrize("handled", [True, False])
async def test_a_recorded_failure_is_the_same_without_a_retry(handled: bool) -> None:
    fails = scripted("charge", failure("down"))
    document = copy.deepcopy(ORDERS)
    document["blocks"]["charge"]["policy"] = {"retry": {"max_attempts": 2, "initial_s": 1}}
    if handled:
        document["edges"].append({"source": "charge", "handle": "error", "target": "note"})
    async with opened(blocks=[fails]) as engine:
        await recorded(engine, document=document)
        assert len(fails.calls) == 2
        run = await played(engine, None, document)
        assert (run.result, run.before, run.now) == (
            ("same", "succeeded", "succeeded") if handled else ("same", "failed", "failed")
        )
        assert len(fails.calls) == 2


async def test_a_cancelled_run_stays_open_where_it_was(engine: Engine) -> None:
    submitted = await engine.submit(ORDERS, input={"amount": 600, "lines": []})
    clock: Any = engine.parts.clock
    await clock.advance(1)
    await engine.cancel(submitted.run)
    await engine.wait_finished(submitted.run, 10)
    run = await played(engine)
    assert (run.result, run.before) == ("same", "cancelled")


async def test_parallels_variables_errors_responses_and_children(engine: Engine) -> None:
    child = {
        "format": "weft/1",
        "name": "child",
        "blocks": {"start": {"type": "start"}, "out": {"type": "set", "params": {"value": {"twice": "<start.n>"}}}},
        "edges": [{"source": "start", "target": "out"}],
    }
    await engine.workflows.save(child, "child")
    document: dict[str, Any] = {
        "format": "weft/1",
        "name": "all",
        "variables": {"total": 0},
        "blocks": {
            "start": {"type": "start"},
            "each": {"type": "parallel", "params": {"items": "<start.items>"}},
            "call": {
                "type": "run_workflow",
                "parent": "each",
                "params": {"workflow": "child", "input": {"n": "<each.item>"}},
            },
            "count": {
                "type": "variables",
                "parent": "each",
                "params": {"assign": [{"name": "total", "op": "increment", "value": 1}]},
            },
            "bad": {"type": "function", "params": {"code": "throw new Error(<variable.total>)"}},
            "reply": {"type": "response", "params": {"status": 201, "body": {"total": "<variable.total>"}}},
        },
        "edges": [
            {"source": "start", "target": "each"},
            {"source": "each", "handle": "body", "target": "call"},
            {"source": "call", "target": "count"},
            {"source": "each", "target": "bad"},
            {"source": "bad", "handle": "error", "target": "reply"},
        ],
    }
    submitted = await engine.submit(document, input={"items": [1, 2, 3]})
    view = await finish(engine, submitted.run)
    assert (view.status, view.output) == ("succeeded", {"total": 3})
    runs = len(await engine.runs.list())
    run = await played(engine, None, document)
    assert (run.result, run.differences, set(run.blocks)) == ("same", (), set(document["blocks"]))
    changed = await played(engine, param("call", "input", {"n": 7}), document)
    assert changed.blocks == {
        **dict.fromkeys(document["blocks"], "unknown"),
        **{"start": "same", "each": "unknown", "call": "would_call"},
    }
    assert changed.reason == "would start a run"
    assert len(await engine.runs.list()) == runs, "no child was started"


async def test_a_run_that_took_over_from_another_is_played(engine: Engine, charge: ScriptedBlock) -> None:
    first = await recorded(engine)
    new = copy.deepcopy(ORDERS)
    param("line", "code", "return <lines.item> * 3")(new)
    submitted = await engine.lifecycle.go_on(first, Target(document=new))
    await finish(engine, submitted.run)
    assert len(charge.calls) == 1, "its output was taken over"
    run = await played(engine, None, new)
    assert (run.run, run.result) == (submitted.run, "same")
    assert set(run.blocks) == set(new["blocks"]) - {"ask"}

    clock: Any = engine.parts.clock
    await clock.advance(1)  # the last run is the one that was created last
    from_block = await engine.lifecycle.run_from(first, "pause")
    await finish(engine, from_block.run)
    run = await played(engine)
    assert (run.run, run.result) == (from_block.run, "not_replayed")
    assert "reuses a container" in run.reason


async def test_a_new_block_runs_and_a_renamed_one_is_the_same(engine: Engine) -> None:
    await recorded(engine)

    def change(document: dict[str, Any]) -> None:
        blocks = document["blocks"]
        blocks["sum"]["name"] = "Total"
        for text in ("limit", "charge", "ask"):
            params = blocks[text]["params"]
            blocks[text]["params"] = _renamed(params)
        blocks["more"] = {"type": "function", "name": "More", "params": {"code": "return 1"}}
        document["edges"].append({"source": "sum", "target": "more"})

    run = await played(engine, change)
    assert (run.result, run.blocks["more"]) == ("changed", "changed")
    assert {block for block, result in run.blocks.items() if result != "same"} == {"more"}


def _renamed(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("<sum.", "<total.")
    if isinstance(value, dict):
        return {name: _renamed(each) for name, each in value.items()}
    return [_renamed(each) for each in value] if isinstance(value, list) else value


async def test_runs_that_cannot_be_played(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    await recorded(engine)

    def other_trigger(document: dict[str, Any]) -> None:
        document["blocks"]["begin"] = document["blocks"].pop("start")
        document["blocks"]["begin"]["name"] = "start"
        for edge in document["edges"]:
            edge["source"] = edge["source"].replace("start", "begin")

    run = await played(engine, other_trigger)
    assert (run.result, run.now) == ("not_replayed", None)
    assert "it began at 'start'" in run.reason
    monkeypatch.setattr("executor.service.replay.recording.EVENTS_MAX", 3)
    assert "a replay reads at most 3" in (await played(engine)).reason
    monkeypatch.undo()
    monkeypatch.setattr("executor.service.replay.recording.BYTES_MAX", 10)
    assert "its values are larger than" in (await played(engine)).reason
    monkeypatch.undo()
    monkeypatch.setattr("executor.service.replay.play.FACTS_MAX", 3)
    assert "a replay has at most 3 steps" in (await played(engine)).reason
    monkeypatch.undo()

    def broken(*_: Any) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(Play, "play", broken)
    assert "the log of the server has the error" in (await played(engine)).reason


async def test_secrets_are_not_shown() -> None:
    document = copy.deepcopy(ORDERS)
    document["blocks"]["charge"]["params"]["key"] = "${KEY}"
    charge = scripted("charge", {"id": 1})
    async with opened(blocks=[charge], env={"KEY": "hunter2hunter2"}, secrets=["KEY"]) as engine:
        await recorded(engine, document=document)
        run = await played(engine, param("charge", "key", "x${KEY}"), document)
        (call,) = run.differences
        assert "hunter2" not in repr(run)
        assert call.value is not None
        assert call.value.pointer == "/key"


# --- kept runs, and pages ---


async def test_kept_runs_are_listed_and_no_age_deletes_them(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, three = [await recorded(engine, amount) for amount in (1, 2, 600)]
    kept = await engine.backtests.keep(one, "the small one")
    assert (kept.run, kept.workflow, kept.note) == (one, "orders", "the small one")
    await engine.backtests.keep(three)
    assert (await engine.backtests.keep(one, "small")).note == "small"
    assert {each.run: each.note for each in await engine.backtests.kept("orders")} == {one: "small", three: ""}
    assert await engine.backtests.kept("other") == []
    monkeypatch.setattr(backtests, "KEPT_MAX", 2)
    with pytest.raises(Conflict, match="2 kept runs") as refused:
        await engine.backtests.keep(two)
    assert refused.value.code == "kept_limit"
    clock: Any = engine.parts.clock
    await clock.advance(3600)
    await engine.upkeep.collect(older_than_ms=1)
    assert {row.id for row in await engine.runs.list()} == {one, three}
    with pytest.raises(Conflict, match="is kept as a test") as refused:
        await engine.upkeep.delete_run(one)
    assert refused.value.code == "run_kept"
    assert await engine.backtests.drop(one)
    assert not await engine.backtests.drop(one)
    await engine.upkeep.collect(older_than_ms=1)
    assert {row.id for row in await engine.runs.list()} == {three}


async def test_an_open_run_is_not_kept(engine: Engine) -> None:
    submitted = await engine.submit(ORDERS, input={"amount": 600, "lines": []})
    with pytest.raises(Conflict, match="has not ended") as refused:
        await engine.backtests.keep(submitted.run)
    assert refused.value.code == "run_open"
    with pytest.raises(NotFound):
        await engine.backtests.keep("no-such-run")


async def test_pages(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [await recorded(engine, amount) for amount in (1, 2, 3, 4)]
    await engine.backtests.keep(runs[0])
    await engine.backtests.keep(runs[2])
    open_run = await engine.submit(ORDERS, input={"amount": 600, "lines": []})
    monkeypatch.setattr(backtests, "PAGE", 2)
    found: list[str] = []
    before: str | None = None
    left = 3
    while True:
        page = await engine.backtests.play("orders", document=ORDERS, last=left, before=before)
        found += [run.run for run in page.runs]
        left, before = left - len(page.runs), page.next
        if before is None:
            break
    assert found == runs[:0:-1]
    assert open_run.run not in found
    page = await engine.backtests.play("orders", document=ORDERS, kept=True)
    assert ({run.run for run in page.runs}, page.next, page.total) == ({runs[0], runs[2]}, None, 2)


async def test_what_is_played(engine: Engine) -> None:
    await engine.workflows.save(ORDERS, "orders")
    other = copy.deepcopy(ORDERS)
    param("line", "code", "return 5")(other)
    await engine.workflows.save(other, "orders")
    submitted = await engine.submit("orders", input={"amount": 1, "lines": [1]}, version=1)
    await finish(engine, submitted.run)
    draft = await engine.drafts.create(ORDERS)

    async def result(**what: Any) -> str:
        return (await engine.backtests.play("orders", **what)).runs[0].result

    assert await result() == "changed"
    assert await result(version=1) == "same"
    assert await result(draft=draft.id) == "same"
    with pytest.raises(BadRequest, match="exclude each other"):
        await result(version=1, draft=draft.id)
    with pytest.raises(NotFound):
        await result(draft="none")
    with pytest.raises(NotFound):
        await result(version=9)

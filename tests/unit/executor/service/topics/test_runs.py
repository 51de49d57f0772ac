from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from compiler.diagnostics import CompileError
from executor.errors import Conflict, NotFound
from executor.kernel.store.run_rows import RunRow
from executor.service.parts import Parts
from executor.service.topics.runs import Runs
from tests.support.blocks import Hold
from tests.support.documents import call, chain, in_a_row, value
from tests.support.runs import engine_on
from tests.support.until import until

WAIT = {"type": "wait", "params": {"seconds": 60}}


async def test_a_submitted_run_is_stored_and_may_be_claimed(runs: Runs, parts: Parts) -> None:
    submitted = await runs.submit(chain("a", a=WAIT), input={"n": 1})
    assert (submitted.created, submitted.status, parts.owned.due.is_set()) == (True, "queued", True)
    assert (await runs.row(submitted.run)).workflow == "chain"
    assert [row.id for row in await runs.list()] == [submitted.run]
    assert (await runs.count())["queued"] == 1
    assert await runs.last_inputs() == [{"n": 1}]


async def test_an_idempotency_key_starts_one_run(runs: Runs) -> None:
    first = await runs.submit(chain("a", a=WAIT), idempotency_key="k")
    second = await runs.submit(chain("a", a=WAIT), idempotency_key="k")
    assert (second.run, second.created) == (first.run, False)
    with pytest.raises(Conflict) as refused:
        await runs.submit(chain("b", b=WAIT), idempotency_key="k")
    assert refused.value.code == "idempotency_key_reused"


async def test_what_cannot_start(runs: Runs) -> None:
    with pytest.raises(CompileError):
        await runs.submit({"format": "weft/1", "blocks": {"a": {"type": "unknown"}}})
    with pytest.raises(NotFound, match="there is no workflow 'missing'"):
        await runs.submit("missing")
    with pytest.raises(NotFound, match="no block 'z'"):
        await runs.submit(chain("a", a=WAIT), stop_after="z")
    assert await runs.list() == []


async def test_a_cancel_is_written_for_the_owner(runs: Runs, parts: Parts) -> None:
    run = (await runs.submit(chain("a", a=WAIT))).run
    parts.owned.due.clear()
    assert await runs.cancel(run, "enough")
    assert parts.owned.due.is_set()
    assert len(await parts.store.read_inbox(run)) == 1
    with pytest.raises(NotFound):
        await runs.cancel("missing")


async def test_waiting_for_a_run_that_no_worker_claims_ends_in_time(runs: Runs) -> None:
    run = (await runs.submit(chain("a", a=WAIT))).run
    assert (await runs.wait_finished(run, 0.01)).status == "queued"
    assert (await runs.run(chain("a", a=WAIT), timeout_s=0.01)).status == "queued"


async def test_who_started_a_run_waits_until_another_process_has_ended_it(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db"), engine_on(tmp_path / "weft.db", work=False) as front:
        assert (await front.run(chain("a", a=value(1)), timeout_s=60)).status == "succeeded"
        assert front.parts.owned._left.runs() == []


async def test_a_run_that_is_waited_for_is_not_read_by_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        reads = 0
        get_run = engine.store.get_run

        async def counted(id: str) -> RunRow | None:
            nonlocal reads
            reads += 1
            return await get_run(id)

        monkeypatch.setattr(engine.store, "get_run", counted)
        running = asyncio.create_task(engine.run(chain("a", "b", "c", a={"type": "hold"}, b=value(1), c=value(2))))
        await until(lambda: len(engine.parts.owned) == 1)
        assert reads == 0  # who has made it need not ask whether it has ended
        hold.free.set()
        assert (await running).status == "succeeded"
        assert reads <= 4 and engine.parts.hub.watched() == []


BIG = {"type": "function", "params": {"code": "return 'x'.repeat(300000)"}}
SHOWN = {
    "chain": chain("a", "b", a=value(1), b=value("<a>")),
    "fails": chain("a", "b", a={"type": "function", "params": {"code": "throw new Error('no')"}}, b=value(1)),
    "loop": in_a_row(
        "loop",
        {"l": {"type": "loop", "params": {"mode": "for", "count": 3}}, "a": {"parent": "l", **value("<loop.index>")}},
        ["l body a"],
    ),
    "parallel": in_a_row(
        "parallel",
        {"p": {"type": "parallel", "params": {"count": 3}}, "a": {"parent": "p", **value("<parallel.index>")}},
        ["p body a"],
    ),
    "variables": {
        **chain(
            "a",
            "b",
            a={"type": "variables", "params": {"assign": [{"name": "n", "op": "set", "value": 2}]}},
            b=value("<variable.n>"),
        ),
        "variables": {"n": 1},
    },
    "response": chain("a", a={"type": "response", "params": {"body": {"x": 1}, "status": 201}}),
    "blob": chain("a", a=BIG),
    "child": chain("a", a=call(definition=chain("c", c=value(1)))),
}


@pytest.mark.parametrize("which", SHOWN)
async def test_what_run_returns_is_what_a_view_shows(tmp_path: Path, which: str) -> None:
    async with engine_on(tmp_path / "weft.db", lease_ms=60_000) as engine:
        for _ in range(2):  # the first is claimed, the others begin in the commit that creates them
            view = await engine.run(SHOWN[which], timeout_s=60)
            assert view.status == ("failed" if which == "fails" else "succeeded")
            assert view == await engine.runs.view(view.id)


async def test_the_end_of_a_run_that_begins_here_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        await engine.run(chain("a", a=value(1)))
        for name in ("get_run", "read_events", "list_children"):

            async def read(*_: object) -> None:
                raise AssertionError("read")

            monkeypatch.setattr(engine.store, name, read)
        view = await engine.run(chain("a", a=value(1)))
        assert (view.status, view.output) == ("succeeded", 1)


async def test_what_a_run_is_made_of(runs: Runs) -> None:
    run = (await runs.submit(chain("a", a=WAIT))).run
    assert (await runs.plan(run)).node_index("a") is not None
    assert (await runs.document(run)).document["name"] == "chain"
    assert "a" in {node.id for node in (await runs.graph(run)).nodes}
    for ask in (runs.view, runs.row, runs.plan, runs.document, runs.graph):
        with pytest.raises(NotFound):
            await ask("missing")

"""weft in another program: an engine opened without the server."""

from __future__ import annotations

import gc
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from executor.errors import InputInvalid, NotFound, StoreError
from executor.open import embed
from executor.open.embed import open_engine
from tests.support.runs import settled

DOUBLE: dict[str, Any] = {
    "format": "weft/1",
    "name": "double",
    "input": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    "blocks": {
        "start": {"type": "start"},
        "twice": {"type": "python", "params": {"function": "twice", "arguments": {"n": "<input.n>"}}},
    },
    "edges": [{"source": "start", "target": "twice"}],
}
ASKING: dict[str, Any] = {
    "format": "weft/1",
    "name": "asking",
    "blocks": {"start": {"type": "start"}, "ask": {"type": "approval"}},
    "edges": [{"source": "start", "target": "ask"}],
}


def twice(n: int) -> int:
    return 2 * n


async def test_a_run_and_its_events_without_a_file_name() -> None:
    async with open_engine(functions={"twice": twice}) as engine:
        run = await engine.run(DOUBLE, {"n": 4}, timeout_s=60)
        assert (run.status, run.output) == ("succeeded", 8)
        events = [event async for event in engine.stream(run.id)]
        assert [event.seq for event in events] == list(range(1, run.seq + 1))
        (made,) = [e for e in events if e.type == "node.succeeded" and e.key == "twice"]
        assert made.data["output"] == 8
        assert [e.seq async for e in engine.stream(run.id, after=run.seq - 1)] == [run.seq]
        with pytest.raises(InputInvalid):
            await engine.run(DOUBLE, {"n": "four"})
        with pytest.raises(NotFound):
            _ = [event async for event in engine.stream("none")]


@pytest.mark.parametrize("fails", [False, True])
async def test_without_a_file_name_the_database_is_temporary(
    fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ZeroDivisionError) if fails else nullcontext():
        async with open_engine() as engine:
            (folder,) = tmp_path.iterdir()
            assert (folder / "weft.db").stat().st_size and folder.stat().st_mode & 0o077 == 0
            await engine.run(ASKING, timeout_s=0)
            assert not fails or 1 // 0
    assert list(tmp_path.iterdir()) == []


async def test_large_outputs_are_in_the_stream(tmp_path: Path) -> None:
    flow = {**DOUBLE, "input": None, "blocks": {**DOUBLE["blocks"], "twice": {"type": "function", "params": {
        "code": "return 'x'.repeat(300000)"}}}}  # fmt: skip
    async with open_engine(tmp_path / "weft.db") as engine:
        run = await engine.run(flow, timeout_s=60)
        made = [e.data async for e in engine.stream(run.id) if e.key == "twice" and e.type == "node.succeeded"]
        assert len(made[0]["output"]["result"]) == 300_000 and "blob" not in made[0]


async def test_a_run_that_waits_continues_at_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "weft.db"
    async with open_engine(path, secret=b"0123456789abcdef") as engine:
        await engine.workflows.save(ASKING)
        run = await engine.run("asking", timeout_s=0.5, idempotency_key="k")
        while run.status in ("queued", "running"):  # a busy machine may need longer
            run = await engine.run("asking", timeout_s=0.5, idempotency_key="k")
        assert run.status == "waiting"
    async with open_engine(path, secret=b"0123456789abcdef") as engine:
        link = run.waits[0].link
        assert link is not None
        await engine.answer(link.rpartition("/")[2], {}, action="approve", by="Ada")
        again = await engine.run("asking", idempotency_key="k", timeout_s=60)
        assert (again.id, again.status) == (run.id, "succeeded")


async def test_two_programs_on_one_postgresql_database(postgres: str) -> None:
    from tests.support.postgres import by_its_clock

    address = by_its_clock(postgres)
    async with open_engine(address, secret=b"0123456789abcdef") as engine:
        run = await settled(engine, (await engine.submit(ASKING)).run)
        async with open_engine(address, secret=b"0123456789abcdef") as other:
            assert run.waits[0].link is not None
            await other.answer(run.waits[0].link, action="approve", by="Ada")
            assert (await engine.wait_finished(run.id, timeout_s=60)).status == "succeeded"


async def test_an_address_that_leads_to_no_database() -> None:
    with pytest.raises(StoreError):
        async with open_engine("postgresql://127.0.0.1:1/none?connect_timeout=2"):
            pass
    with pytest.raises(StoreError, match="the database must have the form postgresql://"):
        async with open_engine("postgresql://[broken"):
            pass


async def test_what_was_imported_is_collected_once(monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[int] = []
    monkeypatch.setattr(gc, "collect", lambda: collected.append(1))
    monkeypatch.setattr(embed, "COLLECTED_MAX", 1 << 40)  # other tests leave many
    embed._collect_imported.cache_clear()
    for _ in range(2):
        async with open_engine():
            pass
    assert collected == [1]


@pytest.mark.parametrize("why", ["switched off", "many objects"])
async def test_nothing_is_collected_for_a_program_that_looks_after_it(
    why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why == "switched off":
        monkeypatch.setattr(gc, "isenabled", lambda: False)
    else:
        monkeypatch.setattr(embed, "COLLECTED_MAX", 10)
    monkeypatch.setattr(gc, "collect", lambda: pytest.fail("collected"))
    embed._collect_imported.cache_clear()
    async with open_engine():
        pass

"""A new version that lacks blocks which open runs hold is stored, and says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from executor.errors import CorruptJournal
from executor.open.engine import Engine
from executor.service.topics import workflows
from tests.support.documents import document
from tests.support.runs import engine_on

pytestmark = pytest.mark.usefixtures("invariants_hold")


def flow(*blocks: str) -> dict[str, Any]:
    """Asks at the first block; the others stand behind it."""
    asks: dict[str, Any] = {"type": "approval", "name": "Manager"}
    ways = zip(("start", *blocks), blocks, strict=False)
    return document(
        "flow", *(f"{a} {b}" for a, b in ways), blocks={key: {"type": "set"} for key in blocks} | {blocks[0]: asks}
    )


async def waiting(engine: Engine, count: int) -> None:
    for _ in range(count):
        await engine.wait_finished((await engine.submit("flow")).run, 30)


async def test_a_renamed_id_that_runs_wait_at_is_named(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        await engine.workflows.save(flow("ask", "later"))
        await waiting(engine, 2)
        ended = await engine.submit("flow")
        await engine.cancel(ended.run)
        await engine.wait_finished(ended.run, 30)
        saved = await engine.workflows.save(flow("ask2", "other"))
        (found,) = saved.diagnostics
        assert (found.code, found.severity, found.pointer) == ("block_dropped", "warning", "/blocks")
        assert found.message.startswith('Block "ask" was removed, and 2 open runs used it.')
        assert not (await engine.workflows.save(flow("ask2", "other"))).diagnostics, "nothing new was stored"


async def test_what_no_open_run_has_reached_may_go(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        await engine.workflows.save(flow("ask", "later"))
        await waiting(engine, 1)
        assert not (await engine.workflows.save(flow("ask"))).diagnostics


async def test_looking_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflows, "LOOKS_MAX", 1)
    async with engine_on(tmp_path / "weft.db") as engine:
        await engine.workflows.save(flow("ask"))
        await waiting(engine, 2)
        (found,) = (await engine.workflows.save(flow("ask2"))).diagnostics
        assert "1 or more open runs" in found.message


async def test_a_damaged_plan_does_not_keep_a_version_from_being_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def damaged(*_: object) -> None:
        raise CorruptJournal("the plan does not match its checksum")

    async with engine_on(tmp_path / "weft.db") as engine:
        await engine.workflows.save(flow("ask"))
        await waiting(engine, 1)
        monkeypatch.setattr(workflows, "load_plan", damaged)
        saved = await engine.workflows.save(flow("ask2"))
        assert (saved.version, saved.diagnostics) == (2, ())

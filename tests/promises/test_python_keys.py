"""An approval that a program asks for can be answered after the program has started again."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import httpx
import pytest

import weft
from executor.errors import NotFound, WrongKey
from executor.open.engine import Engine
from tests.support.server import SyncServerProcess

ASKS: dict[str, Any] = {
    "format": "weft/1",
    "name": "asks",
    "blocks": {
        "start": {"type": "start"},
        "ask": {"type": "approval", "params": {"title": "Send it?", "actions": ["approve", "reject"]}},
    },
    "edges": [{"source": "start", "target": "ask"}],
}


async def asking(engine: Engine) -> tuple[str, str]:
    """A run that waits, and the link that answers it."""
    run = await engine.run(ASKS, timeout_s=5)
    (wait,) = await engine.waits.list(run=run.id)
    assert wait.link is not None
    return run.id, wait.link


async def ended(engine: Engine, run: str) -> str:
    return (await engine.wait_finished(run, timeout_s=30)).status


async def test_links_work_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    async with weft.open(file) as engine:
        run, link = await asking(engine)
    assert stat.S_IMODE((tmp_path / "m.key").stat().st_mode) == 0o600
    async with weft.open(file) as engine:
        (wait,) = await engine.waits.list()
        assert wait.link == link
        await engine.answer(link, action="approve")
        assert await ended(engine, run) == "succeeded"


async def test_a_wait_is_answered_by_run_and_node(tmp_path: Path) -> None:
    async with weft.open(tmp_path / "m.db") as engine:
        first, _ = await asking(engine)
        await engine.answer(run=first, node="ask", action="approve")
        assert await ended(engine, first) == "succeeded"
        second, _ = await asking(engine)
        (wait,) = await engine.waits.list()
        await engine.answer(wait, action="approve")
        assert await ended(engine, second) == "succeeded"
        with pytest.raises(NotFound, match="has no wait 'aks'"):
            await engine.answer(run=second, node="aks", action="approve")
        wrongs: list[dict[str, Any]] = [
            {},
            {"run": second},
            {"node": "ask"},
            {"link": "x", "run": second, "node": "ask"},
        ]
        for wrong in wrongs:
            with pytest.raises(TypeError, match="a link, or a wait, or run= and node="):
                await engine.answer(action="approve", **wrong)


async def test_a_server_on_the_file_has_the_same_key(tmp_path: Path) -> None:
    async with weft.open(tmp_path / "weft.db") as engine:
        run, link = await asking(engine)
    server = SyncServerProcess(tmp_path, {})
    try:
        async with httpx.AsyncClient(base_url=server.url) as client:
            page = await client.get(httpx.URL(link).path)
            assert page.status_code == 200 and "Send it?" in page.text
    finally:
        server.kill()
    async with weft.open(tmp_path / "weft.db") as engine:
        await engine.answer(link, action="approve")
        assert await ended(engine, run) == "succeeded"


async def test_secrets_can_be_stored(tmp_path: Path) -> None:
    async with weft.open(tmp_path / "m.db") as engine:
        await engine.secrets.set("KEY", "hunter2-hunter2", hosts=["127.0.0.1:1"])
    async with weft.open(tmp_path / "m.db") as engine:
        assert [row.name for row in await engine.secrets.all()] == ["KEY"]


async def test_a_database_with_another_key_is_not_opened(tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    async with weft.open(file, secret=b"k" * 32):
        pass
    with pytest.raises(WrongKey) as refused:
        async with weft.open(file):
            pass
    assert "secret=" in refused.value.hint
    assert not (tmp_path / "m.key").exists()
    async with weft.open(file, secret=b"k" * 32) as engine:
        await asking(engine)


async def test_a_damaged_key_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "m.key").write_text("no key")
    with pytest.raises(weft.WeftError, match=r"the key file .*m\.key"):
        async with weft.open(tmp_path / "m.db"):
            pass

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from compiler.diagnostics import CompileError
from executor.blocks.connectors.stored import connectors
from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.errors import BadRequest, Conflict, NotFound
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.embed import open_engine
from executor.open.engine import Engine
from tests.support.documents import connector
from tests.support.service import Service, serve

ORDER: dict[str, Any] = {
    "format": "weft/1",
    "name": "tea",
    "blocks": {
        "start": {"type": "start"},
        "order": {"type": "connector.tea", "params": {"operation": "order", "boxes": 3}},
    },
    "edges": [{"source": "start", "target": "order"}],
}


@asynccontextmanager
async def opened(db: Path, service: Service) -> AsyncIterator[Engine]:
    async with open_engine(db, secret=b"k" * 32, allow_private=[service.place]) as engine:
        yield engine


@asynccontextmanager
async def front(db: Path) -> AsyncIterator[Engine]:
    """Executes nothing."""
    sandbox = Sandbox(threads=1)
    services = Services(sandbox=sandbox, http=GuardedClient())
    registry = Registry.load(connectors(), sandbox=sandbox)
    engine = await Engine.open(SQLiteStore(db), registry=registry, services=services, secret=b"k" * 32, work=False)
    try:
        yield engine
    finally:
        await engine.close()


async def test_it_is_a_block_type_at_once_and_a_new_document_takes_its_place(tmp_path: Path) -> None:
    async with serve() as service, opened(tmp_path / "db", service) as engine:
        with pytest.raises(CompileError, match=r"connector\.tea"):
            await engine.run(ORDER, {}, timeout_s=60)
        view, created = await engine.connectors.put("tea", connector("tea", service.url, "/echo"), by="ada")
        assert created and (view.type, view.operations, view.created_by) == ("connector.tea", 1, "ada")
        run = await engine.run(ORDER, {}, timeout_s=60)
        assert run.status == "succeeded", run.error
        assert (service.calls[-1].path, service.calls[-1].body) == ("/echo", {"boxes": 3})
        assert not (await engine.connectors.put("tea", connector("tea", service.url, "/status/204")))[1]
        assert (await engine.run(ORDER, {}, timeout_s=60)).status == "succeeded"
        assert service.calls[-1].path == "/status/204"
        await engine.connectors.delete("tea")
        with pytest.raises(CompileError, match=r"connector\.tea"):
            await engine.run(ORDER, {}, timeout_s=60)
        with pytest.raises(NotFound):
            await engine.connectors.delete("tea")


async def test_other_processes_know_it_when_they_need_it(tmp_path: Path) -> None:
    db = tmp_path / "db"
    async with serve() as service, opened(db, service) as worker, front(db) as server:
        for path in ("/echo", "/status/204"):
            await server.connectors.put("tea", connector("tea", service.url, path))
            submitted = await server.submit(ORDER)
            run = await worker.wait_finished(submitted.run, timeout_s=60)
            assert run.status == "succeeded", run.error
            assert service.calls[-1].path == path
        assert [view.service for view in await worker.connectors.all()] == ["tea"]
        assert (await worker.connectors.document("tea"))["operations"]["order"]["path"] == "/status/204"
        await worker.connectors.delete("tea")
        with pytest.raises(CompileError, match=r"connector\.tea"):
            await server.submit(ORDER)


async def test_after_a_restart_open_runs_go_through_it(tmp_path: Path) -> None:
    db = tmp_path / "db"
    async with serve() as service:
        async with front(db) as server:
            await server.connectors.put("tea", connector("tea", service.url, "/echo"))
            submitted = await server.submit(ORDER)
        async with opened(db, service) as worker:
            assert (await worker.wait_finished(submitted.run, timeout_s=60)).status == "succeeded"


async def test_what_is_refused(tmp_path: Path) -> None:
    async with front(tmp_path / "db") as engine:
        with pytest.raises(BadRequest, match="tea") as refused:
            await engine.connectors.put("coffee", connector("tea"))
        assert refused.value.pointer == "/service"
        with pytest.raises(BadRequest) as refused:
            await engine.connectors.put("tea", {**connector("tea"), "operations": {}})
        assert "/operations" in [one["pointer"] for one in refused.value.extra["errors"]]
        with pytest.raises(Conflict) as taken:
            await engine.connectors.put("slack", connector("slack"))
        assert taken.value.code == "connector_exists"
        assert await engine.connectors.all() == []
        with pytest.raises(NotFound):
            await engine.connectors.document("tea")

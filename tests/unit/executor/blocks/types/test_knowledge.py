"""Collections through runs: real runs, the model over the wire."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from executor.errors import BadRequest, BlockError, Conflict, NotFound
from executor.open.engine import Engine
from executor.service.upkeep.backup import backup
from tests.support.dev_model import DevModel, dev_model
from tests.support.documents import chain
from tests.support.runs import ended, engine_on, outputs

pytestmark = pytest.mark.usefixtures("invariants_hold")

Json = dict[str, Any]
TEXT = "# Tea\n\nGreen tea is steeped at 80 degrees.\n\n# Coffee\n\nEspresso needs finely ground beans."


@asynccontextmanager
async def world(path: Path, *rules: Json) -> AsyncIterator[tuple[Engine, DevModel]]:
    async with dev_model(*rules) as model, engine_on(path / "weft.db", models={"DEV": model.url}) as engine:
        await engine.knowledge.create("drinks", "dev:words")
        yield engine, model


async def block(engine: Engine, **params: Any) -> Any:
    given = {"type": "knowledge", "params": {"collection": "drinks", **params}}
    begun = await engine.submit(chain("a", a=given))
    return (await ended(engine, begun.run)), begun.run


async def test_a_document_is_added_searched_and_deleted(tmp_path: Path) -> None:
    async with world(tmp_path) as (engine, model):
        about = {"name": "drinks.md", "title": "Drinks", "source": "https://example.com/drinks"}
        run, _ = await block(engine, operation="add", content=TEXT, **about)
        assert outputs(run)["a"] == {
            "document": "drinks.md", "version": 1, "chunks": 2, "status": "visible", "added": True,
        }  # fmt: skip
        assert run.usage is not None and run.usage.total.input_tokens > 0
        run, _ = await block(engine, operation="add", content=TEXT, **about)
        assert outputs(run)["a"]["added"] is False and len(await model.calls()) == 1
        run, _ = await block(engine, query="How hot is water for green tea?", limit=1)
        [found] = outputs(run)["a"]["results"]
        assert found.pop("similarity") > 0.3
        assert found == {
            "text": "Tea\n\nGreen tea is steeped at 80 degrees.", "score": 1.0, "document": "drinks.md", "version": 1,
            "title": "Drinks", "source": "https://example.com/drinks", "position": 0,
        }  # fmt: skip
        run, _ = await block(engine, query="espresso", mode="text")
        assert [one["position"] for one in outputs(run)["a"]["results"]] == [1]
        assert len(await model.calls()) == 2, "a search by words asks no model"
        run, _ = await block(engine, operation="delete", name="drinks.md")
        assert outputs(run)["a"] == {"document": "drinks.md", "deleted": True}
        run, _ = await block(engine, query="green tea")
        assert outputs(run)["a"] == {"results": []}


async def test_what_is_deleted_is_in_no_page_of_the_database_and_of_a_backup(tmp_path: Path) -> None:
    async with world(tmp_path) as (engine, _):
        added = await engine.knowledge.add("drinks", "a", b"The word is xylographica. " * 400)
        await ended(engine, added.run)
        assert len(await engine.knowledge.search("drinks", "xylographica", 50)) > 5
        await engine.knowledge.remove("drinks", "a")
    backup(tmp_path / "weft.db", tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as db:
        for table in ("knowledge_chunks", "knowledge_words", "knowledge_documents"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    for file in ("weft.db", "copy.db"):
        assert b"xylographica" not in (tmp_path / file).read_bytes()


async def test_a_model_that_fails_is_asked_again(tmp_path: Path) -> None:
    async with world(tmp_path) as (engine, _):
        embed, tries = engine.parts.services.models.embed, list[int]()

        async def sometimes(name: str, texts: Any) -> Any:
            tries.append(len(texts))
            if len(tries) == 2:
                raise BlockError("busy", code="model_rate_limited")
            return await embed(name, texts)

        engine.parts.services.models.embed = sometimes
        text = "\n\n".join(f"number{n} " + "x" * 1_300 for n in range(70))
        run, _ = await block(engine, operation="add", name="long", content=text)
        assert outputs(run)["a"]["chunks"] == 70
        assert sorted(tries) == [6, 32, 32, 32], "those that were embedded are not embedded again"


async def test_a_run_that_fails_leaves_the_version_before(tmp_path: Path) -> None:
    async with world(tmp_path) as (engine, _):
        await block(engine, operation="add", name="a", content="first tea")

        async def refuse(name: str, texts: Any) -> Any:
            raise BlockError("no", code="model_refused", retryable=False)

        embed = engine.parts.services.models.embed
        engine.parts.services.models.embed = refuse
        added = await engine.knowledge.add("drinks", "a", b"second tea")
        assert (await ended(engine, added.run)).status == "failed"
        assert [one.state for one in await engine.knowledge.document("drinks", "a")] == ["visible", "failed"]
        engine.parts.services.models.embed = embed
        assert [one.text for one in await engine.knowledge.search("drinks", "tea")] == ["first tea"]
        again = await engine.knowledge.add("drinks", "a", b"second tea")
        await ended(engine, again.run)
        assert [one.text for one in await engine.knowledge.search("drinks", "tea")] == ["second tea"]
        [only] = await engine.knowledge.document("drinks", "a")
        assert (only.version, only.state) == (3, "visible")


async def test_an_agent_searches(tmp_path: Path) -> None:
    rules = (
        {"when": {"round": 0}, "calls": [{"name": "look", "arguments": {"query": "green tea"}}]},
        {"text": "{{tool}}"},
    )
    async with world(tmp_path, *rules) as (engine, model):
        await block(engine, operation="add", name="drinks.md", content=TEXT, source="https://example.com/drinks")
        tool = {"name": "look", "block": "knowledge", "params": {"collection": "drinks"}}
        params = {"model": "dev:m", "prompt": "How hot?", "tools": [tool]}
        begun = await engine.submit(chain("a", a={"type": "agent", "params": params}))
        output = outputs(await ended(engine, begun.run))["a"]
        asked = next(call for call in await model.calls() if "tools" in call["body"])
    assert '"source":"https://example.com/drinks"' in output["content"] and "80 degrees" in output["content"]
    [offered] = asked["body"]["tools"]
    assert offered["function"]["parameters"]["required"] == ["query"]


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"collection": "none", "query": "x"}, "collection_not_found"),
        ({"query": " "}, "query_invalid"),
        ({"operation": "add", "name": "a", "content": "  "}, "knowledge_empty"),
        ({"operation": "embed", "name": "<start.x>"}, "params_invalid"),
    ],
)
async def test_what_is_refused(tmp_path: Path, params: Json, code: str) -> None:
    async with world(tmp_path) as (engine, _):
        run, _ = await block(engine, **params)
        assert run.status == "failed" and run.error is not None and run.error["code"] == code


async def test_collections_are_checked(tmp_path: Path) -> None:
    async with world(tmp_path) as (engine, _):
        for name, chars, overlap in (("a b", 1_600, 0), ("ok", 100, 0), ("ok", 1_600, 401)):
            with pytest.raises(BadRequest, match="must"):
                await engine.knowledge.create(name, "dev:m", chunk_chars=chars, overlap_chars=overlap)
        with pytest.raises(BadRequest, match="no known endpoint"):
            await engine.knowledge.create("ok", "nowhere:m")
        with pytest.raises(Conflict):
            await engine.knowledge.create("drinks", "dev:m")
        for missing in (
            engine.knowledge.get("x"),
            engine.knowledge.delete("x"),
            engine.knowledge.remove("drinks", "x"),
        ):
            with pytest.raises(NotFound):
                await missing

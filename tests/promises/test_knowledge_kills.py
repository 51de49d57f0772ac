"""Documents of collections, with the process killed at every commit of their ingest: each chunk has its vector and its
words once, no search finds half a version, and nothing of a deleted one stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from executor.blocks.knowledge.text import words_of
from executor.blocks.llm.base import Vectors
from executor.blocks.llm.endpoints import Endpoints
from executor.kernel.store.topics.store import Store
from executor.open.engine import Engine
from executor.open.testing.crashes import killer
from executor.open.testing.process import DONE, in_child
from server.scripted_model import ScriptedModel
from tests.support.killed import Killed
from tests.support.size import size
from weft import testing

pytestmark = pytest.mark.proof

OUTSIDE = testing.Outside()
CHUNKS = 40  # two requests to the model


def text(version: int) -> str:
    """Each version has words of its own."""
    return "\n\n".join(f"version{version} chunk{n} " + "x" * 150 for n in range(CHUNKS))


class Witness(ScriptedModel):
    """Writes down, for good, each text that it embeds."""

    async def embed(self, name: str, texts: Sequence[str]) -> Vectors:
        for each in texts:
            OUTSIDE.record(each)
        return await super().embed(name, texts)


class Ingest(Killed):
    """Adds two versions of a document to the collection `run`, and deletes it."""

    def ingesting(self) -> AbstractAsyncContextManager[Engine]:
        return self.opened(endpoints=Endpoints({"DEV": Witness()}))

    async def play(self) -> None:
        async with self.ingesting() as engine:
            knowledge = engine.knowledge
            if self.run not in {one.name for one in await knowledge.all()}:
                await knowledge.create(self.run, "dev:words", chunk_chars=250, overlap_chars=0)
            # A process that comes after a kill finds one version whole or none, before it does anything.
            await self._check_visible(engine)
            versions = [one.version for one in await self._versions(engine) if one.state == "visible"]
            for version in (1, 2):
                if versions and versions[-1] >= version:
                    continue
                added = await knowledge.add(self.run, "book", text(version).encode())
                view = await engine.wait_finished(added.run, 150)
                assert view.status == "succeeded", view.error
                await self._check_visible(engine)
            [last] = await self._versions(engine)
            assert (last.version, last.state, last.embedded, last.chunks) == (2, "visible", CHUNKS, CHUNKS)
            await self._check_rows(engine)

    async def delete(self) -> None:
        async with self.ingesting() as engine:
            names = {one.name for one in await engine.knowledge.documents(self.run)}
            if "book" in names:
                await engine.knowledge.remove(self.run, "book")
            await self._sweep(engine)
            assert await engine.knowledge.search(self.run, "chunk3") == []
            assert await self._of_collection(engine.store) == ([], [], [])

    async def _versions(self, engine: Engine) -> list[Any]:
        try:
            return await engine.knowledge.document(self.run, "book")
        except Exception as error:
            assert getattr(error, "code", "") == "document_not_found", error
            return []

    async def _check_visible(self, engine: Engine) -> None:
        """All chunks of one version, by both searches."""
        found = await engine.knowledge.search(self.run, "version1 version2", 50)
        if any(one.state == "visible" for one in await self._versions(engine)):
            assert len(found) == CHUNKS and len({one.version for one in found}) == 1
            assert sorted(one.position for one in found) == list(range(CHUNKS))
        else:
            assert found == []

    async def _check_rows(self, engine: Engine) -> None:
        store = engine.store
        await self._sweep(engine)
        documents, chunks, words = await self._of_collection(store)
        assert [status for _, status in documents] == ["visible"]
        assert [position for _, position, _, _ in chunks] == list(range(CHUNKS))
        assert all(vector is not None for _, _, _, vector in chunks)
        expected = Counter({(word, n): count for n, _, text, _ in chunks for word, count in words_of(text)})
        assert Counter({(word, n): count for word, n, count in words}) == expected

    async def _sweep(self, engine: Engine) -> None:
        """Do what upkeep does of what a killed process has left."""
        assert engine.parts.services.knowledge is not None
        await engine.parts.services.knowledge.sweep()

    async def _of_collection(self, store: Store) -> tuple[Any, Any, Any]:
        of = "collection = (SELECT n FROM knowledge_collections WHERE name = :name)"
        ask, name = store._readers.all, {"name": self.run}
        documents = await ask(f"SELECT n, status FROM knowledge_documents WHERE {of}", name)
        query = f"""
SELECT n, position, text, vector FROM knowledge_chunks
 WHERE document IN (SELECT n FROM knowledge_documents WHERE {of}) ORDER BY position"""
        chunks = await ask(query, name)
        words = await ask(f"SELECT word, chunk, count FROM knowledge_words WHERE {of}", name)
        return documents, chunks, words


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("where", ["sqlite", "postgres"])
async def test_killed_at_every_commit(where: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """At every one in `make soak`, else at each second one."""
    database = str(tmp_path / "weft.db") if where == "sqlite" else str(request.getfixturevalue("postgres"))
    nth = crashes = 0
    for what in ("play", "delete"):
        for when in ("before", "after"):
            for commit in range(1, 200, size(2, 1)):
                OUTSIDE.clear()
                name = f"{what}-{when}-{commit}"
                if what == "delete":
                    played = await in_child(Ingest(database, name, nth, None).play, tmp_path)
                    assert played == DONE, (tmp_path / "error").read_text()
                nth += 1
                killed = await in_child(getattr(Ingest(database, name, nth, killer(commit, when)), what), tmp_path)
                if killed != DONE:
                    assert killed < 0, (tmp_path / "error").read_text()
                    crashes += 1
                    nth += 1
                    again = await in_child(getattr(Ingest(database, name, nth, None), what), tmp_path)
                    assert again == DONE, f"{name}: {(tmp_path / 'error').read_text()}"
                nth += 1
                embedded = Counter(str(effect.what) for effect in OUTSIDE.effects if "chunk" in effect.what)
                twice = sum(count - 1 for count in embedded.values())
                assert set(embedded) == {one for version in (1, 2) for one in text(version).split("\n\n")}
                assert twice <= 32, "one request at most, whose answer was not on disk, was made again"
                if killed == DONE:
                    assert twice == 0
                    break
            else:
                raise AssertionError("it has more commits than that")
    assert crashes > size(10, 20)

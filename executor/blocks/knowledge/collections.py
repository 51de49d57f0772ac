"""Operations on collections, for blocks and the API: add a text, embed its chunks, search, delete.

A new version of a document is stored with its chunks in one transaction, in which no search finds it. Its run then asks
the model for the vectors, EMBEDDED chunks in each step; each step stores what it got, and a chunk that has its vector
is never asked for again. When all have one, a transaction makes the version visible in the place of the one before.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Literal

from msgspec import Struct

from executor.blocks.knowledge import ranking
from executor.blocks.knowledge.text import chunks_of, text_of, word_number, words_in, words_of
from executor.blocks.llm.client import ModelClient
from executor.errors import BadRequest, BlockError, Conflict, LimitExceeded, NotFound
from executor.kernel.handler.base import StepContext, Stepped
from executor.kernel.process.threads import aside
from executor.kernel.store.run_rows import NewRun
from executor.kernel.store.topics.knowledge import (
    Chunk,
    ChunkVector,
    CollectionHead,
    DocumentRow,
    NewDocument,
    SweptChunk,
    collection_not_found,
)
from executor.kernel.store.topics.store import Store
from executor.kernel.values.files import clean_media_type

Mode = Literal["hybrid", "vector", "text"]

EMBEDDED: Final = 32  # chunks of one request
CHARS_MAX: Final = 4_000_000  # of the text of a document
CHUNKS_MAX: Final = 10_000  # of a document
RESULTS_MAX: Final = 50
QUERY_MAX: Final = 8_000  # characters
WORDS_MAX: Final = 16  # of a query
# Chunks with one word that are ranked. A word in more of them distinguishes little.
POSTINGS_MAX: Final = 5_000


class Passage(Struct, frozen=True):
    """A chunk that was found. `score`: from 0 to 1, by its places in both rankings; `similarity`: the cosine of its
    vector and that of the query, None for a search of words alone. `source`: where the document is from. `position`: of
    the chunk in the document, from 0."""

    text: str
    score: float
    similarity: float | None
    document: str
    version: int
    title: str
    source: str
    position: int


class Added(Struct, frozen=True):
    """`added` is False if the document was there with the same text."""

    document: DocumentRow
    added: bool


class Text(Struct, frozen=True):
    """A text to add: `name` identifies the document in its collection."""

    name: str
    data: bytes
    media_type: str = ""
    title: str = ""
    source: str = ""


class Knowledge:
    """The collections of a database, for one process."""

    def __init__(self, store: Store, models: ModelClient, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._models = models
        self._now_ms = now_ms

    async def collection(self, name: str) -> CollectionHead:
        """Raises NotFound."""
        found = await self._store.get_collection(name)
        if found is None:
            raise collection_not_found(name)
        return found

    async def add(
        self, collection: str, text: Text, run_id: str, same: str, run: NewRun | None = None, by: str | None = None
    ) -> Added:
        """Store a text as the next version, invisible to searches. `run_id`: of the run that embeds it; `run` is that,
        if it is to be started; `same`: the run for which the same text may be pending already. Raises
        NotFound, BadRequest, LimitExceeded."""
        head = await self.collection(collection)
        media_type = clean_media_type(text.media_type, text.name)
        found, chunks = await aside(lambda: _cut(text, media_type, head))
        new = NewDocument(
            name=text.name,
            title=text.title or text.name,
            source=text.source,
            media_type=media_type,
            sha256=hashlib.sha256(text.data).hexdigest(),
            chars=len(found),
            chunks=len(chunks),
            run_id=run_id,
            added_at_ms=self._now_ms(),
            added_by=by,
        )
        return Added(*await self._store.add_knowledge(collection, new, chunks, run, same))

    async def pending(self, collection: str, name: str) -> int | None:
        """Return the number of the version that is pending, or else visible."""
        rows = await self._store.list_knowledge(collection, name)
        return rows[-1].n if rows else None

    async def embed(self, ctx: StepContext, document: int) -> DocumentRow | None:
        """Embed the chunks of a version in steps of `ctx`, and make it visible. Returns the version, or None if another
        took its place or it was deleted. Raises BlockError."""
        row = await self._store.get_knowledge(document)
        model = None if row is None else await self._store.model_of_knowledge(document)
        for first in range(0, 0 if row is None or model is None else row.chunks, EMBEDDED):
            assert model is not None

            async def work(first: int = first, model: str = model) -> Stepped:
                return await self._embed_some(document, model, first)

            ctx.heartbeat()
            await ctx.step("model", model, {"document": document, "first": first}, work, effect="read")
        await self._store.publish_knowledge(document)
        await self.sweep()
        return await self._store.get_knowledge(document)

    async def search(self, collection: str, query: str, limit: int = 5, mode: Mode = "hybrid") -> list[Passage]:
        """Return the passages that fit a question best, the best first. Raises NotFound, BadRequest, and the errors of
        `ModelClient.embed` unless `mode` is text."""
        if not query.strip() or len(query) > QUERY_MAX:
            raise BadRequest(f"the query must have from 1 to {QUERY_MAX} characters", code="query_invalid")
        head = await self.collection(collection)
        signs, asked = await asyncio.gather(
            self._store.knowledge_signs(collection),
            _nothing() if mode == "text" or not head.chunks else self._models.embed(head.model, [query]),
        )
        rankings: list[dict[int, float]] = []
        similar: dict[int, float] = {}
        if asked is not None:
            vector, own = ranking.packed(asked.vectors[0])
            near = await aside(lambda: ranking.nearest(own, signs, max(ranking.CANDIDATES, 4 * limit)))
            stored = await self._store.knowledge_vectors(near)
            similar = await aside(lambda: ranking.similarities(vector, _of_dimension(stored, len(vector))))
            rankings.append(similar)
        if mode != "vector":
            rankings.append(await self._by_words(collection, query, {n for n, _ in signs}))
        best = ranking.fused(*rankings)[:limit]
        found = {chunk.n: chunk for chunk in await self._store.found_chunks([n for n, _ in best])}
        return [
            Passage(
                text=found[n].text,
                score=round(score, 4),
                similarity=round(similar[n], 4) if n in similar else None,
                **{name: getattr(found[n], name) for name in ("document", "version", "title", "source", "position")},
            )
            for n, score in best
            if n in found
        ]

    async def delete(self, collection: str, name: str) -> bool:
        """Delete a document, its text, vectors and words. Returns False if there was none. Raises NotFound."""
        deleted = await self._store.delete_knowledge(collection, name)
        await self.sweep()
        return deleted

    async def delete_collection(self, name: str) -> bool:
        deleted = await self._store.delete_collection(name)
        await self.sweep()
        return deleted

    async def sweep(self) -> int:
        """Delete the rows of what is gone: what a killed process has left, too."""
        deleted = 0
        while gone := await self._store.gone_chunks():
            swept = [
                SweptChunk(one.collection, one.document, one.chunk, [word for word, _ in words_of(one.text or "")])
                for one in gone
            ]
            deleted += await self._store.sweep_chunks(swept)
        return deleted

    async def _embed_some(self, document: int, model: str, first: int) -> Stepped:
        lacking = await self._store.chunks_without_vector(document, first, EMBEDDED)
        if not lacking:
            return Stepped({"chunks": 0})
        found = await self._models.embed(model, [chunk.text for chunk in lacking])
        dimension = len(found.vectors[0])
        vectors = await aside(lambda: [_stored(*pair) for pair in zip(lacking, found.vectors, strict=True)])
        with for_blocks():
            stored = await self._store.put_vectors(document, dimension, vectors)
        return Stepped({"chunks": stored}, found.usage.counts(), *found.priced)

    async def _by_words(self, collection: str, query: str, visible: set[int]) -> dict[int, float]:
        words = list(dict.fromkeys(words_in(query)))[:WORDS_MAX]
        found = await asyncio.gather(
            *(self._store.chunks_with_word(collection, word_number(word), POSTINGS_MAX) for word in words)
        )
        seen = [[(n, count) for n, count in one if n in visible] for one in found]
        return ranking.by_words(seen, len(visible))


@contextmanager
def for_blocks() -> Iterator[None]:
    """Make a BlockError of what is refused."""
    try:
        yield
    except (NotFound, BadRequest, LimitExceeded, Conflict) as error:
        raise BlockError(error.message, code=error.code, retryable=False, hint=error.hint) from error


async def _nothing() -> None:
    return None


def _cut(text: Text, media_type: str, head: CollectionHead) -> tuple[str, list[str]]:
    found = text_of(text.data, media_type, text.name)
    if not found.strip():
        raise BadRequest(f"the document {text.name[:100]!r} has no text", code="knowledge_empty")
    chunks = chunks_of(found, head.chunk_chars, head.overlap_chars)
    if len(found) > CHARS_MAX or len(chunks) > CHUNKS_MAX:
        raise LimitExceeded(
            f"the document {text.name[:100]!r} has {len(found):,} characters in {len(chunks):,} chunks; at most "
            f"{CHARS_MAX:,} and {CHUNKS_MAX:,} are possible",
            code="limit_knowledge",
            hint="add it in parts, or use a collection with larger chunks",
        )
    return found, chunks


def _stored(chunk: Chunk, numbers: Sequence[float]) -> ChunkVector:
    vector, signs = ranking.packed(numbers)
    return ChunkVector(chunk.n, signs, vector, words_of(chunk.text))


def _of_dimension(stored: Sequence[tuple[int, bytes]], size: int) -> list[tuple[int, bytes]]:
    if any(len(vector) != size for _, vector in stored):
        raise BlockError(
            "the model of the collection returns vectors of another dimension than before",
            code="embedding_dimension",
            retryable=False,
            hint="make another collection, and add the documents to it",
        )
    return list(stored)

"""Collections of documents, on both databases."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from executor.errors import Conflict, NotFound
from executor.kernel.store.topics.knowledge import ChunkVector, CollectionRow, DocumentRow, NewDocument, SweptChunk
from executor.kernel.store.topics.store import Store
from tests.support.rows import T0, new_run

pytestmark = pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)

DOCS = CollectionRow("docs", "", "dev:m", 0, 1_000, 100, T0, None)
BOOK = NewDocument("book", "Book", "", "text/plain", "sha-1", 20, 2, "run-1", T0, None)


async def added(store: Store, document: NewDocument = BOOK) -> DocumentRow:
    row, _ = await store.add_knowledge("docs", document, ["one", "two"])
    return row


async def embedded(store: Store, row: DocumentRow, word: int = 7) -> int:
    chunks = await store.chunks_without_vector(row.n, 0, 10)
    vectors = [ChunkVector(chunk.n, b"\x01", b"\0\0\x80\x3f", [(word, 1 + chunk.position)]) for chunk in chunks]
    return await store.put_vectors(row.n, 1, vectors)


async def test_a_collection_is_made_once(store: Store) -> None:
    assert await store.put_collection(DOCS)
    assert not await store.put_collection(replace(DOCS, model="other:m"))
    [head] = await store.list_collections()
    assert (head.name, head.model, head.documents) == ("docs", "dev:m", 0)
    assert await store.get_collection("none") is None


async def test_a_version_is_seen_when_all_its_chunks_have_vectors(store: Store) -> None:
    await store.put_collection(DOCS)
    row = await added(store)
    assert (row.version, row.status) == (1, "pending")
    assert await store.publish_knowledge(row.n) == "pending"
    assert await store.knowledge_signs("docs") == []
    assert await embedded(store, row) == 2 and await embedded(store, row) == 0
    assert await store.publish_knowledge(row.n) == "visible"
    chunks = [n for n, _ in await store.knowledge_signs("docs")]
    assert [chunk.text for chunk in sorted(await store.found_chunks(chunks), key=lambda one: one.n)] == ["one", "two"]
    assert sorted(count for _, count in await store.chunks_with_word("docs", 7, 10)) == [1, 2]
    [head] = await store.list_collections()
    assert (head.dimension, head.documents, head.chunks, head.chars) == (1, 1, 2, 20)


async def test_a_new_version_takes_the_place_of_the_one_before(store: Store) -> None:
    await store.put_collection(DOCS)
    first = await added(store)
    await embedded(store, first)
    await store.publish_knowledge(first.n)
    assert await store.add_knowledge("docs", BOOK, ["one", "two"]) == (replace(first, status="visible"), False)
    second = await added(store, replace(BOOK, sha256="sha-2", run_id="run-2"))
    assert [one.status for one in await store.list_knowledge("docs")] == ["visible", "pending"]
    again, is_new = await store.add_knowledge("docs", replace(BOOK, sha256="sha-2"), ["x"], None, "run-2")
    assert (again.version, is_new) == (2, False)
    third = await added(store, replace(BOOK, sha256="sha-3", run_id="run-3"))
    assert await embedded(store, second) == 0 and await store.publish_knowledge(second.n) == "gone"
    await embedded(store, third)
    assert await store.publish_knowledge(third.n) == "visible"
    assert [one.version for one in await store.list_knowledge("docs", "book")] == [3]


async def test_the_run_of_a_version_is_made_with_it(store: Store) -> None:
    await store.put_collection(DOCS)
    row, _ = await store.add_knowledge("docs", replace(BOOK, run_id="embeds"), ["one"], new_run("embeds"))
    [head] = await store.list_knowledge("docs")
    assert head.n == row.n and head.run_status is None and await store.get_run("embeds") is not None
    [other] = [await added(store, replace(BOOK, name="other", run_id="never"))]
    assert [one.run_status for one in await store.list_knowledge("docs", "other")] == [""] and other.version == 1
    collection = await store.get_collection("docs")
    assert collection is not None and (collection.documents, collection.pending, collection.failed) == (0, 1, 1)


async def test_what_is_deleted_is_gone_at_once_and_then_swept(store: Store) -> None:
    await store.put_collection(DOCS)
    row = await added(store)
    await embedded(store, row)
    await store.publish_knowledge(row.n)
    assert await store.delete_knowledge("docs", "book") and not await store.delete_knowledge("docs", "book")
    assert await store.list_knowledge("docs") == [] and await store.knowledge_signs("docs") == []
    while gone := await store.gone_chunks():
        await store.sweep_chunks([SweptChunk(one.collection, one.document, one.chunk, [7]) for one in gone])
    assert await store.chunks_with_word("docs", 7, 10) == [] and await store.get_knowledge(row.n) is None


async def test_a_collection_is_deleted_with_its_documents(store: Store) -> None:
    await store.put_collection(DOCS)
    row = await added(store)
    assert await store.delete_collection("docs") and not await store.delete_collection("docs")
    assert await embedded(store, row) == 0
    await store.put_collection(DOCS)
    assert await store.list_knowledge("docs") == []
    assert [one.chunk is not None for one in await store.gone_chunks()] == [True, True]


async def test_vectors_of_another_dimension_are_refused(store: Store) -> None:
    await store.put_collection(DOCS)
    await embedded(store, await added(store))
    other = await added(store, replace(BOOK, name="other"))
    [chunk, _] = await store.chunks_without_vector(other.n, 0, 10)
    with pytest.raises(Conflict):
        await store.put_vectors(other.n, 2, [ChunkVector(chunk.n, b"\x01", b"\0" * 8, [])])
    with pytest.raises(NotFound):
        await store.add_knowledge("none", BOOK, ["one"])

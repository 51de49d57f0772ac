"""Collections of documents that are searched: their chunks, the vectors of these, and the words in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import asdict

from executor.errors import Conflict, NotFound
from executor.kernel.store.run_rows import NewRun
from executor.kernel.store.statements import Readers, Tx, as_list, columns, insert
from executor.kernel.store.topics.runs import create_run

DocumentStatus = Literal["pending", "visible", "gone"]
SWEPT: Final = 50  # chunks that one transaction deletes


class CollectionRow(Struct, frozen=True):
    """`dimension`: of the vectors, 0 until the first one is stored."""

    name: str
    description: str
    model: str
    dimension: int
    chunk_chars: int
    overlap_chars: int
    created_at_ms: int
    created_by: str | None


class CollectionHead(CollectionRow, frozen=True):
    """`documents`, `chunks` and `chars` that searches find; `pending`: versions whose run is open; `failed`: others
    that no search finds."""

    documents: int
    chunks: int
    chars: int
    pending: int
    failed: int


class NewDocument(Struct, frozen=True):
    """A text that becomes the next version of the document `name`. `run_id`: the run that embeds its chunks."""

    name: str
    title: str
    source: str
    media_type: str
    sha256: str
    chars: int
    chunks: int
    run_id: str
    added_at_ms: int
    added_by: str | None


class DocumentRow(NewDocument, frozen=True):
    n: int
    collection: int
    version: int
    status: DocumentStatus


class DocumentHead(DocumentRow, frozen=True):
    """`embedded`: chunks that have their vectors; `run_status` is None while the run is open, or "" if it is gone."""

    embedded: int
    run_status: str | None


class Chunk(Struct, frozen=True):
    """A piece of the text of a document. `position` counts from 0."""

    n: int
    position: int
    text: str


class ChunkVector(Struct, frozen=True):
    """`words`: CRC-32 of each word of the chunk, and how often it is there."""

    n: int
    signs: bytes
    vector: bytes
    words: Sequence[tuple[int, int]]


class GoneChunk(Struct, frozen=True):
    """A chunk of a document that is gone, or the document, without any."""

    collection: int
    document: int
    chunk: int | None
    text: str | None


class SweptChunk(Struct, frozen=True):
    """`words`: those of the chunk."""

    collection: int
    document: int
    chunk: int | None
    words: Sequence[int] = ()


class FoundChunk(Struct, frozen=True):
    """A chunk with what is known of its document."""

    n: int
    position: int
    text: str
    document: str
    version: int
    title: str
    source: str


TEXT_OF: Final = ("sha256", "title", "source")
DOCUMENT = ", ".join(f"d.{name}" for name in DocumentRow.__struct_fields__)
TAKE = "UPDATE knowledge_collections SET model = model WHERE name = :name RETURNING n"
HEADS: Final = f"""
SELECT {", ".join(f"c.{name}" for name in CollectionRow.__struct_fields__)},
       count(CASE WHEN d.status = 'visible' THEN 1 END),
       CAST(coalesce(sum(CASE WHEN d.status = 'visible' THEN d.chunks END), 0) AS bigint),
       CAST(coalesce(sum(CASE WHEN d.status = 'visible' THEN d.chars END), 0) AS bigint),
       count(CASE WHEN d.status = 'pending' AND r.id IS NOT NULL AND r.status IS NULL THEN 1 END),
       count(CASE WHEN d.status = 'pending' AND (r.id IS NULL OR r.status IS NOT NULL) THEN 1 END)
  FROM knowledge_collections AS c LEFT JOIN knowledge_documents AS d ON d.collection = c.n AND d.status <> 'gone'
  LEFT JOIN run_details AS r ON r.id = d.run_id AND d.status = 'pending'"""
DOCUMENTS = f"""
SELECT {DOCUMENT},
       (SELECT count(*) FROM knowledge_chunks AS k WHERE k.document = d.n AND k.vector IS NOT NULL),
       CASE WHEN r.id IS NULL THEN '' ELSE r.status END
  FROM knowledge_documents AS d LEFT JOIN run_details AS r ON r.id = d.run_id
 WHERE d.collection = (SELECT n FROM knowledge_collections WHERE name = :collection) AND d.status <> 'gone'"""
SAME = f"""
SELECT {DOCUMENT} FROM knowledge_documents AS d
 WHERE d.collection = :collection AND d.name = :name AND d.status <> 'gone' ORDER BY d.version DESC LIMIT 1"""
LAST_VERSION = """
SELECT coalesce(max(version), 0) FROM knowledge_documents WHERE collection = :collection AND name = :name"""
NO_LONGER = "UPDATE knowledge_documents SET status = 'gone' WHERE collection = :collection AND name = :name"
ADD_DOCUMENT = f"""
INSERT INTO knowledge_documents (collection, version, status, {columns(NewDocument)})
VALUES (:collection, :version, 'pending', {", ".join(f":{name}" for name in NewDocument.__struct_fields__)})
RETURNING n"""
ADD_CHUNK = "INSERT INTO knowledge_chunks (document, position, text) VALUES (:document, :position, :text)"
TAKE_DOCUMENT = "UPDATE knowledge_documents SET status = status WHERE n = :n RETURNING collection, name, status"
SET_VECTOR = """
UPDATE knowledge_chunks SET signs = :signs, vector = :vector WHERE n = :n AND document = :document AND vector IS NULL"""
ADD_WORDS = """
INSERT INTO knowledge_words (collection, word, chunk, count)
SELECT * FROM $rows(:words, nnnn) AS listed_words WHERE true ON CONFLICT DO NOTHING"""
LACKING = """
SELECT n, position, text FROM knowledge_chunks
 WHERE document = :document AND position >= :first AND position < :first + :limit AND vector IS NULL
 ORDER BY position"""
IN_COLLECTION = "collection = (SELECT n FROM knowledge_collections WHERE name = :collection)"
SIGNS = f"""
SELECT k.n, k.signs FROM knowledge_documents AS d JOIN knowledge_chunks AS k ON k.document = d.n
 WHERE d.{IN_COLLECTION} AND d.status = 'visible'"""
MODEL_OF = """
SELECT c.model FROM knowledge_documents AS d JOIN knowledge_collections AS c ON c.n = d.collection
 WHERE d.n = :document"""
VECTORS = "SELECT n, vector FROM knowledge_chunks WHERE n IN $numbers(:chunks)"
POSTINGS = f"SELECT chunk, count FROM knowledge_words WHERE {IN_COLLECTION} AND word = :word LIMIT :limit"
GONE = """
SELECT d.collection, d.n, k.n, k.text FROM knowledge_documents AS d LEFT JOIN knowledge_chunks AS k ON k.document = d.n
 WHERE d.status = 'gone' LIMIT :limit"""
DELETE_WORDS = """
DELETE FROM knowledge_words WHERE collection = :collection AND word IN $numbers(:words) AND chunk = :chunk"""
DELETE_CHUNK = "DELETE FROM knowledge_chunks WHERE n = :chunk AND document = :document"
DELETE_DOCUMENT = """
DELETE FROM knowledge_documents WHERE n = :document AND status = 'gone'
   AND NOT EXISTS (SELECT 1 FROM knowledge_chunks WHERE document = :document)"""
FOUND = """
SELECT k.n, k.position, k.text, d.name, d.version, d.title, d.source
  FROM knowledge_chunks AS k JOIN knowledge_documents AS d ON d.n = k.document
 WHERE k.n IN $numbers(:chunks) AND d.status = 'visible'"""


def put_collection(tx: Tx, row: CollectionRow) -> bool:
    """Make a collection. Returns False, with nothing changed, if there is one of this name."""
    return tx.run(f"{insert('knowledge_collections', CollectionRow)} ON CONFLICT DO NOTHING", asdict(row)) == 1


def delete_collection(tx: Tx, name: str) -> bool:
    """Delete a collection. Its documents are gone for readers, and `sweep_chunks` deletes them."""
    found = tx.rows("DELETE FROM knowledge_collections WHERE name = :name RETURNING n", {"name": name})
    for (n,) in found:
        tx.run("UPDATE knowledge_documents SET status = 'gone' WHERE collection = :collection", {"collection": n})
    return bool(found)


def add_knowledge(
    tx: Tx, collection: str, document: NewDocument, texts: Sequence[str], run: NewRun | None = None, same: str = ""
) -> tuple[DocumentRow, bool]:
    """Add a version, invisible to searches, with its chunks, and the run that embeds them. Returns the newest version
    and False, with nothing changed, if that has the same text and is visible, or pending for the run `same`. Raises
    NotFound."""
    number = _take(tx, collection)
    place = {"collection": number, "name": document.name}
    newest = tx.fetch_one(DocumentRow, SAME, place)
    is_kept = newest is not None and (newest.status == "visible" or newest.run_id == same)
    if newest is not None and is_kept and all(getattr(newest, name) == getattr(document, name) for name in TEXT_OF):
        return newest, False
    (last,) = tx.row(LAST_VERSION, place)
    tx.run(f"{NO_LONGER} AND status = 'pending'", place)
    (n,) = tx.row(ADD_DOCUMENT, {**asdict(document), **place, "version": last + 1})
    tx.add_rows(ADD_CHUNK, [{"document": n, "position": at, "text": text} for at, text in enumerate(texts)])
    if run is not None:
        create_run(tx, run)
    return DocumentRow(**asdict(document), n=n, collection=number, version=last + 1, status="pending"), True


def put_vectors(tx: Tx, document: int, dimension: int, vectors: Sequence[ChunkVector]) -> int:
    """Store vectors and words of chunks that have none yet. Returns how many; 0 if the document is no longer pending.
    Raises Conflict if the vectors of the collection have another dimension."""
    taken = tx.rows(TAKE_DOCUMENT, {"n": document})
    if not taken or taken[0][2] != "pending":
        return 0
    collection = {"n": taken[0][0], "dimension": dimension}
    tx.run("UPDATE knowledge_collections SET dimension = :dimension WHERE n = :n AND dimension = 0", collection)
    found = tx.rows("SELECT dimension FROM knowledge_collections WHERE n = :n", {"n": taken[0][0]})
    if not found or found[0][0] != dimension:
        raise Conflict(
            f"the model returned vectors of {dimension} numbers, and those of the collection are others",
            code="embedding_dimension",
            hint="a collection has one model: make another collection for another model",
        )
    stored = [
        each
        for each in vectors
        if tx.run(SET_VECTOR, {"n": each.n, "document": document, "signs": each.signs, "vector": each.vector})
    ]
    words = sorted((taken[0][0], word, each.n, count) for each in stored for word, count in each.words)
    tx.run(ADD_WORDS, {"words": as_list(words)})
    return len(stored)


def publish_knowledge(tx: Tx, document: int) -> DocumentStatus:
    """Make a version visible, in the place of the one before, if all its chunks have vectors. Returns its status."""
    taken = tx.rows(TAKE_DOCUMENT, {"n": document})
    if not taken:
        return "gone"
    collection, name, status = taken[0]
    lacking = "SELECT 1 FROM knowledge_chunks WHERE document = :n AND vector IS NULL LIMIT 1"
    if status != "pending" or tx.rows(lacking, {"n": document}):
        return status  # type: ignore[no-any-return]  # the column has these values alone
    tx.run(f"{NO_LONGER} AND status = 'visible'", {"collection": collection, "name": name})
    tx.run("UPDATE knowledge_documents SET status = 'visible' WHERE n = :n", {"n": document})
    return "visible"


def delete_knowledge(tx: Tx, collection: str, name: str) -> bool:
    """Delete all versions: they are gone for readers, and `sweep_chunks` deletes the rows. Raises NotFound."""
    place = {"collection": _take(tx, collection), "name": name}
    return tx.run(f"{NO_LONGER} AND status <> 'gone'", place) > 0


def sweep_chunks(tx: Tx, swept: Sequence[SweptChunk]) -> int:
    """Delete chunks of documents that are gone, with their words, and documents that have no chunks left. Returns how
    many rows."""
    deleted = 0
    for each in swept:
        place = {"collection": each.collection, "document": each.document, "chunk": each.chunk}
        if each.chunk is None:
            deleted += tx.run(DELETE_DOCUMENT, {"document": each.document})
        else:
            tx.run(DELETE_WORDS, {**place, "words": as_list(list(each.words))})
            deleted += tx.run(DELETE_CHUNK, {"document": each.document, "chunk": each.chunk})
    return deleted


async def gone_chunks(readers: Readers) -> list[GoneChunk]:
    """Return chunks of documents that are gone, and those documents that have none left."""
    return await readers.fetch(GoneChunk, GONE, {"limit": SWEPT})


async def get_collection(readers: Readers, name: str) -> CollectionHead | None:
    return await readers.fetch_one(CollectionHead, f"{HEADS} WHERE c.name = :name GROUP BY c.n", {"name": name})


async def list_collections(readers: Readers) -> list[CollectionHead]:
    return await readers.fetch(CollectionHead, f"{HEADS} GROUP BY c.n ORDER BY c.name")


async def list_knowledge(
    readers: Readers, collection: str, name: str | None = None, after: str = "", limit: int = 100
) -> list[DocumentHead]:
    """Return the versions that are visible or pending, by name: of `name`, or of names that follow `after`."""
    chosen = "AND d.name > :after" if name is None else "AND d.name = :name"
    query = f"{DOCUMENTS} {chosen} ORDER BY d.name, d.version LIMIT :limit"
    return await readers.fetch(
        DocumentHead, query, {"collection": collection, "name": name, "after": after, "limit": limit}
    )


async def get_knowledge(readers: Readers, n: int) -> DocumentRow | None:
    return await readers.fetch_one(
        DocumentRow, f"SELECT {DOCUMENT} FROM knowledge_documents AS d WHERE d.n = :n", {"n": n}
    )


async def model_of_knowledge(readers: Readers, document: int) -> str | None:
    """Return the model of the collection of a document."""
    return await readers.value(str, MODEL_OF, {"document": document})


async def chunks_without_vector(readers: Readers, document: int, first: int, limit: int) -> list[Chunk]:
    """Return those among the chunks at `limit` positions from `first` on."""
    return await readers.fetch(Chunk, LACKING, {"document": document, "first": first, "limit": limit})


async def knowledge_signs(readers: Readers, collection: str) -> list[tuple[int, bytes]]:
    """Return the number and the signs of every chunk that searches find."""
    return [(n, signs) for n, signs in await readers.all(SIGNS, {"collection": collection})]


async def knowledge_vectors(readers: Readers, chunks: Sequence[int]) -> list[tuple[int, bytes]]:
    rows = await readers.all(VECTORS, {"chunks": as_list(list(chunks))})
    return [(n, vector) for n, vector in rows]


async def chunks_with_word(readers: Readers, collection: str, word: int, limit: int) -> list[tuple[int, int]]:
    """Return the numbers of at most `limit` chunks with a word, and how often each has it; also of versions that are
    not visible."""
    return [
        (n, count) for n, count in await readers.all(POSTINGS, {"collection": collection, "word": word, "limit": limit})
    ]


async def found_chunks(readers: Readers, chunks: Sequence[int]) -> list[FoundChunk]:
    """Return those of these chunks that are visible, in any order."""
    return await readers.fetch(FoundChunk, FOUND, {"chunks": as_list(list(chunks))})


def _take(tx: Tx, collection: str) -> int:
    found = tx.rows(TAKE, {"name": collection})
    if not found:
        raise collection_not_found(collection)
    return int(found[0][0])


def collection_not_found(name: str) -> NotFound:
    hint = "make it first: `weft knowledge create`, or in the editor under Knowledge"
    return NotFound(f"there is no collection {name[:100]!r}", code="collection_not_found", hint=hint)

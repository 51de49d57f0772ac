"""Collections of documents that are searched by meaning and by words."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from executor.blocks.knowledge.collections import QUERY_MAX, RESULTS_MAX, Mode, Passage
from executor.errors import BadRequest
from executor.kernel.values.files import READ_BYTES_MAX
from executor.service.topics.knowledge import CHUNK_CHARS, OVERLAP_CHARS, CollectionView, DocumentView
from server.http.response import Json
from server.http.table import Call, Routes, RouteSpec

DocumentName = Annotated[str, Meta(min_length=1, max_length=500)]
PAGE: Final = 100


class CollectionList(Struct, frozen=True):
    """The collections, by name."""

    collections: list[CollectionView]


class NewCollection(Struct, frozen=True, forbid_unknown_fields=True):
    """`model`: of embeddings, <endpoint>:<model>, such as openai:text-embedding-3-small. It stays, as the sizes do:
    characters of a chunk, and those that it has in common with the one before."""

    name: str
    model: str
    description: Annotated[str, Meta(max_length=2_000)] = ""
    chunk_chars: int = CHUNK_CHARS
    overlap_chars: int = OVERLAP_CHARS


class DocumentsQuery(Struct, frozen=True):
    name: Annotated[str | None, Meta(description="Only the versions of this document.")] = None
    after: Annotated[str, Meta(description="Names that follow this one: the last of the page before.")] = ""


class DocumentList(Struct, frozen=True):
    """Versions by the names of their documents, at most 100. `next`: the value of `after` for the page that follows."""

    documents: list[DocumentView]
    next: str | None


class NewDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """`name` identifies the document in its collection: one that is there gets a new version. Either `text`, or `data`:
    the bytes of a file in base64. `media_type`: by default that of the suffix of the name. `title` and `source` are
    shown with results."""

    name: DocumentName
    text: str | None = None
    data: bytes | None = None
    media_type: Annotated[str, Meta(max_length=255)] = ""
    title: Annotated[str, Meta(max_length=500)] = ""
    source: Annotated[str, Meta(max_length=2_000)] = ""


class NameQuery(Struct, frozen=True):
    name: Annotated[str, Meta(description="Of the document.")]


class Search(Struct, frozen=True, forbid_unknown_fields=True):
    """`mode`: by meaning and words, or by one of the two; a search by words asks no model."""

    query: Annotated[str, Meta(min_length=1, max_length=QUERY_MAX)]
    limit: Annotated[int, Meta(ge=1, le=RESULTS_MAX)] = 5
    mode: Mode = "hybrid"


class SearchResults(Struct, frozen=True):
    """The best first."""

    results: list[Passage]


class KnowledgeDeleted(Struct, frozen=True):
    name: str
    deleted: bool


_ONE = "/api/knowledge/{collection}"
_DOCUMENTS = f"{_ONE}/documents"

route = Routes("knowledge", RouteSpec)


@route("GET", "/api/knowledge", "List collections", needs="viewer")
async def list_all(call: Call) -> CollectionList:
    return CollectionList(await call.engine.knowledge.all())


@route("POST", "/api/knowledge", "Make a collection", needs="editor", status=201, statuses=(409,))
async def create(call: Call, body: NewCollection) -> Json[CollectionView]:
    """The name has letters, digits, _ . and - only."""
    call.record(body.name[:200])
    made = await call.engine.knowledge.create(
        body.name,
        body.model,
        description=body.description,
        chunk_chars=body.chunk_chars,
        overlap_chars=body.overlap_chars,
    )
    return Json(made, 201, {"Location": f"/api/knowledge/{made.name}"})


@route("GET", _ONE, "Read a collection", needs="viewer")
async def read(call: Call, collection: str) -> CollectionView:
    return await call.engine.knowledge.get(collection)


@route("DELETE", _ONE, "Delete a collection", needs="editor")
async def delete(call: Call, collection: str) -> KnowledgeDeleted:
    """Delete it with its documents: their texts, vectors and words."""
    await call.engine.knowledge.delete(collection)
    return KnowledgeDeleted(collection, True)


@route("GET", _DOCUMENTS, "List the documents of a collection", needs="viewer")
async def documents(call: Call, collection: str, query: DocumentsQuery) -> DocumentList:
    """Each with the version that searches find, and the one that is pending or has failed."""
    knowledge = call.engine.knowledge
    if query.name is not None:
        return DocumentList(await knowledge.document(collection, query.name), None)
    found = await knowledge.documents(collection, query.after, PAGE + 1)
    if len(found) <= PAGE:
        return DocumentList(found, None)
    last = found[PAGE].name  # a document has two versions at most: neither is left out
    shown = [one for one in found[:PAGE] if one.name != last]
    return DocumentList(shown, shown[-1].name)


@route(
    "PUT", _DOCUMENTS, "Add a document, or a version of it", needs="editor", status=202, body_bytes=2 * READ_BYTES_MAX
)
async def add(call: Call, collection: str, body: NewDocument) -> Json[DocumentView]:
    """Store a text or a file of at most 16 MiB as a new version: plain text, Markdown, HTML, CSV, JSON, or PDF. A run
    embeds it, after which searches find it in the place of the version before. The same text again changes nothing."""
    if (body.text is None) == (body.data is None):
        raise BadRequest("a document has either a text or data", code="document_invalid", hint="set one of the two")
    data = body.data if body.text is None else body.text.encode("utf-8", "replace")
    call.record(f"{collection}: {body.name}"[:200])
    document = await call.engine.knowledge.add(
        collection, body.name, data or b"", body.media_type, title=body.title, source=body.source
    )
    return Json(document, 202)


@route("DELETE", _DOCUMENTS, "Delete a document", needs="editor")
async def remove(call: Call, collection: str, query: NameQuery) -> KnowledgeDeleted:
    """Delete its text, its vectors and its words, of all versions."""
    call.record(f"{collection}: {query.name}"[:200])
    await call.engine.knowledge.remove(collection, query.name)
    return KnowledgeDeleted(query.name, True)


@route("POST", f"{_ONE}/search", "Search a collection", needs="viewer", audit=False)
async def search(call: Call, collection: str, body: Search) -> SearchResults:
    found = await call.engine.knowledge.search(collection, body.query, body.limit, body.mode)
    return SearchResults(found)

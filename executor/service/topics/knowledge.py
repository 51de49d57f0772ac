"""Collections of documents: made, filled, searched, deleted; `engine.knowledge`. A document is embedded by a run of its
own, which is created in the transaction that stores the document."""

from __future__ import annotations

import re
from typing import Any, Final, Literal

import orjson
from msgspec import Struct

from executor.blocks.knowledge.collections import Knowledge as Collections
from executor.blocks.knowledge.collections import Mode, Passage, Text
from executor.errors import BadRequest, BlockError, Conflict, LimitExceeded, NotFound
from executor.kernel.core import facts as f
from executor.kernel.journal.codec import keep_plan
from executor.kernel.process.acting import present_actor
from executor.kernel.run.compiler import plan_of
from executor.kernel.run.new_run import new_run, new_run_id, origin_of
from executor.kernel.store.statements import TERMINAL
from executor.kernel.store.topics.knowledge import CollectionHead, CollectionRow, DocumentHead
from executor.kernel.values.files import READ_BYTES_MAX
from executor.service.parts import Topic
from executor.service.views import view_of

COLLECTIONS_MAX: Final = 200
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
NAME_CHARS_MAX: Final = 500  # of a document
CHUNK_CHARS: Final = 1_600  # about 400 tokens of English
CHUNK_MIN: Final = 200
CHUNK_MAX: Final = 8_000
OVERLAP_CHARS: Final = 200
INGEST: Final = "knowledge-ingest"  # the name of the runs that embed
ATTEMPTS: Final = 8

DocumentState = Literal["visible", "pending", "failed"]


class CollectionView(Struct, frozen=True):
    """`documents`, `chunks` and `chars` that searches find; `pending` and `failed` count versions that are not visible.
    `dimension` of the vectors is 0 until there is one."""

    name: str
    description: str
    model: str
    dimension: int
    chunk_chars: int
    overlap_chars: int
    created_at_ms: int
    created_by: str | None
    documents: int
    chunks: int
    chars: int
    pending: int
    failed: int


class DocumentView(Struct, frozen=True):
    """A version of a document: `visible` to searches, `pending` while `run` embeds its chunks, or `failed` with that
    run; until a later version is visible, searches find the one before. `embedded`: chunks that have their vectors."""

    name: str
    version: int
    title: str
    source: str
    media_type: str
    sha256: str
    chars: int
    chunks: int
    embedded: int
    state: DocumentState
    run: str
    added_at_ms: int
    added_by: str | None


class Knowledge(Topic):
    async def all(self) -> list[CollectionView]:
        return [_collection(row) for row in await self._store.list_collections()]

    async def get(self, name: str) -> CollectionView:
        """Raises NotFound."""
        return _collection(await self._collections.collection(name))

    async def create(
        self,
        name: str,
        model: str,
        *,
        description: str = "",
        chunk_chars: int = CHUNK_CHARS,
        overlap_chars: int = OVERLAP_CHARS,
    ) -> CollectionView:
        """Make a collection. Its model and its sizes, in characters, stay. Raises BadRequest, Conflict,
        LimitExceeded."""
        if NAME.fullmatch(name) is None:
            message = f"the name {name[:100]!r} must have letters, digits, _ . and - only"
            raise BadRequest(message, code="collection_invalid", pointer="/name")
        if not CHUNK_MIN <= chunk_chars <= CHUNK_MAX or not 0 <= overlap_chars <= chunk_chars // 4:
            message = f"chunk_chars must be from {CHUNK_MIN} to {CHUNK_MAX}, and overlap_chars at most a quarter of it"
            raise BadRequest(message, code="collection_invalid", pointer="/chunk_chars")
        try:
            self._parts.services.endpoints.find(model)
        except BlockError as error:
            raise BadRequest(error.message, code=error.code, pointer="/model", hint=error.hint) from None
        if len(await self._store.list_collections()) >= COLLECTIONS_MAX:
            message = f"there can be at most {COLLECTIONS_MAX} collections"
            raise LimitExceeded(message, code="limit_collections")
        now_ms, by = self._clock.now_ms(), present_actor()
        row = CollectionRow(name, description, model, 0, chunk_chars, overlap_chars, now_ms, by)
        if not await self._store.put_collection(row):
            hint = "use another name, or delete it first"
            raise Conflict(f"there is a collection {name!r} already", code="collection_exists", hint=hint)
        return await self.get(name)

    async def delete(self, name: str) -> None:
        """Delete a collection with its documents. Raises NotFound."""
        if not await self._collections.delete_collection(name):
            raise NotFound(f"there is no collection {name[:100]!r}", code="collection_not_found")

    async def documents(self, collection: str, after: str = "", limit: int = 100) -> list[DocumentView]:
        """List versions by the names of their documents. Raises NotFound."""
        await self._collections.collection(collection)
        return [_document(row) for row in await self._store.list_knowledge(collection, None, after, limit)]

    async def document(self, collection: str, name: str) -> list[DocumentView]:
        """Return the versions of a document: the visible one, then one that is pending. Raises NotFound."""
        rows = await self._store.list_knowledge(collection, name)
        if not rows:
            await self._collections.collection(collection)
            raise _no_document(name)
        return [_document(row) for row in rows]

    async def add(
        self, collection: str, name: str, data: bytes, media_type: str = "", *, title: str = "", source: str = ""
    ) -> DocumentView:
        """Store a text or a file as the next version of a document, and start the run that embeds it. The same text
        again changes nothing, unless the run of the version before has failed. Raises NotFound, BadRequest,
        LimitExceeded."""
        name = name.strip()
        if not name or len(name) > NAME_CHARS_MAX or "\0" in name:
            message = f"the name of a document must have from 1 to {NAME_CHARS_MAX} characters"
            raise BadRequest(message, code="document_invalid", pointer="/name")
        if len(data) > READ_BYTES_MAX:
            message = f"the document is larger than {READ_BYTES_MAX:,} bytes"
            raise LimitExceeded(message, code="limit_knowledge", hint="add it in parts")
        head = await self._collections.collection(collection)
        versions = await self._store.list_knowledge(collection, name)
        pending = [row for row in versions if row.status == "pending" and _state(row) == "pending"]
        now_ms = self._clock.now_ms()
        plan, run = await self._run(head.name, name, now_ms)
        kept = pending[-1].run_id if pending else run.id
        text = Text(name, data, media_type, title[:NAME_CHARS_MAX], source[:2_000])
        added = await self._collections.add(head.name, text, run.id, kept, run, present_actor())
        if added.added:
            keep_plan(plan)
            self._parts.wake(run.id)
        return (await self.document(collection, name))[-1]

    async def search(self, collection: str, query: str, limit: int = 5, mode: Mode = "hybrid") -> list[Passage]:
        return await self._collections.search(collection, query, limit, mode)

    async def remove(self, collection: str, name: str) -> None:
        """Delete a document: its text, its vectors and its words. Raises NotFound."""
        if not await self._collections.delete(collection, name):
            raise _no_document(name)

    async def _run(self, collection: str, name: str, now_ms: int) -> Any:
        document = orjson.dumps(_INGEST)
        plan = plan_of(await self._parts.compiler.compile(document, None))
        start = f.StartRequested(now_ms, new_run_id(now_ms), by=present_actor())
        return plan, new_run(plan, start, origin_of(document, plan), {"collection": collection, "document": name})

    @property
    def _collections(self) -> Collections:
        found = self._parts.services.knowledge
        assert found is not None, "the engine has made it"
        return found


_INGEST: Final[dict[str, Any]] = {
    "format": "weft/1",
    "name": INGEST,
    "description": "Embeds a document of a collection, and makes it visible to searches.",
    "blocks": {
        "start": {"type": "start"},
        "embed": {
            "type": "knowledge",
            "name": "Embed",
            "params": {"operation": "embed", "collection": "<start.collection>", "name": "<start.document>"},
            "policy": {"retry": {"max_attempts": ATTEMPTS}},
        },
    },
    "edges": [{"source": "start", "target": "embed"}],
}


def _collection(row: CollectionHead) -> CollectionView:
    return view_of(CollectionView, row)


def _state(row: DocumentHead) -> DocumentState:
    if row.status == "visible":
        return "visible"
    over = row.run_status is not None and (row.run_status == "" or row.run_status in TERMINAL)
    return "failed" if over else "pending"


def _document(row: DocumentHead) -> DocumentView:
    return view_of(DocumentView, row, state=_state(row), run=row.run_id)


def _no_document(name: str) -> NotFound:
    return NotFound(f"there is no document {name[:100]!r} in the collection", code="document_not_found")

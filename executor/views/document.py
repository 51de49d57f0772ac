"""RunDocument: what a run was made from, as it was then."""

from __future__ import annotations

from collections.abc import Collection

import orjson

from compiler.imports import as_ours
from executor.errors import NotFound
from executor.store.contract import Store
from executor.store.rows import RunRow
from executor.views import RunDocument


async def build(store: Store, row: RunRow, env_names: Collection[str]) -> RunDocument:
    """From the version of the stored workflow, or as it was kept with the run. Raises NotFound(document_not_kept)."""
    data, digest = await _find(store, row)
    if data is None:
        raise NotFound(f"the document of run {row.id} is not stored", code="document_not_kept")
    ours = as_ours(orjson.loads(data), env_names)
    return RunDocument(
        row.id, row.workflow, row.version, digest, row.draft_id, row.draft_rev, ours.imported, ours.document
    )


async def _find(store: Store, row: RunRow) -> tuple[bytes | None, str]:
    if row.version is not None:
        stored = await store.get_workflow(row.workflow, row.version)
        return (stored.document, stored.hash) if stored else (None, "")
    if row.document_hash is not None:
        return await store.get_document(row.document_hash), row.document_hash
    return None, ""

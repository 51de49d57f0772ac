"""Deleting what is not needed any more: runs that have ended, and the plans, documents, blobs and versions of deleted
workflows that only they used.

19. `delete_runs` takes a run with everything that is its own in one transaction: nobody ever sees half a run. It
    decides itself, in that transaction, whether a run may go: it has ended, no child of it is open, and no open run
    takes over results of it.
20. A child goes after its parent, never before it: who looks at a parent finds its children.
21. `delete_orphans` takes a plan, document or blob only if no run refers to it in the transaction that deletes it. A
    plan that a request in an inbox asks a run to move to is referred to. It takes the versions of a deleted workflow
    when there is no run of its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import orjson
from msgspec import Struct

if TYPE_CHECKING:
    from executor.store.base import Record


class Removable(Struct, frozen=True):
    """A run that may be deleted. `seq` is the number of its events: what deleting it costs."""

    id: str
    workflow: str
    seq: int
    finished_at_ms: int


class Orphans(Struct, frozen=True):
    """How many went."""

    plans: int = 0
    documents: int = 0
    blobs: int = 0
    versions: int = 0

    @property
    def total(self) -> int:
        return self.plans + self.documents + self.blobs + self.versions


class UpkeepStore(Protocol):
    """The part of a Store that this topic adds."""

    async def find_removable(
        self, ended_before_ms: int, keep: int = 0, limit: int = 100, after: str | None = None
    ) -> list[Removable]:
        """Oldest first (created_at, id): runs that ended before this time and may go. `keep`: but for so many of each
        workflow, the newest that have ended; children follow their parent and are not counted. `after`: a run id,
        what was created up to it is passed over."""

    async def delete_runs(self, run_ids: Sequence[str]) -> list[str]:
        """One transaction. Returns the ids that went; those that may not go any more, or are not there, stay out."""

    async def delete_orphans(self, limit: int = 1000) -> Orphans:
        """At most `limit` of each kind, versions of at most `limit` workflows. Nothing went: there are none left."""

    async def count_orphans(self) -> Orphans:
        """What `delete_orphans` would take in all."""


def blobs_of(records: Sequence[Record]) -> set[str]:
    """Hashes of the blobs that hold outputs of these records; see `executor.values.payload.split`."""
    found = set()
    for record in records:
        if record.data is not None and b'"blob"' in record.data:
            hash = orjson.loads(record.data).get("blob")
            if isinstance(hash, str):
                found.add(hash)
    return found

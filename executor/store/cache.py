"""Results that later runs may take over instead of running a block again.

14. A row is written in the append that records the success it came from (`Append.cached`), so it never holds what no
    journal has. A second row of the same key takes the place of the first.
15. What has expired is never found; `delete_expired_cache` takes it off the disk.
"""

from __future__ import annotations

from typing import Literal, Protocol

from msgspec import Struct

CacheScope = Literal["run", "workflow", "global"]


class CacheRow(Struct, frozen=True):
    """`key`: see `executor.values.cache`. `output` is JSON, `route` the handle the block went on by, `run_id` the run
    that put it out."""

    key: str
    scope: CacheScope
    workflow: str
    run_id: str
    block: str
    type: str
    schema_sig: str
    route: str | None
    created_at_ms: int
    expires_at_ms: int
    output: bytes


class CacheStore(Protocol):
    """The part of a Store that this topic adds."""

    async def find_cached(self, key: str, now_ms: int) -> CacheRow | None:
        """None as well when it has expired (expires_at <= now)."""

    async def clear_cache(self, workflow: str | None = None) -> int:
        """Forget everything, or what runs of this workflow left. Returns how many rows went."""

    async def delete_expired_cache(self, now_ms: int, limit: int) -> int:
        """At most `limit` rows that expired before `now_ms`, oldest first. Returns how many went."""

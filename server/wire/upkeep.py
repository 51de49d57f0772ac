"""The shapes of upkeep that cross HTTP."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class CacheCleared(Struct, frozen=True):
    """The number of deleted results."""

    cleared: int


class CacheQuery(Struct, frozen=True):
    workflow: Annotated[str, Meta(description="Only results of this workflow.")] | None = None


class GcRequest(Struct, forbid_unknown_fields=True):
    """POST /api/upkeep/gc. Deletes runs that ended more than `older_than_s` ago, except the `keep` newest of each
    workflow. With `keep` alone, all other ended runs are deleted; with neither, none."""

    older_than_s: Annotated[float, Meta(ge=0, le=10_000_000_000)] | None = None
    keep: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    dry_run: bool = False

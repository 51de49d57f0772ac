"""Bounds of names and numbers that cross HTTP, each written once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeVar

from msgspec import Meta

from executor.store.rows import COUNT_MAX, VERSION_MAX, RunStatus, WaitStatus

Status = TypeVar("Status", RunStatus, WaitStatus)

DraftName = Annotated[str, Meta(max_length=200)]
PersonName = Annotated[str, Meta(max_length=200)]
ShortText = Annotated[str, Meta(max_length=500)]
Version = Annotated[int, Meta(ge=1, le=VERSION_MAX)]

PAGE_MAX = 1000
EVENTS_PAGE_MAX = 10_000
PREVIEW_BYTES_MAX = 16 * 1024 * 1024  # as large as any output
WAIT_S_MAX = 60.0

# Query parameters that several routes have.
Preview = Annotated[
    int,
    Meta(
        ge=0,
        le=PREVIEW_BYTES_MAX,
        description="Cut outputs over this many bytes: `output` is then null, `truncated` true, `size` the number of "
        "bytes, and `preview` has the beginning of the JSON. The whole is at /api/runs/{id}/nodes/{key}.",
    ),
]
StoredVersion = Annotated[int, Meta(ge=1, description="A stored version. Default: the active one.")]


def capped(counts: Mapping[Status, int]) -> list[Status]:
    """Those that were counted no further."""
    return [status for status, count in counts.items() if count >= COUNT_MAX]

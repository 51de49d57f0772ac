"""The shapes of runs from a block, forks, retries and migrations that cross HTTP."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from executor.service.topics.lifecycle import How
from server.wire import Version
from server.wire.runs import RunAccepted


class RerunRequest(Struct, forbid_unknown_fields=True):
    """POST /api/runs/{id}/rerun. Without `from`, everything runs again. `input` defaults to the input of that run."""

    start: str | None = msgspec.field(default=None, name="from")
    input: Any = None


class ForkRequest(Struct, forbid_unknown_fields=True):
    """POST /api/runs/{id}/fork. `outputs`: by node key, in place of the recorded ones."""

    seq: Annotated[int, Meta(ge=1, le=2**53)]
    outputs: dict[str, Any] = {}


class RetryRequest(Struct, forbid_unknown_fields=True):
    """POST /api/runs/{id}/nodes/{key}/retry takes no fields."""


class MigrateRequest(Struct, forbid_unknown_fields=True):
    """POST /api/runs/{id}/migrate. `version` of the same workflow."""

    version: Version


class RerunPreview(Struct, frozen=True):
    """Ids of blocks, including those inside containers: `reused` keep their outputs, `again` can run, `skipped` stay
    skipped."""

    run: str
    start: str = msgspec.field(name="from")
    reused: tuple[str, ...]
    again: tuple[str, ...]
    skipped: tuple[str, ...]


class ForkAccepted(RunAccepted, frozen=True, kw_only=True):
    """`seq`: the number of events copied from `source`."""

    source: str
    seq: int


class RetryAccepted(RunAccepted, frozen=True, kw_only=True):
    """`how` "now": the run is `source` itself, and its next attempt begins at once. Else it is a new one: "from_block"
    and "from_node": `block` and what follows it run again; "whole_container": `block` is the container around the node,
    and runs again as a whole."""

    source: str
    how: How
    block: str


class MigrateAnswer(Struct, frozen=True):
    """`moved` is false if the worker of the run has not responded yet; GET /api/runs/{id} has the current version."""

    run: str
    version: int
    plan_hash: str
    moved: bool


class RerunQuery(Struct, frozen=True):
    start: Annotated[str, Meta(description="Id of the block to start from. Default: everything runs again.")] | None = (
        msgspec.field(default=None, name="from")
    )

"""The shapes of workflows and their versions that cross HTTP. Times are Unix milliseconds."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from msgspec import Struct

from compiler.diagnostics import Diagnostic
from executor.store.rows import VersionRow, WorkflowHead, WorkflowRow
from server.wire.bounds import Version
from server.wire.encode import fragment


class ActivateRequest(Struct, forbid_unknown_fields=True):
    """PUT /api/workflows/{name}/active."""

    version: Version


class Validation(Struct, frozen=True):
    """`valid`: no finding is an error."""

    valid: bool
    diagnostics: list[Diagnostic]


class WorkflowPage(Struct, frozen=True):
    """`version` of a workflow is the active one, which runs where no version is given."""

    workflows: list[WorkflowHead]


class WorkflowVersion(Struct, frozen=True):
    """`active`: the version that runs where none is given; `newest`: the highest version."""

    name: str
    version: int
    hash: str
    created_at_ms: int
    active: int
    newest: int
    document: Any


class VersionPage(Struct, frozen=True):
    """Newest first. `next`: pass it as `before` for the following page; null at the end."""

    name: str
    active: int
    versions: list[VersionRow]
    next: int | None


class WorkflowDeleted(Struct, frozen=True):
    """The number of schedules and webhooks deleted with it. Its runs are kept."""

    name: str
    schedules: int
    webhooks: int


def workflow_url(name: str) -> str:
    return f"/api/workflows/{quote(name, safe='')}"


def workflow_version(head: WorkflowHead, row: WorkflowRow) -> dict[str, Any]:
    """A WorkflowVersion."""
    return {
        "name": row.name,
        "version": row.version,
        "hash": row.hash,
        "created_at_ms": row.created_at_ms,
        "active": head.version,
        "newest": head.newest,
        "document": fragment(row.document),
    }

"""The shapes of drafts that cross HTTP. Times are Unix milliseconds."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from compiler.diagnostics import Diagnostic
from executor.kernel.store.topics.drafts import LastRun
from executor.service.views import SavedWorkflow
from server.wire import PAGE_MAX, DraftName, Version
from server.wire.runs import RunAccepted


class DraftRequest(Struct, forbid_unknown_fields=True):
    """POST /api/drafts. `base_version`: the version of the workflow `name` that the document is a copy of."""

    document: dict[str, Any]
    name: DraftName | None = None
    base_version: Version | None = None


class DraftChange(Struct, forbid_unknown_fields=True):
    """PUT /api/drafts/{id}. Without `name`, the draft has the name in the document."""

    document: dict[str, Any]
    name: DraftName | None = None


class RunDraftRequest(Struct, forbid_unknown_fields=True):
    """POST /api/drafts/{id}/runs. `stop_after`: id of the last block to run."""

    input: Any = None
    trigger: str | None = None
    stop_after: str | None = None


class VersionRequest(Struct, forbid_unknown_fields=True):
    """POST /api/drafts/{id}/versions. `name` defaults to the name of the draft. `activate_triggers`: its schedules and
    webhooks start runs even if it has blocks that were not imported."""

    name: DraftName | None = None
    activate_triggers: bool = False


class DraftRunAccepted(RunAccepted, frozen=True, kw_only=True):
    """`rev`: the revision of the draft that runs."""

    draft: str
    rev: int


class DraftSummary(Struct, frozen=True):
    """A draft without its document. Revision `base_rev` is version `base_version` of the workflow `base_name`; all
    three are null until it is stored as a version. `last_run`: the run of the draft created last."""

    id: str
    name: str
    rev: int
    base_name: str | None
    base_version: int | None
    base_rev: int | None
    created_at_ms: int
    updated_at_ms: int
    last_run: LastRun | None


class DraftPage(Struct, frozen=True):
    """`next`: pass it as `before` for the following page; null at the end."""

    drafts: list[DraftSummary]
    next: str | None


class DraftSaved(Struct, frozen=True):
    """`rev`: the revision to send in If-Match with the next change."""

    id: str
    name: str
    rev: int
    updated_at_ms: int
    diagnostics: tuple[Diagnostic, ...]


class DraftDeleted(Struct, frozen=True):
    id: str
    deleted: bool


class DraftVersion(SavedWorkflow, frozen=True, kw_only=True):
    """`rev`: the revision of the draft that is this version."""

    draft: str
    rev: int


class DraftsQuery(Struct, frozen=True):
    before: Annotated[str, Meta(description="Id of the last draft of the previous page.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=PAGE_MAX, description="Drafts per page.")] = 200

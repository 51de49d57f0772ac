"""Drafts: the documents that an editor saves while a person works on them. A change names the revision it was made to
(If-Match), so two tabs cannot write over each other: the second gets a 409 with the stored draft."""

from __future__ import annotations

import re
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import asdict
from starlette.responses import Response

from compiler.diagnostics import Diagnostic
from compiler.setup import Task
from executor.errors import BadRequest
from executor.kernel.store.topics.drafts import DraftHead, LastRun
from executor.kernel.store.topics.workflows import VERSION_MAX
from executor.service.topics.drafts import DraftView, Step
from executor.service.views import SavedWorkflow, view_of
from server.api.runs import (
    DraftRunAccepted,
    InputList,
    RunResult,
    StartQuery,
    idempotency_key,
    started,
    starts,
)
from server.api.workflows import FolderRequest, workflow_url
from server.http.errors import PreconditionRequired
from server.http.response import PAGE_MAX, DraftName, Json, Version
from server.http.table import Call, Param, Routes, RouteSpec, links_to


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
    """POST /api/drafts/{id}/run. `stop_after`: id of the last block to run. `step`: run that block alone instead."""

    input: Any = None
    trigger: str | None = None
    stop_after: str | None = None
    step: Step | None = None


class VersionRequest(Struct, forbid_unknown_fields=True):
    """POST /api/drafts/{id}/versions. `name` defaults to the name of the draft. `activate_triggers`: its schedules and
    webhooks start runs even if it has blocks that were not imported. `replaces`: the active version of the workflow,
    if the draft is not based on it; 0: none is active."""

    name: DraftName | None = None
    activate_triggers: bool = False
    replaces: Annotated[int, Meta(ge=0, le=VERSION_MAX)] | None = None


class DraftSummary(DraftHead, frozen=True):
    """A draft without its document. Revision `base_rev` is version `base_version` of the workflow `base_name`; all
    three are null until it is stored as a version. `last_run`: the run of the draft created last."""

    last_run: LastRun | None


class DraftPage(Struct, frozen=True):
    """`next`: pass it as `before` for the following page; null at the end."""

    drafts: list[DraftSummary]
    next: str | None


class DraftSaved(Struct, frozen=True):
    """`rev`: the revision to send in If-Match with the next change; `tasks` are left before it runs."""

    id: str
    name: str
    rev: int
    updated_at_ms: int
    diagnostics: tuple[Diagnostic, ...]
    tasks: tuple[Task, ...]


class DraftFolder(Struct, frozen=True):
    id: str
    folder: str


class DraftDeleted(Struct, frozen=True):
    id: str
    deleted: bool


class DraftVersion(SavedWorkflow, frozen=True, kw_only=True):
    """`rev`: the revision of the draft that is this version."""

    draft: str
    rev: int


class DraftsQuery(Struct, frozen=True):
    before: Annotated[str | None, Meta(description="Id of the last draft of the previous page.")] = None
    limit: Annotated[int, Meta(ge=1, le=PAGE_MAX, description="Drafts per page.")] = 200


_ETAG = re.compile(r'(W/)?"([1-9][0-9]{0,15})"')  # weak too: a proxy that compresses makes it so
_REV = {"type": "string", "pattern": f"^{_ETAG.pattern}$", "examples": ['"3"']}
_AT_REV = Param("If-Match", 'Only if the draft has this revision, such as "3".', _REV)

route = Routes("drafts", RouteSpec)


@route(
    "POST",
    "/api/drafts",
    "Create a draft",
    needs="editor",
    status=201,
    links=links_to("/api/drafts/{id}", "GET", "PUT", "POST /run", "POST /versions", "DELETE"),
)
async def create(call: Call, body: DraftRequest) -> Json[DraftView]:
    """A workflow with errors is accepted; `diagnostics` lists them. A Sim workflow is converted, and the diagnostics
    also list what could not be converted. 422: JSON without `format` and `blocks`, which is not a workflow."""
    draft = await call.engine.drafts.create(body.document, body.name, body.base_version)
    return Json(draft, 201, {"Location": f"/api/drafts/{draft.id}", **_etag(draft.rev)})


@route("GET", "/api/drafts", "Drafts, without documents", needs="viewer")
async def list_all(call: Call, query: DraftsQuery) -> DraftPage:
    """Most recently changed first."""
    heads = await call.engine.store.list_drafts(query.before, query.limit)
    following = heads[-1].id if len(heads) == query.limit else None
    last = await call.engine.store.last_runs([head.id for head in heads])
    return DraftPage([view_of(DraftSummary, head, last_run=last.get(head.id)) for head in heads], following)


@route("GET", "/api/drafts/{id}", "A draft", needs="viewer")
async def read(call: Call, id: str) -> Json[DraftView]:
    """The ETag is the revision, for If-Match."""
    draft = await call.engine.drafts.get(id)
    return Json(draft, headers=_etag(draft.rev))


@route(
    "PUT",
    "/api/drafts/{id}",
    "Save the next revision of a draft",
    needs="editor",
    statuses=(409, 428),
    params=(Param("If-Match", 'The revision to change, such as "3".', _REV, required=True),),
)
async def change(call: Call, id: str, body: DraftChange) -> Json[DraftSaved]:
    """Requires `If-Match: "<rev>"` (428 without). 409: the draft has a newer revision; `current` is the stored draft.
    Repeating the same change for the same revision returns the first response."""
    rev = _if_match(call)
    if rev is None:
        raise PreconditionRequired(hint='Send If-Match: "<rev>" with your revision, such as "3".')
    draft = await call.engine.drafts.put(id, rev, body.document, body.name)
    return Json(view_of(DraftSaved, draft), headers=_etag(draft.rev))


@route("PUT", "/api/drafts/{id}/folder", "Move a draft to a folder", needs="editor")
async def put_in_folder(call: Call, id: str, body: FolderRequest) -> DraftFolder:
    """No new revision. A workflow that is stored from the draft is in this folder, too, if it is in none."""
    folder = body.folder.strip()
    await call.engine.drafts.put_in_folder(id, folder)
    return DraftFolder(id, folder)


@route("DELETE", "/api/drafts/{id}", "Delete a draft", needs="editor", statuses=(409,), params=(_AT_REV,))
async def delete(call: Call, id: str) -> DraftDeleted:
    """Runs and versions of the draft are kept. With If-Match, 409 unless the draft has that revision."""
    await call.engine.drafts.delete(id, _if_match(call))
    return DraftDeleted(id, True)


@starts(
    route,
    "/api/drafts/{id}/run",
    "Start a run of a draft",
    answer=(DraftRunAccepted, RunResult),
    params=(_AT_REV,),
    audit=False,
)
async def run(call: Call, id: str, query: StartQuery, body: RunDraftRequest) -> Response:
    """Run the stored draft. With If-Match, 409 unless the draft has that revision. The run keeps this document.
    Pinned blocks do not run: their outputs are the pinned ones. A `step` is a run whose `workflow` is the name of the
    draft, a slash and the id of the block; it sends no alerts and starts no error workflow."""
    rev = _if_match(call)
    submitted, rev = await call.engine.drafts.run(id, rev=rev, **asdict(body), idempotency_key=idempotency_key(call))
    return await started(call, submitted, query, (id, rev))


@route(
    "POST",
    "/api/drafts/{id}/versions",
    "Store a draft as the next version of a workflow",
    needs="editor",
    status=201,
    statuses=(200, 409),
    params=(_AT_REV,),
)
async def save_version(call: Call, id: str, body: VersionRequest) -> Json[DraftVersion]:
    """201 for a new version, 200 when the same document is already a version. With If-Match, 409 unless the draft has
    that revision. 409 `would_replace` if another version than the one on which the draft is based, or than `replaces`,
    is active: `active`. 422: the document has errors."""
    rev = _if_match(call)
    saved, rev = await call.engine.drafts.save_version(id, rev=rev, **asdict(body))
    version = view_of(DraftVersion, saved, draft=id, rev=rev)
    return Json(version, 201 if saved.created else 200, {"Location": workflow_url(saved.name)})


@route("GET", "/api/drafts/{id}/inputs", "Inputs of the last runs", needs="viewer")
async def inputs(call: Call, id: str) -> InputList:
    """The last 10 different inputs of its runs, newest first. Inputs over 64 KiB are omitted."""
    draft = await call.engine.drafts.get(id)
    return InputList(await call.engine.runs.last_inputs(draft=draft.id))


def _if_match(call: Call) -> int | None:
    """The revision that If-Match names; None without the header. Raises BadRequest."""
    text = call.request.headers.get("if-match")
    if text is None:
        return None
    match = _ETAG.fullmatch(text.strip())
    if match is None:
        raise BadRequest('If-Match must be one revision in quotes, such as "3".', code="if_match_invalid")
    return int(match[2])


def _etag(rev: int) -> dict[str, str]:
    return {"ETag": f'"{rev}"'}

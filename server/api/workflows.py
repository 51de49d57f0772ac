"""Workflows: check a document, store it, read it back, choose the active version, delete."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import quote

from msgspec import Meta, Struct

from compiler.diagnostics import Diagnostic
from compiler.setup import Task
from executor.kernel.store.topics.workflows import VERSION_MAX, Order, VersionRow, WorkflowHead, WorkflowRow
from executor.service.topics.cards import Card
from executor.service.topics.loom import RUNS_MAX, Loom
from executor.service.views import SavedWorkflow, view_of
from server.api.runs import InputList, PlanQuery, Since, Until
from server.http.errors import BodyInvalid
from server.http.request import read_json
from server.http.response import PAGE_MAX, Json, PackedJson, StoredVersion, Version, fragment
from server.http.table import Call, Routes, RouteSpec, links_to


class ActivateRequest(Struct, forbid_unknown_fields=True):
    """PUT /api/workflows/{name}/active. `activate_triggers`: its schedules and webhooks start runs even if it has
    blocks that were not imported."""

    version: Version
    activate_triggers: bool = False


class Validation(Struct, frozen=True):
    """`valid`: no finding is an error. `tasks` are left before the workflow runs: accounts, choices, keys."""

    valid: bool
    diagnostics: list[Diagnostic]
    tasks: tuple[Task, ...]


class WorkflowPage(Struct, frozen=True):
    """`version` of a workflow is the active one, which runs where no version is given."""

    workflows: list[WorkflowHead]


class WorkflowVersion(Struct, frozen=True):
    """`active`: the version that runs where none is given; `newest`: the highest version. `hash` is of the
    stored document, also if `document` is converted."""

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


class FolderRequest(Struct, forbid_unknown_fields=True):
    """PUT /api/workflows/{name}/folder. An empty text takes it out of its folder."""

    folder: Annotated[str, Meta(max_length=60)]


class WorkflowFolder(Struct, frozen=True):
    name: str
    folder: str


class TitleRequest(Struct, forbid_unknown_fields=True):
    """PUT /api/workflows/{name}/title. An empty text shows its name again."""

    title: Annotated[str, Meta(max_length=200)]


class WorkflowTitle(Struct, frozen=True):
    name: str
    title: str


class CardPage(Struct, frozen=True):
    """`folders`: the number of workflows in each folder; '' are those in none. `next`: pass it as `after` for the
    following page; null at the end."""

    cards: list[Card]
    folders: dict[str, int]
    next: int | None


class LoomQuery(Struct, frozen=True):
    since: Since | None = None
    until: Until | None = None
    limit: Annotated[int, Meta(ge=1, le=RUNS_MAX, description="The number of runs, the newest ones.")] = RUNS_MAX


class CardsQuery(Struct, frozen=True):
    folder: Annotated[str | None, Meta(description="Only workflows in this folder.")] = None
    text: Annotated[
        str | None, Meta(description="Only workflows with this text in their name, or in that or the type of a block.")
    ] = None
    order: Annotated[Order, Meta(description="By last run or last change, newest first, or by name.")] = "run"
    since: Annotated[int, Meta(ge=0, description="When `today` begins. Default: a day ago.")] | None = None
    after: Annotated[int, Meta(ge=0, le=1_000_000, description="The `next` of the previous page.")] = 0
    limit: Annotated[int, Meta(ge=1, le=100, description="Cards per page.")] = 24


class BlockType(Struct, frozen=True):
    """A block type. `params` is the JSON Schema of its parameters, `output` that of its output, null if it depends on
    data. `handles`: the fixed exits. `runners`: the permitted values of `policy.runner`. `attempts` and `timeout_ms`
    are the defaults of `policy.retry.max_attempts` and `policy.timeout_s`. `sentence`: the description on a card, text
    with `{path}` for parameters."""

    type: str
    title: str
    description: str
    category: Literal["trigger", "flow", "data", "action", "connector", "people", "annotation"]
    params: dict[str, Any]
    handles: list[str]
    container: Literal["loop", "parallel"] | None
    trigger: bool
    output: dict[str, Any] | None
    effect: Literal["none", "read", "write"]
    runners: list[Literal["inline", "process", "dask"]]
    attempts: int
    timeout_ms: int
    sentence: str
    icon: str


class BlockList(Struct, frozen=True):
    """The block types, by category and title."""

    blocks: list[BlockType]


DocumentBody = Annotated[
    dict[str, Any], Meta(description="A workflow document, or an object {document, name?, trigger?}.")
]


class ValidateQuery(Struct, frozen=True):
    trigger: Annotated[
        str | None, Meta(description="Id of the trigger block. A `trigger` in the body comes first.")
    ] = None


class SaveQuery(Struct, frozen=True):
    name: Annotated[
        str | None,
        Meta(
            description="Name of the workflow. A `name` in the body next to the document comes first. Default: the "
            "name in the document."
        ),
    ] = None
    activate_triggers: Annotated[
        bool, Meta(description="1: its schedules and webhooks start runs even if it has blocks that were not imported.")
    ] = False
    replaces: (
        Annotated[
            int, Meta(ge=0, le=VERSION_MAX, description="409 `would_replace` if another version is active. 0: if any.")
        ]
        | None
    ) = None


class WorkflowQuery(Struct, frozen=True):
    version: StoredVersion | None = None
    converted: Annotated[bool, Meta(description="1: an imported document in the format weft/1.")] = False


class VersionsQuery(Struct, frozen=True):
    before: Annotated[int, Meta(ge=1, description="The `next` of the previous page.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=PAGE_MAX, description="Versions per page.")] = 200


class WorkflowPlanQuery(PlanQuery, frozen=True):
    version: StoredVersion | None = None
    trigger: Annotated[str | None, Meta(description="Id of the trigger block, if there are several.")] = None


def workflow_url(name: str) -> str:
    return f"/api/workflows/{quote(name, safe='')}"


def workflow_version(head: WorkflowHead, row: WorkflowRow, document: bytes) -> WorkflowVersion:
    return view_of(WorkflowVersion, row, active=head.version, newest=head.newest, document=fragment(document))


route = Routes("workflows", RouteSpec)


@route("POST", "/api/validate", "Check a document without running it", needs="editor", audit=False, body=DocumentBody)
async def validate(call: Call, query: ValidateQuery) -> Validation:
    """200 with all findings, even if there are errors."""
    document, envelope = await _document(call)
    trigger = envelope.get("trigger") or query.trigger
    found = await call.engine.workflows.validate(document, trigger)
    tasks = await call.engine.workflows.setup(document, found)
    return Validation(not any(d.severity == "error" for d in found), found, tasks)


@route(
    "POST",
    "/api/workflows",
    "Store a document as a version, and activate it",
    needs="editor",
    body=DocumentBody,
    status=201,
    statuses=(200, 409),
    links=links_to("/api/workflows/{name}", "GET", "POST /runs"),
)
async def save(call: Call, query: SaveQuery) -> Json[SavedWorkflow]:
    """The version becomes active: it runs where no version is given, and its schedules and webhooks replace those of
    the workflow. They are off while it has blocks that were not imported (finding `triggers_off`), unless
    `activate_triggers`. 201 for a new version; 200 when the same document is already a version, which becomes active if
    it was not (`activated`). 422: the document has errors. 400 `name_missing`: without a name, or as `untitled`."""
    document, envelope = await _document(call)
    name = envelope.get("name") or query.name
    saved = await call.engine.workflows.save(
        document, name, activate_triggers=query.activate_triggers, replaces=query.replaces
    )
    return Json(saved, 201 if saved.created else 200, {"Location": workflow_url(saved.name)})


@route("GET", "/api/workflows", "Workflows and their last runs", needs="viewer")
async def list_all(call: Call) -> WorkflowPage:
    """`version` is the active one. `last_run` is the run created last, or null."""
    return WorkflowPage(await call.engine.store.list_heads())


@route("GET", "/api/workflows/{name}/loom", "Its last runs in one picture", needs="viewer", always=True)
async def loom(call: Call, name: str, query: LoomQuery) -> Loom:
    """Return the executions, times and exits of each block in each of the last runs. Empty without runs."""
    return await call.engine.loom.of(name, query.since, query.until, query.limit)


@route("GET", "/api/cards", "Workflows as cards", needs="viewer")
async def cards(call: Call, query: CardsQuery) -> CardPage:
    """Workflows as a front page shows them. `states`: of each block in the last run, unless that has more than 1,000
    events. `runs`: the last 24, oldest first."""
    engine = call.engine
    found = await engine.cards.list(query.folder, query.text, query.order, query.since, query.after, query.limit)
    following = query.after + query.limit if len(found) == query.limit else None
    return CardPage(found, await engine.store.count_folders(), following)


@route("GET", "/api/workflows/{name}", "A stored document", needs="viewer")
async def read(call: Call, name: str, query: WorkflowQuery) -> Json[WorkflowVersion]:
    """The document of a version, as it is stored. Without `version`: the active one."""
    workflows = call.engine.workflows
    row = await workflows.version(name, query.version)
    document = await workflows.converted(row.document) if query.converted else row.document
    body = workflow_version(await workflows.get(name), row, document)
    return Json(body, headers={"ETag": f'"{row.hash}"'})


@route("GET", "/api/workflows/{name}/versions", "The versions of a workflow, newest first", needs="viewer")
async def versions(call: Call, name: str, query: VersionsQuery) -> VersionPage:
    """Newest first, without their documents."""
    head = await call.engine.workflows.get(name)
    rows = await call.engine.workflows.versions(name, query.before, query.limit)
    return VersionPage(name, head.version, rows, rows[-1].version if len(rows) == query.limit else None)


@route("PUT", "/api/workflows/{name}/active", "Make a version the active one", needs="editor")
async def activate(call: Call, name: str, body: ActivateRequest) -> SavedWorkflow:
    """The stored version becomes active, with its schedules and webhooks. Open runs keep their version. `activated` is
    false when it was already active."""
    activate = call.engine.workflows.activate
    return await activate(name, body.version, activate_triggers=body.activate_triggers)


@route("PUT", "/api/workflows/{name}/title", "Rename a workflow", needs="editor", statuses=(400, 409))
async def rename(call: Call, name: str, body: TitleRequest) -> WorkflowTitle:
    """Pages show `title` in place of the name, and the workflow is found by both: the name stays in addresses, runs and
    schedules, so all of them stay valid. 409 `title_taken`: another workflow has this name or title."""
    await call.engine.workflows.rename(name, body.title.strip())
    return WorkflowTitle(name, (await call.engine.workflows.get(name)).title)


@route("PUT", "/api/workflows/{name}/folder", "Move a workflow to a folder", needs="editor")
async def put_in_folder(call: Call, name: str, body: FolderRequest) -> WorkflowFolder:
    """Folders order the front page and mean nothing else. A folder is there while a workflow is in it."""
    folder = body.folder.strip()
    await call.engine.workflows.put_in_folder(name, folder)
    return WorkflowFolder(name, folder)


@route("DELETE", "/api/workflows/{name}", "Delete a workflow", needs="editor", statuses=(409,))
async def delete(call: Call, name: str) -> WorkflowDeleted:
    """Delete it with its versions, schedules and webhooks. Its runs are kept. 409: a run of it is open."""
    deleted = await call.engine.workflows.delete(name)
    return WorkflowDeleted(name, deleted.schedules, deleted.webhooks)


@route("GET", "/api/workflows/{name}/inputs", "Inputs of the last runs", needs="viewer")
async def inputs(call: Call, name: str) -> InputList:
    """The last 10 different inputs of its runs, newest first. Inputs over 64 KiB are omitted."""
    row = await call.engine.workflows.version(name)
    return InputList(await call.engine.runs.last_inputs(row.name))


@route("GET", "/api/blocks", "The block types, with the JSON Schema of their parameters", needs="viewer")
async def blocks(call: Call) -> PackedJson[BlockList]:
    """The block types of this server, by category and title."""
    await call.engine.parts.connectors.refresh()
    found = BlockList([BlockType(**entry) for entry in call.engine.parts.registry.catalogue()])
    return PackedJson(found, call.header(b"accept-encoding"))


async def _document(call: Call) -> tuple[Any, dict[str, Any]]:
    """The document and what was around it. A document has `blocks` and an envelope has not, so the two cannot be
    confused."""
    body = await read_json(call.request, call.limits)
    if not isinstance(body, dict):
        raise BodyInvalid("Expected a workflow document: a JSON object.", pointer="")
    if "document" not in body or "blocks" in body:
        return body, {}
    for name in body:
        if name not in ("document", "name", "trigger"):
            raise BodyInvalid(f"Object contains unknown field `{name}`", pointer=f"/{name}")
    for name in ("name", "trigger"):
        if not isinstance(body.get(name), (str, type(None))):
            raise BodyInvalid("Expected text.", pointer=f"/{name}")
    return body["document"], body

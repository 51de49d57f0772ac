"""The shapes of workflows and their versions that cross HTTP. Times are Unix milliseconds."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import quote

from msgspec import Meta, Struct

from compiler.diagnostics import Diagnostic
from executor.kernel.store.topics.workflows import VersionRow, WorkflowHead, WorkflowRow
from server.wire import PAGE_MAX, StoredVersion, Version, fragment
from server.wire.runs import PlanQuery


class ActivateRequest(Struct, forbid_unknown_fields=True):
    """PUT /api/workflows/{name}/active. `activate_triggers`: its schedules and webhooks start runs even if it has
    blocks that were not imported."""

    version: Version
    activate_triggers: bool = False


class Validation(Struct, frozen=True):
    """`valid`: no finding is an error."""

    valid: bool
    diagnostics: list[Diagnostic]


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
    trigger: (
        Annotated[str, Meta(description="Id of the trigger block. A `trigger` in the body comes first.")] | None
    ) = None


class SaveQuery(Struct, frozen=True):
    name: (
        Annotated[
            str,
            Meta(
                description="Name of the workflow. A `name` in the body next to the document comes first. Default: the "
                "name in the document."
            ),
        ]
        | None
    ) = None
    activate_triggers: Annotated[
        bool, Meta(description="1: its schedules and webhooks start runs even if it has blocks that were not imported.")
    ] = False


class WorkflowQuery(Struct, frozen=True):
    version: StoredVersion | None = None
    converted: Annotated[bool, Meta(description="1: an imported document in the format weft/1.")] = False


class VersionsQuery(Struct, frozen=True):
    before: Annotated[int, Meta(ge=1, description="The `next` of the previous page.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=PAGE_MAX, description="Versions per page.")] = 200


class WorkflowPlanQuery(PlanQuery, frozen=True):
    version: StoredVersion | None = None
    trigger: Annotated[str, Meta(description="Id of the trigger block, if there are several.")] | None = None


def workflow_url(name: str) -> str:
    """The path of a workflow on this server."""
    return f"/api/workflows/{quote(name, safe='')}"


def workflow_version(head: WorkflowHead, row: WorkflowRow, document: bytes) -> WorkflowVersion:
    """A version with this document, spliced in as it is."""
    return WorkflowVersion(
        name=row.name,
        version=row.version,
        hash=row.hash,
        created_at_ms=row.created_at_ms,
        active=head.version,
        newest=head.newest,
        document=fragment(document),
    )

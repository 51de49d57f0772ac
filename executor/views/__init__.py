"""What the facade answers with: plain structs, JSON-able as they are. Each module here builds one of them from the
journal."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from compiler.diagnostics import Diagnostic


class SavedWorkflow(Struct, frozen=True):
    name: str
    version: int
    hash: str
    created: bool
    diagnostics: tuple[Diagnostic, ...] = ()


class Submitted(Struct, frozen=True):
    """`created` False: the idempotency key was used before, this is that run."""

    run: str
    workflow: str
    version: int | None
    status: str
    created: bool
    diagnostics: tuple[Diagnostic, ...] = ()


class NodeView(Struct, frozen=True, omit_defaults=True):
    """One node key of a run that has started, waits or was skipped."""

    key: str
    node: str
    block: str
    path: str
    status: Literal["running", "retrying", "waiting", "succeeded", "failed", "skipped", "cancelled"]
    attempt: int
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    route: str | None = None
    reason: str | None = None
    error: dict[str, Any] | None = None
    output: Any = None


class WaitView(Struct, frozen=True, omit_defaults=True):
    """One durable pause. `link` is the resume link while it is pending; `age_s` seconds since it opened."""

    run: str
    workflow: str
    id: str
    key: str
    block: str
    label: str
    kind: str
    status: str
    request: Any
    schema: Any
    actions: tuple[str, ...]
    opened_at_ms: int
    expires_at_ms: int | None
    age_s: float
    name: str | None = None
    correlation: str | None = None
    link: str | None = None
    response: Any = None
    answered_by: str | None = None
    answered_at_ms: int | None = None


class RunView(Struct, frozen=True, omit_defaults=True):
    """`status`: queued, running, waiting, succeeded, failed, cancelled. `output`, `response` once it has finished."""

    id: str
    workflow: str
    version: int | None
    status: str
    input: Any
    output: Any
    error: dict[str, Any] | None
    seq: int
    created_at_ms: int
    started_at_ms: int | None
    finished_at_ms: int | None
    response: dict[str, Any] | None = None
    variables: dict[str, Any] = {}
    nodes: tuple[NodeView, ...] = ()
    waits: tuple[WaitView, ...] = ()
    draft_id: str | None = None
    draft_rev: int | None = None


class AttemptView(Struct, frozen=True, omit_defaults=True):
    """One attempt of a node key, or (end of a loop) one of its tests. Without an end it has none yet."""

    attempt: int
    status: str
    started_seq: int | None = None
    started_at_ms: int | None = None
    finished_seq: int | None = None
    finished_at_ms: int | None = None
    error: dict[str, Any] | None = None


class NodeDetail(Struct, frozen=True):
    """What one attempt of a node key was given and what it put out, as the journal up to `seq` tells it.

    status   as in NodeView, or "pending": nothing has happened to it yet
    input    JSON of the params with all references filled in; secrets are redacted. A program or an expression is
             {"$code": as written, "values": {reference: value}}. None: it did not start
    input_error  why the references could not be filled in
    output   JSON of what it put out; of a container's start sentinel {"count": n}
    reused   it was taken over from the run this one was started from
    because  the node whose edge died last, when it was skipped
    """

    run: str
    key: str
    node: str
    block: str
    name: str
    type: str
    path: str
    seq: int
    status: str
    attempt: int
    attempts: tuple[AttemptView, ...]
    input: bytes | None
    input_error: dict[str, Any] | None
    output: bytes | None
    error: dict[str, Any] | None
    route: str | None
    reason: str | None
    because: str | None
    reused: bool


class RunDocument(Struct, frozen=True):
    """The document a run was made from, in our format (`imported`: what it was before). It is `version` of the stored
    workflow, or revision `draft_rev` of a draft, or neither: it was handed in with the run."""

    run: str
    workflow: str
    version: int | None
    hash: str
    draft_id: str | None
    draft_rev: int | None
    imported: str | None
    document: dict[str, Any]


class Rerun(Struct, frozen=True):
    """What a run from block `block` of `run` would do. Ids of blocks in plan order, those inside containers included:
    `reused` keep their outputs, `again` may run, `skipped` stay skipped."""

    run: str
    block: str
    reused: tuple[str, ...]
    again: tuple[str, ...]
    skipped: tuple[str, ...]


class GraphNode(Struct, frozen=True, omit_defaults=True):
    """`state`: pending, running, retrying, waiting, succeeded, failed, skipped (worst of its scopes, with counts)."""

    id: str
    block: str
    type: str
    name: str
    region: str
    state: str
    counts: dict[str, int] = {}
    sentinel: str | None = None


class GraphEdge(Struct, frozen=True, omit_defaults=True):
    """`state`: pending, live, dead (in any scope: counts)."""

    source: str
    target: str
    handle: str
    state: str
    counts: dict[str, int] = {}


class RunGraph(Struct, frozen=True):
    run: str
    plan_hash: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


class Why(Struct, frozen=True):
    """Why a node key is where it is: `state` and the unmet conditions in words."""

    key: str
    state: str
    reasons: tuple[str, ...]

"""The results of the engine: plain structs, JSON-able as they are but for `RunView.nodes`. Each module here builds one
of them from the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, Literal, TypeVar, overload

from msgspec import Meta, Struct, field

from compiler.diagnostics import Diagnostic
from executor.kernel.core.events import WaitKind
from executor.kernel.journal.projection import Attempt, Status
from executor.kernel.journal.steps import StepState, StepStatus
from executor.kernel.store.statements import RunStatus
from executor.kernel.store.topics.waits import WaitStatus

T = TypeVar("T", bound=Struct)

ErrorJson = Annotated[
    dict[str, Any],
    Meta(
        extra_json_schema={
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "retryable": {"type": "boolean"},
                "block": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "hint": {"type": "string"},
                "traceback": {"type": "string"},
            },
            "required": ["code", "message"],
        }
    ),
]
"""An ErrorInfo as JSON. Defaults are left out."""


def view_of(view: type[T], source: Struct, /, **fields: Any) -> T:
    """Make a `view` with the fields that `source` has under the same name; `fields` are the others, and come first."""
    names, values_of = _shared(view, type(source), tuple(fields))
    return view(**dict(zip(names, values_of(source), strict=True)), **fields)


@cache
def _shared(
    view: type[Struct], source: type[Struct], others: tuple[str, ...]
) -> tuple[tuple[str, ...], Callable[[Struct], tuple[Any, ...]]]:
    """Return the names of the fields that both have, but `others`, and what reads them."""
    names = tuple(name for name in view.__struct_fields__ if name in source.__struct_fields__ and name not in others)
    if len(names) > 1:
        return names, attrgetter(*names)
    return names, lambda one: tuple(getattr(one, name) for name in names)


class SavedWorkflow(Struct, frozen=True):
    """The active version. `created`: it is new. `activated`: it was not active before; `replaced` is the version that
    was."""

    name: str
    version: int
    hash: str
    created: bool
    diagnostics: tuple[Diagnostic, ...]
    activated: bool
    replaced: int | None


class Submitted(Struct, frozen=True):
    """`created` False: the idempotency key was used before, this is that run."""

    run: str
    workflow: str
    version: int | None
    status: RunStatus
    created: bool
    diagnostics: tuple[Diagnostic, ...] = ()


class SpentView(Struct, frozen=True):
    """`calls`: steps that used something. Tokens of caches are part of the input tokens, those of reasoning part of the
    output tokens. `cost`: US dollars as decimal text, null if no price is known; `unpriced`: calls that it is without,
    because their price is not known."""

    key: str
    calls: int
    unpriced: int
    input_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost: str | None


class UsageView(Struct, frozen=True):
    """`total` has an empty key, the key of each of `items` is a day, a workflow or a model. `prices`: the price lists
    by which `cost` was computed."""

    total: SpentView
    items: list[SpentView]
    prices: list[str]
    currency: str = "USD"


class NodeView(Struct, frozen=True, omit_defaults=True, gc=False):
    """One node key of a run that has started, waits or was skipped. needs_attention: an attempt was lost, and a wait
    asks how to continue. `lost`: attempts that ended with their process. `cached`: the output comes from the cache.
    `child`: the run that its last attempt started. `output_truncated`: the view has no room for its output, which has
    `output_size` bytes; NodeDetail has it. `steps`: how many its handler began; `usage`, `cost` (US dollars): of all of
    them that this run has paid for, and `reused_usage`, `reused_cost` of those that another has; `unpriced`: how
    many of them used something whose price is not known, and is not in `cost`."""

    key: str
    node: str
    block: str
    path: str
    status: Status
    attempt: int
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    route: str | None = None
    reason: str | None = None
    error: ErrorJson | None = None
    output: Any = None
    lost: int = 0
    cached: bool = False
    child: str | None = None
    output_size: int | None = None
    output_truncated: bool = False
    steps: int = 0
    usage: dict[str, int] | None = None
    cost: float | None = None
    unpriced: int = 0
    reused_usage: dict[str, int] | None = None
    reused_cost: float | None = None


class NotificationView(Struct, frozen=True, omit_defaults=True):
    """One message about a wait. `to`: addresses, or the server a request is sent to; `error`: why it could not be sent
    (so far, while it is pending); `due_at_ms`: when a pending message is tried next. `reminder`: it is sent some time
    before the wait expires."""

    channel: str
    to: str
    status: str
    attempts: int
    reminder: bool = False
    due_at_ms: int | None = None
    settled_at_ms: int | None = None
    error: str | None = None


class WaitShown(Struct, frozen=True, omit_defaults=True):
    """One durable wait, without its link. `label` is the name of the block, or of the durable function; `age_s` is in
    seconds since it opened."""

    run: str
    workflow: str
    id: str
    key: str
    block: str
    label: str
    kind: WaitKind
    status: WaitStatus
    request: Any
    schema: Any
    actions: tuple[str, ...]
    opened_at_ms: int
    expires_at_ms: int | None
    age_s: float
    title: str
    run_status: RunStatus
    name: str | None = None
    correlation: str | None = None
    response: Any = None
    answered_by: str | None = None
    answered_at_ms: int | None = None


class WaitView(WaitShown, frozen=True, omit_defaults=True):
    """A wait with its `link`, which answers it while it is pending; for a callback it is the URL to post to."""

    link: str | None = None
    notifications: tuple[NotificationView, ...] = ()


class SignalView(Struct, frozen=True):
    """A signal sent to a run. `seq` counts the signals of the run from 1; `taken_by`: id of the wait that received it,
    null while it is stored for later."""

    seq: int
    name: str
    correlation: str | None
    payload: Any
    dedupe_key: str | None
    received_at_ms: int
    received_by: str | None
    taken_by: str | None


class ParentView(Struct, frozen=True):
    """The run that started a run, and the node key there that waits for its end."""

    run: str
    key: str


class ChildView(Struct, frozen=True):
    """A run that attempt `attempt` of node key `key` started."""

    run: str
    workflow: str
    version: int | None
    status: RunStatus
    key: str
    attempt: int
    created_at_ms: int
    finished_at_ms: int | None


class LazyNodes(Sequence[NodeView]):
    """The nodes of a run, made when one of them is read first: most callers read the output of a run alone."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], tuple[NodeView, ...]]) -> None:
        self._make = make
        self._made: tuple[NodeView, ...] | None = None

    @property
    def _nodes(self) -> tuple[NodeView, ...]:
        if self._made is None:
            self._made = self._make()
            self._make = tuple  # the other one holds the journal
        return self._made

    @overload
    def __getitem__(self, at: int) -> NodeView: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[NodeView]: ...
    def __getitem__(self, at: int | slice) -> NodeView | Sequence[NodeView]:
        return self._nodes[at]

    def __len__(self) -> int:
        return len(self._nodes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(self._nodes)

    def __repr__(self) -> str:
        return repr(self._nodes)


class RunView(Struct, frozen=True, omit_defaults=True):
    """`status`: queued, running, waiting, succeeded, failed, cancelled. `output`, `response`: after it has finished.
    `failed_nodes`: keys of those in `nodes` that failed; in a run that succeeded, their errors were handled.
    `children`: newest first. `child_waits`: open waits of runs below it, each with the id of its run;
    `children_active`: runs below it that are running or due. `unread`: answers, signals, results of child runs and
    requests that a waiting run has received but not processed. `usage`: usage and cost of its steps and those of all
    runs below it, by model; steps reused from another run count for that one alone. `by`: who started it,
    `user:ada`, `token:ID` or `server-token`, or null for a trigger, another run, or a server without a token.
    `continues`: the run that ended with this one as its next; `continued_as`: the run that continues this one. `stale`:
    its worker stopped responding, and no other one has continued the run yet; `stale_since_ms`: when the lease of that
    worker lapsed. `lacks`: the function or block type that the run waits for, as the process that answers does not
    have it. `state`: what its durable function published last."""

    id: str
    workflow: str
    version: int | None
    status: RunStatus
    input: Any
    output: Any
    error: ErrorJson | None
    seq: int
    created_at_ms: int
    started_at_ms: int | None
    finished_at_ms: int | None
    response: dict[str, Any] | None = None
    variables: dict[str, Any] = {}
    nodes: Sequence[NodeView] = ()
    waits: tuple[WaitView, ...] = ()
    draft_id: str | None = None
    draft_rev: int | None = None
    parent: ParentView | None = None
    children: tuple[ChildView, ...] = ()
    child_waits: tuple[WaitView, ...] = ()
    children_active: int = 0
    unread: int = 0
    usage: UsageView | None = None
    by: str | None = None
    continues: str | None = None
    continued_as: str | None = None
    stale: bool = False
    stale_since_ms: int | None = None
    lacks: str | None = None
    state: Any = None

    @property
    def failed_nodes(self) -> tuple[str, ...]:
        return tuple(node.key for node in self.nodes if node.status == "failed")


class RunEvent(Struct, frozen=True):
    """One event of a run's journal. `key` is the node with its iteration and branch, or None if it is about the run;
    `data["output"]` holds the output of the node, if any."""

    run: str
    seq: int
    at_ms: int
    type: str
    key: str | None
    attempt: int
    data: dict[str, Any]


class AttemptView(Attempt, omit_defaults=True):
    """One attempt of a node key, or (end of a loop) one of its tests. Without an end it has none yet."""

    status: Status
    error: ErrorJson | None = None


class StepView(StepState, omit_defaults=True):
    """Call `n` of `ctx.step` or `ctx.wait` in the handler of a node, as it last began; `times`: how often it began.
    Event `finished_seq` has the output of one that succeeded. lost: it is unknown if it was done. `from_run`: it was
    taken over, and that run has paid for it."""

    status: StepStatus
    error: ErrorJson | None = None


class CheckpointView(Struct, frozen=True):
    """The progress of attempt `attempt`, as its handler reported it. `value` is JSON."""

    attempt: int
    at_ms: int
    value: bytes


class NodeDetail(Struct, frozen=True):
    """The input and output of one attempt of a node key, from the journal up to `seq`.

    status   as in NodeView, or "pending": it has no events yet
    input    JSON of the params with all references filled in; secrets are redacted. A program or an expression is
             {"$code": as written, "values": {reference: value}}. None if it did not start
    input_error  why the references could not be filled in
    output   JSON of its output; of a container's start sentinel {"count": n}
    reused   it is reused from the run that this one was started from
    because  the node whose edge died last, when it was skipped
    checkpoint  the last that one of its attempts kept; it is not an event, so a past moment has none
    """

    run: str
    key: str
    node: str
    block: str
    name: str
    type: str
    path: str
    seq: int
    status: Status | Literal["pending"]
    attempt: int
    attempts: tuple[AttemptView, ...]
    input: bytes | None
    input_error: ErrorJson | None
    output: bytes | None
    error: ErrorJson | None
    route: str | None
    reason: str | None
    because: str | None
    reused: bool
    checkpoint: CheckpointView | None
    steps: tuple[StepView, ...] = ()


class RunDocument(Struct, frozen=True):
    """The document of a run, in weft format (`imported`: its format before). It is `version` of the stored workflow, or
    revision `draft_rev` of a draft, or neither if it was sent with the run."""

    run: str
    workflow: str
    version: int | None
    hash: str
    draft_id: str | None
    draft_rev: int | None
    imported: str | None
    document: dict[str, Any]


class RerunPreview(Struct, frozen=True):
    """Ids of blocks in plan order, including those inside containers: `reused` keep their outputs, `again` can run,
    `skipped` stay skipped."""

    run: str
    start: str = field(name="from")
    reused: tuple[str, ...]
    again: tuple[str, ...]
    skipped: tuple[str, ...]


class GraphNode(Struct, frozen=True, omit_defaults=True):
    """`state`: pending, running, retrying, waiting, needs_attention, succeeded, failed, skipped, cancelled (worst of
    its scopes, with counts)."""

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
    """The nodes and edges of a run's plan with their state."""

    run: str
    plan_hash: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


class Why(Struct, frozen=True):
    """The reasons for the state of a node key: `state` and the unmet conditions in words."""

    key: str
    state: str
    reasons: tuple[str, ...]

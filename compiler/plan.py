"""The plan: the result of a compile. Data only (no closures), so it is stored, hashed, shown and shipped.

Shape. `regions[0]` is the root; every loop and parallel adds one region holding its body. Nodes have plan-wide numbers:
the nodes of region r are `first .. first + len(nodes) - 1`, and an edge's target is a plan-wide number in the same
region.

A container `review` is two nodes of its parent region, `review:start` and `review:end` (the sentinels); the body is the
region that `start.body` and `end.body` name. The edge start -> end carries the handle `out`: it resolves live when the
start sentinel succeeds, after which the end sentinel runs each time the body's open scopes have closed. All edges
that leave the container by `out` leave `review:end`; edges by `error` leave from BOTH sentinels (each resolves once,
so a target counts both), because either may fail. The back edge end -> start is not an edge: it never counts as a
dependency.

A container with a cleanup has a second region, of kind `cleanup`: the blocks after its `finally` handle. It is opened
once, in the scope of the container and beside its body, when the body has ended in any way; then the container leaves
or fails as it would have without it. The root may have one as well (`regions[0].cleanup`), wired to the trigger's
`finally`.

In a body region the entry nodes (those the container's `body` handle points to) have indegree 1: one virtual edge
from the start sentinel, resolved live when a scope opens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

PLAN_VERSION = 1

RegionKind = Literal["root", "loop", "parallel", "cleanup"]
RefKind = Literal["block", "scope", "variable", "input", "env"]
RefMode = Literal["current", "previous", "last"]
OnError = Literal["fail", "continue"]
OnLost = Literal["retry", "ask", "fail"]
OnBranchError = Literal["fail", "continue", "collect"]
RunnerName = Literal["inline", "process", "dask"]
CacheScope = Literal["run", "workflow", "global"]
Effect = Literal["none", "read", "write"]


class Edge(Struct, frozen=True, array_like=True):
    """One out-edge of a node. `target` is a plan-wide node number in the same region."""

    target: int
    handle: str = "out"


class Ref(Struct, frozen=True, omit_defaults=True):
    """A reference found in a param, and its target. `text` is exactly as written, without `<>` or `${}`.

    kind      block     output of node `node` (a plan-wide number; for a container its end sentinel)
              scope     a field of the enclosing container whose body is region `region`: path[0] is index, iteration,
                        item, items, results, or break; or a cleanup, and path[0] is outcome
              variable  workflow variable; path[0] is its name
              input     run input
              env       environment value; path == (NAME,)
    mode      only for blocks. current: this scope (the reader's path cut to the depth of the node's region);
              previous: the same scope one iteration of loop region `region` earlier (null in iteration 0);
              last: read from outside a loop: the last iteration of each loop from the reader's depth down.
    path      fields and list positions below it
    default   JSON text of `?? value`; None without one
    strict    an unknown field is an error (the block declares an output schema) instead of null
    """

    text: str
    kind: RefKind
    node: int = -1
    region: int = -1
    mode: RefMode = "current"
    path: tuple[str | int, ...] = ()
    default: str | None = None
    strict: bool = False


class Retry(Struct, frozen=True, omit_defaults=True):
    """Back-off between the attempts of one node. Times in milliseconds; `max_attempts` counts the first one."""

    max_attempts: int = 1
    backoff: Literal["fixed", "linear", "exponential"] = "exponential"
    initial_ms: int = 1000
    factor: float = 2.0
    max_ms: int = 300_000
    jitter: float = 0.25


class Cache(Struct, frozen=True, omit_defaults=True):
    """When a recorded output replaces a new one: if the scope (run: the same run; workflow: a run of the same workflow,
    and the same block; global: any block of the type), the version, the output schema, and the value of the expression
    `key`, or of all params without one, are equal."""

    key: str | None = None
    version: str = ""
    ttl_ms: int = 604_800_000  # a week
    scope: CacheScope = "workflow"


class Limit(Struct, frozen=True, array_like=True):
    key: str
    at_most: int


class Policy(Struct, frozen=True, omit_defaults=True):
    """The execution policy of a node, all defaults filled in by the compiler. `group` indexes Plan.groups; 0 is "no
    group". `on_lost` applies if the process of an attempt is gone and its progress is unknown; ask: a person decides.
    `on_uncertain` applies if an attempt failed and may have had its effect. `runner` is where it runs, if not in the
    process of the run. `limit` bounds attempts at once over all runs, by a key that may have references. An attempt
    that sends no heartbeat for `heartbeat_timeout_ms` has failed."""

    retry: Retry = Retry()
    timeout_ms: int = 300_000
    on_error: OnError = "fail"
    group: int = 0
    skip_if: str | None = None
    assign: str | None = None
    on_lost: OnLost = "retry"
    cache: Cache | None = None
    runner: RunnerName = "inline"
    limit: Limit | None = None
    heartbeat_timeout_ms: int | None = None
    on_uncertain: Literal["retry", "fail"] = "retry"


class Pin(Struct, frozen=True, omit_defaults=True):
    """An output, as canonical JSON, and a route that stand for those of a node. Its handler does not run."""

    output: Raw
    route: str | None = "out"


class Node(Struct, frozen=True, omit_defaults=True):
    """A block, or a sentinel, inside a plan. `id` is the block id, sentinels add `:start` / `:end`.

    sentinel  None, or the end of a container that this is; `body` is then the index of the body region
    inline    pure control: runs inside the run loop, needs no commit of its own, takes no concurrency slot
    ends_run  when it succeeds the run ends; while it runs no other such node starts
    effect    the effect of a run on the world (`none` and `read` may be repeated freely)
    code      JSON pointers into params whose text is JavaScript: references there are bound, never pasted
    literal   JSON pointers into params: their values are left alone
    needs     every reference in params, skip_if and the keys of cache and limit included, each text once
    output_schema  JSON Schema the output must fit before it is recorded
    """

    id: str
    block: str
    type: str
    name: str
    params: Raw = Raw(b"{}")
    needs: tuple[Ref, ...] = ()
    out: tuple[Edge, ...] = ()
    policy: Policy = Policy()
    sentinel: Literal["start", "end"] | None = None
    body: int = -1
    inline: bool = False
    effect: Effect = "write"
    code: tuple[str, ...] = ()
    literal: tuple[str, ...] = ()
    output_schema: dict[str, Any] | None = None
    ends_run: bool = False
    pin: Pin | None = None


class Region(Struct, frozen=True, omit_defaults=True):
    """The root, the body of a container, or a cleanup. `indegree[i]` counts the in-edges of node `first + i`.

    id         container's block id; "" for the root; a cleanup adds `:finally`
    parent     index of the region that holds the container; -1 for the root, 0 for its cleanup
    entries    plan-wide numbers of the nodes the body starts with (the trigger, for the root)
    ends       plan-wide numbers of the nodes whose outputs are a scope's results, in plan order: those without
               out-edges, or (a body with `results: all`) every node but start sentinels. A container is its end
               sentinel
    may_end    plan-wide numbers of the nodes that count among the ends only when they leave by a handle without an
               edge: they have out-edges, but none by `out`
    limit      parallel: most branches open at one time; loop, cleanup: 1; root: 0
    count      literal number of branches or iterations when the document gives one, else None
    on_branch_error  parallel: the effect of an unhandled failure inside a branch
    start, end  the sentinels; of the root's cleanup both are the trigger
    cleanup    index of the cleanup region; -1 without one
    undoes     of the root's cleanup: number of a node of the root, or -1. It runs only if the run ends while that node
               is under way, and its one node takes over the steps of that node
    single     the result of a scope is the output of its one end, not a list (a body with `results: value`)
    """

    id: str
    kind: RegionKind
    parent: int
    first: int
    nodes: tuple[Node, ...]
    indegree: tuple[int, ...]
    entries: tuple[int, ...]
    ends: tuple[int, ...]
    limit: int = 0
    count: int | None = None
    on_branch_error: OnBranchError = "fail"
    start: int = -1
    end: int = -1
    cleanup: int = -1
    may_end: tuple[int, ...] = ()
    single: bool = False
    undoes: int = -1

    @property
    def all_ends(self) -> tuple[int, ...]:
        """Return `ends` and `may_end`, in plan order."""
        return tuple(sorted((*self.ends, *self.may_end))) if self.may_end else self.ends


class Group(Struct, frozen=True):
    """A named limit shared by the nodes that name it in their policy."""

    name: str
    limit: int


class Rate(Struct, frozen=True, array_like=True):
    key: str
    per_s: float


class Alerts(Struct, frozen=True, omit_defaults=True):
    """Addresses notified about this workflow besides those of the installation, and how long a wait may be open."""

    email: tuple[str, ...] = ()
    webhook: str | None = None
    waiting_ms: int | None = None


class Settings(Struct, frozen=True, omit_defaults=True):
    """Limits of one run, and its place in the queue. Source of the defaults: docs/reference/limits.md. `fair` and keys
    may have references to the input; `fair` None means the name of the workflow."""

    max_concurrency: int = 100
    timeout_ms: int = 86_400_000
    on_failure: Literal["drain", "cancel"] = "drain"
    durability: Literal["strict", "ahead"] = "strict"
    max_executions: int = 10_000
    cleanup_timeout_ms: int = 300_000
    pool: str = "default"
    priority: int = 0
    fair: str | None = None
    limits: tuple[Limit, ...] = ()
    rates: tuple[Rate, ...] = ()
    alerts: Alerts | None = None
    error_workflow: str | None = None


class Plan(Struct, frozen=True, omit_defaults=True, dict=True):
    """See the module text. `groups[0]` is the unlimited group of nodes that name none."""

    name: str
    trigger: str
    regions: tuple[Region, ...]
    groups: tuple[Group, ...] = (Group("", 0),)
    settings: Settings = Settings()
    variables: dict[str, Any] = {}
    input_schema: dict[str, Any] | None = None
    version: int = PLAN_VERSION

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes by their plan-wide number."""
        return tuple(node for region in self.regions for node in region.nodes)

    @cached_property
    def region_of(self) -> tuple[int, ...]:
        """Region index of each node, by plan-wide number."""
        return tuple(r for r, region in enumerate(self.regions) for _ in region.nodes)

    @cached_property
    def has_limits(self) -> bool:
        """True if a block of it may have to wait for others with the same key."""
        return any(node.policy.limit is not None for node in self.nodes)

    @cached_property
    def has_cleanup(self) -> bool:
        """True if something runs after a container, or after the run."""
        return any(region.kind == "cleanup" for region in self.regions)

    @cached_property
    def undone(self) -> tuple[tuple[()], int] | None:
        """The key of the node of which the cleanup of the run undoes the steps."""
        cleanup = self.regions[0].cleanup
        undoes = -1 if cleanup < 0 else self.regions[cleanup].undoes
        return None if undoes < 0 else ((), undoes)

    def in_cleanup(self, path: Iterable[tuple[int, int]]) -> bool:
        return self.has_cleanup and any(self.regions[region].kind == "cleanup" for region, _ in path)

    @cached_property
    def root_ends(self) -> frozenset[int]:
        """The nodes of the root whose output may be that of the run, by plan-wide number."""
        return frozenset(self.regions[0].all_ends)

    @cached_property
    def wired_handles(self) -> dict[int, frozenset[str]]:
        """Return the handles with an edge of each node in a `may_end`, by plan-wide number. The node is no end if it
        leaves by one of them."""
        return {
            number: frozenset(edge.handle for edge in self.nodes[number].out)
            for region in self.regions
            for number in region.may_end
        }

    @cached_property
    def sources(self) -> tuple[tuple[int, ...], ...]:
        """The nodes with an edge to each node, by plan-wide number, each once, in order. For questions about a run;
        running counts edges."""
        found: list[dict[int, None]] = [{} for _ in self.nodes]
        for number, node in enumerate(self.nodes):
            for edge in node.out:
                found[edge.target][number] = None
        return tuple(map(tuple, found))

    @cached_property
    def chains(self) -> tuple[tuple[int, ...], ...]:
        """The regions from below the root down to each region: its scopes' paths, without the indexes."""
        chains: list[tuple[int, ...]] = []
        for number in range(len(self.regions)):
            chain: list[int] = []
            region = number
            while region > 0:
                chain.append(region)
                region = self.regions[region].parent
            chains.append(tuple(reversed(chain)))
        return tuple(chains)

    @cached_property
    def retained(self) -> frozenset[int]:
        """Parallels whose closed branches must stay readable: between a loop and a node that is read one iteration
        later."""
        retained: set[int] = set()
        for node in self.nodes:
            for ref in node.needs:
                if ref.kind == "block" and ref.mode == "previous" and ref.region > 0:
                    below = len(self.chains[ref.region])
                    retained.update(self.chains[self.region_of[ref.node]][below:])
        return frozenset(retained)

    @cached_property
    def hash(self) -> str:
        """sha256 of the canonical bytes: same definition, same hash."""
        return hashlib.sha256(self.encoded).hexdigest()

    @cached_property
    def encoded(self) -> bytes:
        """`encode(self)`, once: every run that is submitted stores or compares it."""
        return encode(self)

    @cached_property
    def _index_by_id(self) -> dict[str, int]:
        return {node.id: number for number, node in enumerate(self.nodes)}

    @cached_property
    def _region_by_id(self) -> dict[str, int]:
        return {region.id: number for number, region in enumerate(self.regions) if number}

    def node(self, number: int) -> Node:
        return self.nodes[number]

    def node_index(self, node_id: str) -> int | None:
        """The plan-wide number of a node id; None when the plan has no such node."""
        return self._index_by_id.get(node_id)

    def region_index(self, container_id: str) -> int | None:
        """The number of a container's body; None when the plan has no such container."""
        return self._region_by_id.get(container_id)


_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(Plan)


def encode(plan: Plan) -> bytes:
    """Canonical JSON bytes: the form that is hashed and stored."""
    return _encoder.encode(plan)


def decode(data: bytes) -> Plan:
    """Inverse of `encode`. Raises msgspec.ValidationError on bytes that are not a plan."""
    return _decoder.decode(data)

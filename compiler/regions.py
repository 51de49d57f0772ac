"""Containers become regions: numbers the nodes, places the sentinels, counts the in-edges.

A container `review` is one block of its parent, and two nodes there, `review:start` and `review:end`, with consecutive
numbers. Nodes of a region are in topological order, ties in document order; regions are numbered from the outside in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw, Struct

from compiler.bind import Places
from compiler.catalog import CONCURRENCY_DEFAULT, LOOP_MAX_DEFAULT, BlockSpec, may_repeat
from compiler.check import literal_count, mode_of, undone_by, whole_number
from compiler.document import BlockDoc, CacheDoc
from compiler.flow import Flow
from compiler.keys import CLEANUP_SUFFIX
from compiler.needs import Needs
from compiler.plan import Cache, Edge, Effect, Limit, Node, OnBranchError, Pin, Policy, Region, Retry
from compiler.wiring import ERROR, OUT, ROOT, Wiring

# Params a sentinel gets: what its mode uses, no more.
_START = {
    "for": ("count", "max"),
    "each": ("items", "max"),
    "while": ("condition", "max"),
    "until": ("max",),
    "do_while": ("max",),
    "count": ("count",),
}
_END = {"while": ("condition", "max"), "until": ("condition", "max"), "do_while": ("condition", "max")}


class Layout(Struct, frozen=True):
    """`containers[i]` is the container of region i, ROOT first, `first[i]` its first node, `blocks[i]` its blocks."""

    containers: list[str]
    blocks: list[list[str]]
    first: list[int]
    start: dict[str, int]
    places: Places


def lay_out(wiring: Wiring, flows: Mapping[str, Flow]) -> Layout:
    """Number everything that is reached."""
    containers, blocks, first = [ROOT], [], []
    start: dict[str, int] = {}
    node: dict[str, int] = {}
    number = 0
    for container in containers:  # grows while it is walked
        order = flows[container].graph.order
        if container + CLEANUP_SUFFIX in wiring.bodies and container == ROOT:
            containers.append(CLEANUP_SUFFIX)
        first.append(number)
        blocks.append(order)
        for block in order:
            start[block] = number
            if block in wiring.bodies:
                containers.append(block)
                if block + CLEANUP_SUFFIX in wiring.bodies:
                    containers.append(block + CLEANUP_SUFFIX)
                number += 1
            node[block] = number
            number += 1
    region = {container: i for i, container in enumerate(containers)}
    return Layout(containers, blocks, first, start, Places(node, region))


def make_regions(
    wiring: Wiring, flows: Mapping[str, Flow], layout: Layout, needs: Mapping[str, Needs]
) -> tuple[Region, ...]:
    """The regions of a plan. Only for a graph without errors."""
    groups = {name: i for i, name in enumerate(wiring.document.settings.groups, 1)}
    regions: list[Region] = []
    for index, container in enumerate(layout.containers):
        flow = flows[container]
        out: dict[str, list[Edge]] = {}
        for edge in flow.edges:
            out.setdefault(edge.source, []).append(Edge(layout.start[edge.target], edge.handle))
        nodes = tuple(
            node
            for block in layout.blocks[index]
            for node in _nodes(wiring, layout, wiring.blocks[block], out.get(block, []), needs[block], groups)
        )
        regions.append(_region(wiring, flow, layout, index, nodes))
    return tuple(regions)


def _region(wiring: Wiring, flow: Flow, layout: Layout, index: int, nodes: tuple[Node, ...]) -> Region:
    container, first = layout.containers[index], layout.first[index]
    indegree = [0] * len(nodes)
    for node in nodes:
        for edge in node.out:
            indegree[edge.target - first] += 1
    entries = tuple(layout.start[block] for block in flow.entries)
    ends = tuple(first + i for i, node in enumerate(nodes) if not node.out)
    may_end = tuple(first + i for i, node in enumerate(nodes) if _may_end(node, _spec(wiring, node.block)))
    cleanup = layout.places.region.get(container + CLEANUP_SUFFIX, -1)
    make = partial(Region, container, first=first, nodes=nodes, entries=entries)
    if container == ROOT:
        degrees = tuple(indegree)
        return make(kind="root", parent=-1, indegree=degrees, ends=ends, cleanup=cleanup, may_end=may_end)
    for entry in entries:
        indegree[entry - first] += 1  # the virtual edge from the start sentinel
    degrees, parent = tuple(indegree), layout.places.region[wiring.parent[container]]
    if container.endswith(CLEANUP_SUFFIX):
        around = container.removesuffix(CLEANUP_SUFFIX) or wiring.trigger
        assert around is not None, "only a trigger has the cleanup of a run"
        start, end = layout.start[around], layout.places.node[around]
        undone = undone_by(wiring, layout.blocks[index][0])
        undoes = -1 if undone is None else layout.places.node[undone]
        return make(
            kind="cleanup", parent=parent, indegree=degrees, ends=ends, limit=1, start=start, end=end, undoes=undoes
        )
    block, kind = wiring.blocks[container], _spec(wiring, container).container
    assert kind is not None, "only containers have bodies"
    params = block.params
    every = params.get("results") == "all"
    if every:
        ends, may_end = tuple(first + i for i, node in enumerate(nodes) if node.sentinel != "start"), ()
    on_branch_error: OnBranchError = "fail"
    if kind == "parallel":
        # As the constant: msgspec leaves out what is the default itself, not what is equal to it.
        on_branch_error = msgspec.convert(params.get("on_branch_error") or "fail", OnBranchError)
    return make(
        kind=kind,
        parent=parent,
        indegree=degrees,
        ends=ends,
        limit=1 if kind == "loop" else whole_number(params.get("concurrency")) or CONCURRENCY_DEFAULT,
        count=literal_count(kind, params),
        on_branch_error=on_branch_error,
        start=layout.start[container],
        end=layout.places.node[container],
        cleanup=cleanup,
        may_end=may_end,
        single=params.get("results") == "value",
    )


def _may_end(node: Node, spec: BlockSpec) -> bool:
    """Blocks that only choose a way are not ends where the way that they choose is not connected: all that they put
    out is the choice."""
    only_chooses = spec.cases is not None and OUT not in spec.handles
    return bool(node.out) and not only_chooses and all(edge.handle != OUT for edge in node.out)


def _nodes(
    wiring: Wiring, layout: Layout, block: BlockDoc, out: list[Edge], needs: Needs, groups: Mapping[str, int]
) -> Iterator[Node]:
    spec = _spec(wiring, block.id)
    if spec.container:
        yield from _sentinels(layout, block, spec.container, out, needs)
        return
    if block.pin is not None:
        pin = Pin(Raw(msgspec.json.encode(block.pin.output, order="deterministic")), block.pin.route)
        policy = Policy(assign=block.assign)
        yield Node(
            block.id, block.id, block.type, block.name, out=tuple(out), policy=policy, inline=spec.inline,
            effect="none", output_schema=block.output_schema, pin=pin,
        )  # fmt: skip
        return
    yield Node(
        id=block.id,
        block=block.id,
        type=block.type,
        name=block.name,
        params=Raw(msgspec.json.encode(block.params)),
        needs=needs.of(block.params),
        out=tuple(out),
        policy=_policy(block, spec, _group(wiring, block, groups)),
        inline=spec.inline,
        ends_run=spec.ends_run and spec.inline,
        effect=_effect(block, spec),
        code=needs.code_in(block.params),
        literal=tuple(needs.literal),
        output_schema=block.output_schema,
    )


def _sentinels(layout: Layout, block: BlockDoc, kind: str, out: list[Edge], needs: Needs) -> Iterator[Node]:
    mode = mode_of(kind, block.params)
    common: dict[str, Any] = {"mode": mode}
    bound: dict[str, Any] = {}
    if kind == "loop":
        bound["max"] = LOOP_MAX_DEFAULT if block.params.get("max") is None else block.params["max"]
        common["on_max"] = block.params.get("on_max") or "fail"
    body = layout.places.region[block.id]
    end = layout.places.node[block.id]
    errors = [edge for edge in out if edge.handle == ERROR]
    # Quick and pure: a second attempt would give the same result.
    policy = Policy(retry=Retry(), on_error=block.policy.on_error or "fail")
    policies = {
        "start": msgspec.structs.replace(policy, skip_if=_skip_if(block)),
        "end": msgspec.structs.replace(policy, assign=block.assign),
    }
    for which, names, edges in (
        ("start", _START.get(mode, ()), [Edge(end, OUT), *errors]),
        ("end", _END.get(mode, ()), out),
    ):
        available = {**block.params, **bound}
        wanted = (*names, *(bound if which == "end" else ()))
        params = common | {name: available[name] for name in wanted if name in available}
        yield Node(
            id=f"{block.id}:{which}",
            block=block.id,
            type=f"{kind}:{which}",
            name=block.name,
            params=Raw(msgspec.json.encode(params)),
            needs=needs.of(params, with_skip_if=which == "start"),
            out=tuple(edges),
            policy=policies[which],
            sentinel="start" if which == "start" else "end",
            body=body,
            inline=True,
            effect="none",
            code=needs.code_in(params),
        )


def _group(wiring: Wiring, block: BlockDoc, groups: Mapping[str, int]) -> int:
    at = block
    while at.policy.group is None and wiring.around(at.id) != ROOT:
        at = wiring.blocks[wiring.around(at.id)]
    return groups.get(at.policy.group or "", 0)


def _skip_if(block: BlockDoc) -> str | None:
    text = block.policy.skip_if
    return text if text and text.strip() else None


def _policy(block: BlockDoc, spec: BlockSpec, group: int) -> Policy:
    doc = block.policy
    retry = Retry(max_attempts=spec.attempts)
    if doc.retry is not None:
        r = doc.retry
        attempts = spec.attempts if r.max_attempts is None else r.max_attempts
        retry = Retry(attempts, r.backoff, r.initial_ms, r.factor, r.max_ms, r.jitter)
    repeats = may_repeat(spec, block.params)
    return Policy(
        retry=retry,
        timeout_ms=spec.timeout_ms if doc.timeout_s is None else max(1, round(doc.timeout_s * 1000)),
        on_error=doc.on_error or "fail",
        group=0 if spec.inline else group,
        skip_if=_skip_if(block),
        assign=block.assign,
        cache=cache_of(doc.cache) if doc.cache is not None else None,
        on_lost=doc.on_lost or ("retry" if repeats else "ask"),
        on_uncertain="retry" if repeats or doc.retry is not None or doc.on_lost == "retry" else "fail",
        runner=doc.runner or "inline",
        limit=None if doc.limit is None or spec.inline or spec.container else Limit(doc.limit.key, doc.limit.at_most),
        heartbeat_timeout_ms=doc.heartbeat_timeout_ms or spec.heartbeat_timeout_ms,
    )


def _effect(block: BlockDoc, spec: BlockSpec) -> Effect:
    """Requests keep the effect of their type, whatever they ask for, so that plans of before stay the same."""
    always_write = spec.idempotent or spec.repeatable is not None
    if not always_write and spec.only_reads is not None and spec.only_reads(block.params):
        return "read"
    return spec.effect


def cache_of(doc: CacheDoc) -> Cache:
    ttl_ms = Cache().ttl_ms if doc.ttl_s is None else max(1, round(doc.ttl_s * 1000))
    return Cache(doc.key if doc.key and doc.key.strip() else None, str(doc.version), ttl_ms, doc.scope)


def _spec(wiring: Wiring, block: str) -> BlockSpec:
    spec = wiring.specs[block]
    assert spec is not None, "blocks of unknown type are errors"
    return spec

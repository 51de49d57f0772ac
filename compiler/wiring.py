"""Blocks and edges as a graph: enabled blocks, containers, valid edges, and the blocks that the trigger reaches.

Wrong parts are reported and left out, so that later steps see a sound graph: every edge joins two blocks of one
container (or is a container's `body` or `finally` edge to a child), and containers form a tree.

The blocks that the `finally` handle of a container leads to are a container of their own from here on, beside it:
`review:finally`. So are those after the `finally` handle of the trigger, the cleanup of the run: `:finally`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from msgspec import Struct

from compiler.catalog import BlockSpec, Catalog
from compiler.diagnostics import Report, suggest
from compiler.document import BlockDoc, Document, EdgeDoc, Limits
from compiler.graph import Graph, reach
from compiler.keys import CLEANUP_SUFFIX
from compiler.references import escape

ROOT = ""  # the container of blocks that have none
BODY = "body"
ERROR = "error"
OUT = "out"
FINALLY = "finally"


class Wiring(Struct):
    """Blocks and edges as a graph. `blocks`: enabled ones, in document order. `children` and `edges` by container id,
    ROOT for the outermost; `bodies`: first blocks of each container, each once. `cleanups`: the blocks after the
    `finally` handles of containers and triggers, by block. `reached`: the blocks that the trigger reaches, containers'
    bodies included."""

    document: Document
    specs: dict[str, BlockSpec | None]
    blocks: dict[str, BlockDoc]
    parent: dict[str, str]
    children: dict[str, list[str]]
    edges: dict[str, list[EdgeDoc]]
    bodies: dict[str, list[str]]
    cleanups: dict[str, list[str]] = {}
    trigger: str | None = None
    reached: set[str] = set()

    def called(self, block_id: str) -> str:
        """The block's name for people: `HTTP request "Fetch"`, for findings."""
        return called(self.document.blocks[block_id], self.specs[block_id])

    def kind(self, container: str) -> str | None:
        spec = self.specs.get(container)
        return spec.container if spec is not None else None

    def above(self, block_id: str) -> Iterator[str]:
        """Containers around a block, innermost first, without ROOT."""
        at = self.parent[block_id]
        while at != ROOT:
            yield at
            at = self.parent[at]

    def around(self, block_id: str) -> str:
        """The container block that it lies in, in its body or its cleanup; ROOT."""
        return self.parent[block_id].removesuffix(CLEANUP_SUFFIX)


def called(block: BlockDoc, spec: BlockSpec | None) -> str:
    title = spec.title if spec is not None else "Block"
    return f'"{block.name[:80]}"' if block.name == title else f'{title} "{block.name[:80]}"'


def wire(document: Document, catalog: Catalog, limits: Limits, report: Report) -> Wiring:
    """See the module text. The trigger is chosen by `choose_trigger`."""
    types = {block.type for block in document.blocks.values()}
    by_type = {name: catalog.get(name) for name in types}
    specs = {block_id: by_type[block.type] for block_id, block in document.blocks.items()}
    parent, dropped = _containment(document.blocks, specs, limits, report)
    blocks: dict[str, BlockDoc] = {}
    children: dict[str, list[str]] = {ROOT: []}
    for block_id, block in document.blocks.items():
        spec = specs[block_id]
        if block_id in dropped or (spec is not None and spec.category == "annotation"):
            continue
        blocks[block_id] = block
        children.setdefault(parent[block_id], []).append(block_id)
        if spec is not None and spec.container:
            children.setdefault(block_id, [])
    wiring = Wiring(
        document,
        specs,
        blocks,
        parent,
        children,
        edges={container: [] for container in children},
        bodies={container: [] for container in children if container != ROOT},
    )
    _edges(wiring, dropped, report)
    for container, targets in wiring.cleanups.items():
        if container in wiring.bodies:
            _set_apart(wiring, container, wiring.bodies[container], targets, report)
    return wiring


def _set_apart(wiring: Wiring, container: str, starts: list[str], targets: list[str], report: Report) -> None:
    """Make a container of the cleanup: what `targets` lead to, and `starts` do not."""
    graph = Graph(wiring.children[container], [(edge.source, edge.target) for edge in wiring.edges[container]])
    normal = graph.reach(starts)
    after = graph.reach(targets)
    for block in targets:
        if block in normal or any(other in normal for other in graph.reach([block])):
            shared = next(other for other in wiring.children[container] if other in normal and other in after)
            message = f"{wiring.called(shared)} would run both in the cleanup and before it."
            report.add("cleanup_shared", f"/blocks/{escape(shared)}", message, block=shared)
            break
    after -= normal
    apart = container + CLEANUP_SUFFIX
    wiring.specs[apart] = None
    wiring.parent[apart] = ROOT if container == ROOT else wiring.parent[container]
    wiring.children[apart] = [block for block in wiring.children[container] if block in after]
    wiring.children[container] = [block for block in wiring.children[container] if block not in after]
    wiring.parent.update(dict.fromkeys(after, apart))
    inner = (block + CLEANUP_SUFFIX for block in after)
    wiring.parent.update((cleanup, apart) for cleanup in inner if cleanup in wiring.parent)
    edges = wiring.edges[container]
    wiring.edges[apart] = [edge for edge in edges if edge.source in after and edge.target in after]
    wiring.edges[container] = [edge for edge in edges if edge.source not in after and edge.target not in after]
    wiring.bodies[apart] = [block for block in targets if block in after]


def too_many_triggers(wiring: Wiring, limits: Limits, report: Report) -> bool:
    """Report too many triggers and return True: checking every one of them would take too long."""
    triggers = [block_id for block_id in wiring.blocks if (spec := wiring.specs[block_id]) is not None and spec.trigger]
    most = limits.trigger_blocks // max(1, len(wiring.blocks))
    if len(triggers) <= max(1, most):
        return False
    message = (
        f"The document has {len(triggers):,} triggers and {len(wiring.blocks):,} blocks. "
        f"The limit of triggers times blocks is {limits.trigger_blocks:,}."
    )
    report.add("too_many_triggers", "/blocks", message)
    return True


def choose_trigger(wiring: Wiring, wanted: str | None, report: Report) -> None:
    """Set `trigger` and `reached`, all blocks without a trigger; report blocks that no trigger leads to."""
    triggers: list[str] = []
    for block_id in wiring.blocks:
        spec = wiring.specs[block_id]
        if spec is None or not spec.trigger:
            continue
        if wiring.parent[block_id] != ROOT:
            message = f"{wiring.called(block_id)} is a trigger and cannot be inside a container."
            report.add("trigger_in_container", f"/blocks/{escape(block_id)}/parent", message, block=block_id)
        else:
            triggers.append(block_id)
    wiring.trigger = _chosen(wiring, triggers, wanted, report)
    if wiring.trigger is not None and (targets := wiring.cleanups.get(wiring.trigger)):
        _set_apart(wiring, ROOT, [wiring.trigger], targets, report)
    graph = Graph(wiring.children[ROOT], [(e.source, e.target) for e in wiring.edges[ROOT]])
    wiring.reached = _reach(wiring, graph, [wiring.trigger]) if wiring.trigger else set(wiring.blocks)
    if triggers:
        _unreachable(wiring, _reach(wiring, graph, triggers), triggers, report)


def handles_of(spec: BlockSpec, params: Mapping[str, object]) -> tuple[str, ...]:
    """All handles a block with these params has."""
    if spec.container:
        return (BODY, OUT, ERROR, FINALLY)
    named = tuple(case.id for case in spec.cases(params)) if spec.cases else ()
    return (*spec.handles, *named, FINALLY) if spec.trigger else (*spec.handles, *named, ERROR)


def _containment(
    blocks: Mapping[str, BlockDoc], specs: Mapping[str, BlockSpec | None], limits: Limits, report: Report
) -> tuple[dict[str, str], set[str]]:
    """Return the container of each block, and the blocks that are left out: disabled ones and their contents, and
    those with no valid place."""
    parent: dict[str, str] = {}
    for block_id, block in blocks.items():
        parent[block_id] = _parent_of(block, blocks, specs, report)
    depth: dict[str, int] = {ROOT: 0}
    off: dict[str, bool] = {ROOT: False}
    for block_id in blocks:
        chain: dict[str, None] = {}
        at = block_id
        while at not in depth and at not in chain:
            chain[at] = None
            at = parent[at]
        if at not in depth:
            names = " in ".join(called(blocks[name], specs[name]) for name in [*chain][:5])
            message = f"Containers are inside each other: {names}."
            report.add("parent_cycle", f"/blocks/{escape(block_id)}/parent", message, block=block_id)
            depth.update(dict.fromkeys(chain, 1))
            off.update(dict.fromkeys(chain, True))
            continue
        for name in reversed(chain):
            above = parent[name]
            depth[name] = depth[above] + 1
            off[name] = off[above] or not blocks[name].enabled
            if depth[name] == limits.nesting + 2 and not off[name]:
                message = f"{called(blocks[name], specs[name])} is inside more than {limits.nesting} containers."
                report.add("nesting_too_deep", f"/blocks/{escape(name)}/parent", message, block=name)
    return parent, {block_id for block_id in blocks if off[block_id]}


def _parent_of(
    block: BlockDoc, blocks: Mapping[str, BlockDoc], specs: Mapping[str, BlockSpec | None], report: Report
) -> str:
    if block.parent is None or block.parent == "":
        return ROOT
    pointer = f"/blocks/{escape(block.id)}/parent"
    if block.parent not in blocks:
        message = f'{called(block, specs[block.id])} is inside "{block.parent[:140]}", which does not exist.'
        parent = block.parent
        report.add("parent_missing", pointer, message, hint=lambda: suggest(parent, blocks), block=block.id)
        return ROOT
    spec = specs[block.parent]
    if spec is not None and not spec.container:
        inside = called(blocks[block.parent], spec)
        message = f"{called(block, specs[block.id])} is inside {inside}, which is not a container."
        report.add("parent_not_container", pointer, message, block=block.id)
        return ROOT
    return block.parent


def _edges(wiring: Wiring, dropped: set[str], report: Report) -> None:
    seen: set[tuple[str, str, str]] = set()
    handles: dict[str, tuple[str, ...]] = {}
    for edge in wiring.document.edges:
        if not _ends_exist(edge, wiring, report) or edge.source in dropped or edge.target in dropped:
            continue
        if edge.source not in handles:
            spec = wiring.specs[edge.source]
            handles[edge.source] = handles_of(spec, wiring.blocks[edge.source].params) if spec else ()
        if not _edge_is_good(edge, handles[edge.source], wiring, report):
            continue
        key = (edge.source, edge.handle, edge.target)
        is_body = edge.handle == BODY and wiring.parent[edge.target] == edge.source
        is_cleanup = edge.handle == FINALLY
        if key in seen:
            message = (
                f"{wiring.called(edge.source)} and {wiring.called(edge.target)} are connected twice from handle "
                f'"{edge.handle}".'
            )
            report.add("edge_duplicate", f"/edges/{edge.index}", message)
            if is_body or is_cleanup:
                continue
        seen.add(key)
        if is_body:
            wiring.bodies[edge.source].append(edge.target)
        elif is_cleanup:
            wiring.cleanups.setdefault(edge.source, []).append(edge.target)
        else:
            wiring.edges.setdefault(wiring.parent[edge.source], []).append(edge)


def _ends_exist(edge: EdgeDoc, wiring: Wiring, report: Report) -> bool:
    good = True
    for field, name in (("source", edge.source), ("target", edge.target)):
        if name not in wiring.document.blocks:
            message = f'The {field} of a connection is block "{name[:140]}", which does not exist.'
            report.add(
                f"edge_{field}_missing",
                f"/edges/{edge.index}/{field}",
                message,
                hint=partial(suggest, name, wiring.document.blocks),
                field=field,
            )
            good = False
            continue
        spec = wiring.specs[name]
        if spec is not None and spec.category == "annotation":
            message = f"{wiring.called(name)} cannot be connected because it does not run."
            report.add("edge_to_note", f"/edges/{edge.index}/{field}", message, block=name, field=field)
            good = False
    return good


def _edge_is_good(edge: EdgeDoc, handles: tuple[str, ...], wiring: Wiring, report: Report) -> bool:
    source, target = edge.source, edge.target
    pointer = f"/edges/{edge.index}"
    target_spec = wiring.specs[target]
    if target_spec is not None and target_spec.trigger:
        message = f"{wiring.called(target)} is a trigger and cannot have an incoming connection."
        report.add("trigger_has_input", pointer, message, block=target)
        return False
    if handles and edge.handle not in handles:
        has = ", ".join(handles[:12])
        message = f'{wiring.called(source)} has no handle "{edge.handle[:80]}".'
        report.add(
            "edge_handle_unknown",
            f"{pointer}/handle",
            message,
            hint=lambda: suggest(edge.handle, handles) or f"Its handles are {has}.",
            block=source,
            field="handle",
        )
        return False
    inside, outside = wiring.parent[source], wiring.parent[target]
    spec = wiring.specs[source]
    from_body = edge.handle in (BODY, FINALLY) and spec is not None and spec.container is not None
    if (outside == source) if from_body else (inside == outside):
        return True
    if from_body:
        which = "body" if edge.handle == BODY else "cleanup"
        message = (
            f"{wiring.called(target)} is connected to the {which} of {wiring.called(source)} but is not inside it."
        )
        hint = "Drag it into the container, or connect it from the out handle."
    else:
        message = f"The connection from {wiring.called(source)} to {wiring.called(target)} crosses a container."
        hint = "Connect it from the body handle." if outside == source else ""
    report.add("edge_crosses_border", pointer, message, hint=hint, block=source)
    return False


def _chosen(wiring: Wiring, triggers: list[str], wanted: str | None, report: Report) -> str | None:
    if wanted is not None:
        if wanted in triggers:
            return wanted
        known = f"The triggers are {', '.join(triggers[:8])}." if triggers else ""
        if wanted in wiring.blocks:
            message = f"{wiring.called(wanted)} is not a trigger."
        else:
            message = f'There is no trigger "{wanted[:140]}".'
        report.add("trigger_unknown", "", message, hint=suggest(wanted, triggers) or known)
        return None
    if not triggers:
        report.add("trigger_missing", "/blocks", "The workflow has no trigger.")
        return None
    preferred = [id for id in triggers if (spec := wiring.specs[id]) is not None and spec.preferred]
    chosen = (preferred or triggers)[0]
    if len(preferred or triggers) > 1:
        others = ", ".join(wiring.called(other) for other in [other for other in triggers if other != chosen][:5])
        message = f"The workflow has several triggers. {wiring.called(chosen)} starts the run, not {others}."
        report.add("trigger_several", "", message, hint="Choose the trigger when you start the run.", block=chosen)
    return chosen


def _reach(wiring: Wiring, root: Graph, triggers: list[str]) -> set[str]:
    reached: set[str] = set()
    open_graphs = [(root, triggers)]

    def open_container(container: str) -> None:
        edges = [(e.source, e.target) for e in wiring.edges[container]]
        open_graphs.append((Graph(wiring.children[container], edges), wiring.bodies[container]))

    if CLEANUP_SUFFIX in wiring.bodies:
        open_container(CLEANUP_SUFFIX)
    while open_graphs:
        graph, starts = open_graphs.pop()
        inside = graph.reach(starts)
        reached |= inside
        for block_id in inside:
            for container in (block_id, block_id + CLEANUP_SUFFIX):
                if container in wiring.bodies:
                    open_container(container)
    return reached


def _unreachable(wiring: Wiring, reached: set[str], triggers: list[str], report: Report) -> None:
    """Blocks that only disabled blocks lead to are meant to be off: they vanish without a word."""
    after: dict[str, list[str]] = {}
    for edge in wiring.document.edges:
        after.setdefault(edge.source, []).append(edge.target)
    drawn = reach(after, triggers)
    for block_id in wiring.blocks:
        above = wiring.parent[block_id]
        if block_id in reached or block_id in drawn or not (above == ROOT or above in reached):
            continue
        message = f"{wiring.called(block_id)} is not connected to a trigger."
        report.add("block_unreachable", f"/blocks/{escape(block_id)}", message, block=block_id)

"""Running again from a block: the part that a new run takes over from one that has ended, and the part that it repeats.

A run takes over the outputs and routes of the reused blocks, and their changes of the variables. The new run's journal
begins with those changes, so that it can be read without the old one's.
"""

from __future__ import annotations

from msgspec import Struct

from compiler.keys import NodeKey, parse_path
from compiler.plan import Plan
from executor.errors import Conflict, NotFound
from executor.kernel.core.fork import followers, follows, root_of
from executor.kernel.journal.codec import Codec, data_of
from executor.kernel.journal.given import Continued, kept
from executor.kernel.journal.projection import decision
from executor.kernel.journal.reader import read
from executor.kernel.store.run_rows import Record
from executor.kernel.store.topics.store import Store
from executor.service.views import Rerun


class _Outcomes(Struct):
    """The root nodes of a run, by plan-wide number: the routes of finished ones, and those that were pruned."""

    routes: dict[int, str | None]
    pruned: set[int]


async def reusable(
    store: Store, plan: Plan, run: str, block: str, *, has_new_input: bool = False
) -> dict[int, str | None]:
    """Return the root nodes of `run` that a run from `block` takes over, with the route each took: all finished ones
    except the block and its followers, and questions whose answer is not valid there. A container is taken over whole
    or not at all. Raises NotFound, Conflict (inside_container, answer_not_carried)."""
    again = followers(plan, _root_node(plan, block))
    return await _taken_over(store, plan, run, (await _outcomes(store, plan, run)).routes, again, has_new_input)


async def _taken_over(
    store: Store, plan: Plan, run: str, routes: dict[int, str | None], again: set[int], has_new_input: bool = False
) -> dict[int, str | None]:
    usable = _usable_routes(plan, routes, again)
    writes = [plan.node_index(record.node or "") async for record in read(store, run, types=("variables.patched",))]
    writes_again = any(number is not None and root_of(plan, number) in again for number in writes)
    return await kept(store, plan, run, usable, Continued(again, has_new_input, writes_again))


async def patches(store: Store, plan: Plan, run: str, reuse: dict[int, str | None]) -> list[Record]:
    """Return the changes of variables by the nodes that are taken over, those inside containers included, in order."""
    found: list[Record] = []
    async for record in read(store, run, types=("variables.patched",)):
        number = plan.node_index(record.node or "")
        if number is not None and root_of(plan, number) in reuse:
            found.append(record)
    return found


async def preview(store: Store, plan: Plan, run: str, block: str) -> Rerun:
    """Apply `reusable` to all blocks. Raises the same."""
    again = followers(plan, _root_node(plan, block))
    outcomes = await _outcomes(store, plan, run)
    reused = await _taken_over(store, plan, run, outcomes.routes, again)
    fate: dict[str, str] = {}
    for number, node in enumerate(plan.nodes):
        outer = root_of(plan, number)
        if outer in reused:
            what = "reused"
        elif outer in outcomes.pruned and outer not in again:
            what = "skipped"
        else:
            what = "again"
        # A container has two nodes; either of them that runs again is the container running again.
        if fate.get(node.block) != "again":
            fate[node.block] = what
    reused_blocks, again_blocks, skipped_blocks = (
        tuple(block for block, what in fate.items() if what == wanted) for wanted in ("reused", "again", "skipped")
    )
    return Rerun(run, block, reused_blocks, again_blocks, skipped_blocks)


async def alone_again(store: Store, plan: Plan, run: str, key: NodeKey) -> tuple[int, bool] | None:
    """Return the event by which node `key` first started, and True if all later work follows from the node: then
    continuing from just before it loses nothing else. Returns None if it never started."""
    codec = Codec(plan)
    node, path = plan.nodes[key[1]].id, codec.path_text(key[0])
    started: int | None = None
    async for record in read(store, run):
        if started is None:
            if record.type == "node.started" and (record.node, record.path) == (node, path):
                started = record.seq
        elif record.node is not None and _is_work(record):
            number = plan.node_index(record.node)
            assert number is not None, "the journal fits its plan"
            if not follows(plan, key, (parse_path(plan, record.path), number)):
                return started, False
    return None if started is None else (started, True)


def outermost_block(plan: Plan, key: NodeKey) -> str:
    """Return the block at the root that the node is, or lies in."""
    return plan.nodes[root_of(plan, key[1])].block


def _is_work(record: Record) -> bool:
    """Return True if continuing from before this record would repeat work, or leave it out."""
    if record.type in ("scope.opened", "variables.patched"):
        return True
    data = data_of(record)
    decided = decision(record.type, data)
    return decided.leads_on if decided is not None else record.type == "wait.closed" and data["outcome"] != "cancelled"


def _root_node(plan: Plan, block: str) -> int:
    number = plan.node_index(block)
    if number is None:
        number = plan.node_index(f"{block}:start")
    if number is None:
        raise NotFound(f"the workflow has no block '{block}'", code="node_not_found")
    region = plan.regions[plan.region_of[number]]
    if region.kind != "root":
        outermost = plan.nodes[root_of(plan, number)].block
        raise Conflict(
            f"block '{block}' is inside {region.kind} '{region.id}': a container runs as a whole",
            code="inside_container",
            hint=f"run from '{outermost}' instead",
            container=outermost,
        )
    return number


def _usable_routes(plan: Plan, routes: dict[int, str | None], again: set[int]) -> dict[int, str | None]:
    """Drop containers without an end: they were left in the middle, and taking over the start alone would lose their
    work."""
    usable = {number: route for number, route in routes.items() if number not in again}
    for region in plan.regions[1:]:
        if region.parent == 0 and usable.get(region.start) != "error" and region.end not in usable:
            usable.pop(region.start, None)
    return usable


async def _outcomes(store: Store, plan: Plan, run: str) -> _Outcomes:
    outcomes = _Outcomes({}, set())
    async for record in read(store, run):
        number = plan.node_index(record.node) if record.node and not record.path else None
        decided = None if number is None else decision(record.type, data_of(record))
        if number is None or decided is None:
            continue
        if decided.leads_on:
            outcomes.routes[number] = decided.route
        elif decided.status == "skipped":
            outcomes.pruned.add(number)
    return outcomes

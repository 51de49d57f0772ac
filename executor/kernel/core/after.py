"""Decides which nodes of a plan run after which, by its edges and by the contents of its containers."""

from __future__ import annotations

from compiler.keys import NodeKey
from compiler.plan import Plan


def root_of(plan: Plan, number: int) -> int:
    """Return the node itself, or the start sentinel of the outermost container around it."""
    region = plan.region_of[number]
    while region > 0:
        number = plan.regions[region].start
        region = plan.regions[region].parent
    return number


def followers(plan: Plan, number: int) -> set[int]:
    """Return the node and all that its edges lead to."""
    found = {number}
    todo = [number]
    while todo:
        for edge in plan.nodes[todo.pop()].out:
            if edge.target not in found:
                found.add(edge.target)
                todo.append(edge.target)
    return found


def follows(plan: Plan, key: NodeKey, other: NodeKey) -> bool:
    """Returns True if `other` is `key`, or runs only after it: later in its scope, in a later iteration of a loop
    around it, or after a container around it."""
    (path, number), (other_path, other_number) = key, other
    depth = 0
    while depth < min(len(path), len(other_path)) and path[depth] == other_path[depth]:
        depth += 1
    inside = depth < len(path)
    if inside and depth < len(other_path) and path[depth][0] == other_path[depth][0]:
        return plan.regions[path[depth][0]].kind == "loop" and other_path[depth][1] > path[depth][1]
    here = plan.regions[path[depth][0]].end if inside else number
    there = plan.regions[other_path[depth][0]].start if depth < len(other_path) else other_number
    # Before the end of the container there is its start, which opens the iterations and branches that follow.
    return there in followers(plan, here) or (inside and there == plan.regions[path[depth][0]].start)


def before(plan: Plan, number: int) -> set[int]:
    """Return all nodes whose output may be there when this one runs: those with a way to it, what is in containers
    among them, and the same for each container around it, with the body of a loop as a whole. Without the node."""
    found: set[int] = set()
    at = number
    while True:
        todo = [at]
        while todo:
            for source in plan.sources[todo.pop()]:
                if source not in found:
                    found.add(source)
                    todo.append(source)
        region = plan.region_of[at]
        if region <= 0:
            break
        if plan.regions[region].kind == "loop":
            found.update(_within(plan, region))
        at = plan.regions[region].start
        found.add(at)
    for node in tuple(found):
        if plan.nodes[node].sentinel == "end":
            found.update(_within(plan, plan.nodes[node].body))
    return found - {number}


def _within(plan: Plan, region: int) -> set[int]:
    """Return the nodes in a region, at any depth."""
    inside = {number for number, chain in enumerate(plan.chains) if region in chain}
    return {number for number, home in enumerate(plan.region_of) if home in inside}

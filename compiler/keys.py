"""Node keys: which node, in which iteration and branch. Their text, `send@review#5/fan[2]`, is parsed only here.

A *path* is the chain of open scopes from the root: `((region, index), ...)`; `()` is the root scope. `index` is the
iteration of a loop or the branch of a parallel. A *key* is `(path, node)`, `node` being the plan-wide node number.

Text: `node` at the root; `node@loop#3` in iteration 3 of a loop, `node@fan[2]` in branch 2 of a parallel; nested scopes
are joined with `/`, outermost first. A cleanup is named without a number: `close@review:finally`, `close@:finally`. The
id of a wait is the text of its key, `!` and the number of the attempt. Node and container ids may hold `[A-Za-z0-9_.-]`
(sentinels add `:`), so none of `@ # / [ ] !` can be part of an id."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compiler.plan import Plan

Path = tuple[tuple[int, int], ...]
NodeKey = tuple[Path, int]

ROOT: Path = ()
# After the id of a container; the root has none before it. No block id ends like this.
CLEANUP_SUFFIX = ":finally"


def format_path(plan: Plan, path: Path) -> str:
    """`((1, 5), (2, 2))` -> `review#5/fan[2]`; the root is the empty text."""
    parts: list[str] = []
    for region_index, index in path:
        region = plan.regions[region_index]
        if region.kind == "cleanup":
            parts.append(region.id)
        else:
            parts.append(f"{region.id}#{index}" if region.kind == "loop" else f"{region.id}[{index}]")
    return "/".join(parts)


def format_key(plan: Plan, key: NodeKey) -> str:
    """The text of a node key, `send@review#5/fan[2]`; `split_key` and `parse_key` read it."""
    path, node = key
    return join_key(plan.node(node).id, format_path(plan, path))


def join_key(node: str, path: str) -> str:
    """Return the text of a key from the id of its node and the text of its path, as they are in a row."""
    return f"{node}@{path}" if path else node


def split_key(text: str) -> tuple[str, str]:
    """Inverse of `join_key`; looks into no plan."""
    node, _, path = text.partition("@")
    return node, path


def format_wait(key: str, attempt: int) -> str:
    """The id of the wait that attempt `attempt` of the key opened: `ask@review#2!1`. Unique in its run."""
    return f"{key}!{attempt}"


def parse_wait(id: str) -> tuple[str, int]:
    """Inverse of `format_wait`. Raises ValueError."""
    key, _, attempt = id.rpartition("!")
    return key, int(attempt)


def parse_path(plan: Plan, text: str) -> Path:
    """Inverse of `format_path`. Raises ValueError, naming the part, when the text names no scope of this plan."""
    if not text:
        return ROOT
    path: list[tuple[int, int]] = []
    for part in text.split("/"):
        if part.endswith(CLEANUP_SUFFIX):
            cleanup = plan.region_index(part)
            if cleanup is None:
                raise ValueError(f"scope {part!r} is not a cleanup of this plan")
            path.append((cleanup, 0))
            continue
        name, sep, number = part.rpartition("#")
        if not sep:
            if not part.endswith("]"):
                raise ValueError(f"scope {part!r} is neither 'loop#n' nor 'parallel[n]'")
            name, sep, number = part[:-1].rpartition("[")
        if not sep or not number.isdecimal():
            raise ValueError(f"scope {part!r} is neither 'loop#n' nor 'parallel[n]'")
        region = plan.region_index(name)
        if region is None:
            raise ValueError(f"scope {part!r} is not a loop or parallel of this plan")
        path.append((region, int(number)))
    return tuple(path)


def parse_key(plan: Plan, text: str) -> NodeKey:
    """Inverse of `format_key`. Raises ValueError when the text is not a node of this plan, or a scope that the node can
    not be in."""
    node_id, scope = split_key(text)
    node = plan.node_index(node_id)
    if node is None:
        raise ValueError(f"{text!r} is not a node of this plan")
    path = parse_path(plan, scope)
    around: list[int] = []
    region = plan.region_of[node]
    while region > 0:
        around.insert(0, region)
        region = plan.regions[region].parent
    if [region for region, _ in path] != around:
        inner = plan.regions[around[-1]] if around else None
        where = f"inside {inner.kind} '{inner.id}'" if inner else "in no loop or parallel"
        raise ValueError(f"{text!r} is not a node of this plan: '{node_id}' is {where}")
    return path, node

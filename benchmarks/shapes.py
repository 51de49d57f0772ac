"""Plans for the benchmarks of the core, made by hand: no compiler between the figure and the thing measured."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal

from compiler.plan import Edge, Node, OnBranchError, Plan, Policy, Region, RegionKind, Retry, Settings

ONCE, TWICE = Retry(), Retry(max_attempts=2)
ENDS: tuple[Literal["start", "end"], ...] = ("start", "end")
SETTINGS = Settings(max_concurrency=1_000_000, max_executions=1_000_000_000)


def node(id: str, out: Sequence[int] = (), retry: Retry = ONCE) -> Node:
    edges = tuple(Edge(target) for target in out)
    return Node(id=id, block=id, type="step", name=id, out=edges, policy=Policy(retry=retry), effect="none")


def graph(name: str, out: Sequence[Sequence[int]]) -> Plan:
    """`out[n]`: the targets of node n. Node 0 is the trigger."""
    indegree = [0] * len(out)
    for targets in out:
        for target in targets:
            indegree[target] += 1
    nodes = tuple(node(f"n{n}", targets) for n, targets in enumerate(out))
    ends = tuple(n for n, targets in enumerate(out) if not targets)
    root = Region("", "root", -1, 0, nodes, tuple(indegree), (0,), ends)
    return Plan(name, "n0", (root,), settings=SETTINGS)


def chain(size: int) -> list[list[int]]:
    return [[n + 1] if n + 1 < size else [] for n in range(size)]


def fan(size: int) -> list[list[int]]:
    """One source, `size` nodes beside each other, one join."""
    return [list(range(1, size + 1)), *([size + 1] for _ in range(size)), []]


def layered(size: int, edges: int, width: int = 100) -> list[list[int]]:
    """Layers of `width` nodes; each has one fixed parent in the layer before and, up to `edges`, others by chance."""
    chance = Random(1)
    out: list[list[int]] = [[] for _ in range(size + 1)]
    for n in range(1, size + 1):
        out[0 if n <= width else n - width].append(n)
    for _ in range(edges - size):
        n = chance.randrange(width + 1, size + 1)
        layer = (n - 1) // width
        out[chance.randrange((layer - 1) * width + 1, layer * width + 1)].append(n)
    return out


def container(kind: RegionKind, body: int = 1, retry: Retry = ONCE, on_branch_error: OnBranchError = "fail") -> Plan:
    """A loop or parallel whose body is a chain of `body` nodes. The number of scopes is the answer to its start."""
    sentinels = tuple(
        Node(
            id=f"c:{end}",
            block="c",
            type=f"{kind}:{end}",
            name="c",
            sentinel=end,
            body=1,
            inline=True,
            effect="none",
            out=(Edge(1),) if end == "start" else (),
        )
        for end in ENDS
    )
    root = Region("", "root", -1, 0, sentinels, (0, 1), (0,), (1,))
    nodes = tuple(node(f"n{n}", [2 + n + 1] if n + 1 < body else [], retry) for n in range(body))
    region = Region(
        "c",
        kind,
        0,
        2,
        nodes,
        (1,) * body,
        (2,),
        (1 + body,),
        1 if kind == "loop" else 1 << 30,
        on_branch_error=on_branch_error,
        start=0,
        end=1,
    )
    return Plan(kind, "c", (root, region), settings=SETTINGS)

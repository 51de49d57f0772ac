"""Small plans made by hand, so that these tests need no compiler."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw

from compiler.plan import Node, Plan, Policy, Ref, Region

Make = Callable[..., Plan]


def node(id: str, params: Any = None, needs: tuple[Ref, ...] = (), **more: Any) -> Node:
    more.setdefault("type", "task")
    more.setdefault("block", id.split(":")[0])
    more.setdefault("name", more["block"].title())
    return Node(id=id, params=Raw(json.dumps(params or {}).encode()), needs=needs, **more)


@pytest.fixture
def make_node() -> Callable[..., Node]:
    return node


@pytest.fixture
def make_plan() -> Make:
    """A plan with only a root; `nested` makes those with containers."""

    def make(*nodes: Node, ends: tuple[int, ...] = (), variables: dict[str, Any] | None = None) -> Plan:
        root = Region("", "root", -1, 0, nodes, (0,) * len(nodes), (0,), ends)
        return Plan("test", "start", (root,), variables=variables or {})

    return make


@pytest.fixture
def nested() -> Callable[..., Plan]:
    """nested("loop", "parallel"): the root holds `s`, `c1:start`, `c1:end`, `z`; the body of c1 holds `a1`, `b1` and
    the next container; the innermost body holds only its `a` and `b`. All but start sentinels are ends of a body."""

    def make(*kinds: str, on_branch_error: Any = "fail", needs: dict[str, tuple[Ref, ...]] | None = None) -> Plan:
        regions: list[Region] = []
        first = 0
        for depth in range(len(kinds) + 1):
            names = ["s"] if depth == 0 else [f"a{depth}", f"b{depth}"]
            nodes = [node(name, needs=(needs or {}).get(name, ())) for name in names]
            if depth < len(kinds):
                for end in ("start", "end"):
                    nodes.append(
                        node(f"c{depth + 1}:{end}", type=f"{kinds[depth]}:{end}", sentinel=end, body=depth + 1)
                    )
            if depth == 0:
                nodes.append(node("z", needs=(needs or {}).get("z", ())))
            ends = tuple(first + i for i, n in enumerate(nodes) if n.sentinel != "start")
            regions.append(
                Region(
                    id=f"c{depth}" if depth else "",
                    kind=kinds[depth - 1] if depth else "root",  # type: ignore[arg-type]
                    parent=depth - 1,
                    first=first,
                    nodes=tuple(nodes),
                    indegree=(0,) * len(nodes),
                    entries=(first,),
                    ends=ends if depth else (first + len(nodes) - 1,),
                    on_branch_error=on_branch_error,
                    start=0,
                    end=0,
                )
            )
            first += len(nodes)
        flat = [n.id for region in regions for n in region.nodes]
        regions = [
            Region(
                r.id,
                r.kind,
                r.parent,
                r.first,
                r.nodes,
                r.indegree,
                r.entries,
                r.ends,
                on_branch_error=r.on_branch_error,
                start=flat.index(f"{r.id}:start") if r.id else -1,
                end=flat.index(f"{r.id}:end") if r.id else -1,
            )
            for r in regions
        ]
        return Plan("test", "s", tuple(regions))

    return make


@pytest.fixture
def policy() -> Callable[..., Policy]:
    return Policy

"""Short ways to write workflows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

Json = dict[str, Any]


def document(name: str, *edges: str, blocks: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """`edges`: "a b" or "a error b". A block `start` is there anyway."""
    joined = []
    for edge in edges:
        source, *handle, target = edge.split()
        joined.append({"source": source, "target": target, **({"handle": handle[0]} if handle else {})})
    return {
        "format": "weft/1",
        "name": name,
        "blocks": {"start": {"type": "start"}, **(blocks or {})},
        "edges": joined,
        **more,
    }


def in_a_row(name: str, blocks: Mapping[str, Any], edges: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """start -> blocks one after the other. Those with a parent are left out: `edges` lead to them."""
    row = ["start", *(block for block, body in blocks.items() if "parent" not in body)]
    return document(name, *(f"{a} {b}" for a, b in pairwise(row)), *edges, blocks=blocks, **more)


def call(workflow: str | None = None, policy: Mapping[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    if workflow is not None:
        params["workflow"] = workflow
    return {"type": "run_workflow", "params": params, **({"policy": dict(policy)} if policy else {})}


def value(of: Any) -> dict[str, Any]:
    return {"type": "set", "params": {"value": of}}


def caller(name: str = "parent", **block: Any) -> dict[str, Any]:
    """start -> call -> end, whose output is all of the call's."""
    return document(name, "start call", "call end", blocks={"call": call(**block), "end": value("<call>")})


def chain(*blocks: str, name: str = "chain", **changes: Json) -> Json:
    """start -> blocks in a row, each a `step` unless `changes` says otherwise."""
    return in_a_row(name, {block: {"type": "step", **changes.get(block, {})} for block in blocks})


def looped(count: int = 3, kind: str = "loop", **more: Json) -> Json:
    """start -> l(a -> b) -> last, `b` sees what `a` put out, `last` sees the results of `l`."""
    mode = {"mode": "for", "count": count} if kind == "loop" else {"mode": "count", "count": count}
    blocks: Json = {
        "l": {"type": kind, "params": mode},
        "a": {"type": "step", "parent": "l", "params": {"value": f"<{kind}.index>"}},
        "b": {"type": "step", "parent": "l", "params": {"value": "<a.value>"}},
        "last": {"type": "step", "params": {"value": "<l.results>"}},
    }
    for block, change in more.items():
        blocks[block] = blocks[block] | change
    return document("looped", "start l", "l body a", "a b", "l last", blocks=blocks)


ASKING = document(
    "asking",
    "start ask",
    "ask end",
    blocks={
        "ask": {"type": "approval", "params": {"title": "Pay?", "actions": ["yes"]}},
        "end": value({"by": "<ask.answered_by>"}),
    },
)


def connector(service: str, base_url: str = "https://tea.example", path: str = "/orders") -> dict[str, Any]:
    """A connector document with one operation, `order`."""
    operation = {"title": "Order", "method": "POST", "path": path, "fields": {"boxes": {"type": "integer"}}}
    return {
        "format": "weft-connector/1",
        "service": service,
        "title": service.title(),
        "base_url": base_url,
        "auth": {"kind": "none"},
        "operations": {"order": {**operation, "body": {"boxes": "{{boxes}}"}}},
    }

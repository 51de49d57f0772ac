"""What the fleet has to do: runs of five kinds, and the output with which each must end."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any, NamedTuple

# How many of a hundred runs.
SHARES = {"chain": 45, "fan": 20, "loop": 15, "ask": 10, "parent": 5, "timer": 5}
BRANCHES, ROUNDS, CHILDREN = 8, 4, 3
LOST_OFTEN = {"max_attempts": 50, "initial_ms": 50}


class Job(NamedTuple):
    kind: str
    document: dict[str, Any]
    input: dict[str, Any]
    output: Any


def jobs(file: Path, choose: random.Random) -> list[Job]:
    """A hundred, shuffled."""
    made = [_job(kind, file, choose) for kind, count in SHARES.items() for _ in range(count)]
    choose.shuffle(made)
    return made


def of_deliveries(file: Path) -> dict[str, Any]:
    """What a webhook starts."""
    return _one_step("hooked", file)


def of_moments(file: Path) -> dict[str, Any]:
    """What schedules start."""
    return _one_step("timed", file)


def _job(kind: str, file: Path, choose: random.Random) -> Job:
    n = choose.randrange(1000)
    match kind:
        case "chain":
            return Job(kind, _chain(file), {"n": n}, {"n": n + 5})
        case "fan":
            return Job(kind, _region(file, "parallel", BRANCHES), {"n": n}, [[{"n": n + 1}]] * BRANCHES)
        case "loop":
            return Job(kind, _region(file, "loop", ROUNDS), {"n": n}, [[{"n": n + 1}]] * ROUNDS)
        case "ask":
            return Job(kind, _ask(file), {"n": n}, {"n": n + 2})
        case "timer":
            return Job(kind, _timer(file, choose.uniform(1, 5)), {"n": n}, {"n": n + 2})
        case _:
            return Job(kind, _parent(file), {"n": n}, [[{"n": n + 1}]] * CHILDREN)


def _step(file: Path, n: str | int, **more: Any) -> dict[str, Any]:
    params = {"function": "step", "arguments": {"file": str(file), "n": n}}
    return {"type": "python", "params": params, "policy": {"on_lost": "retry", "retry": LOST_OFTEN}, **more}


def _one_step(name: str, file: Path) -> dict[str, Any]:
    return _document(name, {"step": _step(file, 1)}, _in_a_row("start", "step"))


def _document(name: str, blocks: dict[str, Any], edges: list[dict[str, str]]) -> dict[str, Any]:
    return {"format": "weft/1", "name": name, "blocks": {"start": {"type": "start"}, **blocks}, "edges": edges}


def _in_a_row(*names: str) -> list[dict[str, str]]:
    return [{"source": a, "target": b} for a, b in itertools.pairwise(names)]


def _chain(file: Path) -> dict[str, Any]:
    """Five steps and a condition in the middle, of which the other side is pruned."""
    blocks = {f"s{i}": _step(file, f"<{'start' if i == 1 else f's{i - 1}'}.n>") for i in range(1, 6)}
    blocks["never"] = {"type": "set", "params": {"value": "pruned"}}
    cases = [{"id": "yes", "when": "<s3.n> >= 3"}, {"id": "no", "title": "else"}]
    blocks["if"] = {"type": "condition", "params": {"cases": cases}}
    edges = [
        *_in_a_row("start", "s1", "s2", "s3", "if"),
        {"source": "if", "handle": "yes", "target": "s4"},
        {"source": "if", "handle": "no", "target": "never"},
        *_in_a_row("s4", "s5"),
    ]
    return _document("chain", blocks, edges)


def _region(file: Path, type: str, count: int) -> dict[str, Any]:
    mode = "count" if type == "parallel" else "for"
    blocks = {
        "region": {"type": type, "params": {"mode": mode, "count": count}},
        "step": _step(file, "<start.n>", parent="region"),
        "end": {"type": "set", "params": {"value": "<region.results>"}},
    }
    edges = [
        {"source": "start", "target": "region"},
        {"source": "region", "handle": "body", "target": "step"},
        {"source": "region", "target": "end"},
    ]
    return _document(type, blocks, edges)


def _ask(file: Path) -> dict[str, Any]:
    blocks = {
        "before": _step(file, "<start.n>"),
        "ask": {"type": "approval", "params": {"title": "Go on?", "actions": ["approve", "reject"]}},
        "after": _step(file, "<before.n>"),
    }
    edges = [
        *_in_a_row("start", "before", "ask"),
        *({"source": "ask", "handle": handle, "target": "after"} for handle in ("approve", "reject")),
    ]
    return _document("ask", blocks, edges)


def _timer(file: Path, seconds: float) -> dict[str, Any]:
    blocks = {
        "before": _step(file, "<start.n>"),
        "nap": {"type": "wait", "params": {"seconds": round(seconds, 2)}},
        "after": _step(file, "<before.n>"),
    }
    return _document("timer", blocks, _in_a_row("start", "before", "nap", "after"))


def _parent(file: Path) -> dict[str, Any]:
    child = _document("child", {"step": _step(file, "<start.n>")}, _in_a_row("start", "step"))
    calling = {"definition": child, "input": {"n": "<start.n>"}}
    blocks = {
        "each": {"type": "parallel", "params": {"mode": "count", "count": CHILDREN}},
        "call": {
            "type": "run_workflow",
            "parent": "each",
            "params": calling,
        },
        "end": {"type": "set", "params": {"value": "<each.results>"}},
    }
    edges = [
        {"source": "start", "target": "each"},
        {"source": "each", "handle": "body", "target": "call"},
        {"source": "each", "target": "end"},
    ]
    return _document("parent", blocks, edges)

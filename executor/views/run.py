"""RunView: a run as its journal tells it, node by node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from compiler.plan import Plan
from executor.core.evolve import LOST
from executor.journal.reader import output_of
from executor.store.contract import Store
from executor.store.rows import TERMINAL, Record, RunRow
from executor.values import variables as paths
from executor.views import NodeView, RunView, WaitView

PAGE = 10_000


async def build(store: Store, plan: Plan, row: RunRow, waits: tuple[WaitView, ...]) -> RunView:
    nodes: dict[tuple[str, str], dict[str, Any]] = {}
    variables: dict[str, Any] = orjson.loads(orjson.dumps(plan.variables))
    response: dict[str, Any] | None = None
    after = 0
    while after < row.seq:  # what came since belongs to another moment
        records = await store.read_events(row.id, after, min(PAGE, row.seq - after))
        if not records:
            break
        for record in records:
            data: dict[str, Any] = orjson.loads(record.data) if record.data else {}
            if record.type == "variables.patched":
                paths.apply(variables, data["ops"])
            elif record.type == "run.finished":
                response = data.get("response")
            elif record.node is not None:
                output = await output_of(store, record)
                note(plan, nodes, record, data, None if output is None else orjson.loads(output))
        after = records[-1].seq
    if row.status in TERMINAL:
        for view in nodes.values():
            if view["status"] in ("running", "retrying", "waiting", "needs_attention"):
                view["status"] = "cancelled"
    return RunView(
        id=row.id,
        workflow=row.workflow,
        version=row.version,
        status=row.status,
        input=orjson.loads(row.input),
        output=None if row.output is None else orjson.loads(row.output),
        error=None if row.error is None else orjson.loads(row.error),
        seq=row.seq,
        created_at_ms=row.created_at_ms,
        started_at_ms=row.started_at_ms,
        finished_at_ms=row.finished_at_ms,
        response=response,
        variables=variables,
        nodes=tuple(NodeView(**view) for view in nodes.values()),
        failed_nodes=tuple(view["key"] for view in nodes.values() if view["status"] == "failed"),
        waits=waits,
        draft_id=row.draft_id,
        draft_rev=row.draft_rev,
    )


def note(
    plan: Plan, nodes: dict[tuple[str, str], dict[str, Any]], record: Record, data: dict[str, Any], output: Any
) -> None:
    assert record.node is not None
    view = nodes.get((record.node, record.path))
    if view is None:
        number = plan.node_index(record.node)
        view = nodes[(record.node, record.path)] = {
            "key": f"{record.node}@{record.path}" if record.path else record.node,
            "node": record.node,
            "block": plan.nodes[number].block if number is not None else record.node,
            "path": record.path,
            "status": "running",
            "attempt": record.attempt,
        }
    match record.type:
        case "node.started":
            view |= {"status": "running", "attempt": record.attempt}
            view.setdefault("started_at_ms", record.at_ms)
            return
        case "node.succeeded" | "region.exited":
            view |= {"status": "succeeded", "route": data.get("route", "out"), "output": output}
            if data.get("cached"):
                view["cached"] = True
        case "region.sized":
            view |= {"status": "succeeded", "output": {"count": data["count"]}}
        case "node.failed":
            _note_loss(view, data["error"])
            stopped = data["error"]["code"] == "cancelled" and data.get("route") is None
            status = "cancelled" if stopped else "failed"
            view |= {"status": status, "error": data["error"], "route": data.get("route")}
        case "node.skipped":
            view |= {"status": "skipped", "reason": data["reason"]}
        case "retry.scheduled":
            _note_loss(view, data["error"])
            view |= {"status": "retrying", "error": data["error"]}
            return
        case "wait.opened" if data["kind"] == "attention":
            view |= {"status": "needs_attention", "lost": view.get("lost", 0) + 1}
            return
        case "wait.opened":
            view |= {"status": "waiting"}
            if "child" in data:
                view["child"] = data["child"]
            return
        case "wait.closed":
            if data["outcome"] != "cancelled":
                return
            view |= {"status": "cancelled"}
        case _:
            return
    view["finished_at_ms"] = record.at_ms


def _note_loss(view: dict[str, Any], error: Mapping[str, Any]) -> None:
    """A loss that was asked about was counted when the question was put."""
    if error["code"] == LOST and view["status"] != "needs_attention":
        view["lost"] = view.get("lost", 0) + 1

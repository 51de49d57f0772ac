"""WaitView: one durable pause, as an inbox shows it."""

from __future__ import annotations

from typing import Any

import orjson

from compiler.plan import Plan
from executor.store.base import RunRow, WaitRow
from executor.views import WaitView


def build(plan: Plan, run: RunRow, row: WaitRow, now_ms: int, link: str | None) -> WaitView:
    request: dict[str, Any] = orjson.loads(row.request)
    number = plan.node_index(row.node)
    node = plan.nodes[number] if number is not None else None
    return WaitView(
        run=row.run_id,
        workflow=run.workflow,
        id=row.id,
        key=f"{row.node}@{row.path}" if row.path else row.node,
        block=node.block if node else row.node,
        label=node.name if node else row.node,
        kind=row.kind,
        status=row.status,
        request=request,
        schema=None if row.schema is None else orjson.loads(row.schema),
        actions=tuple(request.get("actions") or ()),
        opened_at_ms=row.opened_at_ms,
        expires_at_ms=row.expires_at_ms,
        age_s=max(0, now_ms - row.opened_at_ms) / 1000,
        name=row.name,
        correlation=row.correlation,
        link=link,
        response=None if row.response is None else orjson.loads(row.response),
        answered_by=row.answered_by,
        answered_at_ms=row.answered_at_ms,
    )

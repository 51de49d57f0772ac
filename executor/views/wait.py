"""WaitView: one durable pause, as an inbox shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import httpx
import orjson

from compiler.keys import join_key
from compiler.plan import Plan
from executor.core.events import WaitKind
from executor.services import NotifySettings
from executor.store.rows import NotificationRow, RunRow, WaitRow
from executor.values.seal import unsealed_names
from executor.views import NotificationView, WaitView


def build(
    plan: Plan,
    run: RunRow,
    row: WaitRow,
    now_ms: int,
    link: str | None,
    notifications: Sequence[NotificationView] = (),
) -> WaitView:
    request: dict[str, Any] = orjson.loads(row.request)
    number = plan.node_index(row.node)
    node = plan.nodes[number] if number is not None else None
    label = node.name if node else row.node
    return WaitView(
        run=row.run_id,
        workflow=run.workflow,
        id=row.id,
        key=join_key(row.node, row.path),
        block=node.block if node else row.node,
        label=label,
        kind=cast(WaitKind, row.kind),
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
        title=str(request.get("title") or label),
        run_status=run.status,
        notifications=tuple(notifications),
    )


def notification(row: NotificationRow, server: NotifySettings) -> NotificationView:
    return NotificationView(
        channel=row.channel,
        to=_shown_target(row, server),
        status=row.status,
        attempts=row.attempts,
        due_at_ms=row.due_at_ms if row.status == "pending" else None,
        settled_at_ms=row.settled_at_ms,
        error=row.error,
    )


def _shown_target(row: NotificationRow, server: NotifySettings) -> str:
    """Mail addresses; of a request the server alone, as the rest of an address may be what lets one in."""
    target: dict[str, Any] = unsealed_names(row.content)
    if row.channel == "email":
        return ", ".join(server.email if target.get("server") else target["to"])
    try:
        url = httpx.URL((server.webhook or "") if target.get("server") else target["url"])
        return f"{url.scheme}://{url.netloc.decode()}"
    except (httpx.InvalidURL, ValueError):
        return "an address that cannot be read"

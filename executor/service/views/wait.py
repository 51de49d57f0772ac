"""WaitView: one durable pause, as an inbox shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from compiler.keys import join_key
from compiler.plan import Plan
from executor.kernel.handler.needs import NotifySettings
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.topics.outbox import NotificationRow
from executor.kernel.store.topics.waits import WaitRow
from executor.kernel.values.redact import unsealed_names
from executor.service.views import NotificationView, WaitView, view_of


def build(
    plan: Plan,
    run: RunRow,
    row: WaitRow,
    now_ms: int,
    link: str | None,
    notifications: Sequence[NotificationView] = (),
) -> WaitView:
    """`link` is None if no link can answer it, or if it is over."""
    request: dict[str, Any] = orjson.loads(row.request)
    number = plan.node_index(row.node)
    node = plan.nodes[number] if number is not None else None
    label = node.name if node else row.node
    return view_of(
        WaitView,
        row,
        run=row.run_id,
        workflow=run.workflow,
        key=join_key(row.node, row.path),
        block=node.block if node else row.node,
        label=label,
        request=request,
        schema=None if row.schema is None else orjson.loads(row.schema),
        actions=tuple(request.get("actions") or ()),
        age_s=max(0, now_ms - row.opened_at_ms) / 1000,
        title=str(request.get("title") or label),
        run_status=run.status,
        response=None if row.response is None else orjson.loads(row.response),
        link=link,
        notifications=tuple(notifications),
    )


def notification(row: NotificationRow, server: NotifySettings) -> NotificationView:
    """Return the view of a message about a wait, its target without secrets."""
    due_at_ms = row.due_at_ms if row.status == "pending" else None
    error = row.error or None
    return view_of(NotificationView, row, to=_shown_target(row, server), due_at_ms=due_at_ms, error=error)


def _shown_target(row: NotificationRow, server: NotifySettings) -> str:
    """Return the mail addresses, or only the server of a request: the rest of an address may be a credential."""
    import httpx  # loaded by the client, with the first request

    target: dict[str, Any] = unsealed_names(row.content)
    if row.channel == "email":
        return ", ".join(server.email if target.get("server") else target["to"])
    if row.channel == "job":
        return f"Kubernetes, namespace {target['namespace']}"
    try:
        url = httpx.URL((server.webhook or "") if target.get("server") else target["url"])
        return f"{url.scheme}://{url.netloc.decode()}"
    except (httpx.InvalidURL, ValueError):
        return "an address that cannot be read"

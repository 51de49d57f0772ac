"""The texts of alerts, and the input of an error workflow. Documented in docs/howto/alerts.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.topics.alerts import AlertCount, AlertKind, AlertRow

_SAID: Final[dict[AlertKind, tuple[str, str]]] = {  # for one, for several
    "run.failed": ("run failed", "runs failed"),
    "run.waiting": ("run waits too long", "runs wait too long"),
    "run.queued": ("run is queued too long", "runs are queued too long"),
    "schedule.missed": ("schedule missed its time", "times of schedules were missed"),
}
_MESSAGE_CHARS_MAX: Final = 500


def error_input(run: RunRow, base_url: str) -> dict[str, Any]:
    """Return the input of an error workflow: the same whenever it is made."""
    error = orjson.loads(run.error) if run.error is not None else {}
    return {
        "run": run.id,
        "workflow": run.workflow,
        "version": run.version,
        "failure": {"code": error.get("code"), "message": error.get("message"), "hint": error.get("hint")},
        "node": error.get("block"),
        "url": f"{base_url}/runs/{run.id}",
        "created_at": run.created_at_ms,
        "finished_at": run.finished_at_ms,
    }


def alert_body(
    id: str, alerts: Sequence[AlertRow], counts: Sequence[AlertCount], errors: Mapping[str, Any], base_url: str
) -> dict[str, Any]:
    """Return the JSON that a webhook gets."""
    return {
        "event": "alerts",
        "id": id,
        "count": sum(each.count for each in counts),
        "counts": [{"kind": each.kind, "workflow": each.workflow, "count": each.count} for each in counts],
        "alerts": [_alert(alert, errors.get(alert.run_id), base_url) for alert in alerts],
    }


def mail_of(
    alerts: Sequence[AlertRow], counts: Sequence[AlertCount], errors: Mapping[str, Any], base_url: str
) -> tuple[str, str]:
    """Return subject and text."""
    total = sum(each.count for each in counts)
    kinds: dict[AlertKind, int] = {}
    for each in counts:
        kinds[each.kind] = kinds.get(each.kind, 0) + each.count
    said = ", ".join(f"{count} {_SAID[kind][count != 1]}" for kind, count in kinds.items())
    names = {each.workflow for each in counts}
    subject = " ".join(f"weft: {said}{f' ({names.pop()})' if len(names) == 1 else ''}".split())[:200]
    parts = [f"{each.workflow}: {each.count} {_SAID[each.kind][each.count != 1]}" for each in counts[:50]]
    lines = ["\n".join(parts)]
    for alert in alerts:
        shown = _alert(alert, errors.get(alert.run_id), base_url)
        at = datetime.fromtimestamp(alert.at_ms / 1000, UTC)
        text = f"{at:%d %b %Y, %H:%M UTC}  {alert.workflow}: {_SAID[alert.kind][0]}"
        if alert.kind == "schedule.missed":
            text += f" ({alert.item})"
        if shown.get("error"):
            where = f" at block {shown['node']}" if shown.get("node") else ""
            text += f"{where}\n  {shown['error']['code']}: {shown['error']['message']}"
        if shown["url"]:
            text += f"\n  {shown['url']}"
        lines.append(text)
    if total > len(alerts):
        lines.append(f"And {total - len(alerts)} more: {base_url}/runs?status=failed")
    return subject, "\n\n".join(lines) + "\n"


def _alert(alert: AlertRow, error: Mapping[str, Any] | None, base_url: str) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "kind": alert.kind,
        "workflow": alert.workflow,
        "run": alert.run_id or None,
        "item": alert.item or None,
        "at": alert.at_ms,
        "url": f"{base_url}/runs/{alert.run_id}" if alert.run_id else None,
    }
    if error is not None:
        message = str(error.get("message") or "")[:_MESSAGE_CHARS_MAX]
        shown |= {"error": {"code": error.get("code"), "message": message}, "node": error.get("block")}
    return shown

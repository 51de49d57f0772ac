"""The names that the forms of the editor have for the settings of workflows and blocks. The editor has its own lists,
in `settings.ts` and `policy.ts`; `tests/vectors/form_names.json` holds all to the same words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from compiler.wording import place

Titles = Mapping[str, "str | tuple[str, Mapping[str, str]]"]

SETTINGS: Final[Titles] = {
    "timeout_s": "Run timeout (seconds)",
    "max_concurrency": "Max concurrency",
    "on_failure": "When a block fails",
    "groups": "Concurrency groups",
    "cleanup_timeout_s": "Cleanup timeout (seconds)",
    "max_executions": "Max block executions",
    "durability": "Durability",
    "pool": "Pool",
    "priority": "Priority",
    "fair": "Take turns by",
    "limits": ("Limits", {"key": "Key", "at_most": "At most"}),
    "rates": ("Rates", {"key": "Key", "per_s": "Per second"}),
    "alerts": ("Alerts", {"email": "Email", "webhook": "Webhook", "waiting_s": "Wait limit (seconds)"}),
    "error_workflow": "Error workflow",
    "retention": ("Retention", {"days": "Days", "keep": "Keep"}),
}
POLICY: Final[Titles] = {
    "timeout_s": "Timeout (seconds)",
    "heartbeat_timeout_ms": "Heartbeat timeout (ms)",
    "on_error": "When this block fails",
    "skip_if": "Skip if",
    "runner": "Runs in",
    "group": "Concurrency group",
}
RETRY: Final[Titles] = {
    "max_attempts": "Max attempts",
    "backoff": "Delay",
    "initial_ms": "First delay (ms)",
    "factor": "Factor",
    "max_ms": "Max delay (ms)",
    "jitter": "Jitter",
}
LIMIT: Final[Titles] = {"key": "Limit key", "at_most": "At most"}


def name_in_form(path: Sequence[str]) -> str | None:
    """Return the form's name for the field at this place of a document, such as `Key of limit 1`, if it is in one."""
    match path:
        case ["settings", *inside]:
            form = SETTINGS
        case ["blocks", _, "policy", "retry", *inside]:
            form = RETRY
        case ["blocks", _, "policy", "limit", *inside]:
            form = LIMIT
        case ["blocks", _, "policy", *inside]:
            form = POLICY
        case _:
            return None
    if not inside or inside[0] not in form:
        return None
    return place(_schema(form), [int(part) if part.isdecimal() else part for part in inside])[0]


def _schema(titles: Titles) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for name, given in titles.items():
        title, inner = given if isinstance(given, tuple) else (given, {})
        properties[name] = {"title": title, "items": _schema(inner), **_schema(inner)}
    return {"properties": properties}

"""The text of a mail or a request about a wait. It is made when it is sent: the link is a credential."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from executor.kernel.values.payload import render
from executor.service.views import WaitView

SHOWN_CHARS_MAX: Final = 20_000  # for the text of a mail; the page of the link has the rest


def webhook_body(wait: WaitView) -> dict[str, Any]:
    """Return the JSON that a webhook gets; documented in docs/howto/approve-by-link.md."""
    return {
        "event": "wait.opened",
        "run": wait.run,
        "workflow": wait.workflow,
        "wait": wait.id,
        "kind": wait.kind,
        "block": wait.label,
        "title": wait.title,
        "link": wait.link,
        "actions": list(wait.actions),
        "opened_at": wait.opened_at_ms,
        "expires_at": wait.expires_at_ms,
    }


def request_body(wait: WaitView, body: Any) -> dict[str, Any]:
    """Return the body that `send` of a callback block posts: the `body` of its params, with the address of the
    callback."""
    if isinstance(body, dict):
        return {**body, "callback_url": wait.link}
    return {"callback_url": wait.link, "run": wait.run, "wait": wait.id, "data": body}


def mail_subject(wait: WaitView) -> str:
    """Return the subject, one line for any title."""
    return " ".join(f"{wait.title} ({wait.workflow})".split())[:200]


def mail_body(wait: WaitView) -> str:
    """Return the title, the text, the values to show and the link."""
    request = wait.request if isinstance(wait.request, dict) else {}
    parts = [wait.title]
    if isinstance(request.get("text"), str):
        parts.append(request["text"])
    if request.get("show") not in (None, {}, [], ""):
        parts.append(_shown(request["show"])[:SHOWN_CHARS_MAX])
    choices = f" ({', '.join(wait.actions)})" if wait.actions else ""
    parts.append(f"Answer here{choices}:\n{wait.link}")
    if wait.expires_at_ms is not None:
        until = datetime.fromtimestamp(wait.expires_at_ms / 1000, UTC)
        parts.append(f"Expires on {until:%d %b %Y, %H:%M UTC}. Only the first answer is accepted.")
    else:
        parts.append("Only the first answer is accepted.")
    parts.append(f"Workflow {wait.workflow}, block {wait.label}, run {wait.run}.")
    return "\n\n".join(parts) + "\n"


def _shown(value: Any) -> str:
    """Write a line for each field of an object; any other value as it would stand in a text."""
    if not isinstance(value, dict):
        return render(value)
    return "\n".join(f"{name}: {render(item)}" for name, item in value.items())

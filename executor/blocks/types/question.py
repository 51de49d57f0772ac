"""Shared parts of the blocks that ask a person: the text shown, the fields to fill in, the shape of the answer, and who
is notified.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from compiler.catalog import Params
from executor.blocks.types.mailboxes import items_of, mailbox
from executor.blocks.types.shared_params import invalid, text, web_address
from executor.kernel.handler.base import Context

QUESTION: dict[str, Any] = {
    "title": {
        "type": "string",
        "title": "Title",
        "description": "The question, in one line.",
        "x-ui": {"order": 1, "widget": "text"},
    },
    "text": {
        "type": "string",
        "title": "Text",
        "description": "What the person needs to know.",
        "x-ui": {"order": 2, "widget": "longtext", "rows": 4},
    },
    "show": {
        "title": "Show values",
        "description": "Values shown on the page, such as references to earlier blocks.",
        "x-ui": {"order": 3, "widget": "keyvalues"},
    },
    "fields": {
        "type": "object",
        "title": "Form fields",
        "description": "Fields of the form.",
        "x-ui": {"order": 4, "widget": "schema"},
    },
}
ANSWERED: dict[str, Any] = {
    "answered_by": {"type": ["string", "null"]},
    "answered_at": {"type": "integer", "description": "Unix milliseconds"},
}
NOTIFIED_MAX = 50  # mail addresses of one wait
ADDRESSES = ("/notify/email",)
NOTIFY: dict[str, Any] = {
    "type": "object",
    "title": "Notify",
    "description": 'Send the link: {"email": ["ada@example.org"], "webhook": "https://…"}.',
    "additionalProperties": False,
    "properties": {
        "email": {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            "title": "Email",
            "description": "One address, or a list of addresses.",
            "x-ui": {"order": 1, "widget": "text"},
        },
        "webhook": {
            "type": "string",
            "x-weft": "secret",
            "x-url": True,
            "title": "Webhook URL",
            "description": "Receives a POST with JSON, signed with the key of the server.",
            "x-ui": {"order": 2, "widget": "text"},
        },
    },
    "x-ui": {"order": 10, "widget": "json", "rows": 4, "advanced": True},
}


def answer_schema(params: Params, answered: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the output: the form's fields, and `answered`. Without a form an answer may have any
    fields."""
    form = params.get("fields")
    fields = form.get("properties") if isinstance(form, dict) else None
    known = fields if isinstance(fields, dict) else {}
    schema: dict[str, Any] = {"type": "object", "properties": {**known, **answered}}
    if not known or (isinstance(form, dict) and form.get("additionalProperties")):
        schema["additionalProperties"] = True
    return schema


def shown(ctx: Context) -> dict[str, Any]:
    """Return the request of the wait. Raises BlockError(params_invalid)."""
    request: dict[str, Any] = {"title": text(ctx.params, "title") or ctx.name}
    if (body := text(ctx.params, "text")) is not None:
        request["text"] = body
    if ctx.params.get("show") is not None:
        request["show"] = ctx.params["show"]
    return request


def notify_messages(params: Mapping[str, Any]) -> tuple[tuple[str, bytes], ...]:
    """Return the messages of `notify`, in the form of Suspend. Raises BlockError(params_invalid)."""
    notify = params.get("notify")
    if notify in (None, "", {}):
        return ()
    if not isinstance(notify, dict):
        raise invalid("notify must be an object", hint='such as {"email": ["ada@example.org"]}')
    messages: list[tuple[str, bytes]] = []
    addresses = items_of(notify.get("email"), "notify.email")
    if len(addresses) > NOTIFIED_MAX:
        raise invalid(f"notify.email can have up to {NOTIFIED_MAX} addresses, it has {len(addresses)}")
    for address in addresses:
        mailbox(address, "notify.email")
    if addresses:
        messages.append(("email", orjson.dumps({"to": addresses})))
    if (url := text(notify, "webhook")) is not None:
        messages.append(("webhook", orjson.dumps({"url": web_address(url, "notify.webhook")})))
    return tuple(messages)

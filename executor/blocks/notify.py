"""The param `notify` of blocks that ask people: who is sent the link."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from executor.blocks.mailboxes import items_of, mailbox
from executor.blocks.schema import invalid, text, web_address

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
            "title": "Webhook URL",
            "description": "Receives a POST with JSON, signed with the key of the server.",
            "x-ui": {"order": 2, "widget": "text"},
        },
    },
    "x-ui": {"order": 10, "widget": "json", "rows": 4, "advanced": True},
}


def told(params: Mapping[str, Any]) -> tuple[tuple[str, bytes], ...]:
    """The messages that `notify` asks for, as Suspend wants them. Raises BlockError(params_invalid)."""
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

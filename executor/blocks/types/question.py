"""Shared parts of the blocks that ask a person: the text shown, the fields to fill in, the shape of the answer, and who
is notified.
"""

from __future__ import annotations

from typing import Any

import orjson

from compiler.catalog import Finding, Params
from executor.blocks.types.mail import items_of, mailbox
from executor.blocks.types.params import REMIND_BEFORE_S, TypedParams, invalid, param, web_address
from executor.kernel.values.coerce import coerce

ANSWERED: dict[str, Any] = {
    "answered_by": {"type": ["string", "null"]},
    "answered_at": {"type": "integer", "description": "Unix milliseconds"},
}
NOTIFIED_MAX = 50  # mail addresses of one wait
ADDRESSES = ("/notify/email",)
BY_PATTERN = r"^(chat|user:[a-z0-9][a-z0-9._@-]{0,99}|role:(viewer|approver|editor|admin))$"
BY: Any = param(
    "Who may answer",
    'Users and roles, such as "user:ada", or "role:approver" and all roles above. They sign in to answer. "chat" is '
    "the visitor of the chat page that started the run, who answers there. Without any, the link is enough.",
    order=12,
    advanced=True,
    items={"type": "string", "pattern": BY_PATTERN},
    uniqueItems=True,
    maxItems=50,
)


class _Notify(TypedParams):
    email: Any = param(
        "Email",
        "One address, or a list of addresses.",
        widget="text",
        anyOf=[{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
    )
    webhook: str | None = param(
        "Webhook URL", "Receives a POST with JSON, signed with the key of the server.", weft="secret", url=True
    )


class Question(TypedParams):
    """Params of a question to a person."""

    title: str | None = param("Title", "The question, in one line.")
    text: str | None = param("Text", "What the person needs to know.", widget="longtext", rows=4)
    show: Any = param(
        "Show values", "Values shown on the page, such as references to earlier blocks.", widget="keyvalues"
    )
    fields: Any = param("Form fields", "Fields of the form.", type="object", widget="schema")
    remind_before_s: float | None = REMIND_BEFORE_S
    notify: _Notify | None = param(
        "Notify",
        'Send the link: {"email": ["ada@example.org"], "webhook": "https://…"}.',
        order=10,
        widget="json",
        rows=4,
        advanced=True,
    )

    def shown(self, name: str) -> dict[str, Any]:
        """Return the request of the wait. `name`: of the block, if there is no title."""
        more = {"text": self.text, "show": self.show}
        return {"title": self.title or name} | {key: value for key, value in more.items() if value is not None}

    def messages(self) -> tuple[tuple[str, bytes], ...]:
        """Return the messages of `notify`, in the form of Suspend. Raises BlockError(params_invalid)."""
        if self.notify is None:
            return ()
        found: list[tuple[str, bytes]] = []
        addresses = items_of(self.notify.email, "notify.email")
        if len(addresses) > NOTIFIED_MAX:
            raise invalid(f"notify.email can have up to {NOTIFIED_MAX} addresses, it has {len(addresses)}")
        for address in addresses:
            mailbox(address, "notify.email")
        if addresses:
            found.append(("email", orjson.dumps({"to": addresses})))
        if self.notify.webhook is not None:
            found.append(("webhook", orjson.dumps({"url": web_address(self.notify.webhook, "notify.webhook")})))
        return tuple(found)

    def remind_ms(self, expires_in_s: float | None, now_ms: int) -> int | None:
        """Return when people are reminded (Unix ms), or None if they are not. Raises BlockError(params_invalid)."""
        if (problem := _reminder_problem(self.remind_before_s, expires_in_s)) is not None:
            raise invalid(f"remind_before_s: {problem[0]}", hint=problem[1])
        if self.remind_before_s is None or expires_in_s is None:
            return None
        return now_ms + round((expires_in_s - self.remind_before_s) * 1000)


def check_reminder(params: Params) -> tuple[Finding, ...]:
    """Return what is wrong with the time of the reminder, unless that is known only when the block runs."""
    times = [coerce("number", params.get(name)) for name in ("remind_before_s", "expires_in_s")]
    known = all(time is None or isinstance(time, int | float) for time in times)  # else a reference, or refused
    problem = _reminder_problem(*times) if known else None
    return () if problem is None else (Finding("param_invalid", "/remind_before_s", *problem),)


def _reminder_problem(before: Any, limit: Any) -> tuple[str, str] | None:
    """Return a message and a hint, or None."""
    if before is None:
        return None
    if limit is None:
        return "The question does not expire, so there is no time before that.", "Set when it expires, expires_in_s."
    if before >= limit:
        return "It must be shorter than the time after which the question expires.", f"Use less than {limit:g} seconds."
    return None


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

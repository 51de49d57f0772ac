"""What blocks that ask a person have in common: what is shown, the fields to fill in, and the shape of the answer."""

from __future__ import annotations

from typing import Any

from compiler.catalog import Params
from executor.blocks.base import Context
from executor.blocks.schema import text

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


def answer_schema(params: Params, answered: dict[str, Any]) -> dict[str, Any]:
    """Of the output: the form's fields, and `answered`. Without a form an answer may have any fields."""
    form = params.get("fields")
    fields = form.get("properties") if isinstance(form, dict) else None
    known = fields if isinstance(fields, dict) else {}
    schema: dict[str, Any] = {"type": "object", "properties": {**known, **answered}}
    if not known or (isinstance(form, dict) and form.get("additionalProperties")):
        schema["additionalProperties"] = True
    return schema


def shown(ctx: Context) -> dict[str, Any]:
    """The request of the wait. Raises BlockError(params_invalid)."""
    request: dict[str, Any] = {"title": text(ctx.params, "title") or ctx.name}
    if (body := text(ctx.params, "text")) is not None:
        request["text"] = body
    if ctx.params.get("show") is not None:
        request["show"] = ctx.params["show"]
    return request

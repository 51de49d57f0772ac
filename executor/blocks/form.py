"""`form`: asks a person to fill something in. An approval without the decision: one button, one way on."""

from __future__ import annotations

from typing import Any

from compiler.catalog import BlockSpec, Params
from executor.blocks.base import Context, Suspend
from executor.blocks.schema import EXPIRES_IN_S, NOTIFY, ON_EXPIRE, expiry_ms, form_schema, invalid, text, told

_ANSWER: dict[str, Any] = {
    "answered_by": {"type": ["string", "null"]},
    "answered_at": {"type": "integer", "description": "Unix milliseconds"},
}


def _output_schema(params: Params) -> dict[str, Any]:
    """The fields, and who filled them in when."""
    form = params.get("fields")
    fields = form.get("properties") if isinstance(form, dict) else None
    known = fields if isinstance(fields, dict) else {}
    schema: dict[str, Any] = {"type": "object", "properties": {**known, **_ANSWER}}
    if not known or (isinstance(form, dict) and form.get("additionalProperties")):
        schema["additionalProperties"] = True
    return schema


class Form:
    spec = BlockSpec(
        type="form",
        title="Form",
        description="Waits for a person to fill in fields, on a page with its own link, which works once.",
        category="people",
        pauses=True,
        params={
            "type": "object",
            "required": ["fields"],
            "additionalProperties": False,
            "properties": {
                "title": {
                    "type": "string",
                    "title": "Title",
                    "description": "What is asked, in one line.",
                    "x-ui": {"order": 1, "widget": "text"},
                },
                "text": {
                    "type": "string",
                    "title": "Text",
                    "description": "What the person should know.",
                    "x-ui": {"order": 2, "widget": "longtext", "rows": 4},
                },
                "show": {
                    "title": "Show",
                    "description": "A value to look at, usually an object of references.",
                    "x-ui": {"order": 3, "widget": "keyvalues"},
                },
                "fields": {
                    "type": "object",
                    "title": "Form",
                    "description": "JSON Schema of an object: what to fill in.",
                    "x-ui": {"order": 4, "widget": "schema"},
                },
                "submit": {
                    "type": "string",
                    "title": "Button",
                    "description": "What stands on the button.",
                    "maxLength": 80,
                    "default": "Send",
                    "x-ui": {"order": 5, "widget": "text"},
                },
                "expires_in_s": EXPIRES_IN_S,
                "on_expire": ON_EXPIRE | {"enum": ["fail", "continue", "skip"]},
                "notify": NOTIFY,
            },
        },
        output_from=_output_schema,
        sentence="asks: {title} | asks a person to fill in a form",
        icon="person",
    )

    async def run(self, ctx: Context) -> Suspend:
        """Raises BlockError(params_invalid): better now than when somebody has filled it in."""
        schema = form_schema(ctx.params.get("fields"))
        if schema is None:
            raise invalid("form needs fields", hint='such as {"properties": {"note": {"type": "string"}}}')
        on_expire = text(ctx.params, "on_expire") or "fail"
        if on_expire not in ("fail", "continue", "skip"):
            raise invalid(f"on_expire must be fail, continue or skip, not {on_expire[:80]!r}")
        request: dict[str, Any] = {"title": text(ctx.params, "title") or ctx.name}
        if (body := text(ctx.params, "text")) is not None:
            request["text"] = body
        if ctx.params.get("show") is not None:
            request["show"] = ctx.params["show"]
        if (submit := text(ctx.params, "submit")) is not None:
            request["submit"] = submit[:80]
        return Suspend(
            "form",
            request=request,
            schema=schema,
            due_ms=expiry_ms(ctx.params, ctx.now_ms),
            on_expire=on_expire,
            messages=told(ctx.params),
        )


block = Form()

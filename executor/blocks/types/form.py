"""`form`: asks a person to fill something in. An approval without the decision: one button, one way on."""

from __future__ import annotations

from compiler.catalog import BlockSpec
from executor.blocks.types.question import ADDRESSES, ANSWERED, NOTIFY, QUESTION, answer_schema, notify_messages, shown
from executor.blocks.types.shared_params import EXPIRES_IN_S, ON_EXPIRE, expiry_ms, form_schema, invalid, text
from executor.kernel.handler.base import Context, Suspend


class Form:
    spec = BlockSpec(
        type="form",
        title="Form",
        description="Asks a person to fill in a form and waits for the answer. The link to the page works once.",
        category="people",
        pauses=True,
        params={
            "type": "object",
            "required": ["fields"],
            "additionalProperties": False,
            "properties": {
                **QUESTION,
                "fields": QUESTION["fields"] | {"minProperties": 1},
                "submit": {
                    "type": "string",
                    "title": "Button label",
                    "description": "Text on the submit button.",
                    "maxLength": 80,
                    "default": "Send",
                    "x-ui": {"order": 5, "widget": "text"},
                },
                "expires_in_s": EXPIRES_IN_S,
                "on_expire": ON_EXPIRE,
                "notify": NOTIFY,
            },
        },
        output_from=lambda params: answer_schema(params, ANSWERED),
        addresses=ADDRESSES,
        sentence="Ask: {title} | Ask a person to fill in a form",
        icon="person",
    )

    async def run(self, ctx: Context) -> Suspend:
        """Raises BlockError(params_invalid): better now than when a person has filled it in."""
        schema = form_schema(ctx.params.get("fields"))
        if schema is None:
            raise invalid("Form fields are required", hint='such as {"properties": {"note": {"type": "string"}}}')
        on_expire = text(ctx.params, "on_expire") or "fail"
        if on_expire not in ("fail", "continue", "skip"):
            raise invalid(f"on_expire must be fail, continue or skip, not {on_expire[:80]!r}")
        request = shown(ctx)
        if (submit := text(ctx.params, "submit")) is not None:
            request["submit"] = submit[:80]
        return Suspend(
            "form",
            request=request,
            schema=schema,
            due_ms=expiry_ms(ctx.params, ctx.now_ms),
            on_expire=on_expire,
            messages=notify_messages(ctx.params),
        )


block = Form()

"""`form`: asks a person to fill something in. An approval without the decision: one button, one way on."""

from __future__ import annotations

from typing import Any

from executor.blocks.types.declared import block_type
from executor.blocks.types.params import Expiring, changed, expiry_ms, form_schema, invalid, param
from executor.blocks.types.question import ADDRESSES, ANSWERED, Question, answer_schema, check_reminder
from executor.kernel.handler.base import StepContext, Suspend


class _Params(Question, Expiring):
    fields: Any = changed(Question.declared["fields"], required=True, minProperties=1)
    submit: str | None = param("Button label", "Text on the submit button.", default="Send", order=5, maxLength=80)


@block_type(
    type="form",
    title="Form",
    description="Asks a person to fill in a form and waits for the answer. The link to the page works once.",
    category="people",
    pauses=True,
    params=_Params.json_schema,
    check=check_reminder,
    output_from=lambda params: answer_schema(params, ANSWERED),
    addresses=ADDRESSES,
    sentence="Ask: {title} | Ask a person to fill in a form",
    icon="person",
)
async def block(ctx: StepContext) -> Suspend:
    """Raises BlockError(params_invalid): better now than when a person has filled it in."""
    params = _Params(ctx.params)
    schema = form_schema(params.fields)
    if schema is None:
        raise invalid("Form fields are required", hint='such as {"properties": {"note": {"type": "string"}}}')
    request = params.shown(ctx.name)
    if "submit" in ctx.params and params.submit:
        request["submit"] = params.submit[:80]
    return Suspend(
        "form",
        request=request,
        schema=schema,
        due_ms=expiry_ms(params.expires_in_s, ctx.now_ms),
        on_expire=params.on_expire,
        messages=params.messages(),
        remind_ms=params.remind_ms(params.expires_in_s, ctx.now_ms),
    )

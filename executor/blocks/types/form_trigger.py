"""`form_trigger`: the trigger of runs that a public form starts. A version that is stored brings its form with it."""

from __future__ import annotations

from typing import Any, Final

import orjson

from compiler.catalog import BlockSpec, Finding, Params
from compiler.schema import schema_error
from executor.blocks.types.question import answer_schema
from executor.blocks.types.shared_params import ENABLED
from executor.kernel.handler.base import Context, Done

WAIT_S: Final = 5.0


def _check(params: Params) -> tuple[Finding, ...]:
    fields = params.get("fields")
    if not isinstance(fields, dict):
        return ()
    if "object" not in (kinds if isinstance(kinds := fields.get("type", "object"), list) else (kinds,)):
        message = f"Form fields must be a JSON Schema of type object, but the type is {str(kinds)[:80]!r}."
        return (Finding("param_invalid", "/fields", message),)
    problem = schema_error(orjson.dumps(fields))
    if problem is not None:
        return (Finding("param_invalid", "/fields", f"Form fields are not a JSON Schema: {problem[:300]}."),)
    return ()


def _output_of(params: Params) -> dict[str, Any] | None:
    """Return the form's fields. Without any the form has those of the workflow's input, which are not known here."""
    return answer_schema(params, {}) if isinstance(params.get("fields"), dict) else None


class FormTrigger:
    spec = BlockSpec(
        type="form_trigger",
        title="Form page",
        description="Starts the workflow when someone submits the form on its public page.",
        category="trigger",
        params={
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "title": {
                    "type": "string",
                    "title": "Title",
                    "description": "Heading of the page.",
                    "maxLength": 200,
                    "x-weft": "literal",
                    "x-ui": {"order": 1, "widget": "text"},
                },
                "text": {
                    "type": "string",
                    "title": "Text",
                    "description": "What the form is for. Shown above the fields.",
                    "maxLength": 10_000,
                    "x-weft": "literal",
                    "x-ui": {"order": 2, "widget": "longtext", "rows": 3},
                },
                "fields": {
                    "type": "object",
                    "title": "Form fields",
                    "description": "Fields of the form. Leave empty to use the input of the workflow.",
                    "x-weft": "literal",
                    "x-ui": {"order": 3, "widget": "schema"},
                },
                "submit": {
                    "type": "string",
                    "title": "Button label",
                    "description": "Text on the submit button.",
                    "maxLength": 80,
                    "default": "Submit",
                    "x-weft": "literal",
                    "x-ui": {"order": 4, "widget": "text"},
                },
                "done": {
                    "type": "string",
                    "title": "Text after submitting",
                    "description": "What happens next.",
                    "maxLength": 10_000,
                    "x-weft": "literal",
                    "x-ui": {"order": 5, "widget": "longtext", "rows": 3},
                },
                "wait_s": {
                    "type": "number",
                    "title": "Wait for the run (seconds)",
                    "description": "If the run ends in this time, the page shows its response.",
                    "minimum": 0,
                    "maximum": 30,
                    "default": WAIT_S,
                    "x-weft": "literal",
                    "x-ui": {"order": 6, "widget": "number", "advanced": True},
                },
                "enabled": {**ENABLED, "x-ui": {"order": 7, "widget": "boolean"}},
            },
        },
        trigger=True,
        inline=True,
        output_from=_output_of,
        check=_check,
        sentence="Form: {title} | Starts when a form is submitted",
        icon="form_trigger",
    )

    async def run(self, ctx: Context) -> Done:
        """Output the submitted fields, or the input of a run that was started in another way."""
        return Done(ctx.input if isinstance(ctx.input, dict) else {})


block = FormTrigger()

"""`form_trigger`: the trigger of runs that a public form starts. A version that is stored brings its form with it."""

from __future__ import annotations

from typing import Any, Final

from compiler.catalog import Finding, Params
from executor.blocks.types.declared import block_type
from executor.blocks.types.params import ENABLED, TypedParams, param, schema_problem
from executor.blocks.types.question import answer_schema
from executor.kernel.handler.base import Done, StepContext

WAIT_S: Final = 5.0


def _check(params: Params) -> tuple[Finding, ...]:
    fields = params.get("fields")
    if not isinstance(fields, dict):
        return ()
    if "object" not in (kinds if isinstance(kinds := fields.get("type", "object"), list) else (kinds,)):
        message = f"Form fields must be a JSON Schema of type object, but the type is {str(kinds)[:80]!r}."
        return (Finding("param_invalid", "/fields", message),)
    if (problem := schema_problem(fields)) is not None:
        return (Finding("param_invalid", "/fields", f"Form fields are not a JSON Schema: {problem}."),)
    return ()


def _output_of(params: Params) -> dict[str, Any] | None:
    """Return the form's fields. Without any the form has those of the workflow's input, which are not known here."""
    return answer_schema(params, {}) if isinstance(params.get("fields"), dict) else None


class _Params(TypedParams, literal=True):
    title: str | None = param("Title", "Heading of the page.", maxLength=200)
    text: str | None = param(
        "Text", "What the form is for. Shown above the fields.", widget="longtext", rows=3, maxLength=10000
    )
    fields: dict[str, Any] | None = param(
        "Form fields", "Fields of the form. Leave empty to use the input of the workflow.", widget="schema"
    )
    submit: str = param("Button label", "Text on the submit button.", default="Submit", maxLength=80)
    done: str | None = param("Text after submitting", "What happens next.", widget="longtext", rows=3, maxLength=10000)
    wait_s: float = param(
        "Wait for the run (seconds)",
        "If the run ends in this time, the page shows its response.",
        default=WAIT_S,
        advanced=True,
        minimum=0,
        maximum=30,
    )
    enabled: bool = ENABLED


@block_type(
    type="form_trigger",
    title="Form page",
    description="Starts the workflow when someone submits the form on its public page.",
    category="trigger",
    params=_Params.json_schema,
    trigger=True,
    inline=True,
    output_from=_output_of,
    check=_check,
    sentence="Form: {title} | Starts when a form is submitted",
    icon="form_trigger",
)
async def block(ctx: StepContext) -> Done:
    """Output the submitted fields, or the input of a run that was started in another way."""
    return Done(ctx.input if isinstance(ctx.input, dict) else {})

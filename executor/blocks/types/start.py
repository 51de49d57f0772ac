"""`start`: the trigger of runs that are started by a person, the API or a schedule. Its output is the run's input."""

from __future__ import annotations

from typing import Any

from compiler.catalog import Finding, Params
from executor.blocks.types.declared import block_type
from executor.blocks.types.params import FIELD_TITLES, FILLED, TypedParams, param
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.values.coerce import FIELD_TYPES
from executor.kernel.values.files import SCHEMA
from executor.kernel.values.run_input import FILE, start_output


class _Field(TypedParams):
    name: str = param("Name", "Use <start.name> in references.", required=True, pattern=FILLED, maxLength=128)
    type: Any = param(
        "Type",
        "Text is converted to this type. A file is uploaded.",
        default="any",
        enum=[*FIELD_TYPES, FILE],
        titles={**FIELD_TITLES, FILE: "File"},
        widget="select",
    )
    title: str | None = param("Label", "Label in the form.")
    description: str | None = param("Description", "Help text in the form.")
    default: Any = param("Default value", "Used when the input has no value.")
    required: bool = param("Required", "A run cannot start without it.", default=False)


class _Params(TypedParams):
    fields: list[_Field] | None = param(
        "Input fields",
        "Fields of the input. Text is converted to the type of the field; other fields are kept.",
        maxItems=200,
    )


def _check(params: Params) -> tuple[Finding, ...]:
    """A file that a document named would not be held by anything, and be deleted."""
    message = "A field of type file cannot have a default value. Files are uploaded for each run."
    fields = params.get("fields")
    return tuple(
        Finding("param_invalid", f"/fields/{n}/default", message)
        for n, field in enumerate(fields if isinstance(fields, list) else ())
        if isinstance(field, dict) and field.get("type") == FILE and field.get("default") is not None
    )


def _output_of(params: Params) -> dict[str, Any] | None:
    fields = params.get("fields")
    properties = {
        field["name"]: SCHEMA if field.get("type") == FILE else {}
        for field in (fields if isinstance(fields, list) else ())
        if isinstance(field, dict) and isinstance(field.get("name"), str)
    }
    return {"type": "object", "properties": properties, "additionalProperties": True} if properties else None


@block_type(
    type="start",
    title="Start",
    description="Starts the workflow. The output is the input of the run.",
    category="trigger",
    params=_Params.json_schema,
    trigger=True,
    by_document=True,
    preferred=True,
    output_from=_output_of,
    check=_check,
    inline=True,
    sentence="Input: {fields[].name} | Starts the workflow",
    icon="play",
)
async def block(ctx: StepContext) -> Done:
    return Done(start_output(ctx.params, ctx.input))

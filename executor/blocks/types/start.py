"""`start`: the trigger of runs that are started by a person, the API or a schedule. Its output is the run's input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from compiler.catalog import BlockSpec, Finding, Params
from executor.blocks.types.shared_params import FIELD_TITLES, FILLED
from executor.errors import BlockError
from executor.kernel.handler.base import Context, Done
from executor.kernel.values.coerce import FIELD_TYPES, coerce
from executor.kernel.values.file import SCHEMA, is_file
from executor.kernel.values.files import UPLOAD_HINT

# Names that steer execution in workflows of older origin: an input that used one could forge a route or an error.
RESERVED: Final = ("error", "selectedOption", "selectedRoute", "_pauseMetadata")
FILE: Final = "file"  # the type of a field that is a file

_PARAMS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "fields": {
            "type": "array",
            "title": "Input fields",
            "description": "Fields of the input. Text is converted to the type of the field; other fields are kept.",
            "maxItems": 200,
            "x-ui": {"order": 1, "widget": "list"},
            "items": {
                "type": "object",
                "required": ["name"],
                "additionalProperties": False,
                "properties": {
                    "name": {
                        **FILLED,
                        "title": "Name",
                        "description": "Use <start.name> in references.",
                        "maxLength": 128,
                        "x-ui": {"order": 1, "widget": "text"},
                    },
                    "type": {
                        "enum": [*FIELD_TYPES, FILE],
                        "title": "Type",
                        "description": "Text is converted to this type. A file is uploaded.",
                        "x-titles": {**FIELD_TITLES, FILE: "File"},
                        "default": "any",
                        "x-ui": {"order": 2, "widget": "select"},
                    },
                    "title": {
                        "type": "string",
                        "title": "Label",
                        "description": "Label in the form.",
                        "x-ui": {"order": 3, "widget": "text"},
                    },
                    "description": {
                        "type": "string",
                        "title": "Description",
                        "description": "Help text in the form.",
                        "x-ui": {"order": 4, "widget": "text"},
                    },
                    "default": {
                        "title": "Default value",
                        "description": "Used when the input has no value.",
                        "x-ui": {"order": 5, "widget": "json"},
                    },
                    "required": {
                        "type": "boolean",
                        "title": "Required",
                        "description": "A run cannot start without it.",
                        "default": False,
                        "x-ui": {"order": 6, "widget": "boolean"},
                    },
                },
            },
        }
    },
}


def start_output(params: Mapping[str, Any], input: Any) -> dict[str, Any]:
    """Return the output of a start block for this run input: the input object, its declared fields coerced and
    defaulted. An input that is not an object becomes {"input": value}, no input {}. Raises BlockError: input_reserved
    for a reserved name, input_missing for a required field that is not given, not_a_file for another value in the field
    of a file. Quick and pure, so that it can be called before a run is made."""
    output = dict(input) if isinstance(input, dict) else {} if input is None else {"input": input}
    fields = [f for f in params.get("fields") or () if isinstance(f, dict) and isinstance(f.get("name"), str)]
    reserved = [name for name in RESERVED if name in output or any(f["name"] == name for f in fields)]
    if reserved:
        raise BlockError(
            f"the start block cannot use reserved input field names: {', '.join(reserved)}",
            code="input_reserved",
            retryable=False,
            hint=f"Rename them. Reserved names are: {', '.join(RESERVED)}.",
        )
    for field in fields:
        name = field["name"]
        value = output.get(name)
        if field.get("type") == FILE:
            if value is None:
                _check_given(field)
            elif not is_file(value):
                raise BlockError(
                    f"input field {name!r} must be a file", code="not_a_file", retryable=False, hint=UPLOAD_HINT
                )
            continue
        if value is None:
            value = field.get("default")
        if value is not None:
            output[name] = coerce(str(field.get("type", "any")), value)
        else:
            _check_given(field)
    return output


def _check_given(field: Mapping[str, Any]) -> None:
    if field.get("required"):
        raise BlockError(f"input field {field['name']!r} is required", code="input_missing", retryable=False)


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
    """Return the declared fields, of which those of files have a known shape; others pass through."""
    fields = params.get("fields")
    properties = {
        field["name"]: SCHEMA if field.get("type") == FILE else {}
        for field in (fields if isinstance(fields, list) else ())
        if isinstance(field, dict) and isinstance(field.get("name"), str)
    }
    return {"type": "object", "properties": properties, "additionalProperties": True} if properties else None


class Start:
    spec = BlockSpec(
        type="start",
        title="Start",
        description="Starts the workflow. The output is the input of the run.",
        category="trigger",
        params=_PARAMS,
        trigger=True,
        by_document=True,
        preferred=True,
        output_from=_output_of,
        check=_check,
        inline=True,
        sentence="Input: {fields[].name} | Starts the workflow",
        icon="play",
    )

    async def run(self, ctx: Context) -> Done:
        return Done(start_output(ctx.params, ctx.input))


block = Start()

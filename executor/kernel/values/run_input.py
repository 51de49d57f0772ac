"""The input of a run, as its trigger takes it: asked before the run is made, so that what can only fail is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from executor.errors import BlockError
from executor.kernel.values.coerce import coerce
from executor.kernel.values.files import UPLOAD_HINT, is_file

# Names that steer execution in workflows of older origin: an input that used one could forge a route or an error.
RESERVED: Final = ("error", "selectedOption", "selectedRoute", "_pauseMetadata")
FILE: Final = "file"  # the type of a field that is a file
MESSAGE_MAX: Final = 8_000  # characters of a chat message
CHAT_INPUT: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["message"],
    "properties": {
        "message": {"type": "string", "title": "Message", "minLength": 1, "maxLength": MESSAGE_MAX},
        "conversation": {"type": "string", "title": "Conversation", "maxLength": 64, "default": "test"},
        "turn": {"type": "integer", "title": "Number of the message", "minimum": 1, "default": 1},
    },
}


def start_output(params: Mapping[str, Any], input: Any) -> dict[str, Any]:
    """Return the output of a start block for this run input: the object with its declared fields coerced and defaulted.
    Another input becomes {"input": value}, none {}. Raises BlockError: input_reserved, input_missing, not_a_file."""
    output = dict(input) if isinstance(input, dict) else {} if input is None else {"input": input}
    fields = [f for f in params.get("fields") or () if isinstance(f, dict) and isinstance(f.get("name"), str)]
    reserved = [name for name in RESERVED if name in output or (fields and any(f["name"] == name for f in fields))]
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

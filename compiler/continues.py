"""The input that a block has for the next run of its workflow, against the schema of that input: the errors that are
certain before anything runs. The rest is checked when the block runs, because the next run may be of a later
version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from compiler.document import BlockDoc
from compiler.references import escape
from compiler.schema import admits, is_open

PARAM: Final = "input"


def problems_of_input(block: BlockDoc, schema: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (code, pointer into the params, message) for each error in the input of the next run. `schema` is the
    document's, and is valid."""
    value = block.params.get(PARAM)
    value = {} if value is None else value
    if is_open(value):
        return
    if not isinstance(value, dict):
        if not admits(schema, value):
            yield "param_invalid", f"/{PARAM}", "the input of the new run is not what the workflow describes."
        return
    fields = schema.get("properties") if isinstance(schema.get("properties"), dict) else {}
    assert isinstance(fields, dict)
    for name in schema.get("required") or ():
        field = fields.get(name)
        if name not in value and not (isinstance(field, dict) and "default" in field):
            yield "required", f"/{PARAM}", f"the input of the new run has no `{str(name)[:80]}`, which is required."
    for name, each in value.items():
        where = f"/{PARAM}/{escape(name)}"
        if name not in fields:
            if schema.get("additionalProperties") is False:
                yield "param_invalid", where, f"the input of the workflow has no `{name[:80]}`."
        elif _differs(fields[name], each):
            wanted = fields[name]["type"]
            shown = wanted if isinstance(wanted, str) else " or ".join(wanted)
            yield "param_invalid", where, f"`{name[:80]}` of the input must be of type {shown}."


def _differs(schema: Any, value: Any) -> bool:
    """Return whether it is of another type, whatever the values of references in it. 3.0 is an integer."""
    return isinstance(schema, dict) and not (is_open(value) or isinstance(value, float) or admits(schema, value))

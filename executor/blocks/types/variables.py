"""`variables`: changes workflow variables. The changes are applied in the same commit as the step, in journal order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from compiler.catalog import Params, VariableWrite
from compiler.references import escape
from executor.blocks.types.declared import block_type
from executor.blocks.types.params import FIELD_TITLES, FILLED, TypedParams, invalid, param
from executor.kernel.handler.base import Done, Patch, PatchOp, StepContext
from executor.kernel.values.coerce import FIELD_TYPES, coerce
from executor.kernel.values.payload import MISSING
from executor.kernel.values.variables import OPS, add, parse_path, read


class _Assignment(TypedParams):
    name: str = param(
        "Variable", "Name of a variable, or a path such as $.order.items[0]", required=True, pattern=FILLED
    )
    op: str = param(
        "Operation",
        "Append and increment are atomic. Merge requires an object.",
        default="set",
        choices={"set": "Set", "merge": "Merge", "del": "Delete", "append": "Append", "increment": "Increment"},
    )
    type: str = param(
        "Type",
        "Text is converted to this type.",
        default="any",
        advanced=True,
        enum=list(FIELD_TYPES),
        titles=FIELD_TITLES,
    )
    value: Any = param(
        "Value", "Any JSON value, including references.", when={"op": ["set", "merge", "append", "increment"]}
    )


class _Params(TypedParams):
    assign: Any = param(
        "Assignments",
        "Changes, in order. An object of names and values sets each variable.",
        required=True,
        widget="list",
        oneOf=[{"type": "object"}, {"type": "array", "maxItems": 200, "items": _Assignment.json_schema}],
    )


def _writes(params: Params) -> tuple[VariableWrite, ...]:
    assign = params.get("assign")
    if isinstance(assign, dict):
        return tuple(VariableWrite(str(name), "set", f"/assign/{escape(str(name))}") for name in assign)
    items = enumerate(assign) if isinstance(assign, list) else ()
    return tuple(
        VariableWrite(item["name"], str(item.get("op", "set")), f"/assign/{i}")
        for i, item in items
        if isinstance(item, dict) and isinstance(item.get("name"), str)
    )


@block_type(
    type="variables",
    title="Variables",
    description="Sets, merges, appends to, increments or deletes workflow variables.",
    category="data",
    params=_Params.json_schema,
    inline=True,
    writes=_writes,
    sentence="Change {assign[].name} | Change {assign} | Change variables",
    icon="variable",
)
async def block(ctx: StepContext) -> Done:
    """Output: by name, the value assigned; the new number of an increment, null for del."""
    output: dict[str, Any] = {}
    patches: list[Patch] = []
    numbers: dict[str, Any] = {}  # values from earlier assignments of this block
    for name, op, value in _assignments(_Params(ctx.params).assign):
        path = name if name.startswith("$") else f"$[{orjson.dumps(name).decode()}]"
        segments = parse_path(path)
        if not segments or not isinstance(segments[0], str):
            raise invalid(f"{name!r} is not a variable")
        if op == "increment":  # atomic in the patch; the output is the number as this block sees it
            before = numbers.get(path, read(ctx.variables, segments))
            numbers[path] = add(path, before if before not in (MISSING, None) else 0, 1 if value is None else value)
            output[name] = numbers[path]
        else:
            value = None if op == "del" else value
            numbers[path] = output[name] = value
        patches.append(Patch(op, path, value))
    return Done(output, patches=patches)


def _assignments(assign: Any) -> Iterator[tuple[str, PatchOp, Any]]:
    if isinstance(assign, dict):
        for name, value in assign.items():
            yield name, "set", value
        return
    if not isinstance(assign, list):
        raise invalid("`assign` must be a list of assignments or an object")
    for item in assign:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str) or not item["name"]:
            raise invalid("each assignment requires the name of a variable")
        op = item.get("op", "set")
        if op not in OPS:
            raise invalid(f"unknown operation {op!r}; the operations are {', '.join(OPS)}")
        yield item["name"], op, coerce(str(item.get("type", "any")), item.get("value"))

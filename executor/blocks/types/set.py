"""`set`: gives a name to a value. Its output is its `value` param, or the first in `first` that is not null."""

from __future__ import annotations

from typing import Any

from compiler.catalog import Finding, Params
from executor.blocks.types.declared import block_type
from executor.blocks.types.params import TypedParams, param
from executor.kernel.handler.base import Done, StepContext


def _check(params: Params) -> tuple[Finding, ...]:
    if "value" in params and "first" in params:
        message = "has both a value and a list to choose from."
        return (Finding("param_invalid", "/first", message, "Leave one of the two empty.", of_block=True),)
    return ()


class _Params(TypedParams):
    value: Any = param("Value", "Any JSON value, including references.", rows=6)
    first: list[Any] | None = param(
        "First of",
        "Values to choose from: the output is the first one that is not null. With a "
        "reference to the last block of each branch, that of the branch that ran.",
        advanced=True,
        minItems=1,
    )


@block_type(
    type="set",
    title="Set",
    description="Builds a value from text and references. The output is that value.",
    category="data",
    params=_Params.json_schema,
    inline=True,
    check=_check,
    sentence="= {value} | = first of {first}",
    icon="equal",
)
async def block(ctx: StepContext) -> Done:
    params = _Params(ctx.params)
    if params.first is not None:
        return Done(next((value for value in params.first if value is not None), None))
    return Done(params.value)

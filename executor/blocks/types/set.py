"""`set`: gives a name to a value. Its output is its `value` param, or the first in `first` that is not null."""

from __future__ import annotations

from compiler.catalog import BlockSpec, Finding, Params
from executor.kernel.handler.base import Context, Done


def _check(params: Params) -> tuple[Finding, ...]:
    if "value" in params and "first" in params:
        message = "has both a value and a list to choose from."
        return (Finding("param_invalid", "/first", message, "Leave one of the two empty.", of_block=True),)
    return ()


class Set:
    spec = BlockSpec(
        type="set",
        title="Set",
        description="Builds a value from text and references. The output is that value.",
        category="data",
        params={
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "value": {
                    "title": "Value",
                    "description": "Any JSON value, including references.",
                    "x-ui": {"order": 1, "widget": "json", "rows": 6},
                },
                "first": {
                    "type": "array",
                    "title": "First of",
                    "description": "Values to choose from: the output is the first one that is not null. With a "
                    "reference to the last block of each branch, that of the branch that ran.",
                    "minItems": 1,
                    "x-ui": {"order": 2, "widget": "json", "advanced": True},
                },
            },
        },
        inline=True,
        check=_check,
        sentence="= {value} | = first of {first}",
        icon="equal",
    )

    async def run(self, ctx: Context) -> Done:
        if "first" in ctx.params:
            return Done(next((value for value in ctx.params["first"] or () if value is not None), None))
        return Done(ctx.params.get("value"))


block = Set()

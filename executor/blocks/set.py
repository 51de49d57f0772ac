"""`set`: gives a name to a value: its output is what its `value` param resolves to."""

from __future__ import annotations

from compiler.catalog import BlockSpec
from executor.blocks.base import Context, Done


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
                }
            },
        },
        inline=True,
        sentence="= {value}",
        icon="equal",
    )

    async def run(self, ctx: Context) -> Done:
        return Done(ctx.params.get("value"))


block = Set()

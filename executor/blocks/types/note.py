"""`note`: text on the canvas. The compiler leaves notes out of the plan, so this never runs in a workflow."""

from __future__ import annotations

from executor.blocks.types.declared import block_type
from executor.blocks.types.params import shape
from executor.kernel.handler.base import Done, StepContext


@block_type(
    type="note",
    title="Note",
    description="A note on the canvas. It does not run.",
    category="annotation",
    params=shape(
        text={
            "type": "string",
            "title": "Text",
            "description": "Text of the note. References are not resolved.",
            "x-weft": "literal",
            "x-ui": {"order": 1, "widget": "longtext", "rows": 4},
        }
    ),
    handles=(),
    inline=True,
    sentence="{text}",
    icon="note",
)
async def block(ctx: StepContext) -> Done:
    return Done()

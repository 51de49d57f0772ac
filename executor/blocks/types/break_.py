"""`break`: ends the innermost loop around it with this iteration. Other blocks ready in the iteration still run."""

from __future__ import annotations

from executor.blocks.types.declared import block_type
from executor.kernel.handler.base import Done, StepContext


@block_type(
    type="break",
    title="Break",
    description="Ends the loop after the current iteration. Place it after a condition.",
    category="flow",
    inline=True,
    inside="loop",
    sentence="End the loop",
    icon="exit",
)
async def block(ctx: StepContext) -> Done:
    """`values.scope` records that the block ran, when the step is recorded and again on recovery."""
    return Done({"break": True})

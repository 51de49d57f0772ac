"""`chat_trigger`: the trigger of runs that messages on a public chat page start, one run for each message."""

from __future__ import annotations

from executor.blocks.types.declared import block_type
from executor.blocks.types.params import ENABLED, TypedParams, param
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.values.run_input import CHAT_INPUT


class _Params(TypedParams, literal=True):
    title: str | None = param("Title", "Heading of the page.", maxLength=200)
    text: str | None = param(
        "Text", "What people can ask. Shown above the messages.", widget="longtext", rows=3, maxLength=10000
    )
    placeholder: str | None = param("Hint in the text box", "Such as: Ask about your order", maxLength=200)
    enabled: bool = ENABLED


@block_type(
    type="chat_trigger",
    title="Chat page",
    description="Starts the workflow with each message that someone sends on its public chat page.",
    category="trigger",
    params=_Params.json_schema,
    trigger=True,
    inline=True,
    output=CHAT_INPUT,
    sentence="Chat: {title} | Starts with each message of a chat",
    icon="chat_trigger",
)
async def block(ctx: StepContext) -> Done:
    """Output {"message", "conversation", "turn"}; the conversation is a key for the memory of agents."""
    return Done(ctx.input if isinstance(ctx.input, dict) else {})

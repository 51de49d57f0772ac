"""`chat_trigger`: the trigger of runs that messages on a public chat page start, one run for each message."""

from __future__ import annotations

from compiler.catalog import BlockSpec
from executor.blocks.types.shared_params import ENABLED
from executor.kernel.handler.base import Context, Done
from executor.kernel.values.run_input import CHAT_INPUT


class ChatTrigger:
    spec = BlockSpec(
        type="chat_trigger",
        title="Chat page",
        description="Starts the workflow with each message that someone sends on its public chat page.",
        category="trigger",
        params={
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "title": {
                    "type": "string",
                    "title": "Title",
                    "description": "Heading of the page.",
                    "maxLength": 200,
                    "x-weft": "literal",
                    "x-ui": {"order": 1, "widget": "text"},
                },
                "text": {
                    "type": "string",
                    "title": "Text",
                    "description": "What people can ask. Shown above the messages.",
                    "maxLength": 10_000,
                    "x-weft": "literal",
                    "x-ui": {"order": 2, "widget": "longtext", "rows": 3},
                },
                "placeholder": {
                    "type": "string",
                    "title": "Hint in the text box",
                    "description": "Such as: Ask about your order",
                    "maxLength": 200,
                    "x-weft": "literal",
                    "x-ui": {"order": 3, "widget": "text"},
                },
                "enabled": {**ENABLED, "x-ui": {"order": 4, "widget": "boolean"}},
            },
        },
        trigger=True,
        inline=True,
        output=CHAT_INPUT,
        sentence="Chat: {title} | Starts with each message of a chat",
        icon="chat_trigger",
    )

    async def run(self, ctx: Context) -> Done:
        """Output {"message", "conversation", "turn"}; the conversation is a key for the memory of agents."""
        return Done(ctx.input if isinstance(ctx.input, dict) else {})


block = ChatTrigger()

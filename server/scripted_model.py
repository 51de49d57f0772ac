"""`weft.testing.ScriptedModel`: the model of `weft dev-model` inside a program, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from executor.blocks.llm.base import Content, Conversation, Message, OnDelta, Reply, Stop, ToolCall, Usage, Vectors
from executor.errors import BlockError
from server.shipped import example

_CHUNK = 12  # characters of live text at a time


class ScriptedModel:
    """A language model that answers from a script: `weft.open(models={"dev": testing.ScriptedModel(…)})` makes
    `dev:any-name`. `calls`: the conversations so far.

    Each rule is one of the file of `weft dev-model --script`; the first whose `when` fits the request answers. Without
    one that fits, the model calls the tools that the prompt names, makes up an output that fits its schema, or repeats
    the prompt.

        ScriptedModel(
            {"when": {"tool": ""}, "calls": [{"name": "search", "arguments": {"query": "weft"}}]},
            {"text": "I found {{tool}}."},
        )

    Raises ValueError: a rule is none."""

    def __init__(self, *rules: Mapping[str, Any]) -> None:
        self._files = example("dev_model.files")
        self._script = example("dev_model.script")
        try:
            script = msgspec.convert({"rules": list(rules)}, self._script.Script)
        except msgspec.ValidationError as error:
            raise ValueError(f"the script of a model: {error}") from None
        self._player = self._script.Player(script)
        self.calls: list[Conversation] = []

    async def reply(self, name: str, conversation: Conversation, on_delta: OnDelta | None) -> Reply:
        self.calls.append(conversation)
        answer = self._player.answer(await self._asked(name, conversation))
        if isinstance(answer, self._script.Failure):
            retryable = answer.status == 429 or answer.status >= 500
            raise BlockError(f"{conversation.model}: {answer.message}", code="model_failed", retryable=retryable)
        if on_delta is not None:
            for at in range(0, len(answer.text), _CHUNK):
                await asyncio.sleep(answer.rule.pause_ms / 1000)
                on_delta(answer.text[at : at + _CHUNK])
        calls = tuple(_call(called, id, given) for called, id, given in answer.calls)
        given = answer.usage
        usage = Usage(
            answer.input_tokens,
            answer.output_tokens,
            given.cached_tokens,
            given.cache_write_tokens,
            given.reasoning_tokens,
        )
        output = _object(answer.text) if conversation.output is not None and not calls else None
        stop: Stop = answer.stop or ("tool_call" if calls else "stop")
        return Reply(answer.text, calls, output, usage, None, name, stop)

    async def embed(self, name: str, texts: Sequence[str]) -> Vectors:
        """Return vectors that are near where the texts have words in common."""
        made = example("dev_model.embeddings")
        return Vectors([made.vector(text) for text in texts], Usage(made.tokens(list(texts))))

    async def _asked(self, name: str, conversation: Conversation) -> Any:
        messages = conversation.messages
        files: Mapping[str, Content] = {}
        last = max((at for at, one in enumerate(messages) if one.role == "user"), default=-1)
        shown = messages[last].files if last >= 0 else ()
        if shown and conversation.load is not None:
            files = await conversation.load()
        return self._script.Asked(
            model=name,
            system="".join(one.text for one in messages if one.role == "system"),
            last=messages[last].text if last >= 0 else "",
            results=_results(messages[last + 1 :]),
            round=sum(one.role == "assistant" for one in messages),
            tools={tool.name: tool.schema for tool in conversation.tools},
            schema=None if conversation.output is None else conversation.output.schema,
            chars=sum(len(one.text) for one in messages),
            files=tuple(
                self._files.Seen(files[id].media_type, len(files[id].data), files[id].media_type) for id in shown
            ),
        )


def _results(messages: Any) -> tuple[tuple[str, str], ...]:
    """Return the results of tools since the last reply."""
    found: list[Message] = []
    for one in messages:
        found = [*found, one] if one.role == "tool" else []
    return tuple((one.tool, one.text) for one in found)


def _call(name: str, id: str, arguments: str) -> ToolCall:
    found = _object(arguments)
    return ToolCall(id, name, invalid=arguments) if found is None else ToolCall(id, name, found)


def _object(text: str) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None

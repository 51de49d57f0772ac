"""The memory of an agent between runs: its params, and the choice of the stored turns that the model gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from executor.blocks.llm.base import Message
from executor.blocks.types.params import TypedParams, invalid, param
from executor.kernel.values.payload import render

MESSAGES: Final = 20
MESSAGES_MAX: Final = 400
TOKENS_MAX: Final = 1_000_000
NAME_MAX: Final = 200  # characters of a key or a scope
TEXT_MAX: Final = 32 * 1024  # characters of a message that are kept
CHARS_PER_TOKEN: Final = 4  # about


class MemoryParams(TypedParams):
    """Params of what is remembered between runs."""

    memory: Any = param(
        "Memory key",
        "Conversation that is remembered between runs, such as <chat.conversation>. Empty: none.",
        order=17,
        widget="text",
        type=["string", "number"],
    )
    memory_scope: str | None = param(
        "Memory scope",
        "Workflows with the same scope share what is remembered. Empty: only this workflow.",
        order=18,
        advanced=True,
    )
    memory_messages: int = param(
        "Remembered messages",
        "The number of the last messages that the model gets at most.",
        default=MESSAGES,
        order=19,
        advanced=True,
        minimum=1,
        maximum=MESSAGES_MAX,
    )
    memory_tokens: int | None = param(
        "Remembered tokens",
        "About the number of tokens that they have at most: one for every four characters.",
        order=20,
        advanced=True,
        minimum=1,
        maximum=TOKENS_MAX,
    )


class Remembered(Struct, frozen=True):
    """The conversation to use, and how much of it. `tokens` is None for no bound."""

    key: str
    scope: str
    messages: int
    tokens: int | None

    def fitting(self, turns: Sequence[Sequence[Mapping[str, Any]]]) -> list[Message]:
        """Return the last whole turns within the bounds: a question is never without its answer."""
        found: list[Message] = []
        chars = 0
        for turn in reversed(turns):
            messages = [Message(one["role"], one["text"]) for one in turn]
            chars += sum(len(message.text) for message in messages)
            if len(found) + len(messages) > self.messages:
                break
            if self.tokens is not None and chars > self.tokens * CHARS_PER_TOKEN:
                break
            found = messages + found
        return found


def read_memory(given: Mapping[str, Any]) -> Remembered | None:
    """Raises BlockError(params_invalid): with a key that is not there, conversations would become one."""
    if "memory" not in given or given["memory"] == "":
        return None
    key, params = given["memory"], MemoryParams(given)
    if isinstance(key, bool) or not isinstance(key, str | int | float) or not str(key).strip():
        raise invalid("memory must be a text or a number that names the conversation")
    key, scope = render(key), params.memory_scope or ""
    if len(key) > NAME_MAX or len(scope) > NAME_MAX:
        raise invalid(f"memory and memory_scope have at most {NAME_MAX} characters")
    if "\0" in key + scope:  # no database but SQLite has such a text in a column
        raise invalid("memory and memory_scope cannot contain a NUL character")
    return Remembered(key, scope, params.memory_messages, params.memory_tokens)


def turn_of(question: str, answer: str) -> list[dict[str, Any]]:
    """Return the turn to store: the question and the answer, without the tool calls between them."""
    return [{"role": "user", "text": _cut(question)}, {"role": "assistant", "text": _cut(answer)}]


def _cut(said: str) -> str:
    return said if len(said) <= TEXT_MAX else f"{said[:TEXT_MAX]}\n[cut: it has {len(said)} characters]"

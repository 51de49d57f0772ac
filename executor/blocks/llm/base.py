"""The messages to a model, and its replies. Plain data: a reply can be stored as JSON and read back.

A conversation is a list of messages of four kinds:

    system      instructions
    user        the prompt
    assistant   an earlier reply: its text and the tools that it called
    tool        the result of one such call, as text
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from executor.blocks.vault.connection import Credential

Role = Literal["system", "user", "assistant", "tool"]
Stop = Literal["stop", "length", "tool_call", "content_filter", "error"]
OutputMode = Literal["auto", "native", "tool", "prompted"]
OnDelta = Callable[[str], None]

OUTPUT_TOOL = "final_result"  # the tool with which a model returns its output, when it has no other way


class ToolCall(Struct, frozen=True, omit_defaults=True):
    """A call of a tool by the model. `arguments`: an object; `invalid`: the text that the model wrote instead of
    one."""

    id: str
    name: str
    arguments: dict[str, Any] = {}
    invalid: str | None = None


class Content(Struct, frozen=True):
    """A file as a model is shown it: an image, a PDF, or text (`text/plain`, in UTF-8)."""

    name: str
    media_type: str
    data: bytes


LoadFiles = Callable[[], Awaitable[Mapping[str, Content]]]


class Message(Struct, frozen=True, omit_defaults=True):
    """One message. `calls`: of an assistant; `call_id` and `tool`: of the call that a tool message answers; `files`:
    the ids of those that a user shows."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    tool: str = ""
    files: tuple[str, ...] = ()


class ToolSpec(Struct, frozen=True):
    """A tool as the model sees it. `schema`: JSON Schema of the arguments, an object."""

    name: str
    description: str
    schema: Mapping[str, Any]


class OutputSpec(Struct, frozen=True):
    """The reply is to be JSON of this schema, an object. `mode`: how the model is made to; `auto`: in its own way if
    it has one, else by a tool, else by words."""

    schema: Mapping[str, Any]
    mode: OutputMode = "auto"
    name: str = OUTPUT_TOOL
    description: str = ""


class Conversation(Struct, frozen=True):
    """One request. `model`: `openai:gpt-5-mini`, `anthropic:…`, or `<endpoint>:<model>`; `api_key` is None for the
    endpoint's own. `credential`: of a connection, instead of a key. `timeout_s`: for all of the reply. `load`: reads
    the files that messages name, by id."""

    model: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    output: OutputSpec | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    timeout_s: float = 120.0
    api_key: str | None = None
    seed: int | None = None
    credential: Credential | None = None
    load: LoadFiles | None = None

    def __repr__(self) -> str:
        """Leave out the key and the messages: the text may end up in a log."""
        return f"Conversation(model={self.model!r}, messages={len(self.messages)})"


_SELDOM = frozenset({"cache_write_tokens", "reasoning_tokens"})


class Usage(Struct, frozen=True):
    """Tokens. Those read from a cache (`cached_tokens`) and written to one are part of the input tokens, those of
    reasoning part of the output tokens."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))

    def counts(self) -> dict[str, int]:
        """Return the counts by name. The last two are left out if they are 0: few models have them."""
        counted = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: n for name, n in counted.items() if n or name not in _SELDOM}


class Cost(Struct, frozen=True):
    """The cost of a call, in US dollars, by the price list of `prices`: a table with its version and date, or the
    setting of the operator. `executor.kernel.values.money` adds costs."""

    usd: float
    prices: str


class Reply(Struct, frozen=True):
    """The reply of a model. `output`: its value for an OutputSpec, not checked against the schema; None without one, or
    if it is not a JSON object (then see `text`). `cost` is None if the price of the model is not known. `model`: as its
    server names it."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    output: dict[str, Any] | None = None
    usage: Usage = Usage()
    cost: Cost | None = None
    model: str = ""
    stop: Stop = "stop"
    thinking: str = ""


class Vectors(Struct, frozen=True):
    """The vectors of texts, in their order, as many numbers each."""

    vectors: list[list[float]]
    usage: Usage = Usage()
    cost: Cost | None = None

    @property
    def priced(self) -> tuple[float | None, str]:
        """The cost in dollars, and the price list."""
        return (None, "") if self.cost is None else (self.cost.usd, self.cost.prices)


class Model(Protocol):
    """Models in this process, in the place of a server."""

    async def reply(self, name: str, conversation: Conversation, on_delta: OnDelta | None) -> Reply:
        """See ModelClient.reply. `name`: of the model, without its endpoint."""


class Embeds(Protocol):
    """A Model that makes vectors, too."""

    async def embed(self, name: str, texts: Sequence[str]) -> Vectors:
        """See ModelClient.embed."""

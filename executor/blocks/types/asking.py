"""Shared parts of the blocks that call a language model: their params, one question whose answer is checked, its cost,
and the files that the model is given. An unusable answer is sent back once, with its problems.

The type of a file is found from its content, not from its label. A message names files by their ids, so a step compares
ids, and the bytes are read again for each call of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from executor.blocks.http.binding import using
from executor.blocks.llm.base import (
    Content,
    Conversation,
    Cost,
    LoadFiles,
    Message,
    OnDelta,
    OutputSpec,
    Reply,
    ToolSpec,
    Usage,
)
from executor.blocks.services import services_of
from executor.blocks.types.connected import CONNECTION, signed_in
from executor.blocks.types.file_contents import decoded
from executor.blocks.types.params import FILLED, TypedParams, changed, invalid, param, shape
from executor.blocks.vault.connection import Credential
from executor.errors import BadRequest, BlockError
from executor.kernel.handler.base import StepContext, Stepped
from executor.kernel.values.files import NOT_A_FILE_HINT, is_file
from executor.kernel.values.money import nanos_of, usd_of
from executor.kernel.values.schema import Matches, violations

FILES_MAX: Final = 20  # for one call of a model
BYTES_MAX: Final = 10 * 1024 * 1024  # for all files together
_MARKS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


FILES: Final[Any] = param(
    "Files",
    "A file, or a list of files, that the model sees: images, PDF and text, 10 MiB in total.",
    order=-0.5,
    widget="reference",
)


def file_ids(value: Any, name: str = "files") -> tuple[str, ...]:
    """Return the ids of a param that has a file or a list of them, each once. Raises BlockError(params_invalid)."""
    listed = [] if value is None or value == "" else value if isinstance(value, list) else [value]
    for each in listed:
        if not is_file(each):
            raise invalid(f"{name} must be files", NOT_A_FILE_HINT)
    return tuple(dict.fromkeys(each["id"] for each in listed))


def with_files(messages: Sequence[Message], files: Any) -> list[Message]:
    """Add these files to the last message of the user. Raises BlockError(params_invalid)."""
    ids, found = file_ids(files), list(messages)
    if ids:
        at = max(at for at, message in enumerate(found) if message.role == "user")
        found[at] = replace(found[at], files=tuple(dict.fromkeys((*found[at].files, *ids))))
    return found


def loader(ctx: StepContext, messages: Sequence[Message]) -> LoadFiles | None:
    """Return a function that reads the files of these messages, or None if they have none. It raises BlockError:
    file_type_refused, file_too_large, file_not_found. Raises BlockError(params_invalid)."""
    ids = list(dict.fromkeys(id for message in messages for id in message.files))
    if not ids:
        return None
    if len(ids) > FILES_MAX:
        raise invalid(f"a model can be shown {FILES_MAX} files, these are {len(ids)}")

    async def load() -> Mapping[str, Content]:
        found: dict[str, Content] = {}
        left = BYTES_MAX
        for id in ids:
            value = {"type": "file", "id": id}
            head = await ctx.files.find(value)
            data = await ctx.files.read(value, left)
            left -= len(data)
            found[id] = content_of(head.name, data)
        return found

    return load


def content_of(name: str, data: bytes) -> Content:
    """Raises BlockError(file_type_refused)."""
    kind = next((kind for mark, kind in _MARKS if data.startswith(mark)), None)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "image/webp"
    if kind is not None:
        return Content(name, kind, data)
    try:
        text = decoded(data, {"name": name})
    except BlockError:
        text = "\0"
    if "\0" in text:
        raise BlockError(
            f"the file {name!r} cannot be shown to a model",
            code="file_type_refused",
            retryable=False,
            hint="Models take images (PNG, JPEG, GIF, WebP), PDF, and text in UTF-8.",
        )
    return Content(name, "text/plain", text.encode("utf-8", "replace"))


ATTEMPTS = 3
_PROBLEMS_SHOWN = 5

COST: dict[str, Any] = {
    "type": ["object", "null"],
    "properties": {"usd": {"type": "number"}, "prices": {"type": "string"}},
}
USAGE: dict[str, Any] = shape(
    input_tokens="integer",
    output_tokens="integer",
    cached_tokens="integer",
    cache_write_tokens="integer",
    reasoning_tokens="integer",
)
SPENT: dict[str, Any] = {"model": {"type": "string"}, "usage": USAGE, "cost": COST}  # part of each output


class ModelParams(TypedParams):
    """Params that choose and set up the model."""

    model: str | None = param(
        "Model",
        "<endpoint>:<model>, such as openai:gpt-5-mini. The key of an endpoint is set on the server, as "
        "WEFT_SECRET_OPENAI_API_KEY, or is a connection of the block.",
        pattern=FILLED,
    )
    files: Any = FILES
    connection: str | None = changed(
        CONNECTION,
        description="A stored credential of the endpoint, instead of an API key. Its hosts must contain that of the "
        "endpoint.",
        order=1.5,
    )
    api_key: str | None = param(
        "API key",
        "A secret, such as ${OPENAI_API_KEY}. Leave empty to use the key of the endpoint.",
        order=2,
        advanced=True,
        weft="secret",
    )
    temperature: float | None = param(
        "Temperature", "Leave empty to use the default of the model.", order=3, advanced=True, minimum=0, maximum=2
    )
    max_tokens: int | None = param(
        "Maximum tokens", "Longest reply of the model.", order=4, advanced=True, minimum=1, maximum=1_000_000
    )
    timeout_s: float = param(
        "Timeout (seconds)",
        "For each reply of the model.",
        default=120,
        order=5,
        advanced=True,
        exclusiveMinimum=0,
        maximum=600,
    )


class Spent(Struct, frozen=True):
    """The sum of the usage and cost of replies. `cost` is None if the price of one of them is not known."""

    model: str = ""
    usage: Usage = Usage()
    cost: Cost | None = None

    def plus(self, reply: Reply) -> Spent:
        """Return the sum with one more reply."""
        first = not self.model
        cost = reply.cost if first or reply.cost is None else None
        if not first and self.cost is not None and reply.cost is not None:
            cost = Cost(usd_of(nanos_of(self.cost.usd) + nanos_of(reply.cost.usd)), reply.cost.prices)
        return Spent(reply.model, self.usage + reply.usage, cost)

    def as_output(self) -> dict[str, Any]:
        """Return its part of the output of a block."""
        shown: dict[str, Any] = to_builtins(self)
        return shown | {"usage": self.usage.counts()}


Check = Callable[[dict[str, Any]], Sequence[str]]


def conversation_of(
    ctx: StepContext,
    params: ModelParams,
    messages: Sequence[Message],
    output: OutputSpec | None = None,
    tools: Sequence[ToolSpec] = (),
) -> Conversation:
    """Return a request to the model of the params. Raises BlockError(params_invalid)."""
    if params.model is None:
        raise invalid("model is required")
    if params.connection is not None and params.api_key is not None:
        raise invalid("either connection or api_key can be set, not both")
    return Conversation(
        params.model,
        messages,
        tools=tools,
        output=output,
        max_tokens=params.max_tokens,
        temperature=params.temperature,
        timeout_s=params.timeout_s,
        api_key=params.api_key,
        load=loader(ctx, messages),
    )


async def ask(
    ctx: StepContext,
    params: ModelParams,
    messages: Sequence[Message],
    schema: Mapping[str, Any],
    check: Check | None = None,
) -> tuple[dict[str, Any], Spent]:
    """Return the model's answer to these messages, an object of this schema, and its cost. `check` finds further
    problems of an answer. Raises BlockError: params_invalid, output_invalid, and those of ModelClient.reply."""
    spent = Spent()
    asked = with_files(messages, params.files)
    problems: Sequence[str] = ()
    for _ in range(2):
        conversation = conversation_of(ctx, params, asked, OutputSpec(schema))
        reply = await reply_to(ctx, params, conversation)
        spent = spent.plus(reply)
        problems = wrong(reply, schema, check)
        if not problems and reply.output is not None:
            return reply.output, spent
        asked += repair(reply, problems)
    shown = "; ".join(problems[:_PROBLEMS_SHOWN])
    message = f"the model {spent.model} gave no answer that can be used, twice: {shown}"
    raise BlockError(message, code="output_invalid", retryable=False, **spent.as_output())


async def reply_to(
    ctx: StepContext, params: ModelParams, conversation: Conversation, on_delta: OnDelta | None = None
) -> Reply:
    """Return the reply of the model, as a step: the model is called once. Raises BlockError."""

    async def request(credential: Credential | None) -> Reply:
        signed = replace(conversation, credential=credential)
        return await services_of(ctx).models.reply(signed, on_delta, waiting=ctx.waiting)

    async def work() -> Stepped:
        with using(conversation.api_key):
            reply = await signed_in(ctx, params.connection, request)
        usage, cost = reply.usage.counts(), reply.cost
        if cost is None:
            return Stepped(to_builtins(reply), usage)
        return Stepped(to_builtins(reply), usage, cost.usd, cost.prices)

    asked = {"model": conversation.model, "messages": to_builtins(conversation.messages)}
    output = await ctx.step("model", conversation.model, asked, work, effect="read")
    try:
        return convert(output, Reply)
    except ValidationError as error:  # a secret stood where a number was
        message = f"the reply of {conversation.model} cannot be read back: {error}"
        raise BlockError(message, code="model_failed", retryable=False) from error


def wrong(
    reply: Reply, schema: Mapping[str, Any], check: Check | None = None, matches: Matches | None = None
) -> Sequence[str]:
    """Return the problems of a reply's output; empty if it is valid. `matches`: the sandbox's, for schemas of
    authors."""
    if reply.output is None:
        why = " It was cut off: the limit of tokens is too low." if reply.stop == "length" else ""
        return [f"the answer is not a JSON object.{why}"]
    try:
        found = violations(schema, reply.output, matches)
    except BadRequest as error:
        raise BlockError(error.message, code="params_invalid", retryable=False, hint=error.hint) from error
    if found:
        return [f"{problem['pointer'] or 'the answer'}: {problem['message']}" for problem in found]
    return check(reply.output) if check is not None else ()


def repair(reply: Reply, problems: Sequence[str]) -> list[Message]:
    """Return the answer and the request for another one."""
    said = reply.text or orjson.dumps(reply.output).decode()
    listed = "\n".join(f"- {problem}" for problem in problems)
    return [
        Message("assistant", said),
        Message("user", f"This answer cannot be used:\n{listed}\nAnswer again, in the form that was asked for."),
    ]

"""Shared parts of the blocks that call a language model: their params, one question whose answer is checked, and its
cost. An unusable answer is sent back once, with its problems.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from executor.blocks.http.binding import using
from executor.blocks.llm.base import Conversation, Cost, Message, OnDelta, OutputSpec, Reply, ToolSpec, Usage
from executor.blocks.services import services_of
from executor.blocks.types.connected import CONNECTION, signed_in
from executor.blocks.types.model_files import FILES, loader, with_files
from executor.blocks.types.params import FILLED, TypedParams, changed, invalid, param
from executor.blocks.vault.connection import Credential
from executor.errors import BadRequest, BlockError
from executor.kernel.handler.base import Context, Stepped
from executor.kernel.values.money import nanos_of, usd_of
from executor.kernel.values.schema import Matches, violations

ATTEMPTS = 3
_PROBLEMS_SHOWN = 5

COST: dict[str, Any] = {
    "type": ["object", "null"],
    "properties": {"usd": {"type": "number"}, "prices": {"type": "string"}},
}
USAGE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "input_tokens": {"type": "integer"},
        "output_tokens": {"type": "integer"},
        "cached_tokens": {"type": "integer"},
        "cache_write_tokens": {"type": "integer"},
        "reasoning_tokens": {"type": "integer"},
    },
}
SPENT: dict[str, Any] = {"model": {"type": "string"}, "usage": USAGE, "cost": COST}  # part of each output


class ModelParams(TypedParams):
    """Params that choose and set up the model."""

    model: str | None = param(
        "Model", "<endpoint>:<model>, such as openai:gpt-5-mini or anthropic:claude-sonnet-4-6.", pattern=FILLED
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
    ctx: Context,
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
    ctx: Context,
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
    ctx: Context, params: ModelParams, conversation: Conversation, on_delta: OnDelta | None = None
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

"""Replies by pydantic-ai, of which only the translation to and from the wire formats is used (`pydantic_ai.direct`): no
retries, no loop and no tools of its own. The only file that depends on that library; it comes with the extra `llm`.

Its connections pass the guard of our client. Proxies, keys and headers from the environment of this process reach no
server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import httpcore2
import httpx2
import orjson
from anthropic import AsyncAnthropic
from openai import APIStatusError, AsyncOpenAI
from pydantic_ai import messages as their
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from executor.blocks.http.backend import GuardedBackend
from executor.blocks.http.exchanges import unbroken
from executor.blocks.http.handles import written_as
from executor.blocks.http.httpx2_pools import Connections, OneOrigin
from executor.blocks.llm.base import (
    Content,
    Conversation,
    Message,
    OnDelta,
    OutputSpec,
    Reply,
    Stop,
    ToolCall,
    Usage,
    Vectors,
)
from executor.blocks.llm.endpoints import Endpoint
from executor.blocks.llm.prices import cost_of
from executor.blocks.vault.connection import Credential
from executor.errors import BlockError

REPLY_BYTES_MAX: Final = 16 * 1024 * 1024
# All headers that are sent. The libraries add others from environment variables, and details of this machine.
_HEADERS: Final = frozenset(
    {"accept", "anthropic-beta", "anthropic-version", "connection", "content-length", "content-type", "host",
     "transfer-encoding"}
)  # fmt: skip


class Transport(OneOrigin):
    """The transport of one reply: sends to the origin of `url` alone, with `headers` and nothing else that could be a
    secret, except `query`: the name and value of a query parameter."""

    def __init__(
        self,
        pool: httpcore2.AsyncConnectionPool,
        url: str,
        headers: dict[str, str],
        query: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(pool, url, headers.items())
        self._query = query

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises BlockError(address_refused, response_too_large, secret_host_refused) and httpx2's errors."""
        size = 0
        if self._query is not None:
            name, value = self._query
            request.url = request.url.copy_set_param(name, written_as(value, "f"))

        def take(number: int) -> None:
            nonlocal size
            size += number
            if size > REPLY_BYTES_MAX:
                message = f"the reply of the model is larger than {REPLY_BYTES_MAX} bytes"
                raise BlockError(message, code="response_too_large", retryable=False)

        message = "the reply of the model is compressed, which was not requested"
        return await self.exchange(
            request,
            keeps=_HEADERS.__contains__,
            left=BlockError("a request left the endpoint of its model", code="address_refused", retryable=False),
            compressed=BlockError(message, code="model_connection", retryable=False),
            take=take,
        )


E = TypeVar("E", bound=Exception)
_CONNECT_S = 5.0
EMBED_S: Final = 60.0  # for the vectors of one request
_RETRYABLE: Final = frozenset({408, 409, 425, 429})
_RETRY_AFTER_MAX_S = 24 * 3600
_SHOWN = 300
_NO_KEY = "none"  # the libraries want one
_MAX_TOKENS = 4096  # for Anthropic, where it is required


class Provider:
    """The models of one process; belongs to an event loop."""

    def __init__(self, guard: GuardedBackend) -> None:
        self._connections = Connections(guard)

    async def reply(
        self,
        endpoint: Endpoint,
        model: str,
        key: str | None,
        conversation: Conversation,
        files: Mapping[str, Content],
        on_delta: OnDelta | None,
    ) -> Reply:
        """See ModelClient.reply. `files`: those of the messages, by id."""
        shown = f"{endpoint.name}:{model}"
        try:
            async with asyncio.timeout(conversation.timeout_s):
                return await unbroken(self._reply(endpoint, model, key, conversation, files, on_delta))
        except TimeoutError as error:
            message = f"{shown}: no complete reply within {conversation.timeout_s:g} s"
            raise BlockError(message, code="model_timeout") from error
        except Exception as error:
            found = _block_error(shown, error)
            if found.code == "model_refused" and files:
                found.hint = "the model may not take such files: use one that sees images or PDF"
            raise found from error

    async def embed(self, endpoint: Endpoint, name: str, key: str | None, texts: Sequence[str]) -> Vectors:
        """See ModelClient.embed."""
        shown = f"{endpoint.name}:{name}"
        try:
            async with asyncio.timeout(EMBED_S):
                pool = await self._connections.pool(endpoint.url.startswith("https://"))
                transport = _transport(pool, endpoint, key, None)
                client = httpx2.AsyncClient(transport=transport, trust_env=False, timeout=httpx2.Timeout(EMBED_S))
                asked = AsyncOpenAI(api_key=_NO_KEY, base_url=endpoint.url, max_retries=0, http_client=client)
                listed = list(texts)
                reply = await unbroken(asked.embeddings.create(input=listed, model=name, encoding_format="float"))
        except TimeoutError as error:
            raise BlockError(f"{shown}: no complete reply within {EMBED_S:g} s", code="model_timeout") from error
        except APIStatusError as error:
            body = error.body if isinstance(error.body, dict) else {"message": error.message}
            raise _status_error(
                shown, ModelHTTPError(error.status_code, name, body, headers=dict(error.response.headers))
            ) from error
        except Exception as error:
            raise _block_error(shown, error) from error
        ordered = [one.embedding for one in sorted(reply.data, key=lambda one: one.index)]
        usage = Usage(reply.usage.prompt_tokens if reply.usage else 0)
        return Vectors(ordered, usage, cost_of(usage, endpoint, reply.model or name, name))

    async def close(self) -> None:
        """Close all connections."""
        await self._connections.close()

    async def _reply(
        self,
        endpoint: Endpoint,
        name: str,
        key: str | None,
        conversation: Conversation,
        files: Mapping[str, Content],
        on_delta: OnDelta | None,
    ) -> Reply:
        pool = await self._connections.pool(endpoint.url.startswith("https://"))
        client = httpx2.AsyncClient(
            transport=_transport(pool, endpoint, key, conversation.credential),
            trust_env=False,
            timeout=httpx2.Timeout(conversation.timeout_s, connect=_CONNECT_S),
        )
        model = _model(endpoint, name, client)
        parameters = _parameters(conversation, model)
        asked = _messages(conversation.messages, files)
        settings = _settings(conversation, endpoint)
        if on_delta is None:
            response = await model_request(
                model, asked, model_settings=settings, model_request_parameters=parameters, instrument=False
            )
        else:
            async with model_request_stream(
                model, asked, model_settings=settings, model_request_parameters=parameters, instrument=False
            ) as stream:
                async for event in stream:
                    text = _delta(event)
                    if text:
                        on_delta(text)
                response = stream.get()
        return _reply_of(response, endpoint, name, conversation.output)


def _transport(
    pool: httpcore2.AsyncConnectionPool, endpoint: Endpoint, key: str | None, credential: Credential | None
) -> Transport:
    if credential is None:
        return Transport(pool, endpoint.url, _key_headers(endpoint, key))
    if credential.where == "query":
        return Transport(pool, endpoint.url, {}, (credential.name, credential.value))
    headers: dict[str, str] = {}
    credential.put(endpoint.url, headers)
    return Transport(pool, endpoint.url, headers)


def _key_headers(endpoint: Endpoint, key: str | None) -> dict[str, str]:
    if key is None:
        return {}
    return {"x-api-key": key} if endpoint.dialect == "anthropic" else {"Authorization": f"Bearer {key}"}


def _model(endpoint: Endpoint, name: str, client: httpx2.AsyncClient) -> Model[Any]:
    """The key goes along in the transport, so the libraries have none that they could put elsewhere."""
    if endpoint.dialect == "anthropic":
        anthropic = AsyncAnthropic(
            api_key=_NO_KEY, base_url=endpoint.url, max_retries=0, http_client=client, open_telemetry=False
        )
        return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=anthropic))
    openai = AsyncOpenAI(api_key=_NO_KEY, base_url=endpoint.url, max_retries=0, http_client=client)
    if endpoint.name == "openai":
        return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=openai))
    return OpenAIChatModel(name, provider=OpenAICompatibleProvider(endpoint.name, openai_client=openai))


def _settings(conversation: Conversation, endpoint: Endpoint) -> ModelSettings:
    settings = ModelSettings(timeout=conversation.timeout_s)
    if conversation.max_tokens is not None:
        settings["max_tokens"] = conversation.max_tokens
    elif endpoint.dialect == "anthropic":
        settings["max_tokens"] = _MAX_TOKENS
    if conversation.temperature is not None:
        settings["temperature"] = conversation.temperature
    if conversation.seed is not None and endpoint.dialect == "openai":
        settings["seed"] = conversation.seed
    return settings


def _parameters(conversation: Conversation, model: Model[Any]) -> ModelRequestParameters:
    tools = [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.schema))
        for tool in conversation.tools
    ]
    output = conversation.output
    if output is None:
        return ModelRequestParameters(function_tools=tools)
    mode = output.mode
    if mode == "auto":
        profile = model.profile
        native = profile.get("supports_json_schema_output", False)
        mode = "native" if native else "tool" if profile.get("supports_tools", True) else "prompted"
    if mode == "tool":
        tool = ToolDefinition(
            name=output.name,
            description=output.description or "The final result. Call this tool to finish.",
            parameters_json_schema=dict(output.schema),
            kind="output",
        )
        return ModelRequestParameters(
            function_tools=tools, output_mode="tool", output_tools=[tool], allow_text_output=False
        )
    wanted = OutputObjectDefinition(
        json_schema=dict(output.schema), name=output.name, description=output.description or None
    )
    return ModelRequestParameters(function_tools=tools, output_mode=mode, output_object=wanted)


def _messages(messages: Sequence[Message], files: Mapping[str, Content]) -> list[their.ModelMessage]:
    """Convert the messages. The library's alternate, so all messages between two replies become one request."""
    found: list[their.ModelMessage] = []
    parts: list[their.ModelRequestPart] = []
    for message in messages:
        match message.role:
            case "system":
                parts.append(their.SystemPromptPart(message.text))
            case "user":
                shown = [_shown_file(files[id]) for id in message.files]
                parts.append(their.UserPromptPart([message.text, *shown] if shown else message.text))
            case "tool":
                parts.append(their.ToolReturnPart(message.tool, message.text, tool_call_id=message.call_id))
            case "assistant":
                if parts:
                    found.append(their.ModelRequest(parts))
                    parts = []
                said: list[their.ModelResponsePart] = [their.TextPart(message.text)] if message.text else []
                said += [
                    their.ToolCallPart(call.name, call.invalid or call.arguments, tool_call_id=call.id)
                    for call in message.calls
                ]
                found.append(their.ModelResponse(said))
    if parts:
        found.append(their.ModelRequest(parts))
    return found


def _shown_file(file: Content) -> their.UserContent:
    """Text is a part of the message: not every server takes it as a file."""
    if file.media_type == "text/plain":
        return f"\n\nThe file {file.name}:\n\n{file.data.decode()}"
    return their.BinaryContent(file.data, media_type=file.media_type, identifier=file.name)


def _delta(event: Any) -> str:
    match event:
        case their.PartStartEvent(part=their.TextPart(content=text)):
            return text
        case their.PartDeltaEvent(delta=their.TextPartDelta(content_delta=text)):
            return text
    return ""


def _reply_of(response: their.ModelResponse, endpoint: Endpoint, name: str, wanted: OutputSpec | None) -> Reply:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[ToolCall] = []
    output: dict[str, Any] | None = None
    for part in response.parts:
        match part:
            case their.TextPart():
                texts.append(part.content)
            case their.ThinkingPart():
                thoughts.append(part.content)
            case their.ToolCallPart():
                call = _call(part)
                if wanted is not None and call.name == wanted.name:
                    output = None if call.invalid is not None else call.arguments
                    texts += [call.invalid] if call.invalid is not None else []
                else:
                    calls.append(call)
    text = "".join(texts)
    if wanted is not None and output is None and not calls:
        output = _object(text)
    usage = _usage_of(response.usage)
    stop: Stop = response.finish_reason or ("tool_call" if calls else "stop")
    answered_by = response.model_name or name
    cost = cost_of(usage, endpoint, answered_by, name)
    return Reply(text, tuple(calls), output, usage, cost, answered_by, stop, "".join(thoughts))


def _call(part: their.ToolCallPart) -> ToolCall:
    """Convert a call. Its arguments may be invalid JSON."""
    written = part.args
    if isinstance(written, str):
        found = _object(written) if written.strip() else {}
    else:
        found = dict(written) if isinstance(written, Mapping) else {}
    if found is None:
        return ToolCall(part.tool_call_id, part.tool_name, {}, str(written))
    return ToolCall(part.tool_call_id, part.tool_name, found)


def _object(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a text, also inside the fence of Markdown, or None."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].removeprefix("json").strip()
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _usage_of(counted: RequestUsage) -> Usage:
    """Convert the usage in both formats: tokens read from a cache or written to one are part of the input here, and
    reasoning tokens are part of the output."""
    reasoning = counted.details.get("reasoning_tokens", 0)
    return Usage(
        counted.input_tokens,
        counted.output_tokens,
        counted.cache_read_tokens,
        counted.cache_write_tokens,
        min(reasoning, counted.output_tokens),
    )


def _block_error(model: str, error: Exception) -> BlockError:
    own = _cause(error, BlockError)
    if own is not None:
        return own
    http = _cause(error, ModelHTTPError)
    if http is not None:
        return _status_error(model, http)
    if _cause(error, httpx2.TimeoutException) is not None:
        return BlockError(f"{model}: the server did not answer in time", code="model_timeout")
    if _cause(error, httpx2.TransportError) is not None or _cause(error, ModelAPIError) is not None:
        return BlockError(f"{model}: {_shown(error)}", code="model_connection")
    return BlockError(f"{model}: the reply cannot be used: {_shown(error)}", code="model_failed")


def _status_error(model: str, error: ModelHTTPError) -> BlockError:
    status = error.status_code
    body = error.body
    found = body.get("error", body) if isinstance(body, dict) else body
    said = found.get("message", found) if isinstance(found, dict) else found
    message = f"{model} answered {status}: {' '.join(str(said).split())[:_SHOWN]}"
    retryable = status >= 500 or status in _RETRYABLE
    code = "model_rate_limited" if status == 429 else "model_failed" if retryable else "model_refused"
    retry_at_ms = None
    if retryable and error.retry_after is not None:
        retry_at_ms = round((time.time() + min(max(error.retry_after, 0), _RETRY_AFTER_MAX_S)) * 1000)
    return BlockError(
        message,
        code=code,
        retryable=retryable,
        retry_at_ms=retry_at_ms,
        deferred="asked" if status == 429 and retry_at_ms is not None else None,
        answer_status=status,
    )


def _cause(error: BaseException | None, kind: type[E]) -> E | None:
    """Return the error of this kind among `error` and its causes. Libraries wrap theirs."""
    for _ in range(20):
        if error is None or isinstance(error, kind):
            return error
        error = error.__cause__ or error.__context__
    return None


def _shown(error: Exception) -> str:
    return " ".join(str(error).split())[:_SHOWN] or type(error).__name__

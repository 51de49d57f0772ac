"""Replies over the wire, in both formats, from the scripted model server."""

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from executor.blocks.http.binding import Rules, bound_to
from executor.blocks.http.client import GuardedClient
from executor.blocks.llm.base import Conversation, Message, OutputSpec, Reply, ToolCall, ToolSpec, Usage
from executor.blocks.llm.client import ModelClient
from executor.blocks.llm.endpoints import Endpoints
from executor.errors import BlockError
from executor.kernel.process.extras import install
from tests.support.dev_model import dev_model
from tests.support.endpoints import answer, http

FORMATS = ("openai", "anthropic")
ORDER = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
TOOL = ToolSpec("lookup", "Finds an order.", ORDER)
ROUTE = {
    "type": "object",
    "properties": {"route": {"enum": ["b", "a"]}, "why": {"type": "string"}},
    "required": ["route", "why"],
    "additionalProperties": False,
}


@asynccontextmanager
async def client_of(
    url: str, *, allow_private: Sequence[str] = (), env: dict[str, str] | None = None
) -> AsyncIterator[ModelClient]:
    guarded = GuardedClient(allow_private)
    endpoints = Endpoints({"OPENAI": url, "ANTHROPIC": f"anthropic+{url.removesuffix('/v1')}", "LOCAL": url})
    client = ModelClient(guarded, endpoints, env or {})
    try:
        yield client
    finally:
        await client.close()


def say(text: str, model: str = "openai:gpt-test", **more: Any) -> Conversation:
    return Conversation(model, [Message("system", "Be brief."), Message("user", text)], timeout_s=20, **more)


def _lookup(id: int) -> dict[str, Any]:
    return {"name": "lookup", "arguments": {"id": id}}


async def failure(client: ModelClient, conversation: Conversation) -> BlockError:
    with pytest.raises(BlockError) as caught:
        await client.reply(conversation)
    return caught.value


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("format", FORMATS)
async def test_text_usage_and_deltas(format: str, streams: bool) -> None:
    usage = {"input_tokens": 30, "output_tokens": 7, "cached_tokens": 10}
    rule = {"when": {"last": "weather"}, "text": "It is sunny in Bremen today.", "usage": usage}
    got: list[str] = []
    async with (
        dev_model(rule) as server,
        client_of(server.url, env={f"{format.upper()}_API_KEY": "sk-12345"}) as client,
    ):
        reply = await client.reply(say("The WEATHER?", f"{format}:m-1"), got.append if streams else None)
        [call] = await server.calls()
    assert (reply.text, reply.calls, reply.stop, reply.model) == ("It is sunny in Bremen today.", (), "stop", "m-1")
    assert reply.usage == Usage(30, 7, 10) and reply.cost is None
    assert "".join(got) == (reply.text if streams else "") and (not streams or len(got) > 1)
    header = "authorization" if format == "openai" else "x-api-key"
    assert call["headers"][header] == "…2345" and call["body"]["model"] == "m-1"
    assert bool(call["body"].get("stream")) is streams


@pytest.mark.parametrize("streams", [False, True])
async def test_tokens_that_are_part_of_others(streams: bool) -> None:
    """Of a cache that was read and one that was written, and of reasoning: both formats say it in their own way."""
    counted = {"input_tokens": 30, "output_tokens": 7, "cached_tokens": 10}
    rules = (
        {"when": {"model": "m-a"}, "text": "a", "usage": {**counted, "cache_write_tokens": 5}},
        {"when": {"model": "m-o"}, "text": "o", "usage": {**counted, "reasoning_tokens": 4}},
    )
    got: list[str] = []
    on_delta = got.append if streams else None
    async with dev_model(*rules) as server, client_of(server.url) as client:
        written = await client.reply(say("x", "anthropic:m-a"), on_delta)
        thought = await client.reply(say("x", "openai:m-o"), on_delta)
    assert written.usage == Usage(30, 7, 10, 5, 0) and thought.usage == Usage(30, 7, 10, 0, 4)
    assert written.usage.counts() == {**counted, "cache_write_tokens": 5}
    assert (written.usage + thought.usage).counts() == {
        "input_tokens": 60,
        "output_tokens": 14,
        "cached_tokens": 20,
        "cache_write_tokens": 5,
        "reasoning_tokens": 4,
    }


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("format", FORMATS)
async def test_tools_are_called_and_answered(format: str, streams: bool) -> None:
    rules = (
        {
            "when": {"tool": ""},
            "text": "I look.",
            "calls": [{"name": "lookup", "arguments": {"id": n}} for n in (1, 2)],
        },
        {"when": {"tool": "lookup"}, "text": "Found: {{tool}}"},
    )

    def ignore(text: str) -> None:
        pass

    async with dev_model(*rules) as server, client_of(server.url) as client:
        asked = say("Where is it?", f"{format}:m", tools=[TOOL])
        reply = await client.reply(asked, ignore if streams else None)
        assert reply.stop == "tool_call" and reply.text == "I look."
        assert [(call.name, call.arguments) for call in reply.calls] == [("lookup", {"id": 1}), ("lookup", {"id": 2})]
        done = [
            Message("tool", f"order {call.arguments['id']}", call_id=call.id, tool=call.name) for call in reply.calls
        ]
        said = [*asked.messages, Message("assistant", reply.text, reply.calls), *done]
        last = await client.reply(Conversation(asked.model, said, tools=[TOOL]))
        body = (await server.calls())[0]["body"]
    assert last.text == "Found: order 2"
    assert "lookup" in str(body["tools"]) and "Finds an order." in str(body["tools"])


@pytest.mark.parametrize("mode", ["auto", "native", "tool", "prompted"])
@pytest.mark.parametrize("format", FORMATS)
async def test_structured_output(format: str, mode: Any) -> None:
    """The server gives example values for the schema that it finds in the request; with words there is none."""
    model = f"{format}:{'claude-sonnet-4-6' if format == 'anthropic' else 'gpt-5-mini'}"
    rules = [{"output": {"route": "a", "why": "said so"}}] if mode == "prompted" else []
    async with dev_model(*rules) as server, client_of(server.url) as client:
        reply = await client.reply(say("Which?", model, output=OutputSpec(ROUTE, mode)))
        [call] = await server.calls()
    expected = {"route": "a", "why": "said so"} if rules else {"route": "b", "why": "example"}
    assert reply.output == expected and reply.calls == ()
    assert reply.cost is not None and reply.cost.usd > 0
    assert re.fullmatch(r"genai-prices \d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", reply.cost.prices)
    if mode == "prompted":
        assert '"enum"' in str(call["body"]).replace("\\", "")


async def test_what_is_no_output_is_kept_as_text() -> None:
    async with dev_model({"text": "I would rather not."}) as server, client_of(server.url) as client:
        reply = await client.reply(say("Which?", output=OutputSpec(ROUTE)))
    assert reply.output is None and reply.text == "I would rather not."


async def test_arguments_that_are_no_json() -> None:
    rule = {"calls": [{"name": "lookup", "arguments": '{"id": 1'}]}
    async with dev_model(rule) as server, client_of(server.url) as client:
        reply = await client.reply(say("x", tools=[TOOL]))
    assert [(call.arguments, call.invalid) for call in reply.calls] == [({}, '{"id": 1')]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (429, "model_rate_limited", True),
        (500, "model_failed", True),
        (529, "model_failed", True),
        (400, "model_refused", False),
        (401, "model_refused", False),
        (404, "model_refused", False),
    ],
)
async def test_errors_of_the_server(format: str, status: int, code: str, retryable: bool) -> None:
    rule = {"error": {"status": status, "message": "not now", "retry_after": 7}}
    async with dev_model(rule) as server, client_of(server.url) as client:
        error = await failure(client, say("x", f"{format}:m"))
        calls = await server.calls()
    assert (error.code, error.retryable, error.extra["answer_status"]) == (code, retryable, status)
    assert "not now" in error.message and str(status) in error.message
    assert (error.retry_at_ms is not None) is retryable
    assert error.deferred == ("asked" if status == 429 else None)
    assert len(calls) == 1  # the library repeats nothing by itself


async def test_a_reply_that_is_cut_and_one_that_takes_too_long() -> None:
    def ignore(text: str) -> None:
        pass

    rules = (
        {"when": {"last": "cut"}, "text": "It is sunny in Bremen today.", "cut_after": 2},
        {"when": {"last": "slow"}, "text": "It is sunny in Bremen today.", "pause_ms": 60_000},
    )
    async with dev_model(*rules) as server, client_of(server.url) as client:
        with pytest.raises(BlockError) as cut:
            await client.reply(say("cut"), ignore)
        slow = Conversation("openai:m", [Message("user", "slow")], timeout_s=0.5)
        with pytest.raises(BlockError) as late:
            await client.reply(slow, ignore)
        assert (await client.reply(say("hello"))).text == "You said: hello"
    assert (cut.value.code, cut.value.retryable) == ("model_connection", True)
    assert (late.value.code, late.value.retryable) == ("model_timeout", True)


async def test_a_cancelled_reply_ends_and_leaves_a_client_that_works() -> None:
    async with dev_model({"when": {"last": "slow"}, "pause_ms": 60_000}) as server, client_of(server.url) as client:
        reply = asyncio.create_task(client.reply(say("slow")))
        while not await server.calls():
            await asyncio.sleep(0.01)
        reply.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reply
        assert (await client.reply(say("hello"))).text == "You said: hello"


async def test_only_named_places_are_dialled() -> None:
    """The endpoint of the operator may be private; what it redirects to is not followed, and no other place is open."""
    async with http(lambda r: answer(302, b"", location="http://127.0.0.1:9/")) as server:
        async with client_of(f"{server.url}/v1") as client:
            error = await failure(client, say("x"))
        assert error.code in ("model_connection", "model_failed", "model_refused") and len(server.seen) == 1
    guard = GuardedClient().guard(["127.0.0.1:1"])
    with pytest.raises(BlockError) as refused:
        await guard.connect_tcp("127.0.0.1", 2)
    assert refused.value.code == "address_refused"


async def test_the_guard_is_under_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that resolves to a place that is not allowed: the error of the guard comes out whole."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["10.1.2.3"]

    guarded = GuardedClient(resolve=resolve)
    client = ModelClient(guarded, Endpoints(), {"OPENAI_API_KEY": "k" * 20, "ANTHROPIC_API_KEY": "k" * 20})
    for format in FORMATS:
        error = await failure(client, say("x", f"{format}:m"))
        assert (error.code, error.retryable) == ("address_refused", False)
    assert asked == ["api.openai.com", "api.anthropic.com"]
    await client.close()


async def test_stored_secrets_go_to_their_hosts_alone() -> None:
    async with dev_model() as server, client_of(server.url) as client:
        with bound_to({"KEY": Rules(["api.openai.com"])}):
            error = await failure(client, say("x", "local:m", api_key="k" * 20))
        with bound_to({"KEY": Rules(["http://" + server.url.split("/")[2]])}):
            assert (await client.reply(say("hello", "local:m"))).text == "You said: hello"
        assert len(await server.calls()) == 1
    assert (error.code, error.retryable) == ("secret_host_refused", False)


async def test_the_environment_of_the_server_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    canary = "canary-4711"
    for name in (
        "OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY",
        "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE",
    ):  # fmt: skip
        monkeypatch.setenv(name, canary)
    for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, f"X-Leak: {canary}\nAuthorization: {canary}")
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    async with dev_model() as server, client_of(server.url) as client:
        for format in FORMATS:
            assert (await client.reply(say("hello", f"{format}:m"))).text == "You said: hello"
        calls = await server.calls()
    assert len(calls) == 2 and canary not in str(calls) and canary[-4:] not in str([call["headers"] for call in calls])
    allowed = {"accept", "accept-encoding", "anthropic-version", "connection", "content-length", "content-type", "host"}
    assert {name for call in calls for name in call["headers"]} <= allowed


async def test_a_reply_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    async with dev_model({"text": "x" * 4000}) as server, client_of(server.url) as client:
        await client.reply(say("loads the library"))
        monkeypatch.setattr("executor.blocks.llm.provider.REPLY_BYTES_MAX", 2000)
        error = await failure(client, say("x"))
    assert (error.code, error.retryable) == ("response_too_large", False)


async def test_keys_and_names() -> None:
    client = ModelClient(GuardedClient(), Endpoints({"LOCAL": "http://127.0.0.1:9/v1"}), {})
    missing = await failure(client, say("x"))
    assert missing.code == "model_key_missing" and "WEFT_SECRET_OPENAI_API_KEY" in missing.hint
    for model in ("gpt-5", "other:gpt", "openai:", ""):
        unknown = await failure(client, say("x", model))
        assert unknown.code == "model_unknown" and "local" in unknown.hint


async def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "executor.blocks.llm.provider", raising=False)
    monkeypatch.setattr("executor.blocks.llm.client.find_spec", lambda name: None)
    async with client_of("http://127.0.0.1:9/v1") as client:
        error = await failure(client, say("x"))
    assert error.code == "llm_missing"
    assert error.hint == f"{install('llm')}; then restart it"


def test_a_server_without_models_loads_none_of_it() -> None:
    program = (
        "import sys, server.app, server.cli, executor.open.embed\n"
        "from executor.blocks.types.registry import Registry\n"
        "Registry.load()\n"
        "names = ('pydantic', 'openai', 'anthropic', 'httpx2', 'genai_prices', 'executor.blocks.llm.provider')\n"
        "print([name for name in names if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.strip() == "[]"


def test_replies_are_plain_data() -> None:
    import msgspec

    reply = Reply(
        "x", (ToolCall("1", "a", {"b": 1}), ToolCall("2", "c", {}, "{")), {"d": None}, Usage(1, 2, 3), None, "m"
    )
    assert msgspec.convert(msgspec.to_builtins(reply), Reply) == reply
    assert msgspec.json.decode(msgspec.json.encode(reply), type=Reply) == reply


@pytest.mark.parametrize(
    ("name", "url", "problem"),
    [
        ("X", "ftp://h/", "start with"),
        ("X", "http://", "start with"),
        ("X", "http://h:99999/", "start with"),
        ("X", "gemini+http://h/", "wire format"),
        ("x", "http://h/", "capital"),
        ("X", "http://u:p@h/", "password"),
        ("X", "http://h/?key=1", "query"),
    ],
)
def test_endpoints_that_cannot_be_used(name: str, url: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Endpoints({name: url})


def test_where_an_endpoint_is() -> None:
    endpoints = Endpoints({"A": "http://[::1]:8080/v1/", "B": "anthropic+https://x.example"})
    assert [endpoint.place for endpoint in endpoints.named] == ["[::1]:8080", "x.example:443"]
    assert endpoints.find("a:llama3:8b")[1] == "llama3:8b"
    assert endpoints.find("b:c")[0].dialect == "anthropic"

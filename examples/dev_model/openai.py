"""The wire format of OpenAI's chat completions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .files import Seen, cut, of_url
from .script import Answer, Asked, Failure

PATHS = ("/v1/chat/completions", "/chat/completions")
_CHUNK = 12  # characters in a piece of a stream


def read(body: Mapping[str, Any]) -> Asked:
    """Raises KeyError and others when it is no request."""
    system, last, rounds = "", "", 0
    names: dict[str, str] = {}
    results: list[tuple[str, str]] = []
    files: tuple[Seen, ...] = ()
    for message in body["messages"]:
        text = _text(message.get("content"))
        match message["role"]:
            case "system" | "developer":
                system += text
            case "user":
                last, results, files = text, [], _files(message.get("content"))
            case "assistant":
                rounds, results = rounds + 1, []
                names |= {call["id"]: call["function"]["name"] for call in message.get("tool_calls") or ()}
            case "tool":
                results.append((names[message["tool_call_id"]], text))  # OpenAI refuses results without a call, too
    tools = {
        tool["function"]["name"]: tool["function"].get("parameters")
        for tool in body.get("tools") or ()
        if tool["type"] == "function"
    }
    wanted = body.get("response_format") or {}
    schema = wanted["json_schema"].get("schema") if wanted.get("type") == "json_schema" else None
    output_tool = "final_result" if "final_result" in tools else None
    return Asked(
        model=body["model"],
        system=system,
        last=last,
        results=tuple(results),
        round=rounds,
        tools={name: schema for name, schema in tools.items() if name != output_tool},
        schema=tools[output_tool] if output_tool else schema,
        output_tool=output_tool,
        required=body.get("tool_choice") not in (None, "auto", "none"),
        stream=bool(body.get("stream")),
        usage_wanted=bool((body.get("stream_options") or {}).get("include_usage")),
        chars=len(json.dumps(cut(body["messages"]))),
        files=files,
    )


def whole(asked: Asked, answer: Answer, number: int) -> dict[str, Any]:
    """The reply of a request that does not stream."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = [_call(name, id, given) for name, id, given in answer.calls]
    choice = {"index": 0, "message": message, "finish_reason": _stop(answer), "logprobs": None}
    return {**_head(asked, number), "object": "chat.completion", "choices": [choice], "usage": _usage(answer)}


def pieces(asked: Asked, answer: Answer, number: int) -> Iterator[bytes]:
    """The reply of a request that streams."""
    head = {**_head(asked, number), "object": "chat.completion.chunk"}

    def piece(delta: dict[str, Any], stop: str | None = None) -> bytes:
        return _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]})

    yield piece({"role": "assistant", "content": ""})
    for at in range(0, len(answer.text), _CHUNK):
        yield piece({"content": answer.text[at : at + _CHUNK]})
    for index, (name, id, given) in enumerate(answer.calls):
        yield piece({"tool_calls": [{"index": index, **_call(name, id, "")}]})
        for at in range(0, len(given), _CHUNK):
            part = {"index": index, "function": {"arguments": given[at : at + _CHUNK]}}
            yield piece({"tool_calls": [part]})
    yield piece({}, _stop(answer))
    if asked.usage_wanted:
        yield _event({**head, "choices": [], "usage": _usage(answer)})
    yield b"data: [DONE]\n\n"


def error(failure: Failure) -> dict[str, Any]:
    """The body of an error."""
    kind = "rate_limit_exceeded" if failure.status == 429 else "server_error" if failure.status >= 500 else "invalid"
    return {"error": {"message": failure.message, "type": kind, "param": None, "code": kind}}


def _files(content: Any) -> tuple[Seen, ...]:
    parts = content if isinstance(content, list) else ()
    urls = {"image_url": "url", "file": "file_data"}
    return tuple(of_url(part[part["type"]][urls[part["type"]]]) for part in parts if part["type"] in urls)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def _head(asked: Asked, number: int) -> dict[str, Any]:
    return {"id": f"chatcmpl-dev-{number}", "created": 1_700_000_000, "model": asked.model}


def _call(name: str, id: str, given: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": given}}


def _stop(answer: Answer) -> str:
    return answer.stop or ("tool_calls" if answer.calls else "stop")


def _usage(answer: Answer) -> dict[str, Any]:
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
        "prompt_tokens_details": {"cached_tokens": answer.usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": answer.usage.reasoning_tokens},
    }


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"

"""The wire format of Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .files import Seen, cut, of_base64
from .script import Answer, Asked, Failure

PATHS = ("/v1/messages",)
_CHUNK = 12
_STOPS = {"length": "max_tokens", "content_filter": "refusal"}


def read(body: Mapping[str, Any]) -> Asked:
    """Raises KeyError and others when it is no request."""
    system, last, rounds = _text(body.get("system")), "", 0
    names: dict[str, str] = {}
    results: list[tuple[str, str]] = []
    files: tuple[Seen, ...] = ()
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message["role"] == "assistant":
            rounds, results = rounds + 1, []
            names |= {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
            continue
        said = "".join(block["text"] for block in blocks if block["type"] == "text")
        if said:
            last, results = said, []
            files = _files(blocks)
        for block in blocks:
            if block["type"] == "tool_result":
                results.append((names[block["tool_use_id"]], _text(block.get("content"))))
    tools = {tool["name"]: tool.get("input_schema") for tool in body.get("tools") or ()}
    wanted = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    output_tool = "final_result" if "final_result" in tools else None
    return Asked(
        model=body["model"],
        system=system,
        last=last,
        results=tuple(results),
        round=rounds,
        tools={name: schema for name, schema in tools.items() if name != output_tool},
        schema=tools[output_tool] if output_tool else wanted.get("schema"),
        output_tool=output_tool,
        required=(body.get("tool_choice") or {}).get("type") in ("any", "tool"),
        stream=bool(body.get("stream")),
        chars=len(json.dumps(cut(body["messages"]))),
        files=files,
    )


def _files(blocks: Any) -> tuple[Seen, ...]:
    sources = [block["source"] for block in blocks if block["type"] in ("image", "document")]
    return tuple(of_base64(source["media_type"], source["data"]) for source in sources)


def whole(asked: Asked, answer: Answer, number: int) -> dict[str, Any]:
    """The reply of a request that does not stream."""
    content: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
    for name, id, given in answer.calls:
        content.append({"type": "tool_use", "id": id, "name": name, "input": json.loads(given)})
    return {**_head(asked, number), "content": content, "stop_reason": _stop(answer), "usage": _usage(answer)}


def pieces(asked: Asked, answer: Answer, number: int) -> Iterator[bytes]:
    """The reply of a request that streams."""
    head = {
        **_head(asked, number),
        "content": [],
        "stop_reason": None,
        "usage": {**_usage(answer), "output_tokens": 1},
    }
    yield _event("message_start", message=head)
    index = 0
    if answer.text:
        yield _event("content_block_start", index=index, content_block={"type": "text", "text": ""})
        for at in range(0, len(answer.text), _CHUNK):
            delta = {"type": "text_delta", "text": answer.text[at : at + _CHUNK]}
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
        index += 1
    for name, id, given in answer.calls:
        block = {"type": "tool_use", "id": id, "name": name, "input": {}}
        yield _event("content_block_start", index=index, content_block=block)
        for at in range(0, len(given), _CHUNK):
            delta = {"type": "input_json_delta", "partial_json": given[at : at + _CHUNK]}
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
        index += 1
    end = {"stop_reason": _stop(answer), "stop_sequence": None}
    yield _event("message_delta", delta=end, usage={"output_tokens": answer.output_tokens})
    yield _event("message_stop")


def error(failure: Failure) -> dict[str, Any]:
    """The body of an error."""
    kinds = {429: "rate_limit_error", 529: "overloaded_error", 401: "authentication_error"}
    kind = kinds.get(failure.status, "api_error" if failure.status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": failure.message}}


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(block.get("text", "") for block in content)
    return content or ""


def _head(asked: Asked, number: int) -> dict[str, Any]:
    return {
        "id": f"msg_dev_{number}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "stop_sequence": None,
    }


def _stop(answer: Answer) -> str:
    if answer.stop:
        return _STOPS.get(answer.stop, answer.stop)
    return "tool_use" if answer.calls else "end_turn"


def _usage(answer: Answer) -> dict[str, Any]:
    """Return the usage. Anthropic counts tokens read from its cache and written to it separately."""
    read, written = answer.usage.cached_tokens, answer.usage.cache_write_tokens
    return {
        "input_tokens": answer.input_tokens - read - written,
        "output_tokens": answer.output_tokens,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }


def _event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: ".encode() + json.dumps({"type": kind, **data}).encode() + b"\n\n"

"""Messages of MCP: JSON-RPC 2.0, one in a request and one in its answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

Id = str | int


class McpMessage(Struct, frozen=True):
    """A request, or a notification: it has no `id`. Answers of a client have no `method`; nothing asks for them."""

    jsonrpc: Literal["2.0"]
    method: Annotated[str, Meta(max_length=200)] | None = None
    id: Id | None = None
    params: dict[str, Any] | None = None


class McpError(Struct, frozen=True):
    """Codes are those of JSON-RPC: -32601 for an unknown method, -32602 for wrong parameters."""

    code: int
    message: str


class McpAnswer(Struct, frozen=True):
    """An answer: either `result` or `error`."""

    jsonrpc: str
    id: Id
    result: dict[str, Any] | UnsetType = UNSET
    error: McpError | UnsetType = UNSET

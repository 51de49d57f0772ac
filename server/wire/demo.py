"""The shapes of the demo endpoint."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

FAIL_MAX = 1000
DELAY_MS_MAX = 30_000


class EchoQuery(Struct, frozen=True):
    fail: Annotated[int, Meta(le=FAIL_MAX, description="Number of 503 responses for one key.")] = 0
    key: Annotated[str, Meta(description="The key to count by. Default: the Idempotency-Key header.")] | None = None
    delay_ms: Annotated[int, Meta(le=DELAY_MS_MAX, description="Delay of the response.")] = 0


class Echo(Struct, frozen=True):
    """The request. `call`: its number among those with the same key."""

    method: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    call: int

"""The HTTP API as a Python client: `WeftClient`, its events, and what it raises."""

from server.client.client import (
    PASSING,
    PATIENCE_S,
    ApiError,
    ClientError,
    Event,
    ServerUnreachable,
    WeftClient,
)

__all__ = [
    "PASSING",
    "PATIENCE_S",
    "ApiError",
    "ClientError",
    "Event",
    "ServerUnreachable",
    "WeftClient",
]

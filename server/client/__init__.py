"""The HTTP API as Python clients: `Client` and `AsyncClient`, their events, and their errors."""

from server.client.api import open_waits, standing
from server.client.async_client import AsyncClient
from server.client.client import Client
from server.client.errors import ApiError, ClientError, RunFailed, ServerUnreachable
from server.client.exchange import PASSING, PATIENCE_S
from server.client.stream import Event

__all__ = [
    "PASSING",
    "PATIENCE_S",
    "ApiError",
    "AsyncClient",
    "Client",
    "ClientError",
    "Event",
    "RunFailed",
    "ServerUnreachable",
    "open_waits",
    "standing",
]

"""Stored connectors: the rows, and what a store does with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

CONNECTORS_MAX: Final = 100  # each process has all of them in memory


class ConnectorRow(Struct, frozen=True):
    """`document` is a connector document (JSON), `hash` its SHA-256 in hexadecimal."""

    service: str
    document: bytes
    hash: str
    created_by: str
    changed_at_ms: int


class ConnectorStore(Protocol):
    async def put_connector(self, row: ConnectorRow) -> bool:
        """Store a new document, or replace one. Returns False if it is the same document."""

    async def connector_hashes(self) -> dict[str, str]:
        """Return hashes by service."""

    async def get_connectors(self, services: Sequence[str]) -> list[ConnectorRow]:
        """Return those of these services that exist, by service."""

    async def delete_connector(self, service: str) -> bool: ...

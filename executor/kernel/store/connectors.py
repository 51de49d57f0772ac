"""Stored connectors: the rows, and what a store does with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from executor.kernel.store.topics.connectors import ConnectorRow


class ConnectorStore(Protocol):
    async def put_connector(self, row: ConnectorRow) -> bool:
        """Store a new document, or replace one. Returns False if it is the same document."""

    async def connector_hashes(self) -> dict[str, str]:
        """Return hashes by service."""

    async def get_connectors(self, services: Sequence[str]) -> list[ConnectorRow]:
        """Return those of these services that exist, by service."""

    async def delete_connector(self, service: str) -> bool: ...

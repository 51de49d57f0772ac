"""Stored connectors in the model store."""

from __future__ import annotations

from collections.abc import Sequence

from executor.kernel.store.topics.connectors import ConnectorRow


class ModelConnectors:
    """What ModelStore can do with connectors."""

    def __init__(self) -> None:
        super().__init__()
        self._connectors: dict[str, ConnectorRow] = {}

    async def put_connector(self, row: ConnectorRow) -> bool:
        before = self._connectors.get(row.service)
        if before is not None and before.hash == row.hash:
            return False
        self._connectors[row.service] = row
        return True

    async def connector_hashes(self) -> dict[str, str]:
        return {service: row.hash for service, row in self._connectors.items()}

    async def get_connectors(self, services: Sequence[str]) -> list[ConnectorRow]:
        return [self._connectors[service] for service in sorted(self._connectors) if service in services]

    async def delete_connector(self, service: str) -> bool:
        return self._connectors.pop(service, None) is not None

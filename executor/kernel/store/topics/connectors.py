"""Stored connectors: documents, by service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from executor.kernel.store.statements import Readers, Tx, as_list, columns, insert, replacing

CONNECTORS_MAX: Final = 100  # each process has all of them in memory


class ConnectorRow(Struct, frozen=True):
    """`document` is a connector document (JSON), `hash` its SHA-256 in hexadecimal."""

    service: str
    document: bytes
    hash: str
    created_by: str
    changed_at_ms: int


_REPLACING = replacing(ConnectorRow, "service")
PUT = f"{insert('connectors', ConnectorRow)} {_REPLACING} WHERE connectors.hash <> excluded.hash"
GET = f"SELECT {columns(ConnectorRow)} FROM connectors WHERE service IN $texts(:services) ORDER BY service"


def put_connector(tx: Tx, row: ConnectorRow) -> bool:
    """Store a new document, or replace one. Returns False if it is the same document."""
    return tx.run(PUT, msgspec.structs.asdict(row)) == 1


async def connector_hashes(readers: Readers) -> dict[str, str]:
    return dict(await readers.all("SELECT service, hash FROM connectors"))


async def get_connectors(readers: Readers, services: Sequence[str]) -> list[ConnectorRow]:
    return await readers.fetch(ConnectorRow, GET, {"services": as_list(services)})


def delete_connector(tx: Tx, service: str) -> bool:
    return tx.run("DELETE FROM connectors WHERE service = :service", {"service": service}) == 1

"""Stored connectors: documents, by service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from executor.kernel.store.statements import as_list
from executor.kernel.store.tx import Readers, Tx

CONNECTORS_MAX: Final = 100  # each process has all of them in memory


class ConnectorRow(Struct, frozen=True):
    """`document` is a connector document (JSON), `hash` its SHA-256 in hexadecimal."""

    service: str
    document: bytes
    hash: str
    created_by: str
    changed_at_ms: int


PUT = """
INSERT INTO connectors (service, document, hash, created_by, changed_at_ms)
VALUES (:service, :document, :hash, :created_by, :changed_at_ms)
ON CONFLICT (service) DO UPDATE
   SET document = excluded.document, hash = excluded.hash, created_by = excluded.created_by,
       changed_at_ms = excluded.changed_at_ms
 WHERE connectors.hash <> excluded.hash"""
GET = """
SELECT service, document, hash, created_by, changed_at_ms
  FROM connectors WHERE service IN $texts(:services) ORDER BY service"""
DELETE = "DELETE FROM connectors WHERE service = :service"


def put_connector(tx: Tx, row: ConnectorRow) -> bool:
    """Store a new document, or replace one. Returns False if it is the same document."""
    return tx.run(PUT, msgspec.structs.asdict(row)) == 1


async def connector_hashes(readers: Readers) -> dict[str, str]:
    """Return hashes by service."""
    return {str(service): str(hash) for service, hash in await readers.all("SELECT service, hash FROM connectors")}


async def get_connectors(readers: Readers, services: Sequence[str]) -> list[ConnectorRow]:
    """Return those of these services that exist, by service."""
    rows = await readers.all(GET, {"services": as_list(list(services))})
    return [ConnectorRow(service, bytes(document), *rest) for service, document, *rest in rows]


def delete_connector(tx: Tx, service: str) -> bool:
    return tx.run(DELETE, {"service": service}) == 1

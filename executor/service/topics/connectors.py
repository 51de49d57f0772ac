"""Connectors that are added to this installation: `engine.connectors`. Each makes a block type, at once and in all
processes on the database."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any

import orjson
from msgspec import Struct

from compiler.catalog import CONNECTOR
from executor.blocks.connectors import openapi
from executor.blocks.connectors.document import BYTES_MAX
from executor.blocks.connectors.openapi import Offered
from executor.blocks.connectors.stored import StoredConnector
from executor.blocks.connectors.validate import checked
from executor.errors import BadRequest, Conflict, LimitExceeded, NotFound
from executor.kernel.process.threads import aside
from executor.kernel.store.topics.connectors import CONNECTORS_MAX, ConnectorRow
from executor.service.parts import Parts, Topic
from executor.service.topics.choices import ChoiceLists
from executor.service.views import view_of


class ConnectorView(Struct, frozen=True):
    """`type` is its block type, `operations` their number."""

    service: str
    type: str
    title: str
    operations: int
    created_by: str
    changed_at_ms: int


class OpenApiImported(Struct, frozen=True):
    """`connector`: the document, null when no operation was chosen."""

    operations: list[Offered]
    connector: dict[str, Any] | None


class Connectors(Topic):
    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.choices = ChoiceLists(parts).get

    async def all(self) -> list[ConnectorView]:
        await self._parts.connectors.refresh()
        return [_view(one) for _, one in sorted(self._parts.connectors.known.items())]

    async def document(self, service: str) -> dict[str, Any]:
        rows = await self._store.get_connectors([service])
        if not rows:
            raise _not_found(service)
        found: dict[str, Any] = orjson.loads(rows[0].document)
        return found

    async def put(self, service: str, document: dict[str, Any], *, by: str = "") -> tuple[ConnectorView, bool]:
        """Returns the connector, and True if it is new. Existing blocks use it from their next attempt on. Raises
        BadRequest with all problems, Conflict, LimitExceeded."""
        connector = await aside(partial(checked, document))
        if connector.service != service:
            message = f"the document is of the service {connector.service!r}, and the address of {service!r}"
            raise BadRequest(message, code="connector_invalid", pointer="/service")
        data = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
        if len(data) > BYTES_MAX:
            raise BadRequest(f"the document has more than {BYTES_MAX} bytes", code="connector_invalid")
        if self._parts.registry.is_fixed(CONNECTOR + service):
            raise Conflict(
                f"this server has a connector {service!r} of weft, of an installed package or of its folder",
                code="connector_exists",
                hint="use another service name; only a file in the folder WEFT_CONNECTORS can replace it",
            )
        stored = await self._store.connector_hashes()
        if service not in stored and len(stored) >= CONNECTORS_MAX:
            raise LimitExceeded(f"there can be at most {CONNECTORS_MAX} connectors", code="limit_connectors")
        hash = hashlib.sha256(data).hexdigest()
        row = ConnectorRow(service, data, hash, by, self._clock.now_ms())
        await self._store.put_connector(row)
        await self._parts.connectors.refresh()
        return _view(StoredConnector(row, connector)), service not in stored

    async def from_openapi(
        self, description: dict[str, Any], chosen: list[str], service: str | None, base_url: str | None
    ) -> OpenApiImported:
        def imported() -> OpenApiImported:
            known = openapi.known(description)
            made = openapi.connector(known, chosen, service=service, base_url=base_url) if chosen else None
            return OpenApiImported(openapi.operations(known), made)

        return await aside(imported)

    async def delete(self, service: str) -> None:
        if not await self._store.delete_connector(service):
            raise _not_found(service)
        await self._parts.connectors.refresh()


def _not_found(service: str) -> NotFound:
    return NotFound(f"there is no stored connector {service[:100]!r}", code="connector_not_found")


def _view(one: StoredConnector) -> ConnectorView:
    type, operations = CONNECTOR + one.row.service, len(one.connector.operations)
    return view_of(ConnectorView, one.row, type=type, title=one.connector.title, operations=operations)

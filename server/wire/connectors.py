"""The shapes of connector documents that cross HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from executor.blocks.connectors.openapi import CHOSEN_MAX
from executor.service.topics.connectors import ConnectorView


class ConnectorList(Struct, frozen=True):
    """The connectors, by service."""

    connectors: list[ConnectorView]


class ConnectorDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """docs/howto/connectors.md describes the document."""

    document: dict[str, Any]


class ConnectorDeleted(Struct, frozen=True):
    service: str
    deleted: bool


class OpenApiImport(Struct, forbid_unknown_fields=True):
    """POST /api/connectors/openapi. `operations`: ids of the chosen ones; without any, they are only listed.
    `base_url`: the address of the service, if it is not in the description."""

    description: dict[str, Any]
    operations: Annotated[list[str], Meta(max_length=CHOSEN_MAX)] = []
    service: str | None = None
    base_url: str | None = None

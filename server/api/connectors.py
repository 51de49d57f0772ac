"""Connectors that are added to this installation, and connector documents from OpenAPI descriptions. Nothing is
downloaded."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from executor.blocks.connectors import openapi
from executor.blocks.connectors.document import BYTES_MAX
from executor.blocks.connectors.openapi import CHOSEN_MAX
from executor.service.topics.choices import ChoiceList
from executor.service.topics.connectors import ConnectorView, OpenApiImported
from server.http.response import Json
from server.http.table import Call, Routes, RouteSpec


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


class ChoicesAsked(Struct, frozen=True, forbid_unknown_fields=True):
    """`field`: a param of the block type, and `params` those of the block, which has the account and the fields on
    which the choices depend. `search`: the text typed; `cursor`: the `next` of the answer before."""

    field: Annotated[str, Meta(max_length=100)]
    params: dict[str, Any] = {}
    search: Annotated[str, Meta(max_length=500)] = ""
    cursor: Annotated[str, Meta(max_length=8_000)] | None = None


_ONE = "/api/connectors/{service}"

route = Routes("workflows", RouteSpec)


@route("GET", "/api/connectors", "List connectors that were added", needs="viewer")
async def list_all(call: Call) -> ConnectorList:
    """The connectors that were added, by service. `GET /api/blocks` lists all."""
    return ConnectorList(await call.engine.connectors.all())


@route("GET", _ONE, "Read a connector document", needs="viewer")
async def read(call: Call, service: str) -> ConnectorDocument:
    return ConnectorDocument(await call.engine.connectors.document(service))


@route(
    "PUT", _ONE, "Add or replace a connector", needs="admin", body_bytes=2 * BYTES_MAX, statuses=(201, 409), always=True
)
async def put(call: Call, service: str, body: ConnectorDocument) -> Json[ConnectorView]:
    """201 for a new connector, 200 for another document of it. Its block type can be used at once, on all servers and
    workers of the database. 400: `errors` has all that is wrong. 409: the server has a connector of this name from
    another source."""
    view, created = await call.engine.connectors.put(service, body.document, by=call.who.actor)
    return Json(view, 201 if created else 200)


@route("DELETE", _ONE, "Delete a connector", needs="admin")
async def delete(call: Call, service: str) -> ConnectorDeleted:
    """Blocks of its type no longer run."""
    await call.engine.connectors.delete(service)
    return ConnectorDeleted(service, True)


@route(
    "POST",
    "/api/connectors/openapi",
    "Make a connector document of an OpenAPI description",
    needs="editor",
    audit=False,
    body_bytes=openapi.BYTES_MAX,
)
async def from_openapi(call: Call, body: OpenApiImport) -> OpenApiImported:
    """The operations that a description offers, and a connector document of the chosen ones."""
    made = await call.engine.connectors.from_openapi(body.description, body.operations, body.service, body.base_url)
    return made


@route(
    "POST", "/api/blocks/{type}/choices", "List the choices of a field", needs="editor", audit=False, statuses=(502,)
)
async def choices(call: Call, type: str, body: ChoicesAsked) -> ChoiceList:
    """Ask the service of a connector what a field can be, such as the channels of Slack, with the account of the block.
    400: something has to be filled in first (`choices_wait`, with its `pointer`), or cannot be used; 502: what the
    service answered."""
    return await call.engine.connectors.choices(type, body.field, body.params, body.search, body.cursor)

"""Connectors, which are services as documents with a block type each, and MCP servers, whose tools agents call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from server.client.call import Call, call, present

if TYPE_CHECKING:
    from server.client.answers import (
        ConnectorDeleted,
        ConnectorDocument,
        ConnectorList,
        ConnectorView,
        OpenApiImported,
        ToolServerChecked,
    )


class Connectors:
    """`/api/connectors`, `/api/mcp/check`."""

    @call
    def connectors(self) -> Call[ConnectorList]:
        """List the connectors that were added to the installation, by service."""
        return Call("GET", "/api/connectors")

    @call
    def connector(self, service: str) -> Call[ConnectorDocument]:
        """Return the document of a connector."""
        return Call("GET", "/api/connectors/{service}", (service,))

    @call
    def put_connector(self, document: Mapping[str, Any]) -> Call[ConnectorView]:
        """Add one, or replace the document of its service."""
        service = str(document.get("service", ""))
        return Call("PUT", "/api/connectors/{service}", (service,), body={"document": dict(document)})

    @call
    def delete_connector(self, service: str) -> Call[ConnectorDeleted]:
        """Workflows that use it can no longer be stored."""
        return Call("DELETE", "/api/connectors/{service}", (service,))

    @call
    def import_openapi(
        self,
        description: Mapping[str, Any],
        operations: Sequence[str] = (),
        *,
        service: str | None = None,
        base_url: str | None = None,
    ) -> Call[OpenApiImported]:
        """A connector of chosen operations of an OpenAPI description, not yet added. Without any, they are listed."""
        body = present(description=dict(description), operations=list(operations), service=service, base_url=base_url)
        return Call("POST", "/api/connectors/openapi", body=body)

    @call
    def check_tool_server(
        self, url: str, headers: Mapping[str, str] | None = None, *, connection: str | None = None
    ) -> Call[ToolServerChecked]:
        """List the tools of an MCP server, as an agent with this address, these headers and this connection gets them.
        ApiError 400: one of them cannot be used; 502: the server does not answer correctly."""
        body = present(url=url, headers=None if headers is None else dict(headers), connection=connection)
        return Call("POST", "/api/mcp/check", body=body)

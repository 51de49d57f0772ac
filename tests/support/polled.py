"""A real server with a list that grows, and a connector whose events are its items."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from executor.blocks.connectors.block import ConnectorBlock
from executor.blocks.connectors.events import EventBlock
from executor.blocks.connectors.validate import checked
from tests.support.endpoints import Request, answer, http

PAGE = 3


class Shop:
    """Lists its orders, newest first at /orders (in pages), oldest first from a number on at /after. What runs send to
    /report is in `reports`, with their keys."""

    def __init__(self) -> None:
        self.place = ""
        self.orders: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.reports: list[tuple[int, str]] = []
        self.status = 200
        self.gate: asyncio.Event | None = None

    def add(self, *names: str) -> None:
        for name in names:
            number = len(self.orders) + 1
            self.orders.append({"number": number, "name": name, "made": f"2027-01-15T08:{number:02}:00Z"})

    async def handle(self, request: Request) -> bytes:
        self.asked.append(request.target)
        if self.gate is not None:
            await self.gate.wait()
        parts = urlsplit(request.target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/report":
            self.reports.append((json.loads(request.body)["number"], request.headers["idempotency-key"]))
            return answer(200, b"{}", content_type="application/json")
        if parts.path == "/after":
            listed = [order for order in self.orders if order["number"] >= int(query.get("from", 0))][:PAGE]
            body: dict[str, Any] = {"orders": listed}
        else:
            page = int(query.get("page", 1))
            body = {"orders": self.orders[::-1][(page - 1) * PAGE : page * PAGE]}
        return answer(self.status, json.dumps(body).encode(), content_type="application/json")

    def document(self) -> dict[str, Any]:
        order = {"type": "object", "properties": {"number": {"type": "integer"}, "name": {"type": "string"}}}
        shop = {"shop": {"type": "string", "title": "Shop"}}
        return {
            "format": "weft-connector/1",
            "service": "shop",
            "title": "Shop",
            "base_url": f"http://{self.place}",
            "auth": {"kind": "none"},
            "operations": {
                "list_orders": {
                    "title": "List orders", "path": "/orders", "query": {"shop": "{{shop}}"}, "fields": shop,
                    "pages": {"kind": "page", "items": "/orders", "size": PAGE}, "output": order,
                },
                "list_after": {
                    "title": "List later orders", "path": "/after", "fields": {"from": {"type": "integer"}},
                    "query": {"from": "{{from}}"}, "output": order,
                },
            },
            "events": {
                "new_order": {
                    "title": "New order", "operation": "list_orders", "id": "/number", "time": {"at": "/made"},
                },
                "later_order": {
                    "title": "Later order", "operation": "list_after", "items": "/orders", "id": "/number",
                    "order": "oldest", "time": {"at": "/number", "field": "from"},
                },
            },
        }  # fmt: skip

    def block(self) -> EventBlock:
        return EventBlock(ConnectorBlock(checked(self.document())))


@asynccontextmanager
async def shop() -> AsyncIterator[Shop]:
    one = Shop()
    async with http(one.handle) as server:
        one.place = server.place
        yield one


def watching(event: str = "new_order", **params: Any) -> dict[str, Any]:
    return {
        "format": "weft/1",
        "name": "orders",
        "blocks": {
            "order": {"type": "event.shop", "params": {"event": event, **params}},
            "note": {"type": "set", "params": {"value": {"name": "<order.event.name>", "id": "<order.id>"}}},
        },
        "edges": [{"source": "order", "target": "note"}],
    }

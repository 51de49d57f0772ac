"""The choices of a field, asked of a real server that stands in for the service."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from executor.blocks.vault.connection import Connection
from executor.errors import BadRequest, BlockError, WeftError
from executor.open.embed import open_engine
from executor.open.engine import Engine
from executor.service.topics import choices
from tests.support.endpoints import Request, answer, http
from tests.support.slack import TOKEN, Slack, slack

TYPE = "connector.slack"


@asynccontextmanager
async def world(path: Path) -> AsyncIterator[tuple[Engine, Slack]]:
    async with (
        slack() as service,
        open_engine(
            path / "weft.db",
            secret=b"k" * 32,
            allow_private=[service.server.place],
            env={"SLACK_TOKEN": TOKEN},
            secrets=["SLACK_TOKEN"],
        ) as engine,
    ):
        yield engine, service


def params(service: Slack, **more: Any) -> dict[str, Any]:
    return {"operation": "send_message", "credential": "${SLACK_TOKEN}", "base_url": service.url, **more}


async def refused(
    engine: Engine, given: dict[str, Any], field: str = "channel", cursor: str | None = None
) -> WeftError:
    with pytest.raises((BadRequest, BlockError)) as caught:
        await engine.connectors.choices(TYPE, field, given, "", cursor)
    return caught.value


async def test_pages_are_read_until_enough_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "ENOUGH", 2)
    async with world(tmp_path) as (engine, service):
        given = params(service)
        first = await engine.connectors.choices(TYPE, "channel", given, "", None)
        rest = await engine.connectors.choices(TYPE, "channel", given, "", first.next)
        end = await engine.connectors.choices(TYPE, "channel", given, "", rest.next)
        found = await engine.connectors.choices(TYPE, "channel", given, "ORDERS", None)
    assert [(one.value, one.title) for one in first.choices] == [
        ("C000", "general"),
        ("C001", "random"),
        ("C002", "orders"),
    ]
    assert [len(one.choices) for one in (first, rest, end)] == [3, 3, 1] and end.next is None
    assert [one.title for one in found.choices] == ["orders", "orders-eu"]
    assert {request.headers["authorization"] for request in service.server.seen} == {f"Bearer {TOKEN}"}
    assert not service.sent


async def test_what_is_missing_is_named(tmp_path: Path) -> None:
    async with world(tmp_path) as (engine, service):
        account = await refused(engine, params(service, credential=""))
        other = await refused(engine, params(service), "text")
        reference = await refused(engine, params(service, credential="<start.token>"))
        unknown = await refused(engine, params(service, credential="", connection="slack"))
        cursor = await refused(engine, params(service), cursor="oops")
        with pytest.raises(BadRequest) as no_type:
            await engine.connectors.choices("http", "url", {}, "", None)
        assert not service.server.seen
    assert (account.code, account.pointer) == ("choices_wait", "/params/connection")
    assert (other.code, no_type.value.code) == ("choices_none", "choices_none")
    assert (reference.code, reference.pointer) == ("choices_invalid", "/params/credential")
    assert (unknown.code, cursor.code) == ("connection_unknown", "choices_invalid")


async def test_what_the_service_answers_is_said_without_the_credential(tmp_path: Path) -> None:
    async with world(tmp_path) as (engine, service):
        service.error = f"missing_scope {TOKEN}"
        wrong = await refused(engine, params(service))
    assert isinstance(wrong, BlockError) and wrong.code == "service_refused"
    assert "Slack refused the request: missing_scope" in wrong.message and TOKEN not in wrong.message


async def test_an_account_goes_to_its_hosts_alone(tmp_path: Path) -> None:
    async with world(tmp_path) as (engine, service):
        given = params(service, credential="", connection="slack")
        await engine.connections.put("slack", Connection("bearer", TOKEN), ["slack.com"])
        elsewhere = await refused(engine, given)
        assert not service.server.seen
        await engine.connections.put("slack", Connection("bearer", TOKEN), [service.server.url])
        assert len((await engine.connectors.choices(TYPE, "channel", given, "", None)).choices) == 7
        private = await refused(engine, params(service, base_url="http://127.0.0.2:9"))
    assert (elsewhere.code, private.code) == ("secret_host_refused", "address_refused")


TEA: dict[str, Any] = {
    "format": "weft-connector/1",
    "service": "tea",
    "title": "Tea",
    "base_url": "https://tea.example",
    "operations": {
        "order": {
            "title": "Order",
            "method": "POST",
            "path": "/shops/{{shop}}",
            "required": ["shop"],
            "fields": {
                "town": {"type": "string", "title": "Town"},
                "shop": {
                    "type": "string",
                    "choices": {
                        "operation": "shops",
                        "value": "/id",
                        "title": "/name",
                        "about": "/street",
                        "search": "text",
                        "with": {"place": "{{town}}", "open": True},
                        "only": {"/kind": ["tea"]},
                    },
                },
                "boxes": {"type": "string", "choices": {"operation": "boxes", "element": "Size"}},
            },
            "query": {"boxes": "{{boxes}}"},
        },
        "shops": {
            "title": "Shops",
            "path": "/towns/{{place}}",
            "required": ["place"],
            "fields": {"place": {"type": "string"}, "text": {"type": "string"}, "open": {"type": "boolean"}},
            "query": {"q": "{{text}}", "open": "{{open}}"},
            "pages": {"kind": "link", "items": "/shops", "next": "/more"},
        },
        "boxes": {"title": "Boxes", "path": "/boxes"},
    },
}


async def test_what_depends_on_another_field_and_what_the_service_searches(tmp_path: Path) -> None:
    def shops(request: Request) -> bytes:
        if request.target == "/boxes":
            return answer(200, b"<Sizes><Size>a&amp;b</Size><Size>c</Size></Sizes>", content_type="application/xml")
        town = {"id": 1, "name": "North", "street": "Hill 1", "kind": "tea"}
        found = [town, {**town, "id": 2, "kind": "bank"}, {**town, "id": True}, {"kind": "tea"}, town]
        more = f"http://{request.headers['host']}/towns/x?page=2" if "page" not in request.target else None
        return answer(200, json.dumps({"shops": found, "more": more}).encode(), content_type="application/json")

    async with http(shops) as service, open_engine(tmp_path / "w.db", allow_private=[service.place]) as engine:
        await engine.connectors.put("tea", TEA)
        given = {"operation": "order", "base_url": service.url}
        with pytest.raises(BadRequest) as first:
            await engine.connectors.choices("connector.tea", "shop", given, "", None)
        found = await engine.connectors.choices("connector.tea", "shop", given | {"town": "Ely"}, "north gate", None)
        boxes = await engine.connectors.choices("connector.tea", "boxes", given, "", None)
        with pytest.raises(BlockError) as elsewhere:
            cursor = "1 http://example.com/towns"
            await engine.connectors.choices("connector.tea", "shop", given | {"town": "Ely"}, "", cursor)
    assert (first.value.code, first.value.pointer) == ("choices_wait", "/params/town")
    assert "Town has to be filled in first" in first.value.args[0]
    assert [(one.value, one.title, one.about) for one in found.choices] == [(1, "North", "Hill 1")]
    assert [one.target for one in service.seen[:2]] == ["/towns/Ely?open=true&q=north+gate", "/towns/x?page=2"]
    assert [one.value for one in boxes.choices] == ["a&b", "c"]
    assert elsewhere.value.code == "page_invalid"

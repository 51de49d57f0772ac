"""The connectors that come with weft: each document is right, and each case of `recorded/` is asked as it says.

The shapes there are written by hand from the public descriptions of the services; a server of the test plays them."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import orjson
import pytest

from executor.blocks.connectors.block import ConnectorBlock
from executor.blocks.connectors.stored import connectors
from executor.blocks.connectors.validate import read
from executor.blocks.http.client import GuardedClient
from executor.blocks.services import Services
from executor.errors import BlockError, Lost
from executor.kernel.handler.base import Done
from tests.support.endpoints import Request, answer, http
from tests.unit.executor.blocks.types.flow import context

HERE = Path(__file__).parent / "recorded"
GUIDE = Path("docs/howto/connectors.md").read_text()
CREDENTIAL = "sekret-1234"
SHIPPED = {
    block.spec.type.removeprefix("connector."): block for block in connectors() if isinstance(block, ConnectorBlock)
}
# What an operation sends to be found by.
_KEY = re.compile(r"weft-[0-9a-f]{32}")
_HEX = re.compile(r"\b[0-9a-f]{32}\b")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
CASES = [
    (path.stem, n, case)
    for path in sorted(HERE.glob("*.json"))
    for n, case in enumerate(orjson.loads(path.read_bytes())["cases"])
]


@pytest.fixture
async def services() -> AsyncIterator[Services]:
    made = Services(sandbox=cast(Any, None), http=GuardedClient(["127.0.0.1/32"]))
    yield made
    await made.http.close()


@pytest.mark.parametrize("service", sorted(SHIPPED))
def test_the_document_is_right_and_has_cases(service: str) -> None:
    connector = read(files("executor.blocks.connectors").joinpath("services", f"{service}.json").read_bytes())
    assert connector.service == service and connector.docs.startswith("https://")
    assert (HERE / f"{service}.json").exists() and re.search(rf"[|,] {re.escape(connector.title)}[ ,]", GUIDE)
    spec = ConnectorBlock(connector).spec
    assert spec.category == "connector" and spec.params == SHIPPED[service].spec.params


@pytest.mark.parametrize(("service", "n", "case"), CASES, ids=[f"{service}-{n}" for service, n, _ in CASES])
async def test_a_recorded_case(services: Services, service: str, n: int, case: dict[str, Any]) -> None:
    def play(request: Request) -> bytes:
        told = case["answers"][len(server.seen) - 1]
        headers = {name.replace("-", "_"): value for name, value in told.get("headers", {}).items()}
        headers = {name: value.replace("{base}", server.url) for name, value in headers.items()}
        if isinstance(told["body"], str):
            return answer(told["status"], told["body"].encode(), content_type="application/xml", **headers)
        body = b"" if told["body"] is None else orjson.dumps(told["body"]).replace(b"{base}", server.url.encode())
        return answer(told["status"], body, content_type="application/json", **headers)

    async with http(play) as server:
        base = server.url + ("/bot{{credential}}" if service == "telegram" else "")
        params = {
            "operation": case["operation"],
            "credential": case.get("credential", CREDENTIAL),
            "base_url": base,
            **case["params"],
        }
        assert [one.pointer for one in (SHIPPED[service].spec.check or tuple)(params)] == []
        ctx = context(params, services=services, idempotency_key="run:b", now_ms=0)
        if "error" in case:
            code, retryable, said = case["error"]
            with pytest.raises(BlockError, match=said) as caught:
                await SHIPPED[service].run(ctx)
            assert (caught.value.code, caught.value.retryable) == (code, retryable)
            assert CREDENTIAL not in str(caught.value) or service == "telegram"  # which the run takes out
        else:
            done = await SHIPPED[service].run(ctx)
            assert isinstance(done, Done)
            wanted = case["result"] if "more" in case else case["answers"][0]["body"]
            assert done.output["result"] == wanted
            assert done.output.get("more") == case.get("more")
    assert len(server.seen) == len(case["asked"])
    for request, asked in zip(server.seen, case["asked"], strict=True):
        _is_as(request, asked)
    keys = [request.headers["idempotency-key"] for request in server.seen if request.method not in ("GET", "HEAD")]
    assert len(set(keys)) == len(keys)


async def test_a_person_is_asked_once_the_service_has_forgotten_the_request(services: Services) -> None:
    async with http(lambda request: answer(200, b'{"id": "re_1"}', content_type="application/json")) as server:
        params = {"operation": "refund", "credential": CREDENTIAL, "base_url": server.url, "payment": "pi_1"}
        sent = {"since_ms": 0, "sent_ms": 0}
        day = context(params, services=services, last_checkpoint=sent, now_ms=86_000_000)
        with pytest.raises(Lost, match="too much time has passed"):
            await SHIPPED["stripe"].run(day)
        assert server.seen == []
        assert await SHIPPED["stripe"].run(context(params, services=services, last_checkpoint=sent, now_ms=85_999_999))
        assert await SHIPPED["stripe"].run(context(params, services=services, now_ms=86_000_000))
        assert len(server.seen) == 2


def _is_as(request: Request, asked: dict[str, Any]) -> None:
    parts = urlsplit(request.target)
    assert (request.method, parts.path) == (asked["method"], asked["path"].replace("{credential}", CREDENTIAL))
    assert dict(parse_qsl(parts.query)) == asked["query"]
    assert "+" not in parts.query or not request.headers.get("authorization", "").startswith("AWS4")
    for name, value in asked.get("headers", {}).items():
        assert request.headers[name] == value
    if "body" in asked:
        text, wanted = _HEX.sub("$hex", _UUID.sub("$uuid", _KEY.sub("$key", request.body.decode()))), asked["body"]
        match wanted:
            case {"$text": expected}:
                assert text == expected
                return
            case {"$form": expected}:
                assert dict(parse_qsl(text)) == expected
                return
        sent = orjson.loads(text)
        if isinstance(wanted, dict) and wanted.get("query") == "$any":
            assert sent["query"].count("{") == sent["query"].count("}")
            wanted = {**wanted, "query": sent["query"]}
        if isinstance(wanted, dict) and wanted.get("raw") == "$mime":
            mail = base64.urlsafe_b64decode(sent["raw"])
            assert b"To: ada@example.org\r\n" in mail and b"Subject: =?utf-8?" in mail and mail.endswith(b"Hello\r\n")
            wanted = {"raw": sent["raw"]}
        assert sent == wanted

"""The access log had the whole token of each link, while it was pending."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import httpx

from server.logs import LogFormatter
from tests.e2e.edge import serving

TOKEN = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"


async def test_the_access_log_has_no_tokens(tmp_path: Path) -> None:
    paths = ("/resume/", "/api/resume/", "/callbacks/", "/hooks/")
    async with serving(tmp_path, WEFT_LOG="info") as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            for path in paths:
                await client.get(f"{path}{TOKEN}?secret=s3cret-of-the-query")
            await client.get("/healthz")
        await server.stop(60)
        log = (tmp_path / "log").read_text()
    assert all(f'"GET {path}abc*** HTTP/1.1" 4' in log for path in paths), log
    assert '"GET /healthz HTTP/1.1" 200' in log
    assert TOKEN[4:] not in log and "s3cret" not in log


def test_other_lines_have_none_either() -> None:
    record = logging.LogRecord(
        "httpx", logging.INFO, "", 0, 'HTTP Request: POST http://a.example/callbacks/%s "200 OK"', (TOKEN,), None
    )
    line = LogFormatter([]).format(record)
    assert line.endswith('HTTP Request: POST http://a.example/callbacks/abc*** "200 OK"')


async def test_a_request_is_one_object_with_its_route_its_caller_and_its_id(tmp_path: Path) -> None:
    async with serving(tmp_path, WEFT_LOG="info", WEFT_LOG_FORMAT="json", WEFT_TOKEN="t" * 43) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            mine = {"authorization": f"Bearer {'t' * 43}", "x-request-id": "from-the-proxy"}
            named = await client.get("/api/runs/none", headers=mine)
            other = await client.get("/healthz", headers={"x-request-id": "not well formed"})
        await server.stop(60)
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines() if line.startswith("{")]
    first, second = [line["request"] for line in lines if line["logger"] == "weft.access"][-2:]
    assert first["id"] == named.headers["x-request-id"] == "from-the-proxy"
    assert (first["method"], first["route"], first["status"]) == ("GET", "GET /api/runs/{id}", 404)
    assert (first["actor"], first["client"]) == ("server-token", "127.0.0.1") and first["ms"] > 0
    assert second["id"] == other.headers["x-request-id"] != "not well formed"
    assert second["actor"] is None

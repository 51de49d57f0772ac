"""The access log had the whole token of each link, while it was pending."""

from __future__ import annotations

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

"""Files over HTTP: what is uploaded comes back as it is, and never as a page of this server."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from executor.kernel.store.topics.contents import PART_BYTES
from executor.open.engine import Engine
from executor.service.upkeep.gc import DAY_MS, collect
from server.app import build_engine, create_app
from server.settings import Settings
from tests.support.api import ended

RAW = {"content-type": "application/octet-stream"}
ECHO: dict[str, Any] = {
    "format": "weft/1",
    "name": "files",
    "input": {"type": "object", "required": ["report"], "properties": {"report": {"format": "file"}}},
    "blocks": {
        "start": {"type": "start", "name": "Start"},
        "note": {"type": "set", "name": "Note", "params": {"value": {"a": "<input.report>"}}},
    },
    "edges": [{"source": "start", "target": "note"}],
}


async def _upload(client: httpx.AsyncClient, content: bytes, **query: str) -> dict[str, Any]:
    made = await client.post("/api/files", params=query, content=content, headers=RAW)
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    assert made.headers["location"] == f"/api/files/{found['id']}"
    return found


@pytest.mark.parametrize("size", [0, 1, PART_BYTES, 2 * PART_BYTES + 5])
async def test_what_is_uploaded_comes_back(client: httpx.AsyncClient, size: int) -> None:
    content = os.urandom(size)
    file = await _upload(client, content, name="report.csv")
    assert (file["type"], file["name"], file["media_type"], file["size"]) == ("file", "report.csv", "text/csv", size)
    back = await client.get(f"/api/files/{file['id']}")
    assert hashlib.sha256(back.content).digest() == hashlib.sha256(content).digest()
    assert back.headers["content-length"] == str(size)
    assert await _upload(client, content, name="report.csv") == file, "the same content has the same id"
    again = await client.get(f"/api/files/{file['id']}", headers={"If-None-Match": back.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("asked", "status", "span"),
    [
        ("bytes=0-3", 206, (0, 4)),
        (f"bytes={PART_BYTES - 2}-{PART_BYTES + 1}", 206, (PART_BYTES - 2, PART_BYTES + 2)),
        ("bytes=-3", 206, (PART_BYTES + 7, PART_BYTES + 10)),
        (f"bytes={PART_BYTES}-", 206, (PART_BYTES, PART_BYTES + 10)),
        ("bytes=5-1", 416, (0, 0)),
        (f"bytes={PART_BYTES + 10}-", 416, (0, 0)),
        ("bytes=0-1,5-6", 200, (0, PART_BYTES + 10)),
        ("bytes=" + "1" * 5000 + "-", 200, (0, PART_BYTES + 10)),
    ],
)
async def test_a_part_of_it(client: httpx.AsyncClient, asked: str, status: int, span: tuple[int, int]) -> None:
    content = os.urandom(PART_BYTES + 10)
    file = await _upload(client, content, name="a.bin")
    part = await client.get(f"/api/files/{file['id']}", headers={"Range": asked})
    assert part.status_code == status
    if status == 416:
        assert part.json()["code"] == "range_invalid" and part.headers["content-range"] == f"bytes */{PART_BYTES + 10}"
    else:
        assert part.content == content[slice(*span)]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\a.txt", "a.txt"),
        ("..", "file"),
        ("", "file"),
        ('a"\r\nSet-Cookie: x=1.txt', 'a"Set-Cookie: x=1.txt'),
        ("a\x00b\x1b[31m.txt", "ab[31m.txt"),
        ("photo\u202egnp.exe", "photognp.exe"),
        ("x" * 500 + ".csv", "x" * 196 + ".csv"),
        ("Übersicht 2026.csv", "Übersicht 2026.csv"),
    ],
)
async def test_names_are_labels(client: httpx.AsyncClient, sent: str, kept: str) -> None:
    file = await _upload(client, b"1", name=sent)
    assert file["name"] == kept
    back = await client.get(f"/api/files/{file['id']}")
    shown = back.headers["content-disposition"]
    assert shown.startswith('attachment; filename="') and shown.isascii() and "\n" not in shown
    assert "set-cookie" not in back.headers
    assert shown.count('"') == 2


@pytest.mark.parametrize(
    "media", ["text/html", "image/svg+xml", "text/javascript", "application/xhtml+xml", "x y/\r\nz"]
)
async def test_a_page_that_was_uploaded_is_no_page_of_this_server(client: httpx.AsyncClient, media: str) -> None:
    file = await _upload(client, b"<script>alert(1)</script>", name="a.html", media_type=media)
    back = await client.get(f"/api/files/{file['id']}")
    assert back.headers["content-type"] == "application/octet-stream"
    assert back.headers["content-disposition"].startswith("attachment")
    assert back.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in back.headers["content-security-policy"]


async def test_only_a_raw_body_is_taken(client: httpx.AsyncClient) -> None:
    for media in (
        "text/plain",
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded",
        "application/json",
    ):
        refused = await client.post("/api/files", content=b"{}", headers={"content-type": media})
        assert refused.status_code == 415, media
        assert "application/octet-stream" in refused.json()["hint"] and "application/json" not in refused.json()["hint"]
    assert (await client.get("/api/files/none")).status_code == 404
    assert (await client.get("/api/files/file_" + "0" * 64)).status_code == 404


async def test_a_run_with_a_file(client: httpx.AsyncClient) -> None:
    file = await _upload(client, b"a,b\n1,2\n", name="a.csv")
    sent = {"report": {"type": "file", "id": file["id"], "name": "other", "size": 1}}
    started = await client.post("/api/runs", json={"document": ECHO, "input": sent})
    assert started.status_code == 202, started.text
    run = await ended(client, started.json()["run"])
    assert run["status"] == "succeeded", run
    assert run["output"]["a"] == file, "the id counts, the rest is as it is stored"
    assert run["input"]["report"] == file
    assert (await client.get(f"/api/runs/{run['id']}/nodes/note")).json()["output"]["a"] == file


async def test_a_file_among_the_fields_of_the_start_block(client: httpx.AsyncClient) -> None:
    file = await _upload(client, b"a,b\n1,2\n", name="a.csv")
    fields = [{"name": "report", "type": "file", "required": True}]
    start = {"type": "start", "name": "Start", "params": {"fields": fields}}
    note = {"type": "set", "name": "Note", "params": {"value": "<start.report.name>"}}
    document = {**ECHO, "input": {}, "blocks": {"start": start, "note": note}}
    sent = {"report": {"type": "file", "id": file["id"]}}
    run = await ended(
        client, (await client.post("/api/runs", json={"document": document, "input": sent})).json()["run"]
    )
    assert (run["status"], run["output"]) == ("succeeded", "a.csv"), run
    for wrong, code in (({"report": "a.csv"}, "not_a_file"), ({}, "input_missing")):
        refused = await client.post("/api/runs", json={"document": document, "input": wrong})
        assert (refused.status_code, refused.json()["code"], refused.json()["pointer"]) == (422, code, "/input")
    note["params"] = {"value": "<start.report.nme>"}
    found = (await client.post("/api/validate", json=document)).json()["diagnostics"]
    assert [each["code"] for each in found] == ["reference_unknown_field"]


async def test_a_file_that_is_not_there(client: httpx.AsyncClient) -> None:
    sent = {"report": {"type": "file", "id": "file_" + "0" * 64}}
    refused = await client.post("/api/runs", json={"document": ECHO, "input": sent})
    assert refused.status_code == 400
    assert (refused.json()["code"], refused.json()["pointer"]) == ("file_not_found", "/input/report/id")


async def test_text_where_a_file_is_wanted(client: httpx.AsyncClient) -> None:
    refused = await client.post("/api/runs", json={"document": ECHO, "input": {"report": "a.csv"}})
    assert refused.status_code == 422
    assert refused.json()["pointer"] == "/input/report"
    assert "/api/files" in refused.json()["detail"]


async def test_what_is_too_large_is_refused_by_its_length_and_while_it_arrives(settings: Settings) -> None:
    small = replace(settings, file_max=1)
    engine = await build_engine(small)
    transport = httpx.ASGITransport(app=create_app(small, engine))
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as client:
            await _upload(client, b"x" * 1024 * 1024, name="a")
            for content in (b"x" * (1024 * 1024 + 1), _endless()):
                refused = await client.post("/api/files", content=content, headers=RAW)
                assert refused.status_code == 413
                assert refused.json()["code"] == "file_too_large"
                assert "1 MiB" in refused.json()["detail"] and "WEFT_FILE_MAX" in refused.json()["hint"]
    finally:
        await engine.close()


async def _endless() -> AsyncIterator[bytes]:
    while True:
        yield b"x" * 65_536


async def test_who_may(locked: httpx.AsyncClient) -> None:
    for method, path in (("POST", "/api/files"), ("GET", "/api/files/file_" + "0" * 64)):
        refused = await locked.request(method, path, content=b"x" if method == "POST" else None, headers=RAW)
        assert refused.status_code == 401


async def test_a_file_goes_with_the_last_run_that_names_it(client: httpx.AsyncClient, engine: Engine) -> None:
    file, unused = await _upload(client, b"used"), await _upload(client, b"unused")
    started = await client.post("/api/runs", json={"document": ECHO, "input": {"report": file}})
    run = (await ended(client, started.json()["run"]))["id"]
    later = engine.parts.clock.now_ms() + 10 * DAY_MS
    assert (await collect(engine.store, later, None)).blobs == 2
    assert (await client.get(f"/api/files/{unused['id']}")).status_code == 404
    assert (await client.get(f"/api/files/{file['id']}")).content == b"used"
    again = await client.post(f"/api/runs/{run}/rerun", json={"from": "note"})
    assert again.status_code == 202, again.text
    other = (await ended(client, again.json()["run"]))["id"]
    assert (await client.delete(f"/api/runs/{run}")).status_code == 200
    assert (await collect(engine.store, later, None)).blobs == 0
    assert (await client.get(f"/api/files/{file['id']}")).content == b"used"
    assert (await client.delete(f"/api/runs/{other}")).status_code == 200
    assert (await collect(engine.store, later, None)).blobs == 2
    assert (await client.get(f"/api/files/{file['id']}")).status_code == 404

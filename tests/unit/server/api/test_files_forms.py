"""Files in public forms and in answers by a link, without JavaScript."""

from __future__ import annotations

import re
from typing import Any

import httpx
from msgspec.structs import replace

from server.app import build_engine, create_app
from server.settings import Settings
from tests.support.api import ended
from tests.support.until import until

FIELDS: dict[str, Any] = {
    "type": "object",
    "required": ["report", "count"],
    "properties": {"report": {"format": "file", "title": "Report"}, "count": {"type": "integer"}},
}
FORM: dict[str, Any] = {
    "format": "weft/1",
    "name": "apply",
    "blocks": {
        "page": {"type": "form_trigger", "params": {"title": "Apply", "fields": FIELDS}},
        "read": {"type": "function", "params": {"files": "text", "code": "return <input.report>.text"}},
    },
    "edges": [{"source": "page", "target": "read"}],
}
ASK: dict[str, Any] = {
    "format": "weft/1",
    "name": "ask",
    "blocks": {
        "start": {"type": "start"},
        "ask": {"type": "form", "params": {"title": "Report?", "fields": FIELDS}},
        "read": {"type": "function", "params": {"files": "text", "code": "return <ask.report>.text"}},
    },
    "edges": [{"source": "start", "target": "ask"}, {"source": "ask", "target": "read"}],
}


async def test_a_public_form_takes_a_file(client: httpx.AsyncClient) -> None:
    assert (await client.post("/api/workflows", json=FORM)).status_code == 201
    (form,) = (await client.get("/api/webhooks")).json()["webhooks"]
    path = httpx.URL(form["url"]).path
    page = (await client.get(path)).text
    assert 'enctype="multipart/form-data"' in page and 'type="file"' in page
    once = re.search(r'name="once" value="([^"]+)"', page)
    assert once
    sent = {"report": ("../a.txt", b"read me", "text/plain")}
    files = {f"field.{name}": value for name, value in sent.items()}
    wrong = await client.post(path, data={"once": once[1], "field.count": "x"}, files=files)
    assert wrong.status_code == 422 and "a.txt was received" in wrong.text
    kept = re.search(r'type="hidden" name="field.report" value="([^"]+)"', wrong.text)
    assert kept
    again = {"once": once[1], "field.count": "2", "field.report": kept[1].replace("&quot;", '"').replace("&#34;", '"')}
    done = await client.post(path, data=again)
    assert done.status_code in (200, 202), done.text
    (run,) = (await client.get("/api/runs")).json()["runs"]
    assert (await ended(client, run["id"]))["output"]["result"] == "read me"


async def test_a_question_is_answered_with_a_file(client: httpx.AsyncClient) -> None:
    run = (await client.post("/api/runs", json={"document": ASK})).json()["run"]
    waits = await until(lambda: _waits(client, run), within_s=30)
    path = httpx.URL(waits[0]["link"]).path
    assert 'type="file"' in (await client.get(path)).text
    missing = await client.post(path, data={"field.count": "1"}, files={"field.report": ("", b"")})
    assert missing.status_code == 422
    done = await client.post(path, data={"field.count": "1"}, files={"field.report": ("b.txt", b"answered")})
    assert done.status_code == 200, done.text
    ended_run = await ended(client, run)
    assert ended_run["output"]["result"] == "answered"
    late = await client.post(path, data={"field.count": "1"}, files={"field.report": ("b.txt", b"late")})
    assert late.status_code == 409


async def test_a_form_is_bounded_as_files_are(settings: Settings) -> None:
    small = replace(settings, file_max=1)
    engine = await build_engine(small)
    transport = httpx.ASGITransport(app=create_app(small, engine))
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as client:
            assert (await client.post("/api/workflows", json=FORM)).status_code == 201
            (form,) = (await client.get("/api/webhooks")).json()["webhooks"]
            content = b"x" * (1024 * 1024 + 1)
            refused = await client.post(
                httpx.URL(form["url"]).path, data={"field.count": "1"}, files={"field.report": ("a", content)}
            )
            assert (refused.status_code, refused.json()["code"]) == (413, "file_too_large")
    finally:
        await engine.close()


async def _waits(client: httpx.AsyncClient, run: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.get(f"/api/runs/{run}")).json()["waits"]
    return found

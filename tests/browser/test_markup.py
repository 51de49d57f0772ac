"""Markup from names, params, outputs, errors and questions is text on every page, and no script of it runs."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.support.documents import document
from tests.support.server import SyncServerProcess

RUN = "window.ran = 1"
PAYLOADS = [
    f"<img src=x onerror='{RUN}'>",
    f"<script>{RUN}</script>",
    f"<svg/onload='{RUN}'>",
    f"<a href='javascript:{RUN}'>press</a>",
    f"[press](javascript:{RUN})",
    f"![x](x' onerror='{RUN})",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"</textarea></script><script>{RUN}</script>",
    f"javascript:{RUN}",
]
ALL = " ".join(PAYLOADS)
MARKERS = "[onerror], [onload], iframe, a[href^='javascript:'], img[src='x']"


def marked(name: str) -> dict[str, Any]:
    set_ = {"type": "set", "name": f"Set {PAYLOADS[0]}"[:80], "params": {"value": {"text": ALL, ALL[:200]: PAYLOADS}}}
    throws = {"type": "function", "name": "Throw", "params": {"code": "throw new Error(<keep.text>)"}}
    fields = {"type": "object", "properties": {"note": {"type": "string", "title": PAYLOADS[0], "default": ALL}}}
    asks = {
        "title": PAYLOADS[1],
        "text": ALL,
        "show": {"all": "<keep>"},
        "fields": fields,
        "actions": [PAYLOADS[2][:40]],
    }
    return document(
        name,
        "start keep",
        "keep throw",
        "throw error ask",
        blocks={
            "keep": set_,
            "throw": throws,
            "ask": {"type": "approval", "params": asks},
            "note": {"type": "note", "params": {"text": ALL}},
        },
        description=ALL[:400],
    )


@pytest.fixture
def asked(server: SyncServerProcess) -> dict[str, str]:
    with httpx.Client(base_url=server.url, timeout=90) as client:
        assert client.post("/api/workflows", json=marked("marked")).status_code == 201
        draft = client.post("/api/drafts", json={"document": marked("marked")}).json()
        run = client.post("/api/workflows/marked/runs?wait=60", json={"input": {"text": ALL}}).json()
        assert run["status"] == "waiting", run
        (wait,) = client.get("/api/waits", params={"run": run["run"]}).json()["waits"]
    return {"draft": draft["id"], "run": run["run"], "resume": urlsplit(wait["link"]).path}


def test_markup_is_text_on_every_page(page: Page, server: SyncServerProcess, asked: dict[str, str]) -> None:
    pages = {
        f"/w/{asked['draft']}": "Set <img",
        f"/runs/{asked['run']}": "Set <img",
        "/runs": "marked",
        "/approvals": "<script>",
        "/": "marked",
        asked["resume"]: "<script>",
    }
    for path, text in pages.items():
        page.goto(path)
        expect(page.locator("body")).to_contain_text(text, timeout=30_000)
        for key in ("keep", "throw", "ask"):
            block = page.locator(f"[data-id='{key}']").first
            if path.startswith(("/w/", "/runs/")):
                block.click()  # its params, and of a run what came in and out
                expect(page.locator("body")).to_contain_text("onerror")
        found = page.locator(MARKERS).evaluate_all("all => all.map(each => each.outerHTML)")
        assert found == [], (path, found)
        assert page.evaluate("window.ran") is None, path

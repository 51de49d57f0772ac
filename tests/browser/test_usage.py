"""Tokens and costs of models: above a run while it works, and on the page Usage, with and without a known price."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Editor
from tests.support.dev_model import scripted_model
from tests.support.documents import chain


def asking(model: str) -> dict[str, Any]:
    return chain("a", a={"type": "agent", "params": {"model": model, "prompt": "Where is it?"}})


def test_what_models_used_is_shown(servers: Servers, contexts: Contexts, tmp_path: Path) -> None:
    usage = {"input_tokens": 1200, "output_tokens": 83, "cached_tokens": 200}
    (tmp_path / "script.json").write_text(json.dumps({"rules": [{"text": "Late.", "usage": usage}]}))
    with scripted_model(tmp_path / "script.json") as url:
        server = servers(WEFT_MODEL_DEV=url, WEFT_PRICE_DEV="m=2/1/10")
        watched = contexts(server.url)
        watched.allow("status of 400|ERR_CONNECTION|ERR_EMPTY_RESPONSE|Failed to fetch")
        page = watched.page()
        editor = Editor(page, server.url)
        page.goto("/usage")
        expect(page.get_by_text("No model was asked in these days")).to_be_visible()
        for model in ("dev:m", "dev:m", "dev:other"):
            run = editor.api.post("/api/runs", {"document": asking(model)})["run"]
            assert editor.api.until(run, "succeeded") == "succeeded"
        page.goto(f"/runs/{run}")
        expect(page.get_by_test_id("used")).to_have_text("1,283 tokens, no price known")
        page.goto("/usage")
        total = page.get_by_test_id("usage-total")
        expect(total).to_contain_text("$0.00606 and 1 call without a price")
        expect(total).to_contain_text("3,600")
        expect(page.get_by_test_id("usage-prices")).to_contain_text("Prices: WEFT_PRICE_DEV")
        models = page.get_by_role("region", name="By model")
        expect(models.get_by_role("row", name="dev:m")).to_contain_text("$0.00606")
        expect(models.get_by_role("row", name="dev:other")).to_contain_text("no price known")
        page.get_by_role("button", name="7 days").click()
        expect(page.get_by_role("button", name="7 days")).to_have_attribute("aria-pressed", "true")
        expect(page.locator(".usage__bars li")).to_have_count(7)
        page.get_by_label("From").fill("2020-01-01")
        expect(page.get_by_text("at most 1098 days")).to_be_visible()
        page.get_by_role("button", name="30 days").click()
        server.stop()
        page.get_by_role("button", name="90 days").click()
        expect(page.get_by_text("The server cannot be reached")).to_be_visible()

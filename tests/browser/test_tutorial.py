"""docs/tutorial/first-run.md, word for word: from an empty canvas to an approved run, the server killed in between."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Editor


@pytest.mark.proof
def test_the_first_run(contexts: Contexts, servers: Servers) -> None:
    server = servers(WEFT_LEASE_MS="1000")
    watched = contexts(server.url)
    page = watched.page()
    editor = Editor(page, server.url)

    # 1. Draw it
    page.goto("/")
    page.get_by_role("banner").get_by_role("button", name="New workflow").click()
    name = page.get_by_role("banner").get_by_label("Name of the workflow")
    name.fill("hello")
    name.press("Enter")
    editor.select("start")
    page.get_by_role("button", name="Add field").click()
    page.get_by_label("Name of field 1").fill("who")
    editor.press("Enter")
    editor.press("Escape")
    editor.has_focus(".canvas")
    editor.press("/")
    editor.has_focus("[data-testid=block-picker]")
    page.keyboard.type("app")
    editor.press("Enter")
    editor.has_focus(".canvas")
    title = editor.at("field-title")
    title.click()
    editor.press("Control+a")
    page.keyboard.type("Greet <start.w")
    expect(page.locator(".refmenu [role=option]").first).to_be_visible()
    editor.press("Enter")
    expect(title).to_have_value("Greet <start.who>")
    page.keyboard.type("?")
    editor.press("Escape")
    editor.has_focus(".canvas")
    editor.press("/")
    editor.has_focus("[data-testid=block-picker]")
    page.keyboard.type("set")
    editor.press("Enter")
    editor.has_focus(".canvas")
    expect(editor.edge("approval", "set", "approve")).to_be_attached()
    editor.at("field-value").click()
    page.keyboard.type("Hello <start.who>!")
    editor.press("Escape")
    editor.press("Escape")
    editor.has_focus(".canvas")
    editor.is_saved()

    # 2. Run it
    editor.press("Control+Enter")
    dialog = editor.at("run-dialog")
    dialog.get_by_label("who").fill("Ada")
    editor.at("run-start").click()
    editor.has_status("approval", "waiting")
    editor.until("window.__app.net.getState().mode === 'live'")

    # 3. Kill the server
    watched.allow("ERR_CONNECTION|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED_ENCODING|Failed to fetch")
    server.kill()
    editor.until("window.__app.net.getState().mode === 'offline'")
    servers(WEFT_PORT=str(urlsplit(server.url).port), WEFT_LEASE_MS="1000")
    editor.until("window.__app.net.getState().mode === 'live'")

    # 4. Decide
    page.get_by_role("link", name="Approvals").click()
    card = page.locator(".waits__card")
    expect(card).to_contain_text("Greet Ada?")
    card.get_by_role("button", name="Approve").click()
    expect(card).to_have_attribute("data-status", "answered")
    page.get_by_role("link", name="Runs").click()
    (run,) = editor.api.get("/api/runs", workflow="hello")["runs"]  # the first visit has started an example as well
    page.get_by_test_id(f"run-{run['id']}").get_by_role("link", name="hello").click()
    editor.has_status("set", "succeeded")
    editor.select("set")
    editor.at("tab-output").click()
    expect(editor.at("inspector")).to_contain_text("Hello Ada!")

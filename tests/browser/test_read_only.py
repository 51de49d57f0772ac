"""A server that changes nothing, as people see it: a banner on each page, buttons that say why, pages without forms."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Api, Editor, document
from tests.support.server import SyncServerProcess

SAYS = "This server is read-only"
ASK: dict[str, Any] = {"ask": {"type": "approval", "name": "Ask", "at": [272, 0], "params": {"title": "Pay it?"}}}
FORM: dict[str, Any] = {"intake": {"type": "form_trigger", "at": [0, 160], "params": {"title": "Order tea"}}}
CHAT: dict[str, Any] = {"chat": {"type": "chat_trigger", "at": [0, 320], "params": {"title": "Talk"}}}


@pytest.fixture
def shown(servers: Servers, contexts: Contexts) -> tuple[SyncServerProcess, Editor, dict[str, str]]:
    """A draft, a workflow with pages for people outside and a run that waits; then a read-only server beside."""
    server = servers()
    api = Api(server.url)
    doc = {**document({**ASK, **FORM, **CHAT}, [("start", "ask")]), "name": "shop"}
    api.post("/api/workflows", {"document": doc, "name": "shop"})
    draft, run = api.draft(doc), api.run(doc, wait_s=30)
    (wait,) = api.waits(run)
    hooks = {each["kind"]: urlsplit(each["url"]).path for each in api.get("/api/webhooks")["webhooks"]}
    reader = servers(WEFT_READ_ONLY="true")
    editor = Editor(contexts(reader.url).page(), reader.url)
    places = {"editor": f"/w/{draft}", "run": f"/runs/{run}", "resume": urlsplit(wait["link"]).path, **hooks}
    return reader, editor, places


def banner(page: Page) -> None:
    expect(page.get_by_test_id("read-only")).to_contain_text(SAYS)


def refuses(page: Page, name: str) -> None:
    button = page.get_by_role("button", name=name).first
    expect(button).to_have_attribute("aria-disabled", "true")
    expect(button).to_have_attribute("title", f"{SAYS}.")


def test_each_page_says_so_and_its_buttons_change_nothing(
    shown: tuple[SyncServerProcess, Editor, dict[str, str]],
) -> None:
    _, editor, places = shown
    page = editor.page
    for path in ("/", "/runs", "/approvals", "/usage", "/settings", places["run"], places["editor"]):
        page.goto(path)
        banner(page)
    editor.is_ready("start", "ask")
    for name in ("Publish", "Run"):
        refuses(page, name)
    editor.select("ask")
    before = editor.doc()
    editor.press("Delete")
    editor.press("Control+Enter")
    expect(editor.block("ask")).to_be_visible()
    assert editor.doc() == before
    page.goto("/")
    refuses(page, "New workflow")
    page.goto(places["run"])
    refuses(page, "Cancel")
    page.goto("/settings?page=schedules")
    refuses(page, "New schedule")
    page.goto("/approvals")
    refuses(page, "Approve")


def test_pages_for_people_outside_say_so_in_place_of_their_form(
    shown: tuple[SyncServerProcess, Editor, dict[str, str]],
) -> None:
    _, editor, places = shown
    for kind, title in (("resume", "Pay it?"), ("form", "Order tea"), ("chat", "Talk")):
        editor.page.goto(places[kind])
        expect(editor.page.get_by_role("heading", level=1)).to_have_text(title)
        expect(editor.page.get_by_text(SAYS)).to_be_visible()
        expect(editor.page.locator("form")).to_have_count(0)


def test_a_server_that_changes_things_has_no_banner(editor: Editor) -> None:
    editor.page.goto("/")
    expect(editor.page.get_by_role("button", name="New workflow").first).not_to_have_attribute("aria-disabled", "true")
    expect(editor.at("read-only")).to_have_count(0)

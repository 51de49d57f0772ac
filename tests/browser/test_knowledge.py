"""In a browser: a collection is made, filled with a file and a text, searched, and deleted. The vectors are those of
`weft dev-model` on this machine."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import FilePayload, Page, expect

from tests.browser.conftest import Contexts, Servers
from tests.support.dev_model import scripted_model

TEA = b"# Tea\n\nGreen tea is brewed at 80 degrees.\n\n# Coffee\n\nEspresso needs nine bar."
NO_TEXT: FilePayload = {"name": "photo.txt", "mimeType": "text/plain", "buffer": b"\xff\xfe\x00"}


def create(page: Page, name: str, chunk: str = "1600") -> None:
    page.get_by_role("button", name="New collection").click()
    form = page.get_by_test_id("collection-form")
    form.get_by_test_id("collection-name").fill(name)
    page.get_by_test_id("collection-form-send").click()
    expect(page.get_by_text("Choose a model of embeddings.").first).to_be_visible()
    form.get_by_test_id("field-collection-model").click()
    page.get_by_role("option", name="dev:words").click()
    form.get_by_test_id("collection-chunk").fill(chunk)
    form.get_by_test_id("collection-overlap").fill("0")
    page.get_by_test_id("collection-form-send").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()


def test_a_collection_is_made_filled_searched_and_deleted(servers: Servers, contexts: Contexts, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text("{}")
    with scripted_model(script) as url:
        server = servers(WEFT_MODEL_DEV=url)
        watched = contexts(server.url)
        watched.allow("status of (400|404|422)")
        page = watched.page()
        page.goto("/")
        page.get_by_role("navigation", name="Pages").get_by_role("link", name="Knowledge").click()
        expect(page.get_by_text("There is no collection")).to_be_visible()
        create(page, "drinks", "200")
        expect(page.get_by_text("There is no document")).to_be_visible()

        tea: FilePayload = {"name": "tea.md", "mimeType": "text/markdown", "buffer": TEA}
        page.get_by_test_id("knowledge-files").set_input_files([tea, NO_TEXT])
        expect(page.get_by_role("alert")).to_contain_text("photo.txt: ")
        page.get_by_role("button", name="Dismiss").click()
        row = page.get_by_test_id("document-tea.md")
        expect(row).to_contain_text("v1 ready")
        expect(row).to_contain_text("2 chunks")
        page.get_by_role("button", name="Add text").click()
        page.get_by_test_id("text-name").fill("water")
        page.get_by_test_id("text-text").fill("Water boils at 100 degrees.")
        page.get_by_test_id("text-source").fill("https://example.com/water")
        page.get_by_test_id("text-form-send").click()
        expect(page.get_by_test_id("document-water")).to_contain_text("v1 ready")
        expect(row.get_by_role("link", name="Run")).to_have_attribute("href", re.compile("/runs/."))

        page.get_by_test_id("knowledge-search").fill("when does water boil")
        page.get_by_test_id("knowledge-search").press("Enter")
        found = page.get_by_test_id("knowledge-results").get_by_role("listitem")
        expect(found.first).to_contain_text("Water boils at 100 degrees.")
        expect(found.first.get_by_role("link")).to_have_attribute("href", "https://example.com/water")
        page.reload()  # the search is part of the address
        expect(found.first).to_contain_text("Water boils")
        page.get_by_label("Search by").select_option("text")
        page.get_by_test_id("knowledge-search").fill("espresso")
        page.get_by_role("button", name="Search", exact=True).click()
        expect(found).to_have_count(1)
        expect(found.first).to_contain_text("tea.md")

        row.get_by_role("button", name="Delete tea.md").click()
        page.get_by_test_id("delete").click()
        expect(row).to_have_count(0)
        page.reload()
        expect(page.get_by_text("Nothing was found")).to_be_visible()
        page.get_by_role("link", name="Knowledge").last.click()
        expect(page.get_by_test_id("collection-drinks")).to_contain_text("Ready")
        page.get_by_role("link", name="drinks").click()
        page.get_by_role("button", name="Delete collection").click()
        page.get_by_test_id("delete").click()
        expect(page.get_by_text("There is no collection")).to_be_visible()
        page.goto("/knowledge/drinks")
        expect(page.get_by_text("there is no collection 'drinks'")).to_be_visible()

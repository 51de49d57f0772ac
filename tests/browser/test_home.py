"""The front page, and documents that come and go as files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Page, expect

from tests.browser.conftest import Contexts, Servers, Watched
from tests.browser.editor import Api, Editor, box_of, document
from tests.support.server import SyncServerProcess

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = len(list(FOLDER.glob("*.json")))
TEMPLATES = len(list(FOLDER.glob("templates/*.json")))


def test_check_01_front_page_shows_the_examples(editor: Editor, watched: Watched) -> None:
    """In this checkout; `test_install.py` does the same with a package that was installed where no Node is."""
    shows_the_examples(editor)
    watched.check()


def shows_the_examples(editor: Editor) -> None:
    """At least the six that teach one thing each. Under the policy, and with nothing from other hosts: the fixture
    looks at that."""
    assert EXAMPLES >= 6
    answer = editor.page.goto("/?examples=1")  # with ten workflows they are not on the page
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy and "unsafe" not in policy
    expect(editor.page.get_by_role("button", name=re.compile("^Open a copy of ")).first).to_be_visible()
    if (rest := editor.page.get_by_role("button", name=f"All {EXAMPLES} examples")).count():
        rest.click()
    copies = editor.page.get_by_role("button", name=re.compile("^Open a copy of "))
    expect(copies).to_have_count(EXAMPLES)
    expect(editor.page.get_by_role("button", name=re.compile("^Run it: "))).to_have_count(EXAMPLES)
    copies.first.click()
    expect(editor.at("canvas")).to_be_visible()
    expect(editor.page.locator(".card").first).to_be_visible()


def test_a_template_shows_its_services_and_opens(editor: Editor, watched: Watched) -> None:
    editor.page.goto("/?examples=1")
    section = editor.page.get_by_role("region", name="Templates")
    expect(section.locator(".tile")).to_have_count(4)
    section.get_by_role("button", name=re.compile("^All .* templates$")).click()
    expect(section.locator(".tile")).to_have_count(TEMPLATES)
    card = section.get_by_test_id("card-Weekly report")
    expect(card).to_contain_text("Gmail, Google Sheets, Stripe")
    expect(card.locator(".tile__pill")).to_have_text("Schedule")
    expect(card.locator(".tile__picture svg")).to_be_visible()
    card.get_by_role("button", name="Weekly report").click()
    expect(editor.at("canvas")).to_be_visible()
    expect(editor.page.locator(".card").first).to_be_visible()
    expect(editor.page.get_by_text("Connect Stripe")).to_be_visible()  # the list of what is left is open
    watched.check()


def test_check_14_export_delete_import_is_identical(editor: Editor, page: Page, tmp_path: Path) -> None:
    blocks = {
        "ask": {"type": "approval", "name": "Ask ünïcode", "at": [272, 0], "params": {"title": "Go <start.who>?"}},
        "each": {
            "type": "loop",
            "name": "Each",
            "at": [560, 0],
            "size": [400, 240],
            "params": {"mode": "for", "count": 3},
        },
        "in": {
            "type": "set",
            "parent": "each",
            "at": [48, 64],
            "params": {"value": [1.5, None, {"a": "<loop.index>"}]},
        },
    }
    more = {"notes": [{"id": "n", "text": "why", "at": [0, 200]}], "variables": {"seen": 0}, "description": "kept"}
    doc = document(blocks, [("start", "ask"), ("ask", "approve", "each"), ("each", "body", "in")], **more)
    doc["name"] = "taken-out"
    editor.draft_id = editor.api.draft(doc)
    before = editor.stored()
    page.goto("/")
    more_button = page.get_by_role("button", name="More for taken-out")
    more_button.click()
    with page.expect_download() as waiting:
        page.get_by_role("menuitem", name="Download JSON").click()
    file = tmp_path / "taken-out.json"
    waiting.value.save_as(file)
    assert json.loads(file.read_text("utf-8")) == before
    more_button.click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(more_button).to_have_count(0)
    page.locator("input[type=file]").set_input_files(file)
    page.wait_for_url("**/w/*")
    editor.is_ready("in")
    editor.draft_id = page.url.split("/w/")[1].split("?")[0]
    assert editor.doc() == editor.stored() == before


ASKS = document(
    {"ask": {"type": "approval", "name": "Ask", "at": [272, 0], "params": {"title": "Pay 20 EUR?"}}}, [("start", "ask")]
)
FAILS = document(
    {
        "bad": {
            "type": "function",
            "name": "Reserve stock",
            "at": [272, 0],
            "params": {"code": "throw new Error('409 held by other')"},
        }
    },
    [("start", "bad")],
)


def stored(server: SyncServerProcess, name: str, doc: dict[str, Any]) -> Api:
    api = Api(server.url)
    api.post("/api/workflows", {"document": {**doc, "name": name}, "name": name})
    return api


def test_what_waits_is_answered_on_its_ticket(servers: Servers, contexts: Contexts) -> None:
    server = servers()
    api = stored(server, "pays", ASKS)
    run = api.post("/api/workflows/pays/runs?wait=10")["run"]
    watched = contexts(server.url, reduced_motion="reduce")
    page = watched.page()
    page.goto("/")
    ticket = page.locator(".ticket")
    expect(ticket).to_contain_text("Pay 20 EUR?")
    ticket.get_by_role("button").first.click()
    expect(ticket).to_have_count(0)
    assert api.until(run, "succeeded") == "succeeded"
    watched.check()


def test_cards_are_painted_with_the_last_run_and_lead_to_it(servers: Servers, contexts: Contexts) -> None:
    server = servers()
    api = stored(server, "stock", FAILS)
    runs = [api.post("/api/workflows/stock/runs?wait=10")["run"] for _ in range(2)]
    stored(server, "pays", ASKS)
    watched = contexts(server.url)
    page = watched.page()
    page.goto("/")
    card = page.get_by_test_id("card-stock")
    expect(card.locator(".thumb__box[data-tone=err]")).to_have_count(1)
    expect(card.locator(".thumb__box[data-tone=ok][data-shape=trigger]")).to_have_count(1)
    expect(card.locator(".tile__bars rect[data-status=failed]")).to_have_count(2)
    expect(card).to_contain_text("Reserve stock")
    expect(card).to_contain_text("2 runs today")
    expect(card.locator(f"a[href='/runs/{runs[1]}']")).to_contain_text("Failed")
    expect(page.get_by_test_id("card-pays").locator("[data-shape=ticket]")).to_have_count(1)
    expect(page.get_by_test_id("card-pays")).to_contain_text("Never run")
    page.get_by_label("Filter by name or block").fill("reserve")
    expect(page.locator(".tile")).to_have_count(1)
    page.get_by_label("Filter by name or block").fill("nothing has this")
    expect(page.get_by_text("No workflow has")).to_be_visible()
    page.get_by_label("Filter by name or block").fill("")
    card.get_by_role("link", name="The last 2 runs: 2 failed").click()
    expect(page.get_by_role("button", name="Remove: status is Failed")).to_be_visible()
    expect(page.locator(".runs__row[data-status]")).to_have_count(2)
    watched.check()


def test_workflows_are_moved_to_folders_and_drafts_are_renamed(servers: Servers, contexts: Contexts) -> None:
    server = servers()
    stored(server, "stock", FAILS)
    api = stored(server, "pays", ASKS)
    draft = api.draft({**ASKS, "name": "untitled"})
    watched = contexts(server.url)
    page = watched.page()
    page.goto("/")
    page.get_by_role("button", name="More for stock").click()
    page.get_by_role("menuitem", name="Move to folder").click()
    page.get_by_label("Folder", exact=True).fill("Shop")
    page.keyboard.press("Enter")
    page.get_by_role("group", name="Folders").get_by_role("button", name="Shop").click()
    expect(page.locator(".tile")).to_have_count(1)
    expect(page.get_by_test_id("card-stock")).to_be_visible()
    page.get_by_role("button", name="Drafts").click()
    page.get_by_role("button", name="More for untitled").click()
    page.get_by_role("menuitem", name="Rename").click()
    page.get_by_label("Name", exact=True).fill("second-look")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("card-second-look")).to_be_visible()
    page.get_by_role("button", name="More for second-look").click()
    page.get_by_role("menuitem", name="Move to folder").click()
    page.get_by_label("Folder", exact=True).fill("Shop")
    page.keyboard.press("Enter")
    shop = page.get_by_role("group", name="Folders").get_by_role("button", name="Shop")
    expect(shop).to_have_text("Shop2")
    shop.click()
    expect(page.locator(".tile")).to_have_count(2)
    assert api.get(f"/api/drafts/{draft}")["folder"] == "Shop"
    page.get_by_role("button", name="More for second-look").click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(shop).to_have_text("Shop1")
    page.get_by_role("button", name="Undo").click()
    expect(shop).to_have_text("Shop2")
    draft = api.get("/api/drafts")["drafts"][0]["id"]
    assert api.get(f"/api/drafts/{draft}")["document"]["name"] == "second-look"
    watched.check()


def test_a_workflow_is_renamed_and_its_name_goes_on_to_work(servers: Servers, contexts: Contexts) -> None:
    server = servers()
    api = stored(server, "pays", ASKS)
    run = api.post("/api/workflows/pays/runs?wait=10")
    watched = contexts(server.url)
    page = watched.page()
    page.goto("/")
    page.get_by_role("button", name="More for pays").click()
    page.get_by_role("menuitem", name="Rename").click()
    expect(page.get_by_role("dialog")).to_contain_text("keep the name pays")
    page.get_by_label("Name", exact=True).fill("Expenses, small")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("card-Expenses, small")).to_be_visible()
    page.get_by_label("Filter by name or block").fill("SMALL")
    expect(page.locator(".tile")).to_have_count(1)
    assert api.post("/api/workflows/Expenses, small/runs?wait=10")["workflow"] == "pays"
    page.goto("/runs")
    expect(page.get_by_role("link", name="Expenses, small")).to_have_count(2)
    page.get_by_role("combobox", name="Filter runs").fill("workflow:small")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("workflow=pays"))
    page.goto(f"/runs/{run['run']}")
    expect(page.locator(".run__crumb")).to_have_text("Expenses, small")
    page.goto(urlsplit(run["waits"][0]["link"]).path)
    expect(page.locator(".asker")).to_contain_text("Expenses, small")
    watched.check()


def test_a_workflow_runs_and_is_deleted_from_its_card(servers: Servers, contexts: Contexts) -> None:
    server = servers()
    api = stored(server, "stock", FAILS)
    watched = contexts(server.url)
    page = watched.page()
    page.goto("/")
    page.get_by_role("button", name="Run stock").click()
    page.wait_for_url("**/runs/*")
    api.until(page.url.split("/runs/")[1].split("?")[0], "failed")
    page.goto("/")
    page.get_by_role("button", name="More for stock").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_test_id("card-stock")).to_have_count(0)
    assert api.get("/api/workflows")["workflows"] == []
    watched.check()


def test_a_card_of_a_document_without_places_is_laid_out(editor: Editor) -> None:
    blocks = {"start": {"type": "start"}, "body": {"type": "set", "params": {"value": 1}}}
    written = {
        "format": "weft/1",
        "name": "placeless",
        "blocks": blocks,
        "edges": [{"source": "start", "target": "body"}],
    }
    editor.api.post("/api/workflows", {"document": written})
    editor.page.goto("/")
    boxes = editor.page.get_by_test_id("card-placeless").locator(".thumb__box")
    expect(boxes).to_have_count(2)
    first, second = (box_of(each) for each in boxes.all())
    assert first["x"] + first["width"] < second["x"]


def test_a_first_visit_finds_an_example_that_runs(servers: Servers, contexts: Contexts) -> None:
    """It is started once, however often the page is opened."""
    server = servers()
    watched = contexts(server.url)
    for page in (watched.page(), watched.page()):
        page.goto("/")
        expect(page.get_by_role("heading", name="weft carries it through")).to_be_visible()
        expect(page.get_by_test_id("card-Durable demo").locator(".thumb__box[data-tone=ok]").first).to_be_visible()
    runs = Api(server.url).get("/api/runs")["runs"]
    assert [run["workflow"] for run in runs] == ["durable-demo"]
    watched.check()


def test_a_workflow_is_found_and_opened_from_the_bar(editor: Editor, page: Page) -> None:
    ends = {"done": {"type": "set", "name": "Done", "at": [272, 0], "params": {"value": 1}}}
    editor.api.post("/api/workflows", {"document": document(ends, [("start", "done")]), "name": "found-from-the-bar"})
    page.goto("/runs")
    page.get_by_role("button", name="Find or do anything").click()
    page.get_by_placeholder("Find or do anything").fill("found-from")
    page.get_by_role("option", name="found-from-the-bar").click()
    expect(page).to_have_url(re.compile("/w/"))
    expect(editor.at("workflow-name").first).to_have_value("found-from-the-bar")  # its document is named "tested"

"""A connector in the editor: found in the palette, its form follows the operation; one is made of OpenAPI."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import expect

from executor.blocks import connectors
from executor.blocks.connectors.validate import checked
from tests.browser.conftest import Watched
from tests.browser.editor import Editor, document

SHIPPED = len(list((Path(connectors.__file__).parent / "services").glob("*.json")))


def test_a_connector_is_added_and_its_form_follows_the_operation(editor: Editor) -> None:
    editor.open(document({}, []))
    editor.show_blocks("Connectors")
    palette = editor.page.get_by_role("region", name="Connectors")
    expect(palette.get_by_role("button")).to_have_count(SHIPPED)
    search = editor.page.get_by_label("Find a block type")
    search.fill("slack")
    editor.at("palette-connector.slack").click()
    (id,) = [each for each in editor.doc()["blocks"] if each != "start"]
    editor.block(id).click()
    expect(editor.at("field-text")).to_be_visible()
    expect(editor.at("field-emoji")).to_have_count(0)
    editor.at("field-operation").select_option(label="Add a reaction")
    expect(editor.at("field-emoji")).to_be_visible()
    expect(editor.at("field-text")).to_have_count(0)
    editor.at("field-channel").click()  # a new block is red once a field was left
    editor.at("field-emoji").fill("thumbsup")
    expect(editor.page.get_by_text('"Channel" is required for "Add a reaction".').first).to_be_visible()
    assert editor.doc()["blocks"][id]["params"] == {"operation": "add_reaction", "emoji": "thumbsup"}


def test_a_connector_is_made_of_an_openapi_description(editor: Editor, watched: Watched) -> None:
    watched.allow("status of 400")
    page = editor.page
    page.goto("/settings?page=connectors")
    expect(page.get_by_text("Google Sheets")).to_be_visible()
    page.get_by_role("button", name="Import OpenAPI").click()
    page.get_by_label("OpenAPI 3 description in JSON").fill('{"swagger": "2.0"}')
    page.get_by_role("button", name="List operations").click()
    expect(page.get_by_role("alert")).to_contain_text("not an OpenAPI 3 description")
    page.get_by_label("OpenAPI 3 description in JSON").fill(json.dumps(editor.api.get("/openapi.json")))
    page.get_by_role("button", name="List operations").click()
    page.get_by_label("Find an operation").fill("/api/validate")
    page.get_by_role("checkbox").check()
    page.get_by_role("button", name="Add connector (1)").click()
    expect(page.get_by_role("alert")).to_contain_text("base URL")
    page.get_by_label("Address of the service").fill("https://weft.example")
    with page.expect_download() as found:
        page.get_by_role("button", name="Download", exact=True).click()
    made = json.loads(found.value.path().read_bytes())
    assert found.value.suggested_filename == "weft.json" and checked(made).base_url == "https://weft.example"
    assert [one["path"] for one in made["operations"].values()] == ["/api/validate"]
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_service_that_was_added_is_in_the_palette_until_it_is_deleted(editor: Editor) -> None:
    page = editor.page
    page.goto("/settings?page=connectors")
    page.get_by_role("button", name="Import OpenAPI").click()
    pets = {
        "openapi": "3.1.0",
        "info": {"title": "Pets"},
        "servers": [{"url": "https://pets.example"}],
        "paths": {"/pets/{id}": {"get": {"operationId": "readPet", "summary": "Read a pet"}}},
    }
    page.get_by_label("OpenAPI 3 description in JSON").fill(json.dumps(pets))
    page.get_by_role("button", name="List operations").click()
    page.get_by_role("checkbox").check()
    page.get_by_role("button", name="Add connector (1)").click()
    expect(page.locator("#connectors > ul").get_by_text("Pets")).to_be_visible()
    editor.open(document({}, []))
    editor.show_blocks("Connectors")
    expect(page.get_by_role("region", name="Connectors").get_by_role("button")).to_have_count(SHIPPED + 1)
    page.get_by_label("Find a block type").fill("pets")
    editor.at("palette-connector.pets").click()
    (id,) = [each for each in editor.doc()["blocks"] if each != "start"]
    editor.block(id).click()
    expect(editor.at("field-operation")).to_contain_text("Read a pet")
    page.goto("/settings?page=connectors")
    page.get_by_role("button", name="Delete Pets").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator("#connectors > ul").get_by_text("Pets")).to_have_count(0)
    assert editor.api.get("/api/connectors") == {"connectors": []}

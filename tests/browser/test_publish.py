"""Publishing: a name is asked for, no other workflow is replaced unasked, and what stops is listed and ticked first."""

from __future__ import annotations

from typing import Any

import httpx
from playwright.sync_api import expect

from tests.browser.conftest import Watched
from tests.browser.editor import Editor, document
from tests.browser.test_a11y import findings


def block(type: str, x: int, **params: Any) -> dict[str, Any]:
    return {"type": type, "name": "b", "at": [x, 0], "params": params}


NEEDS_AMOUNT = {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]}


def form(value: str) -> dict[str, Any]:
    """A workflow whose only trigger is a public form page."""
    blocks = {
        "intake": {**block("form_trigger", 0, fields={"properties": {"what": {"type": "string"}}}), "name": "Intake"},
        "b": block("set", 320, value=value),
    }
    doc = document(blocks, [("intake", "b")])
    del doc["blocks"]["start"]
    return {**doc, "name": "untitled"}


def test_a_second_draft_does_not_take_over_a_published_name(editor: Editor) -> None:
    """Bug 1: the public link of the first one stays alive until its end is ticked."""
    editor.open(form("one"))
    editor.at("publish").click()
    expect(editor.at("publish-name")).to_have_value("")
    expect(editor.at("publish-name")).to_be_focused()
    expect(editor.at("publish-why")).to_have_text("Name the workflow first.")
    expect(editor.at("save-version")).to_have_attribute("aria-disabled", "true")
    editor.at("publish-name").fill("Untitled")
    expect(editor.at("publish-why")).to_contain_text("every new draft is called untitled")
    editor.at("publish-name").fill("intake-desk")
    expect(editor.at("publish-starts")).to_contain_text("Form Intake")
    editor.at("save-version").click()
    expect(editor.at("versions")).to_contain_text("v1")
    expect(editor.at("workflow-name").first).to_have_value("intake-desk")
    (link,) = [each["url"] for each in editor.api.get("/api/webhooks", workflow="intake-desk")["webhooks"]]
    assert httpx.get(link).status_code == 200

    second = document({"b": block("set", 288, value="two")}, [("start", "b")])
    editor.open({**second, "name": "untitled"})
    editor.at("publish").click()
    editor.at("publish-name").fill("intake-desk")
    expect(editor.at("publish-stops")).to_contain_text("Form Intake")
    expect(editor.at("publish-why")).to_have_text("Tick the 2 things that stop.")
    for scheme in ("light", "dark"):
        editor.page.emulate_media(color_scheme=scheme)
        assert not findings(editor.page), scheme
    editor.at("save-version").click(force=True)
    editor.page.keyboard.press("Enter")
    assert editor.api.get("/api/workflows/intake-desk")["version"] == 1
    assert httpx.get(link).status_code == 200, "the first one is untouched"

    editor.at("stops-version").click()
    expect(editor.at("publish-why")).to_have_text("Tick that Form Intake stops.")
    editor.at("stops-intake").click()
    expect(editor.at("publish-why")).to_have_count(0)
    editor.at("save-version").click()
    expect(editor.at("versions")).to_contain_text("v2")
    assert httpx.get(link).status_code == 404


def test_what_changes_is_said_and_what_starts_again_needs_no_tick(editor: Editor) -> None:
    editor.open({**form("one"), "name": "said"})
    editor.at("publish").click()
    expect(editor.at("publish-name")).to_have_value("said")
    editor.at("save-version").click()
    expect(editor.at("versions")).to_contain_text("v1")
    editor.select("b")
    editor.at("field-value").fill("two")
    editor.is_saved()
    editor.at("publish").click()
    expect(editor.page.get_by_role("button", name="Publish version 2")).to_be_focused()  # its name is known
    dialog = editor.at("publish-dialog")
    expect(dialog).to_contain_text("One value changed: b, value one two")
    expect(editor.at("publish-starts")).to_contain_text("the same link, now with the new version")
    expect(editor.at("publish-stops")).to_contain_text("Nothing")
    editor.at("save-version").click()
    expect(editor.at("versions")).to_contain_text("v2")


def test_a_version_published_meanwhile_is_not_replaced(editor: Editor, watched: Watched) -> None:
    """The dialog is open while another version is stored: the server refuses, and the dialog lists what stops now."""
    watched.allow("status of 409")
    doc = {**document({"b": block("set", 288, value="one")}, [("start", "b")]), "name": "raced"}
    editor.open(doc)
    editor.at("publish").click()
    expect(editor.at("save-version")).not_to_have_attribute("aria-disabled", "true")
    editor.api.post("/api/workflows", {**doc, "description": "from elsewhere"})
    editor.at("save-version").click()
    expect(editor.at("publish-dialog").get_by_role("alert")).to_contain_text("Another version was published meanwhile")
    expect(editor.at("stops-version")).to_contain_text("this draft was not made from it", ignore_case=True)
    editor.at("stops-version").click()
    editor.at("save-version").click()
    expect(editor.at("versions")).to_contain_text("v2")


def test_a_refusal_leads_to_its_field_and_the_keyboard_comes_back(editor: Editor, watched: Watched) -> None:
    """A schedule whose input does not fit; and its next time, before it starts and before it stops."""
    watched.allow("status of 4")
    page = editor.page
    blocks = {
        "night": {**block("schedule", 0, cron="0 9 * * *"), "name": "Nightly"},
        "b": block("set", 320, value="one"),
    }
    editor.open({**document(blocks, [("start", "b"), ("night", "b")]), "name": "nightly", "input": NEEDS_AMOUNT})
    publish = page.get_by_role("button", name="Publish", exact=True).first
    publish.click()
    dialog = page.get_by_role("dialog", name="Publish nightly")
    expect(dialog.get_by_role("region", name="Starts")).to_contain_text("at 09:00 (UTC), new schedule")
    page.keyboard.press("Escape")
    expect(publish).to_be_focused()
    page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Publish").click()
    expect(dialog.get_by_role("alert")).to_contain_text("'amount' is a required property")
    dialog.get_by_role("button", name="Nightly, Input").click()
    field = page.get_by_role("textbox", name="Input, as JSON")
    expect(field).to_be_focused()
    field.fill('{"amount": 5}')
    editor.is_saved()
    publish.click()
    dialog.get_by_role("button", name="Publish").click()
    expect(page.get_by_text("Published version 1 of nightly.").first).to_be_visible()

    second = document({**blocks, "b": block("set", 320, value="two")}, [("start", "b")])
    del second["blocks"]["night"]
    editor.open({**second, "name": "nightly", "input": NEEDS_AMOUNT})
    publish.click()
    changes = dialog.get_by_role("region", name="Changes")
    expect(changes.get_by_role("deletion")).to_have_text("one")
    expect(changes.get_by_role("insertion")).to_have_text("two")
    expect(dialog.get_by_role("region", name="Stops")).to_contain_text("at 09:00 (UTC), it starts no more runs")

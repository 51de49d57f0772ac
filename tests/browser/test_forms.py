"""A public form: its link in the editor, the page with and without JavaScript, what is wrong beside its field."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Watched
from tests.browser.editor import Editor

FIELDS = {
    "type": "object",
    "required": ["email", "boxes"],
    "properties": {
        "email": {"type": "string", "format": "email", "title": "Your email"},
        "kind": {"enum": ["green", "black"], "default": "green", "title": "Kind of tea"},
        "boxes": {"type": "integer", "minimum": 1, "maximum": 20, "title": "Boxes", "description": "At most 20."},
        "gift": {"type": "boolean", "title": "Wrap it as a gift"},
        "note": {"type": "string", "maxLength": 1000, "title": "Note"},
    },
}
DOC: dict[str, Any] = {
    "format": "weft/1",
    "name": "tea",
    "blocks": {
        "intake": {
            "type": "form_trigger",
            "name": "Intake",
            "at": [0, 0],
            "params": {
                "title": "Order tea",
                "text": "We answer within a day.",
                "submit": "Order",
                "done": "You will get an email.",
                "fields": FIELDS,
                "wait_s": 30,
            },
        },
        "answer": {
            "type": "response",
            "at": [288, 0],
            "params": {"body": {"Boxes": "<intake.boxes>", "Kind": "<intake.kind>"}},
        },
    },
    "edges": [{"source": "intake", "target": "answer"}],
}


def path_of(editor: Editor, name: str = "tea") -> str:
    editor.api.post("/api/workflows", {"document": {**DOC, "name": name}, "name": name})
    return str(urlsplit(editor.api.get(f"/api/webhooks/form:{name}:intake")["url"]).path)


def test_a_form_is_filled_in_without_javascript(editor: Editor, contexts: Contexts, watched: Watched) -> None:
    path = path_of(editor)
    watched.allow("status of 422")
    context = contexts(
        editor.api.url, java_script_enabled=False, viewport={"width": 390, "height": 844}, color_scheme="dark"
    )
    context.allow("status of 422")
    phone = context.page()
    phone.goto(path)
    expect(phone.get_by_role("heading", name="Order tea")).to_be_visible()
    expect(phone.get_by_label("Kind of tea")).to_have_value('"green"')
    # The browser would not send these: what the server says is looked at.
    phone.locator("form").evaluate("form => form.setAttribute('novalidate', '')")
    phone.get_by_label("Your email").fill("ada@example.org")
    phone.get_by_label("Boxes").fill("40")
    phone.get_by_role("button", name="Order").click()
    expect(phone.get_by_role("alert")).to_contain_text("Check the marked fields")
    expect(phone.locator("small.error")).to_contain_text("maximum of 20")
    expect(phone.get_by_label("Your email")).to_have_value("ada@example.org")
    phone.get_by_label("Boxes").fill("4")
    phone.get_by_role("button", name="Order").click()
    expect(phone.get_by_role("status")).to_contain_text("was received")
    expect(phone.get_by_text("You will get an email.")).to_be_visible()
    expect(phone.get_by_role("region", name="Answer")).to_contain_text("green")
    assert len(editor.api.get("/api/runs", workflow="tea")["runs"]) == 1


def test_the_script_says_what_is_wrong_before_anything_is_sent(editor: Editor, contexts: Contexts) -> None:
    path = path_of(editor, "script")
    page = contexts(editor.api.url).page()
    page.goto(path)
    page.get_by_role("button", name="Order").click()
    expect(page.locator("small.error").first).to_have_text("Required")
    page.get_by_label("Your email").fill("ada@example.org")
    page.get_by_label("Boxes").fill("2")
    page.get_by_label("Wrap it as a gift").check()
    page.get_by_role("button", name="Order").click()
    expect(page.get_by_role("status")).to_contain_text("was received")
    page.get_by_role("link", name="Submit another response").click()
    expect(page.get_by_label("Boxes")).to_have_value("")


def test_the_inspector_has_the_link_and_replaces_it(editor: Editor) -> None:
    old = path_of(editor, "linked")
    doc = {**DOC, "name": "linked"}
    draft = editor.api.post("/api/drafts", {"document": doc, "name": "linked", "base_version": 1})
    editor.page.goto(f"/w/{draft['id']}")
    editor.is_ready("intake")
    editor.block("intake").click()
    link = editor.at("form-link")
    expect(link).to_have_attribute("href", old)
    editor.page.get_by_role("button", name="Replace", exact=True).click()
    editor.at("replace-link").click()
    expect(link).not_to_have_attribute("href", old)
    assert link.get_attribute("href") == urlsplit(editor.api.get("/api/webhooks/form:linked:intake")["url"]).path

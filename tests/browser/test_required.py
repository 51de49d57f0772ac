"""Bug 2: what is required and empty is shown on the field, the card and in Problems before anything runs."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.editor import Editor, document


def test_b02_an_empty_url_is_shown_in_all_three_places(editor: Editor) -> None:
    http = {"type": "http", "name": "Fetch", "at": [288, 0], "params": {"url": ""}}
    editor.open(document({"fetch": http}, [("start", "fetch")]))
    expect(editor.block("fetch").locator(".card__mark[data-severity=error]")).to_be_visible()

    editor.page.get_by_role("tab", name=re.compile("^Problems")).click()
    expect(editor.at("problem-0")).to_contain_text("URL is required.")
    expect(editor.at("problem-0")).to_contain_text("Fetch")
    editor.at("problem-0").click()
    field = editor.at("field-url")
    expect(field).to_be_focused()
    expect(editor.page.locator(".fld", has=field)).to_contain_text("URL is required.")
    expect(field).to_have_attribute("aria-invalid", "true")

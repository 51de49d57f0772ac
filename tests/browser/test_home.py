"""The front page, and documents that come and go as files."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import Watched
from tests.browser.editor import Editor, document

EXAMPLES = len(list((Path(__file__).parents[2] / "examples").glob("*.json")))


def test_check_01_front_page_shows_the_examples(editor: Editor, watched: Watched) -> None:
    """In this checkout; `test_install.py` does the same with a package that was installed where no Node is."""
    shows_the_examples(editor)
    watched.check()


def shows_the_examples(editor: Editor) -> None:
    """At least the six that teach one thing each. Under the policy, and with nothing from other hosts: the fixture
    looks at that."""
    assert EXAMPLES >= 6
    answer = editor.page.goto("/")
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy and "unsafe" not in policy
    copies = editor.page.get_by_role("button", name=re.compile("^Open a copy of "))
    expect(copies).to_have_count(EXAMPLES)
    expect(editor.page.get_by_role("button", name=re.compile("^Run "))).to_have_count(EXAMPLES)
    copies.first.click()
    expect(editor.at("canvas")).to_be_visible()
    expect(editor.page.locator(".card").first).to_be_visible()


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

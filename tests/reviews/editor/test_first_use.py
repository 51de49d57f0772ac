"""Issue 9, section 3: what a new user met when the four builds of the review were repeated."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.editor import Editor, document

LOOP = document({"loop": {"type": "loop", "name": "Loop", "at": [288, 0], "size": [384, 160]}}, [("start", "loop")])


def test_the_page_does_not_scroll_after_an_announcement(editor: Editor) -> None:
    editor.open(LOOP)
    editor.at("palette-set").click()
    expect(editor.page.locator("body > [aria-live]")).to_have_text("Set added")
    size = editor.page.evaluate("[document.documentElement.scrollHeight, innerHeight]")
    assert size[0] == size[1]


def test_the_only_loop_does_not_claim_another_of_its_name(editor: Editor) -> None:
    editor.open(LOOP)
    editor.select("loop")
    head = editor.page.locator(".inspector__head")
    expect(head).to_contain_text("Type")
    expect(head.locator(".inspector__note")).to_have_count(0)
    name = editor.at("block-name")
    name.fill("Parallel")
    name.press("Enter")
    expect(head.locator(".inspector__note")).to_have_text(
        "This name cannot be used in references. Use <loop> in references."
    )

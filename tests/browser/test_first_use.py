"""Issue 9, section 3: what a new user met when the four builds of the review were repeated."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Contexts
from tests.browser.editor import Editor, box_of, document

LOOP = document(
    {
        "loop": {
            "type": "loop",
            "name": "Loop",
            "at": [288, 0],
            "size": [384, 160],
            "params": {"mode": "for", "count": 3},
        }
    },
    [("start", "loop")],
)


def test_the_page_does_not_scroll_after_an_announcement(editor: Editor) -> None:
    editor.open(LOOP)
    editor.show_blocks()
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


def test_a_block_that_waits_stays_inside_its_loop(editor: Editor) -> None:
    editor.open(LOOP)
    editor.select("loop")
    editor.show_blocks("People")
    editor.at("palette-approval").click()
    editor.run()
    editor.has_status("approval", "waiting")
    expect(editor.block("approval")).to_contain_text("Waiting for an answer")
    loop, card = box_of(editor.block("loop")), box_of(editor.block("approval"))
    assert card["y"] + card["height"] < loop["y"] + loop["height"]
    facts = editor.page.locator(".inspector .facts")
    expect(facts).to_contain_text("Waiting for")
    expect(facts).not_to_contain_text("Running for")


def test_run_and_cancel_are_within_reach_on_a_phone(contexts: Contexts, editor: Editor) -> None:
    ask = {"type": "approval", "name": "Ask", "at": [288, 0], "params": {"title": "Pay?"}}
    draft = editor.open(document({"ask": ask}, [("start", "ask")]))
    editor.run()
    editor.has_status("ask", "waiting")
    phone = contexts(viewport={"width": 390, "height": 844}, has_touch=True).page()
    phone.goto(f"/w/{draft}")
    for name in ("cancel", "run"):
        expect(phone.get_by_test_id(name)).to_be_visible()
        box = box_of(phone.get_by_test_id(name))
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390, (name, box)

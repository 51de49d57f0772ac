"""Issue 9, section 3: what a new user met when the four builds of the review were repeated."""

from __future__ import annotations

import re

from playwright.sync_api import Route, expect

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


def test_what_was_meant_is_one_click_away_and_leaves_the_caret_in_the_text(editor: Editor) -> None:
    note = {"type": "set", "name": "Note", "at": [288, 0], "params": {"value": "x"}}
    reply = {"type": "set", "name": "Reply", "at": [576, 0], "params": {"value": "x"}}
    editor.open(document({"note": note, "reply": reply}, [("start", "note"), ("note", "reply")]))
    editor.select("reply")
    editor.at("field-value").fill("It says <Notee.text> there")
    editor.is_saved()
    editor.at("field-value").blur()
    form = editor.page.get_by_label("Inspector", exact=True)
    expect(form.get_by_text("No block has the name")).to_be_visible()
    expect(form.get_by_text("Did you mean").locator("visible=true")).to_have_count(1)
    form.get_by_role("button", name="<Note.text>").click()
    editor.page.keyboard.type("!")
    expect(editor.at("field-value")).to_have_value("It says <Note.text>! there")


def test_nothing_in_the_bars_moves_while_the_draft_is_saved_and_checked(editor: Editor) -> None:
    page = editor.page
    page.set_viewport_size({"width": 1024, "height": 768})
    editor.open(
        document({"a": {"type": "set", "name": "A", "at": [288, 0], "params": {"value": "x"}}}, [("start", "a")])
    )
    page.evaluate(WATCH_PLACES)
    editor.select("a")
    expect(page.get_by_role("button", name="Open the drawer")).to_be_visible()
    editor.at("field-value").fill("Read <Notthere.text> now")
    expect(page.get_by_text("Editing")).to_be_visible()
    editor.is_saved()
    editor.at("field-value").fill("Nothing is read")
    editor.is_saved()
    assert page.evaluate("window.moved") == []


# The left edges of the tabs of both bars, in each frame.
WATCH_PLACES = """() => {
  const places = () => [...document.querySelectorAll('.bar__tabs a, .drawer__tab')]
    .map((it) => Math.round(it.getBoundingClientRect().left)).join(' ')
  const first = places()
  window.moved = []
  const look = () => {
    const now = places()
    if (now !== first) window.moved.push(`${first} -> ${now}`)
    requestAnimationFrame(look)
  }
  look()
}"""


def test_a_failure_says_what_to_do_and_the_view_keeps_its_zoom(editor: Editor) -> None:
    blocks = {
        name: {"type": "set", "name": name, "at": [576 + 288 * i, 0], "params": {"value": "x"}}
        for i, name in enumerate(("A", "B"))
    }
    call = {"type": "http", "name": "Call", "at": [288, 0], "params": {"url": "http://127.0.0.1:1/a/rather/long/path"}}
    edges = [("start", "call"), ("call", "A"), ("A", "B")]
    editor.open(document({"call": call, **blocks}, edges))
    editor.page.set_viewport_size({"width": 1024, "height": 768})
    editor.select("A")
    editor.run()
    note = editor.page.get_by_role("alert").filter(has_text="Call failed")
    expect(note).to_contain_text("WEFT_ALLOW_PRIVATE=127.0.0.1:1")
    text = note.get_by_text("Call failed").locator("xpath=..")
    assert text.evaluate("(it) => it.scrollHeight <= it.clientHeight"), "it is cut"
    zoom = editor.page.locator(".zoom__text").inner_text()
    note.get_by_role("button", name="Show").click()
    expect(editor.page.get_by_label("Name of the block")).to_have_value("Call")
    editor.page.wait_for_timeout(600)  # the drawer opens and the view moves
    expect(editor.page.locator(".zoom__text")).to_have_text(zoom)


def test_a_draft_gets_a_name_once_it_is_there(editor: Editor) -> None:
    page, held = editor.page, list[Route]()

    def hold(route: Route) -> None:
        if route.request.method == "GET" and "/w/" in page.url and not held:  # the start page reads drafts as well
            held.append(route)
        else:
            route.continue_()

    page.goto("/")
    page.route(re.compile(r"/api/drafts/[^/?]+$"), hold)
    page.get_by_role("banner").get_by_role("button", name="New workflow").click()
    name = page.get_by_role("banner").get_by_label("Name of the workflow")
    expect(name).not_to_be_editable()
    while not held:  # the page is shown a moment before it asks for the draft
        page.wait_for_timeout(10)
    held[0].continue_()
    name.fill("hello")
    name.press("Enter")
    editor.is_saved()
    draft = page.url.split("/w/")[1].partition("?")[0]
    assert editor.api.get(f"/api/drafts/{draft}")["name"] == "hello"

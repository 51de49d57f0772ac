"""The marks of the kinds of blocks on the canvas, and the frame around it: outlines, plates, the rail, the bar."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Contexts
from tests.browser.editor import Editor, box_of, document


def block(type: str, x: int, y: int, **more: Any) -> dict[str, Any]:
    return {"type": type, "at": [x, y], **more}


KINDS = {
    "check": block("condition", 272, 0, params={"cases": [{"id": "yes", "when": "true"}, {"id": "no"}]}),
    "ask": block("approval", 272, 160, params={"title": "Pay?", "expires_in_s": 172_800}),
    "think": block("agent", 576, 0, name="Think", params={"model": "dev:x", "prompt": "Hello"}),
    "each": block("loop", 576, 224, size=[320, 176], params={"mode": "for", "count": 2}),
    "plain": block("set", 272, 320, params={"value": 1}),
}
EDGES = [("start", "check"), ("check", "yes", "think")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_kind_has_an_outline_of_its_own(editor: Editor, contexts: Contexts, scheme: str) -> None:
    themed = Editor(contexts(color_scheme=scheme).page(), editor.api.url)
    themed.open(document(KINDS, EDGES))
    shapes = {
        name: themed.block(name).locator(".shape__outline").get_attribute("d")
        for name in ("start", "check", "ask", "think", "plain")
    }
    assert len(set(shapes.values())) == len(shapes)
    for name, shape in (("start", "trigger"), ("check", "flow"), ("ask", "ticket"), ("think", "agent")):
        expect(themed.block(name)).to_have_attribute("data-shape", shape)
    expect(themed.block("ask").locator(".card__stub")).to_have_text("up to2 d")
    radius = "(it) => getComputedStyle(it).borderRadius"
    assert themed.block("start").locator(".plate").evaluate(radius) == "50%"
    size = themed.block("think").evaluate("(it) => [it.offsetWidth, it.offsetHeight]")
    assert size == [396, 176]
    plate = themed.block("think").locator(".plate").evaluate("(it) => getComputedStyle(it).backgroundColor")
    ink = themed.page.locator("body").evaluate("(it) => getComputedStyle(it).color")
    assert plate == ink


def test_a_card_keeps_its_size_whatever_the_run_says(editor: Editor) -> None:
    failing = {"code": "throw new Error('it is broken and has a long reason that would need some lines')"}
    editor.open(document({"a": block("function", 288, 0, params=failing)}, [("start", "a")]))
    before = box_of(editor.block("a"))
    editor.run()
    editor.has_status("a", "failed")
    expect(editor.block("a")).to_contain_text("it is broken")
    after = box_of(editor.block("a"))
    assert (before["width"], before["height"]) == (after["width"], after["height"])


def test_only_publish_and_run_are_boxes_and_the_page_has_one_heading(editor: Editor) -> None:
    editor.open(document({}, []))
    bare = "(all) => all.filter((it) => !it.matches('.button--bare')).map((it) => it.textContent)"
    assert editor.page.locator(".bar__right .button").evaluate_all(bare) == ["Publish", "Run"]
    expect(editor.page.locator(".bar kbd")).to_have_count(0)
    expect(editor.page.locator("h1")).to_have_text("tested")
    assert editor.page.locator(".bar").evaluate("(it) => it.offsetHeight") == 44
    rail = editor.page.locator(".palette--rail")
    assert rail.evaluate("(it) => it.parentElement.offsetWidth") == 44
    rail.get_by_role("button", name="Add a block").click()
    editor.has_focus("[data-testid=block-picker]")


def zoom(editor: Editor, to: float) -> None:
    """With the wheel, as far as one notch allows."""
    box = box_of(editor.at("canvas"))
    editor.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    now = "+/scale\\((.+?)\\)/.exec(document.querySelector('.react-flow__viewport').style.transform)[1]"
    editor.page.keyboard.down("Control")
    for _ in range(80):
        if editor.page.evaluate(now) <= to:
            break
        editor.page.mouse.wheel(0, 40)
        editor.page.wait_for_timeout(20)
    editor.page.keyboard.up("Control")
    assert editor.page.evaluate(now) <= to


def test_from_far_away_names_keep_their_size_and_then_there_is_one_canvas(editor: Editor) -> None:
    editor.open(document(KINDS, EDGES))
    zoom(editor, 0.55)
    name = editor.block("plain").locator(".card__name")
    expect(editor.block("plain").locator(".card__sentence")).to_have_count(0)
    high = "(it) => parseFloat(getComputedStyle(it).fontSize) * it.getBoundingClientRect().width / it.offsetWidth"
    assert 10.5 <= name.evaluate(high) <= 11.5
    zoom(editor, 0.42)
    assert 10.5 <= name.evaluate(high) <= 11.5
    zoom(editor, 0.24)
    expect(editor.at("weave")).to_be_visible()
    expect(editor.page.locator(".card")).to_have_count(0)
    painted = """(it) => {
      const { data } = it.getContext('2d').getImageData(0, 0, it.width, it.height)
      return data.some((value, at) => at % 4 === 3 && value > 0)
    }"""
    assert editor.at("weave").evaluate(painted)


def test_far_away_the_keyboard_and_the_pointer_still_reach_every_block(editor: Editor) -> None:
    editor.open(document(KINDS, EDGES))
    zoom(editor, 0.2)
    blocks = editor.at("weave-list").get_by_role("button")
    expect(blocks).to_have_count(len(KINDS) + 1)
    blocks.first.focus()
    assert editor.selected() == ["start"]
    editor.press("Alt+ArrowRight")
    editor.until("window.__app.ui.getState().selection.blocks[0] === 'check'")
    editor.has_focus(".weave__block[data-id=check]")
    pane = box_of(editor.page.locator(".react-flow__pane"))
    place = editor.page.evaluate(
        """() => /translate\\((.+?)px, ?(.+?)px\\) scale\\((.+?)\\)/
          .exec(document.querySelector('.react-flow__viewport').style.transform).slice(1).map(Number)"""
    )
    x, y, scale = place
    editor.page.mouse.click(pane["x"] + x + (272 + 100) * scale, pane["y"] + y + (320 + 32) * scale)
    editor.until("window.__app.ui.getState().selection.blocks[0] === 'plain'")

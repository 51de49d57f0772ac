"""Moving things on the canvas: what is tidied glides, handles have names, a cleanup is asked for, containers fold."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import Contexts
from tests.browser.editor import Editor, document


def block(type: str, x: int, y: int, **more: Any) -> dict[str, Any]:
    return {"type": type, "at": [x, y], **more}


def test_what_is_tidied_glides_and_jumps_with_reduced_motion(editor: Editor, contexts: Contexts) -> None:
    looks = {}
    for motion in ("no-preference", "reduce"):
        themed = Editor(contexts(reduced_motion=motion).page(), editor.api.url)
        themed.open(document({"a": block("set", 32, 400, params={"value": 1})}, [("start", "a")]))
        looks[motion] = themed.page.evaluate(
            """() => new Promise((done) => {
              const canvas = document.querySelector('.canvas')
              new MutationObserver(() => {
                const node = getComputedStyle(document.querySelector('.react-flow__node'))
                done([node.transitionDuration, node.transitionProperty])
              }).observe(canvas, { attributes: true, attributeFilter: ['data-tidying'] })
              canvas.focus()
              canvas.dispatchEvent(new KeyboardEvent('keydown', { key: 'T', shiftKey: true, bubbles: true }))
            })"""
        )
    assert looks["no-preference"] == ["0.16s", "transform"]
    assert looks["reduce"][1] != "transform" or looks["reduce"][0] == "0s"


def test_a_handle_is_named_while_the_pointer_is_on_it(editor: Editor) -> None:
    cases = [{"id": "yes", "title": "Large", "when": "true"}, {"id": "no"}]
    editor.open(document({"check": block("condition", 288, 0, params={"cases": cases})}, [("start", "check")]))
    handle = editor.at("handle-check-yes")
    expect(handle.locator(".port__label")).to_be_hidden()
    handle.hover(force=True)
    expect(handle.locator(".port__label")).to_be_visible()
    expect(handle.locator(".port__label")).to_have_text("Large")


def test_the_cleanup_of_a_container_is_there_when_it_is_asked_for(editor: Editor) -> None:
    each = block("loop", 288, 0, size=[480, 240], name="Each", params={"mode": "for", "count": 2})
    editor.open(document({"each": each}, [("start", "each")]))
    expect(editor.at("handle-each-body")).to_be_attached()
    expect(editor.at("handle-each-finally")).to_have_count(0)
    editor.block("each").click(button="right", position={"x": 60, "y": 14})
    editor.page.get_by_role("menuitem", name="Add a cleanup step").click()
    editor.has_focus("[data-testid=block-picker]")
    editor.page.keyboard.type("set")
    editor.press("Enter")
    expect(editor.edge("each", "set", "finally")).to_be_attached()
    expect(editor.at("handle-each-finally")).to_be_attached()

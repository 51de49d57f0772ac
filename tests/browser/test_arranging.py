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


def test_what_has_finished_collapses_in_a_run_and_what_failed_stays_open(editor: Editor) -> None:
    def loop(y: int, name: str) -> dict[str, Any]:
        return block("loop", 288, y, size=[320, 200], name=name, params={"mode": "for", "count": 2})

    blocks = {
        "good": loop(0, "Good"),
        "fine": block("set", 48, 64, parent="good", params={"value": 1}),
        "bad": loop(240, "Bad"),
        "wrong": block("function", 48, 64, parent="bad", params={"code": "throw new Error('no')"}),
    }
    edges = [("start", "good"), ("good", "body", "fine"), ("start", "bad"), ("bad", "body", "wrong")]
    run = editor.api.run(document(blocks, edges), wait_s=20)
    assert editor.api.until(run, "failed") == "failed"
    editor.open_run(run)
    editor.has_status("good", "succeeded")
    button = editor.at("collapse-finished")
    expect(button).to_have_text("Collapse finished")
    button.click()
    expect(editor.block("fine")).to_have_count(0)
    expect(editor.block("wrong")).to_be_visible()
    expect(button).to_have_text("Expand all")
    button.click()
    expect(editor.block("fine")).to_be_visible()


def test_a_container_collapses_to_its_head_and_the_document_does_not_know(editor: Editor) -> None:
    blocks = {
        "each": block("loop", 288, 0, size=[560, 240], name="Each", params={"mode": "for", "count": 2}),
        "in": block("set", 48, 64, parent="each", params={"value": 1}),
        "after": block("set", 928, 0, params={"value": 2}),
    }
    doc = document(blocks, [("start", "each"), ("each", "body", "in"), ("each", "after")])
    draft = editor.open(doc)
    before = editor.doc()
    editor.at("fold-each").click()
    expect(editor.block("in")).to_have_count(0)
    assert editor.block("each").evaluate("(it) => it.offsetHeight") == 64
    expect(editor.edge("each", "after")).to_be_attached()
    assert editor.doc() == before
    editor.page.goto(f"/w/{draft}")
    editor.is_ready("each", "after")
    expect(editor.block("in")).to_have_count(0)
    editor.run()
    editor.has_status("after", "succeeded")
    expect(editor.block("each").locator(".counts__text")).to_have_text("2 of 2")
    editor.page.get_by_role("tab", name="Trace").click()
    editor.at("trace-in@each#1").click()
    expect(editor.block("in")).to_be_visible()
    expect(editor.at("fold-each")).to_have_attribute("aria-expanded", "true")

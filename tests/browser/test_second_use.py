"""Issue 9: what still made a user stumble when the editor was used a second time."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Watched
from tests.browser.editor import Editor, box_of, document


def block(type: str, x: int, y: int = 0, **params: Any) -> dict[str, Any]:
    return {"type": type, "at": [x, y], "params": params}


SET = document({"a": block("set", 288, value="one"), "b": block("set", 576, value="two")}, [("start", "a"), ("a", "b")])


def heights(page: Page) -> tuple[float, float]:
    """Of the pane below the Tape, and of what is in it."""
    pane = page.locator(".drawer__pane")
    box = box_of(pane)
    rows = pane.get_by_role("treeitem")
    expect(rows.first).to_be_visible()
    return box["height"], 24.0 * rows.count()


def test_typing_over_a_selection_in_code_keeps_to_the_policy(editor: Editor) -> None:
    """The page fails this test by itself when the browser reports a violation."""
    editor.open(document({"f": block("function", 288, code="return 'abc' + 12 // twelve")}, [("start", "f")]))
    editor.select("f")
    code = editor.at("field-code").locator(".cm-content")
    code.click()
    editor.press("Control+a")
    editor.page.keyboard.type("return 1")
    expect(code).to_have_text("return 1")
    editor.press("Control+z")
    expect(code).to_have_text("return 'abc' + 12 // twelve")
    editor.press("Control+a")
    editor.page.keyboard.type("(")  # around what is selected, as before
    expect(code).to_have_text("(return 'abc' + 12 // twelve)")
    assert editor.doc()["blocks"]["f"]["params"]["code"] == "(return 'abc' + 12 // twelve)"


def test_code_is_shown_in_the_language_that_is_chosen_beside_it(editor: Editor) -> None:
    editor.open(document({"f": block("function", 288, code="# note\nreturn 1")}, [("start", "f")]))
    editor.select("f")
    note = editor.at("field-code").locator(".cm-content span").filter(has_text="# note")
    expect(editor.at("field-code").locator(".cm-content")).to_contain_text("# note")
    expect(note).to_have_count(0)  # no comment of JavaScript
    editor.page.get_by_label("Language").select_option(label="Python")
    expect(note).to_have_css("font-style", "italic")
    assert editor.doc()["blocks"]["f"]["params"]["language"] == "python"
    editor.page.get_by_label("Language").select_option(label="JavaScript")
    expect(note).to_have_count(0)


class TestDrawer:
    def test_a_short_trace_takes_no_more_height_than_its_rows(self, editor: Editor) -> None:
        editor.open_run(editor.api.run(SET, wait_s=20))
        editor.page.get_by_role("tab", name="Trace").click()
        height, rows = heights(editor.page)
        assert rows == 72
        assert rows < height < rows + 60

    def test_a_long_trace_has_a_bar_to_scroll(self, editor: Editor) -> None:
        many = {f"s{i}": block("set", 288 * (i + 1), value=str(i)) for i in range(16)}
        edges = [("start", "s0"), *((f"s{i}", f"s{i + 1}") for i in range(15))]
        editor.open_run(editor.api.run(document(many, edges), wait_s=20))
        editor.page.get_by_role("tab", name="Trace").click()
        assert heights(editor.page)[0] == 260

    def test_a_height_that_was_set_is_remembered(self, editor: Editor) -> None:
        run = editor.api.run(SET, wait_s=20)
        editor.open_run(run)
        editor.page.get_by_role("tab", name="Trace").click()
        first, _ = heights(editor.page)
        splitter = editor.page.get_by_role("separator", name="Height of the drawer")
        splitter.focus()
        for _ in range(2):
            editor.press("Shift+ArrowUp")
        after, _ = heights(editor.page)
        assert abs(after - (first + 128)) <= 2
        editor.open_run(run)
        assert heights(editor.page)[0] == after


def test_there_is_no_next_iteration_before_it_has_started(editor: Editor) -> None:
    blocks = {
        "loop": {**block("loop", 288, mode="for", count=3), "name": "Loop", "size": [440, 260]},
        "ask": {**block("approval", 40, 80, title="Go?"), "name": "Ask", "parent": "loop"},
    }
    run = editor.api.run(document(blocks, [("start", "loop"), ("loop", "body", "ask")]), wait_s=20)
    editor.open_run(run)
    for way, why in (("prev", "This is the first iteration"), ("next", "Iteration 2 has not started")):
        button = editor.at(f"iter-loop-{way}")
        expect(button).to_have_attribute("aria-disabled", "true")
        expect(button).to_have_attribute("title", why)
    editor.select("ask")
    for name in ("Previous iteration", "Next iteration"):
        expect(editor.at("inspector").get_by_role("button", name=name)).to_have_attribute("aria-disabled", "true")
    editor.press("Control+k")
    commands = editor.page.get_by_role("dialog", name="Commands")
    commands.get_by_role("combobox").fill("iteration")
    expect(commands.get_by_role("option", name=re.compile("^(Next|Previous) iteration"))).to_have_count(0)


def test_no_letter_is_lost_after_add_field(editor: Editor) -> None:
    editor.open(SET)
    editor.select("start")
    expect(editor.at("add-fields")).to_be_visible()
    focused = """() => {
      document.querySelector('[data-testid="add-fields"]').click()
      return document.activeElement?.dataset.testid
    }"""
    assert editor.page.evaluate(focused) == "field-fields.0.name"


def test_seven_days_just_begun_are_seven_days(editor: Editor) -> None:
    ask = {**block("approval", 288, title="Go?", expires_in_s=7 * 86_400), "name": "Ask"}
    run = editor.api.run(document({"ask": ask}, [("start", "ask")]), wait_s=20)
    editor.open_run(run)
    expect(editor.page.locator(".runnote")).to_contain_text("expires in 7 d:")
    expect(editor.block("ask")).to_contain_text("7 dleft")
    editor.select("ask")
    expect(editor.at("inspector")).to_contain_text(re.compile("Expires in.?7 d(?! )"))


class TestAdding:
    """The block before a new one stays whole, as far as both have room at a zoom that can be read."""

    @pytest.mark.parametrize(("width", "type"), [(1024, "loop"), (1024, "wait"), (1440, "loop")])
    def test_a_new_block_leaves_the_one_before_it_whole(self, editor: Editor, width: int, type: str) -> None:
        editor.page.set_viewport_size({"width": width, "height": 800})
        editor.open(document({"b": block("set", 288, value="one")}, [("start", "b")]))
        editor.select("b")
        editor.press("/")
        editor.page.keyboard.type(type)
        editor.press("Enter")
        editor.until("() => Object.keys(window.__app.doc.getState().doc.blocks).length === 3")
        (new,) = set(editor.doc()["blocks"]) - {"start", "b"}
        frame = box_of(editor.at("canvas"))
        for each in ("b", new):
            box = box_of(editor.block(each))
            assert box["x"] >= frame["x"], each
            assert box["x"] + box["width"] <= frame["x"] + frame["width"], each
            assert box["y"] >= frame["y"], each
            assert box["y"] + box["height"] <= frame["y"] + frame["height"], each


def test_branches_are_called_by_their_titles_in_a_comparison(editor: Editor) -> None:
    cases = [{"id": "case-1", "title": "Big order", "when": "true"}, {"id": "case-2", "title": "Else"}]
    doc = document({"c": block("condition", 288, cases=cases), "a": block("set", 600, value="x")}, [("start", "c")])
    editor.open({**doc, "name": "compared-branches"})
    editor.at("publish").click()
    editor.at("save-version").click()
    expect(editor.at("versions")).to_contain_text("v1")
    editor.drag(editor.at("handle-c-case-1"), editor.at("target-a"))
    expect(editor.edge("c", "a", "case-1")).to_be_attached()
    editor.at("versions").click()
    editor.page.get_by_role("menuitem", name="Compare versions").click()
    diff = editor.at("diff")
    expect(diff).to_contain_text("(Big order)")
    expect(diff).not_to_contain_text("case-1")


def test_a_run_that_does_not_fit_names_blocks_and_iterations(editor: Editor, watched: Watched) -> None:
    watched.allow("status of 409")
    blocks = {
        "loop": {**block("loop", 288, mode="for", count=2), "name": "Review", "size": [440, 260]},
        "x1": {**block("approval", 40, 80, title="Go?"), "name": "Ask Ada", "parent": "loop"},
    }
    first = document(blocks, [("start", "loop"), ("loop", "body", "x1")])
    blocks = {**blocks, "new": {**block("set", 40, value="x"), "parent": "loop"}}
    second = document(blocks, [("start", "loop"), ("loop", "body", "new"), ("new", "x1")])
    editor.api.post("/api/workflows", {"document": {**first, "name": "moved-run"}})
    run = editor.api.post("/api/workflows/moved-run/runs", {})["run"]
    editor.api.until(run, "waiting")
    editor.api.post("/api/workflows", {"document": {**second, "name": "moved-run"}})
    editor.open_run(run)
    editor.page.get_by_role("button", name="More").click()
    editor.page.get_by_role("menuitem", name="Move to another version").click()
    dialog = editor.page.get_by_role("dialog", name="Move to another version")
    dialog.get_by_test_id("migrate").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Ask Ada in iteration 1 of Review: it ")
    expect(dialog.get_by_role("alert")).not_to_contain_text("x1@loop")


def test_fields_stand_still_while_findings_come_and_go(editor: Editor) -> None:
    editor.open(document({"call": block("http", 288, url="https://x.example")}, [("start", "call")]))
    editor.select("call")
    url = editor.at("field-url")
    below = editor.at("add-headers")
    before = box_of(below)["y"]
    url.fill("")
    assert box_of(below)["y"] == before
    url.blur()
    expect(editor.at("inspector").locator(".finding").first).to_be_visible()
    assert box_of(below)["y"] == before
    url.fill("https://y.example")
    assert box_of(below)["y"] == before
    url.blur()
    expect(editor.at("inspector").locator(".finding")).to_have_count(0)
    assert box_of(below)["y"] == before


def test_nothing_is_asked_about_versions_of_a_draft_that_has_none(editor: Editor, watched: Watched) -> None:
    asked: list[str] = []
    editor.page.on("response", lambda answer: asked.append(answer.url) if answer.status == 404 else None)
    editor.open({**SET, "name": "never-published"})
    editor.press("Control+k")
    commands = editor.page.get_by_role("dialog", name="Commands")
    commands.get_by_role("combobox").fill("Compare versions")
    editor.press("Enter")
    expect(editor.at("diff")).to_contain_text("not published yet")
    editor.page.wait_for_load_state("networkidle")
    assert asked == []

"""The canvas, as it was found to be wrong when it was used by hand. Numbers are those of the review: b for bugs, c for
the checks, d for defects of looks, f for friction."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Contexts
from tests.browser.editor import Editor, box_of, document, middle

DESKTOP = {"width": 1440, "height": 900}


def block(type: str, x: int, y: int, **more: Any) -> dict[str, Any]:
    return {"type": type, "at": [x, y], **more}


def value(x: int, y: int, **more: Any) -> dict[str, Any]:
    return block("set", x, y, params={"value": 1}, **more)


def loop(x: int, y: int, **more: Any) -> dict[str, Any]:
    counted = {"mode": "for", "count": 3}
    return {"type": "loop", "name": "Loop", "at": [x, y], "size": [384, 160], "params": counted, **more}


def apart(a: Locator, b: Locator) -> bool:
    one, other = box_of(a), box_of(b)
    return (
        one["x"] + one["width"] <= other["x"]
        or other["x"] + other["width"] <= one["x"]
        or one["y"] + one["height"] <= other["y"]
        or other["y"] + other["height"] <= one["y"]
    )


def frames(editor: Editor) -> None:
    """What is put off to the next frame has happened."""
    editor.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


class TestPicker:
    def test_b03_double_click_in_a_container_leaves_the_keys_to_the_picker(self, editor: Editor) -> None:
        editor.open(document({"loop": loop(288, 0)}, [("start", "loop")]))
        box = box_of(editor.block("loop"))
        editor.page.mouse.dblclick(box["x"] + 200, box["y"] + 100)
        expect(editor.at("block-picker")).to_be_visible()
        frames(editor)
        editor.has_focus("[data-testid=block-picker]")
        editor.page.keyboard.type("http")
        editor.press("Enter")
        expect(editor.block("http-request")).to_be_attached()
        assert editor.doc()["blocks"]["http-request"]["parent"] == "loop"

    def test_b03_so_does_an_edge_dropped_in_a_container(self, editor: Editor) -> None:
        editor.open(document({"loop": loop(288, 0, size=[480, 240])}, [("start", "loop")]))
        box = box_of(editor.block("loop"))
        editor.drag(editor.at("handle-loop-body"), (box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.8))
        expect(editor.at("block-picker")).to_be_visible()
        frames(editor)
        editor.has_focus("[data-testid=block-picker]")
        editor.press("Escape")
        expect(editor.at("block-picker")).to_have_count(0)

    def test_c09_an_empty_container_says_how_to_fill_it_and_a_key_does(self, editor: Editor) -> None:
        editor.open(document({"loop": loop(288, 0)}, [("start", "loop")]))
        expect(editor.block("loop")).to_contain_text("Drop a block here or press /")
        editor.block("loop").click(position={"x": 60, "y": 14})
        editor.press("/")
        expect(editor.at("block-picker")).to_be_visible()
        editor.page.keyboard.type("http")
        editor.press("Enter")
        expect(editor.edge("loop", "http-request", "body")).to_be_attached()
        assert editor.doc()["blocks"]["http-request"]["parent"] == "loop"
        expect(editor.block("loop")).not_to_contain_text("Drop a block here")


class TestKeys:
    def test_b06_run_by_key_while_a_button_has_the_keyboard(self, editor: Editor) -> None:
        editor.open(document({"a": value(288, 0)}, [("start", "a")]))
        editor.page.get_by_role("tab", name=re.compile("^Problems")).focus()
        editor.press("Control+Enter")
        editor.has_status("a", "succeeded")

    def test_b22_rename_right_after_a_click_takes_the_letters(self, editor: Editor) -> None:
        """The click gives the keyboard to the block in the next frame: the field has it by then."""
        editor.open(document({"a": value(288, 0, name="A")}, [("start", "a")]))
        before = list(editor.doc()["blocks"])
        x, y = middle(editor.block("a"))
        editor.page.evaluate(
            """([x, y]) => {
              const node = document.elementFromPoint(x, y)
              for (const type of ['mousedown', 'mouseup', 'click'])
                node.dispatchEvent(new MouseEvent(type, { bubbles: true, clientX: x, clientY: y, view: window }))
              dispatchEvent(new KeyboardEvent('keydown', { key: 'F2', bubbles: true }))
            }""",
            [x, y],
        )
        frames(editor)
        editor.page.keyboard.type("nd")
        editor.press("Enter")
        expect(editor.block("a")).to_contain_text("nd")
        assert list(editor.doc()["blocks"]) == before

    def test_b22_letters_after_a_rename_that_found_no_block_change_nothing(self, editor: Editor) -> None:
        editor.open(document({"a": value(288, 0, name="A")}, [("start", "a")]))
        before = editor.doc()
        editor.press("Control+a")
        editor.press("F2")
        editor.page.keyboard.type("nsdg")
        editor.press("Backspace")
        expect(editor.at("block-picker")).to_have_count(0)
        assert editor.doc() == before


class TestArranging:
    def test_b08_tidy_keeps_the_order_of_siblings(self, editor: Editor) -> None:
        names = "abcde"
        blocks = {name: value(300, 20 * i, name=name.upper()) for i, name in enumerate(names)}
        editor.open(document(blocks, [("start", name) for name in names]))
        editor.press("Shift+t")
        editor.until("window.__app.doc.getState().undo.length === 1")
        heights = [editor.doc()["blocks"][name]["at"][1] for name in names]
        assert heights == sorted(heights)

    def test_b10_wrapping_makes_room(self, editor: Editor) -> None:
        blocks = {
            "one": value(288, 0, name="One"),
            "two": value(288, 80, name="Two"),
            "next": value(560, 80, name="Next"),
            "low": value(288, 160, name="Low"),
        }
        editor.open(document(blocks, [("start", "one"), ("start", "two"), ("two", "next"), ("start", "low")]))
        editor.select("two")
        editor.press("g")
        editor.page.get_by_role("menuitem", name="Wrap in a loop").click()
        expect(editor.block("loop")).to_be_attached()
        for name in ("start", "one", "next", "low"):
            assert apart(editor.block("loop"), editor.block(name)), name
        assert editor.doc()["blocks"]["two"]["parent"] == "loop"
        editor.press("Control+z")
        assert editor.doc()["blocks"] == {**editor.doc()["blocks"], **blocks}

    def test_b10_a_duplicate_stands_beside_the_original(self, editor: Editor) -> None:
        blocks = {"a": value(288, 0, name="A"), "b": value(288, 112, name="B")}
        editor.open(document(blocks, [("start", "a"), ("start", "b")]))
        editor.select("a")
        editor.press("Control+d")
        expect(editor.block("a-2")).to_have_attribute("data-selected", "true")
        for name in ("start", "a", "b"):
            assert apart(editor.block("a-2"), editor.block(name)), name

    def test_b10_a_container_that_grows_makes_room(self, editor: Editor) -> None:
        blocks = {
            "loop": loop(288, 0, size=[288, 160]),
            "a": value(48, 48, parent="loop", name="A"),
            "low": value(288, 176, name="Low"),
        }
        editor.open(document(blocks, [("start", "loop"), ("loop", "body", "a"), ("start", "low")]))
        editor.select("a")
        editor.press("Control+d")
        expect(editor.block("a-2")).to_have_attribute("data-selected", "true")
        assert apart(editor.block("loop"), editor.block("low"))

    def test_b10_what_is_selected_lies_above(self, editor: Editor) -> None:
        blocks = {"a": value(288, 0, name="A"), "b": value(320, 32, name="B")}
        editor.open(document(blocks, [("start", "a"), ("start", "b")]))
        editor.select("a")
        box = box_of(editor.block("b"))
        top = "([x, y]) => document.elementFromPoint(x, y).closest('[data-testid^=block-]')?.dataset.testid"
        assert editor.page.evaluate(top, [box["x"] + 20, box["y"] + 6]) == "block-a"

    def test_b14_a_block_dropped_on_an_edge_is_put_into_it(self, editor: Editor) -> None:
        editor.open(document({"a": value(288, 0, name="A")}, [("start", "a")]))
        editor.show_blocks()
        line = editor.edge("start", "a").locator(".edge__hit")
        item = editor.page.locator(".palette").get_by_role("button", name="Function").first
        box_of(line)  # the canvas moves aside for the palette
        item.drag_to(line, force=True)
        expect(editor.block("function")).to_be_attached()
        expect(editor.edge("start", "function")).to_be_attached()
        expect(editor.edge("function", "a")).to_be_attached()
        expect(editor.edge("start", "a")).to_have_count(0)
        at = {name: each["at"] for name, each in editor.doc()["blocks"].items()}
        assert at["start"][1] == at["function"][1] == at["a"][1]
        for name in ("start", "a"):
            assert apart(editor.block("function"), editor.block(name)), name

    def test_b17_an_undo_button_goes_when_its_change_is_undone(self, editor: Editor) -> None:
        blocks = {"loop": loop(288, 0, size=[480, 240]), "a": value(48, 48, parent="loop", name="A")}
        editor.open(document(blocks, [("start", "loop"), ("loop", "body", "a")]))
        box = box_of(editor.block("loop"))
        editor.pull("a", (box["x"] + box["width"] / 2, box["y"] + box["height"] + 60))
        toast = editor.page.locator(".toast")
        expect(toast).to_have_text(re.compile("1 connection was removed because it crossed the container."))
        editor.press("Control+z")
        expect(toast).to_have_count(0)
        assert editor.doc()["blocks"]["a"]["parent"] == "loop"


class TestView:
    def test_b13_fit_all_fits_all_at_once(self, editor: Editor) -> None:
        blocks = {f"b{i}": value(288 * i, 0) for i in range(1, 10)}
        chain = ["start", *blocks]
        editor.open(document(blocks, list(itertools.pairwise(chain))))
        frame = box_of(editor.at("canvas"))
        last = box_of(editor.block("b9"))
        assert last["x"] + last["width"] > frame["x"] + frame["width"], "it opens at its beginning, readable"
        editor.at("canvas").click(position={"x": 8, "y": 8})
        editor.press("-")
        box_of(editor.block("b9"))
        editor.press("1")
        for name in chain:
            box = box_of(editor.block(name))
            assert frame["x"] <= box["x"] and box["x"] + box["width"] <= frame["x"] + frame["width"], name

    def test_b13_an_example_of_six_blocks_opens_whole(self, editor: Editor, contexts: Contexts) -> None:
        page = contexts(viewport=DESKTOP).page()
        wide = Editor(page, editor.api.url)
        blocks = {f"b{i}": value(272 * i, 0) for i in range(1, 6)}
        chain = ["start", *blocks]
        wide.open(document(blocks, list(itertools.pairwise(chain))))
        frame = box_of(wide.at("canvas"))
        box = box_of(wide.block("b5"))
        assert box["x"] + box["width"] <= frame["x"] + frame["width"]

    def test_f06_selecting_a_block_of_a_run_moves_nothing(self, editor: Editor) -> None:
        blocks = {"a": value(288, 0, name="A"), "b": value(560, 0, name="B")}
        run = editor.api.run(document(blocks, [("start", "a"), ("a", "b")]), wait_s=20)
        editor.open_run(run)
        editor.has_status("b", "succeeded")
        before = {name: box_of(editor.block(name)) for name in ("start", "a")}
        editor.select("a")
        expect(editor.at("inspector")).to_be_visible()
        assert {name: box_of(editor.block(name)) for name in before} == before


class TestCards:
    def test_b11_the_error_handle_is_below_all_of_the_card(self, editor: Editor) -> None:
        """Below what a run says as well, and off the label of the last branch."""
        cases = [{"id": "yes", "title": "Yes", "when": "true"}, {"id": "no", "title": "No"}]
        blocks = {
            "bad": block("function", 288, 0, params={"code": "throw new Error('no more paper '.repeat(20))"}),
            "which": block("condition", 288, 240, params={"cases": cases}),
        }
        editor.open(document(blocks, [("start", "bad"), ("start", "which")]))
        editor.run()
        editor.has_status("bad", "failed")
        for name in ("bad", "which"):
            card, handle = box_of(editor.block(name)), box_of(editor.at(f"handle-{name}-error"))
            assert abs(handle["y"] + handle["height"] - card["y"] - card["height"]) <= 2, name
            ring = editor.at(f"handle-{name}-error").evaluate(
                "(it) => it.getBoundingClientRect().y + parseFloat(getComputedStyle(it, '::before').top)"
            )
            assert ring >= card["y"] + card["height"] - 2, name

    def test_d03_an_error_leads_with_its_reason_and_cards_stay_apart(self, editor: Editor) -> None:
        failing = "throw new Error('POST http://127.0.0.1:8301/demo/echo answered 503 Service Unavailable: try later')"
        blocks = {
            "call": block("function", 288, 0, name="Call", params={"code": failing}),
            "more": block("function", 288, 112, name="More", params={"code": failing}),
            "last": value(288, 224, name="Last"),
        }
        edges = [("start", "call"), ("call", "error", "last"), ("start", "more"), ("more", "error", "last")]
        editor.open_run(editor.api.run(document(blocks, edges), wait_s=30))
        editor.has_status("last", "succeeded")
        for one, other in (("call", "more"), ("more", "last")):
            upper, lower = box_of(editor.block(one)), box_of(editor.block(other))
            assert lower["y"] - upper["y"] - upper["height"] >= 8, (one, other)
        said = editor.block("call").locator(".foot--error")
        expect(said).to_have_text(re.compile("^503 Service Unavailable: try later"))
        assert said.evaluate("(it) => it.clientHeight") <= 3 * 15 + 6

    def test_d03_cards_that_wait_for_their_next_attempt_stay_apart(self, editor: Editor, tmp_path: Path) -> None:
        slow = {"text": "on and on", "until": str(tmp_path / "never")}
        policy = {"timeout_s": 0.05, "retry": {"max_attempts": 3, "backoff": "fixed", "initial_ms": 600_000}}
        blocks = {
            "one": block("speak", 288, 0, name="One", params=slow, policy=policy),
            "two": block("speak", 288, 112, name="Two", params=slow, policy=policy),
        }
        run = editor.api.run(document(blocks, [("start", "one"), ("start", "two")]))
        editor.open_run(run)
        for name in blocks:
            editor.has_status(name, "retrying")
            said = editor.block(name).locator(".foot--error")
            expect(said).to_be_visible()
            assert said.evaluate("(it) => it.clientHeight") <= 16, "one line, and nothing of the next"
        upper, lower = box_of(editor.block("one")), box_of(editor.block("two"))
        assert lower["y"] - upper["y"] - upper["height"] >= 8
        editor.api.post(f"/api/runs/{run}/cancel")

    def test_d05_one_ring_around_what_is_selected_and_has_the_keyboard(self, editor: Editor) -> None:
        editor.open(document({"a": value(288, 0)}, [("start", "a")]))
        editor.select("a")
        editor.press("Alt+ArrowLeft")
        card = editor.block("start")
        expect(card).to_have_attribute("data-selected", "true")
        frames(editor)
        look = card.evaluate("(it) => [getComputedStyle(it).outlineStyle, getComputedStyle(it).boxShadow]")
        assert look[0] == "none" or look[1] == "none", look

    def test_b09_a_loop_over_items_does_not_say_three_times(self, editor: Editor) -> None:
        params = {"mode": "each", "items": "<start.list>", "count": 3}
        while_ = {"mode": "while", "condition": "<loop.index> < 2", "count": 3}
        editor.open(document({"each": loop(288, 0, params=params), "cond": loop(288, 240, params=while_)}, []))
        expect(editor.block("each")).not_to_contain_text("times")
        expect(editor.block("each")).to_contain_text("start.list")
        expect(editor.block("cond")).not_to_contain_text("times")

    def test_d06_a_header_has_whole_words_or_none(self, editor: Editor) -> None:
        narrow = loop(288, 0, size=[288, 160], name="Invoices of March", params={"mode": "for", "count": 12})
        blocks = {"each": narrow, "a": value(48, 64, parent="each")}
        run = editor.api.run(document(blocks, [("start", "each"), ("each", "body", "a")]), wait_s=20)
        editor.open_run(run)
        expect(editor.at("iter-each-count")).to_have_text("#12")
        cut = "(all) => all.filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.textContent)"
        assert editor.block("each").locator(".container__sentence").evaluate_all(cut) == []

    def test_d13_the_label_of_an_edge_uses_the_room_there_is(self, editor: Editor) -> None:
        cases = [{"id": "big", "title": "Big order", "when": "true"}, {"id": "no", "title": "Anything else"}]
        blocks = {
            "which": block("condition", 288, 0, params={"cases": cases}),
            "a": value(592, -64),
            "b": value(592, 160),
        }
        editor.open(document(blocks, [("start", "which"), ("which", "big", "a"), ("which", "no", "b")]))
        expect(editor.edge("which", "b", "no").locator(".edge__label")).to_have_text("Anything else")
        expect(editor.edge("which", "a", "big").locator(".edge__label")).to_have_text("Big order")
        font = (
            editor.edge("which", "b", "no").locator(".edge__label").evaluate("(it) => getComputedStyle(it).fontFamily")
        )
        assert "Mono" not in font

    def test_d17_the_corner_is_free(self, editor: Editor) -> None:
        editor.open(document({"a": value(288, 0)}, [("start", "a")]))
        expect(editor.page.locator(".react-flow__attribution")).to_have_count(0)
        licences = editor.page.request.get("/assets/../third-party-licenses.md")
        assert "@xyflow/react" in licences.text() and "MIT" in licences.text()

    def test_f16_an_approval_has_no_handle_beside_its_buttons(self, editor: Editor) -> None:
        asks = {"title": "Pay it?", "actions": ["approve", "reject"]}
        blocks = {
            "ask": block("approval", 288, 0, params=asks),
            "old": block("approval", 288, 240, params=asks),
            "a": value(640, 240),
        }
        editor.open(document(blocks, [("start", "ask"), ("old", "a")]))
        expect(editor.at("handle-ask-approve")).to_be_attached()
        expect(editor.at("handle-ask-out")).to_have_count(0)
        expect(editor.at("handle-old-out")).to_be_attached()

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_d15_cards_stand_out_from_the_canvas(self, editor: Editor, contexts: Contexts, scheme: str) -> None:
        page = contexts(color_scheme=scheme).page()
        themed = Editor(page, editor.api.url)
        themed.open(document({"a": value(288, 0)}, [("start", "a")]))
        card = themed.block("a").locator(".shape__outline").evaluate("(it) => getComputedStyle(it).fill")
        ground = themed.at("canvas").evaluate("(it) => getComputedStyle(it).backgroundColor")
        assert contrast(card, ground) >= (1.15 if scheme == "dark" else 1.05), (card, ground)


class TestDrawer:
    def test_d08_problems_take_no_more_room_than_their_rows(self, editor: Editor) -> None:
        editor.open(document({"a": value(288, 0)}, []))
        editor.page.get_by_role("tab", name=re.compile("^Problems")).click()
        expect(editor.at("problem-0")).to_be_visible()
        assert box_of(editor.page.locator("#drawer-pane"))["height"] <= 120


class TestIterations:
    def rounds(self, editor: Editor) -> None:
        blocks = {
            "each": loop(288, 0, name="Each", params={"mode": "for", "count": 24}),
            "a": value(64, 64, parent="each"),
        }
        run = editor.api.run(document(blocks, [("start", "each"), ("each", "body", "a")]), wait_s=20)
        editor.open_run(run)
        expect(editor.at("iter-each-count")).to_have_text("#24")

    def test_d01_the_menu_is_no_wider_than_it_needs_and_lists_iterations(self, editor: Editor) -> None:
        self.rounds(editor)
        editor.at("iter-each-count").click()
        menu = editor.page.get_by_role("menu")
        assert box_of(menu)["width"] <= 360
        item = menu.get_by_role("menuitem", name="Iteration 20")
        assert "Mono" not in item.evaluate("(it) => getComputedStyle(it).fontFamily")
        item.click()
        expect(editor.at("iter-each-count")).to_have_text("#20")

    def test_f14_iterations_are_named_by_their_items(self, editor: Editor) -> None:
        teams = {"mode": "each", "items": "<start.teams>"}
        blocks = {
            "each": {"type": "parallel", "name": "Teams", "at": [288, 0], "size": [528, 160], "params": teams},
            "a": value(64, 64, parent="each"),
        }
        doc = document(blocks, [("start", "each"), ("each", "body", "a")])
        run = editor.api.run(doc, {"teams": ["red", {"name": "green"}, "blue"]}, wait_s=20)
        editor.open_run(run)
        expect(editor.at("iter-each-count")).to_have_text("#3")
        expect(editor.at("iter-each-item")).to_have_text("blue")
        editor.at("iter-each-count").click()
        editor.page.get_by_role("menuitem", name="Branch 2: green").click()
        expect(editor.at("iter-each-item")).to_have_text("green")

    def test_f14_any_iteration_by_its_number(self, editor: Editor) -> None:
        self.rounds(editor)
        editor.at("iter-each-count").click()
        editor.page.get_by_role("menuitem", name="Go to iteration").click()
        editor.has_focus(".stepper__number")
        editor.page.keyboard.type("7")
        editor.press("Enter")
        expect(editor.at("iter-each-count")).to_have_text("#7")


class TestTape:
    def test_c26_the_keys_of_the_tape_work_on_the_tape(self, editor: Editor) -> None:
        run = editor.api.run(document({"a": value(288, 0)}, [("start", "a")]), wait_s=20)
        editor.open_run(run)
        editor.has_status("a", "succeeded")
        tape = editor.at("tape")
        last = int(tape.get_attribute("aria-valuemax") or 0)
        tape.focus()
        editor.press(",")
        expect(tape).to_have_attribute("aria-valuenow", str(last - 1))
        editor.press(".")
        expect(tape).to_have_attribute("aria-valuenow", str(last))

    def test_d07_a_short_run_uses_the_width(self, editor: Editor) -> None:
        blocks = {"a": value(288, 0), "b": value(576, 0)}
        run = editor.api.run(document(blocks, [("start", "a"), ("a", "b")]), wait_s=20)
        editor.open_run(run)
        editor.has_status("b", "succeeded")
        tape = editor.at("tape")
        box = box_of(tape)
        editor.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        seq, last = int(tape.get_attribute("aria-valuenow") or 0), int(tape.get_attribute("aria-valuemax") or 0)
        assert 0 < seq < last

    def test_d07_folded_it_stays_as_a_strip(self, editor: Editor) -> None:
        run = editor.api.run(document({"a": value(288, 0)}, [("start", "a")]), wait_s=20)
        editor.open_run(run)
        editor.has_status("a", "succeeded")
        editor.page.get_by_role("button", name="Close the drawer").click()
        box = box_of(editor.at("tape"))
        assert 16 <= box["height"] <= 32


class TestRunWords:
    def test_d09_a_message_covers_no_field(self, editor: Editor) -> None:
        blocks = {"loop": loop(288, 0, size=[480, 240]), "a": value(48, 48, parent="loop", name="A")}
        editor.open(document(blocks, [("start", "loop"), ("loop", "body", "a")]))
        box = box_of(editor.block("loop"))
        editor.pull("a", (box["x"] + box["width"] / 2, box["y"] + box["height"] + 60))
        toast = editor.page.locator(".toast")
        expect(toast).to_be_visible()
        assert apart(toast, editor.at("inspector"))
        assert apart(toast, editor.page.locator(".drawer"))


def contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        parts = [float(part) / 255 for part in re.findall(r"[\d.]+", colour)[:3]]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)

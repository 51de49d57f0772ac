"""Building a workflow on the canvas."""

from __future__ import annotations

import random
from typing import Any

from playwright.sync_api import expect

from tests.browser.editor import Editor, box_of, document, middle


def block(type: str, x: int, y: int, **more: Any) -> dict[str, Any]:
    return {"type": type, "at": [x, y], **more}


def edges_of(doc: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(each["source"], each.get("handle") or "out", each["target"]) for each in doc["edges"]}


def test_check_02_add_by_three_letters_and_enter(editor: Editor) -> None:
    editor.open(document({}, []))
    editor.select("start")
    editor.press("/")
    editor.has_focus("[data-testid=block-picker]")
    editor.page.keyboard.type("fun")
    editor.press("Enter")
    expect(editor.at("block-picker")).to_have_count(0)
    expect(editor.page.locator(".card")).to_have_count(2)
    doc = editor.doc()
    (added,) = set(doc["blocks"]) - {"start"}
    assert doc["blocks"][added]["type"] == "function"
    assert edges_of(doc) == {("start", "out", added)}
    expect(editor.edge("start", added)).to_be_attached()


def test_check_03_handle_to_handle_makes_an_edge_or_says_why_not(editor: Editor) -> None:
    editor.open(document({"a": block("set", 288, 0), "b": block("set", 576, 0)}, [("start", "a")]))
    editor.drag(editor.at("handle-a-out"), editor.at("target-b"))
    expect(editor.edge("a", "b")).to_be_attached()
    editor.drag(editor.at("handle-b-out"), editor.at("target-a"), drop=False)
    expect(editor.at("hint")).to_have_attribute("data-bad", "true")
    expect(editor.at("hint")).not_to_be_empty()
    editor.page.mouse.up()
    assert edges_of(editor.doc()) == {("start", "out", "a"), ("a", "out", "b")}


def test_check_04_edge_on_empty_space_opens_the_picker(editor: Editor) -> None:
    editor.open(document({"a": block("set", 288, 0)}, [("start", "a")]))
    x, y = middle(editor.at("handle-a-out"))
    editor.drag(editor.at("handle-a-out"), (x + 80, y + 120))
    editor.has_focus("[data-testid=block-picker]")
    editor.page.keyboard.type("wait")
    editor.press("Enter")
    expect(editor.page.locator(".card")).to_have_count(3)
    doc = editor.doc()
    (added,) = set(doc["blocks"]) - {"start", "a"}
    assert doc["blocks"][added]["type"] == "wait"
    assert ("a", "out", added) in edges_of(doc)
    # Beside it: what is added there is not put upon it.
    x, y = middle(editor.at("handle-a-out"))
    editor.drag(editor.at("handle-a-out"), (x + 40, y + 100))
    editor.has_focus("[data-testid=block-picker]")
    editor.page.keyboard.type("set")
    editor.press("Enter")
    expect(editor.page.locator(".card")).to_have_count(4)
    blocks = editor.doc()["blocks"]
    (other,) = set(blocks) - {"start", "a", added}
    assert blocks[other]["at"][1] >= blocks[added]["at"][1] + 64


def test_check_05_branches_have_labelled_handles_and_edges(editor: Editor) -> None:
    cases = [
        {"id": "low", "title": "small", "when": "<start.n> < 10"},
        {"id": "mid", "title": "medium", "when": "<start.n> < 100"},
        {"id": "high", "title": "large"},
    ]
    blocks = {
        "check": block("condition", 288, 0, params={"cases": cases}),
        "a": block("set", 640, 0),
        "b": block("set", 640, 128),
        "c": block("set", 640, 256),
    }
    ways = [("check", "low", "a"), ("check", "mid", "b"), ("check", "high", "c")]
    editor.open(document(blocks, [("start", "check"), *ways]))
    rows = editor.block("check").locator(".card__branch")
    expect(rows).to_have_text(["small", "medium", "large"])
    for case, (source, handle, target) in zip(cases, ways, strict=True):
        expect(editor.at(f"handle-check-{handle}").locator(".port__label")).to_have_text(case["title"])
        expect(editor.edge(source, target, handle).locator("text")).to_have_text(case["title"])


def test_check_06_into_a_loop_and_out_and_undo(editor: Editor) -> None:
    blocks = {
        "each": block("loop", 288, 0, size=[416, 272], params={"mode": "for", "count": 2}),
        "a": block("set", 0, 160),
    }
    editor.open(document(blocks, [("start", "each")]))
    before = editor.doc()
    box = box_of(editor.block("each"))
    editor.pull("a", (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2))
    editor.until("window.__app.doc.getState().doc.blocks.a.parent === 'each'")
    inside = editor.doc()
    x, y = inside["blocks"]["a"]["at"]
    assert 0 <= x < 416 and 0 <= y < 272
    editor.pull("a", (box["x"] + 60, box["y"] + box["height"] + 120))
    editor.until("!window.__app.doc.getState().doc.blocks.a.parent")
    assert editor.doc()["blocks"]["a"]["at"] != before["blocks"]["a"]["at"]
    editor.press("Control+z")
    assert editor.doc() == inside
    editor.press("Control+z")
    assert editor.doc() == before


def test_check_07_copy_a_loop_and_paste_it_anywhere(editor: Editor) -> None:
    blocks = {
        "each": block("loop", 0, 160, size=[560, 208], params={"mode": "for", "count": 2}),
        "one": block("set", 48, 80, parent="each", params={"value": "<loop.index>"}),
        "two": block("set", 304, 80, parent="each", params={"value": "<one>"}),
        "other": block("parallel", 0, 480, size=[720, 320], params={"mode": "count", "count": 2}),
    }
    edges = [("start", "each"), ("each", "body", "one"), ("one", "two"), ("start", "other")]
    editor.open(document(blocks, edges))
    editor.press("1")
    editor.select("each")
    editor.press("Control+c")
    editor.press("Escape")
    editor.page.mouse.move(*middle(editor.at("canvas")))
    editor.select("each")
    editor.press("Control+v")
    editor.until("Object.keys(window.__app.doc.getState().doc.blocks).length === 8")
    doc = editor.doc()
    _has_a_copy(doc, set(blocks) | {"start"}, parent=None)
    known = set(doc["blocks"])
    editor.select("other")
    editor.press("Control+v")
    editor.until("Object.keys(window.__app.doc.getState().doc.blocks).length === 11")
    _has_a_copy(editor.doc(), known, parent="other")


def _has_a_copy(doc: dict[str, Any], known: set[str], parent: str | None) -> None:
    """The new blocks are the loop with its two children, the edges between them and the references too."""
    new = set(doc["blocks"]) - known
    (loop,) = (each for each in new if doc["blocks"][each]["type"] == "loop")
    assert doc["blocks"][loop].get("parent") == parent
    first, second = new - {loop}
    if edges_of(doc) & {(second, "out", first)}:
        first, second = second, first
    assert {(loop, "body", first), (first, "out", second)} <= edges_of(doc)
    assert doc["blocks"][first]["parent"] == doc["blocks"][second]["parent"] == loop


def test_check_08_undo_all_and_redo_all(editor: Editor) -> None:
    blocks = {name: block("set", 288 * (i + 1), 0, params={"value": i}) for i, name in enumerate("abc")}
    editor.open(document(blocks, [("start", "a"), ("a", "b"), ("b", "c")]))
    first = editor.doc()
    chance = random.Random(8)
    keys = ["ArrowDown", "Shift+ArrowUp", "Control+d", "d", "Delete", "Shift+t"]
    made = 0
    while made < 40:
        ids = sorted(editor.doc()["blocks"])
        few = len(ids) < 4
        key = chance.choice(keys if not few else ["Control+d", "ArrowLeft"])
        editor.page.evaluate(
            "(id) => window.__app.ui.setState({ selection: { blocks: [id], edges: [], notes: [] } })",
            chance.choice(ids),
        )
        before = editor.doc()
        editor.press(key)
        made += editor.doc() != before
    last = editor.doc()
    assert last != first
    while editor.page.evaluate("window.__app.doc.getState().undo.length"):
        editor.press("Control+z")
    assert editor.doc() == first
    while editor.page.evaluate("window.__app.doc.getState().redo.length"):
        editor.press("Control+Shift+z")
    assert editor.doc() == last


def test_check_09_a_whole_workflow_by_keyboard(editor: Editor) -> None:
    editor.open({**document({}, []), "blocks": {}})
    keyboard = editor.page.keyboard
    editor.at("canvas").focus()
    for name in ("start", "set", "set"):
        editor.press("n")
        editor.has_focus("[data-testid=block-picker]")
        keyboard.type(name)
        editor.press("Enter")
        expect(editor.at("block-picker")).to_have_count(0)
        editor.has_focus(".canvas")
    editor.until("Object.keys(window.__app.doc.getState().doc.blocks).length === 3")
    doc = editor.doc()
    start, one, two = doc["blocks"]
    assert edges_of(doc) == {(start, "out", one), (one, "out", two)}
    assert editor.selected() == [two]
    editor.press("Alt+ArrowLeft")
    editor.press("Alt+ArrowLeft")
    assert editor.selected() == [start]
    editor.press("c")
    editor.has_focus("[data-testid=block-picker]")
    expect(editor.page.get_by_role("combobox", name="Branch")).to_be_focused()
    editor.press("Enter")  # the first exit; the other is that of the cleanup
    expect(editor.page.get_by_role("combobox", name="Target")).to_be_focused()
    keyboard.type("2")
    editor.press("Enter")
    expect(editor.edge(start, two)).to_be_attached()
    editor.has_focus(".canvas")
    editor.press("Alt+ArrowRight")
    here = editor.selected()[0]
    editor.press("Enter")
    editor.has_focus("[data-testid=step-sheet]")
    expect(editor.at("field-value")).to_be_visible()
    for _ in range(40):
        if editor.page.evaluate("document.activeElement?.dataset.testid") == "field-value":
            break
        editor.press("Tab")
    expect(editor.at("field-value")).to_be_focused()
    keyboard.type('"by hand"')
    editor.until("(id) => window.__app.doc.getState().doc.blocks[id].params?.value", arg=here)
    editor.press("Escape")
    editor.has_focus(".canvas")
    editor.press("Control+Enter")
    editor.has_status(here, "succeeded")
    run = editor.run_id()
    editor.api.until(run, "succeeded")
    assert editor.doc()["blocks"][here]["params"]["value"] in ("by hand", '"by hand"')


def test_check_12_tidy_is_tidy_and_stays(editor: Editor) -> None:
    blocks = {
        "each": block("loop", 16, 16, size=[400, 240], params={"mode": "for", "count": 2}),
        "in1": block("set", 32, 64, parent="each"),
        "in2": block("set", 48, 80, parent="each"),
        "a": block("set", 32, 32),
        "b": block("set", 32, 48),
        "c": block("set", 64, 32),
    }
    edges = [("start", "each"), ("each", "body", "in1"), ("in1", "in2"), ("start", "a"), ("a", "b"), ("each", "c")]
    editor.open(document(blocks, edges, notes=[{"id": "n", "text": "about b", "at": [48, 112]}]))
    editor.choose("Tidy")
    editor.until("window.__app.doc.getState().undo.length === 1")
    editor.press("1")
    doc = editor.doc()
    outer = {each: box_of(editor.block(each)) for each in ("start", "each", "a", "b", "c")}
    inner = {each: box_of(editor.block(each)) for each in ("in1", "in2")}
    _apart(outer)
    _apart(inner)
    for each in inner.values():
        assert _contains(outer["each"], each)
    assert all(doc["blocks"][each]["parent"] == "each" for each in inner)
    note = box_of(editor.page.locator(".note").first)
    near = outer["b"]
    assert abs(note["y"] - near["y"]) < 400 and abs(note["x"] - near["x"]) < 400
    editor.choose("Tidy")
    assert editor.doc() == doc


def _apart(boxes: dict[str, dict[str, float]]) -> None:
    names = sorted(boxes)
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            a, b = boxes[one], boxes[other]
            over = (
                a["x"] < b["x"] + b["width"]
                and b["x"] < a["x"] + a["width"]
                and a["y"] < b["y"] + b["height"]
                and b["y"] < a["y"] + a["height"]
            )
            assert not over, f"{one} and {other} overlap"


def _contains(outer: dict[str, float], inner: dict[str, float]) -> bool:
    return (
        outer["x"] <= inner["x"]
        and outer["y"] <= inner["y"]
        and inner["x"] + inner["width"] <= outer["x"] + outer["width"]
        and inner["y"] + inner["height"] <= outer["y"] + outer["height"]
    )

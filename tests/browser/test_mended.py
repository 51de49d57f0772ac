"""Bugs that a first-time user met, each as it was met."""

from __future__ import annotations

import re
from typing import Any

import httpx
from playwright.sync_api import expect

from tests.browser import measure
from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Editor, box_of, document, middle
from tests.browser.test_agent import build, slow
from tests.support.dev_model import scripted_model


def block(type: str, x: int, y: int = 0, **params: Any) -> dict[str, Any]:
    return {"type": type, "at": [x, y], "params": params}


HOOK = {
    **document({"hook": block("webhook", 0, 160, auth="none"), "b": block("set", 320, 160, value="x")}, []),
    "edges": [{"source": "hook", "target": "b"}],
}


def test_runs_of_a_webhook_appear_in_the_open_editor(editor: Editor) -> None:
    """Bug 4: the first one is shown, further ones are offered, so that nothing turns under the hands."""
    editor.open({**HOOK, "name": "arriving"})
    editor.at("publish").click()
    editor.at("save-version").click()
    expect(editor.at("versions")).to_contain_text("v1")
    (url,) = [each["url"] for each in editor.api.get("/api/webhooks", workflow="arriving")["webhooks"]]
    first = httpx.post(url, json={"n": 1}).raise_for_status().json()["run"]
    editor.has_status("b", "succeeded")
    assert editor.run_id() == first
    second = httpx.post(url, json={"n": 2}).raise_for_status().json()["run"]
    expect(editor.at("arrived")).to_contain_text("A new run of version 1")
    assert editor.run_id() == first
    editor.at("arrived").get_by_role("button", name="Show").click()
    editor.until("(run) => window.__app.run.getState().id === run", arg=second)
    expect(editor.at("arrived")).to_have_count(0)
    editor.page.reload()
    editor.is_ready("b")
    editor.has_status("b", "succeeded")
    assert editor.run_id() == second, "what came from outside is shown again as well"


def test_a_conflict_shows_where_the_texts_differ(editor: Editor, contexts: Contexts) -> None:
    """Bug 6: both were cut to 80 characters, and the difference came after that."""
    long = "The same beginning of a long description, which is the same in both windows, and then "
    doc = {**document({"a": block("set", 288, value=1)}, []), "description": long}
    draft = editor.open(doc)
    watched = contexts()
    watched.allow("409")
    other = Editor(watched.page(), editor.api.url)
    other.page.goto(f"/w/{draft}")
    other.is_ready("a")
    for each, text in ((editor, "ends here."), (other, "continues.")):
        each.page.get_by_label("Description").fill(long + text)
        if each is editor:
            each.is_saved()
    dialog = other.at("conflict")
    expect(dialog.locator("td mark")).to_have_text(["continues", "ends here"])
    expect(dialog.get_by_role("rowheader")).to_have_text("Description")
    heads = dialog.locator("thead th").evaluate_all("(all) => all.map((each) => each.getClientRects().length)")
    assert heads == [1, 1, 1]


def test_a_block_that_is_found_can_be_read(editor: Editor) -> None:
    """Bug 7: in a workflow of 1,000 blocks, seen as a whole, the one that was found had 24 x 7 pixels."""
    measure.load_ms(editor, editor.api.draft(measure.large()))
    editor.press("1")
    editor.until("() => document.querySelector('.react-flow__viewport').style.transform.includes('scale(0.')")
    editor.press("Control+k")
    editor.page.keyboard.type("Block 777")
    editor.press("Enter")
    wanted = editor.block("b777")
    expect(wanted).to_be_in_viewport()
    assert box_of(wanted)["width"] > 120
    expect(editor.page.locator(".react-flow__node[data-found]")).to_have_count(1)
    expect(editor.page.locator(".react-flow__node[data-found]")).to_have_count(0)


def test_large_counts_stay_in_the_head_of_a_container(editor: Editor) -> None:
    """Bug 8."""
    code = "if (<parallel.index> === 1) throw new Error('this one'); return 1"
    blocks = {
        "loop": {**block("parallel", 288, mode="count", count=1000), "size": [360, 200]},
        "x": {**block("function", 24, 64, code=code), "parent": "loop"},
    }
    doc = document(blocks, [("start", "loop"), ("loop", "body", "x")])
    editor.open(doc)
    editor.run()
    editor.api.until(editor.run_id(), "succeeded", "failed")
    expect(editor.at("iter-loop-failed")).to_be_visible()
    head = editor.block("loop").locator(".container__head")
    expect(head.get_by_role("button", name="/ 1000")).to_be_visible()
    box = box_of(head)
    for part in head.locator("button, .card__name").all():
        inner = box_of(part)
        assert inner["y"] >= box["y"] and inner["y"] + inner["height"] <= box["y"] + box["height"] + 1
        assert inner["x"] + inner["width"] <= box["x"] + box["width"] + 1
    assert head.locator(".stepper > button").evaluate_all("(all) => all.every((each) => each.scrollHeight < 26)")


def test_a_step_chosen_in_the_trace_shows_what_was_asked(servers: Servers, contexts: Contexts, tmp_path: Any) -> None:
    """Bug 10."""
    with scripted_model(slow(tmp_path)) as url:
        server = servers(WEFT_MODEL_DEV=url)
        editor = Editor(contexts(server.url).page(), server.url)
        agent = build(editor)
        editor.run()
        editor.has_status(agent, "waiting")
        editor.press("Escape")
        editor.page.get_by_role("tab", name="Trace").click()
        row = editor.page.get_by_role("treeitem").filter(has_text=re.compile("^find_order")).first
        row.click()
        asked = editor.at("inspector").get_by_label(re.compile("Arguments of step"))
        expect(asked).to_contain_text("number")
        expect(asked).to_contain_text("1042")


def test_run_with_an_error_goes_to_its_field(editor: Editor) -> None:
    """Bug 11: it opened a dialog with an empty `{}`."""
    editor.open(document({"call": block("http", 288)}, [("start", "call")]))
    editor.at("run").click()
    expect(editor.block("call")).to_have_attribute("data-selected", "true")
    expect(editor.at("run-dialog")).to_have_count(0)
    editor.has_focus("[data-testid=field-url]")
    expect(editor.page.get_by_text("Not run. ", exact=False).first).to_be_visible()


def test_errors_are_in_words(editor: Editor) -> None:
    """Bug 12: a problem document was shown as JSON; limits were not named."""
    url = "${WEFT_BASE_URL}/hooks/none"
    blocks = {
        "ask": block("http", 288, url=url, method="POST"),
        "big": block("function", 288, 200, code="return 'x'.repeat(17_000_000)"),
    }
    run = editor.api.run(document(blocks, [("start", "ask"), ("start", "big")]), wait_s=30)
    failed = {each["block"]: each["data"]["error"] for each in editor.api.events(run) if each["type"] == "node.failed"}
    assert "urn:weft" not in failed["ask"]["message"] and "404" in failed["ask"]["message"]
    assert re.search(r"more than [\d,]+ bytes", failed["big"]["message"])


def test_the_canvas_stands_still_when_a_banner_comes_and_goes(editor: Editor) -> None:
    """Bug 16."""
    blocks = {"ask": block("approval", 288, title="Go?", actions=["approve"]), "b": block("set", 576, value="x")}
    run = editor.api.run(document(blocks, [("start", "ask"), ("ask", "approve", "b")]), wait_s=30)
    editor.open_run(run)
    expect(editor.page.get_by_role("region", name="Needs attention")).to_contain_text("Go?")
    before = box_of(editor.block("ask")), box_of(editor.at("canvas"))
    (wait,) = editor.api.waits(run)
    editor.api.post(f"/api/runs/{run}/waits/{wait['id']}", {"action": "approve", "fields": {}})
    editor.has_status("b", "succeeded")
    assert (box_of(editor.block("ask")), box_of(editor.at("canvas"))) == before


def test_an_edge_dragged_to_the_border_leaves_the_canvas_where_it_is(editor: Editor) -> None:
    """Bug 15: the canvas was panned, and the new block lay far from the one it follows."""
    editor.open(document({"a": block("set", 288, value="x")}, [("start", "a")]))
    canvas = box_of(editor.at("canvas"))
    before = box_of(editor.block("a"))
    end = (canvas["x"] + canvas["width"] - 6, before["y"] + before["height"] / 2)
    editor.drag(editor.at("handle-a-out"), end, drop=False)
    editor.page.wait_for_timeout(500)
    editor.page.mouse.move(*end)
    assert box_of(editor.block("a")) == before
    editor.page.mouse.up()


def test_undo_is_there_after_a_reload(editor: Editor) -> None:
    """Bug 17, and the editor has a heading."""
    editor.open(document({"a": block("set", 288, value="one")}, [("start", "a")]))
    editor.select("a")
    editor.at("field-value").fill("two")
    editor.is_saved()
    editor.page.reload()
    editor.is_ready("a")
    expect(editor.page.get_by_role("heading", level=1)).to_have_count(1)
    editor.press("Control+z")
    editor.until("() => window.__app.doc.getState().doc.blocks.a.params.value === 'one'")


def test_a_wrap_keeps_room_for_the_edge_into_it(editor: Editor) -> None:
    """Bug 18: 8 pixels were left between Start and the loop."""
    editor.open(document({"a": block("set", 288, value="x")}, [("start", "a")]))
    editor.select("a")
    editor.press("g")
    editor.page.get_by_role("menuitem", name="Loop").first.click()
    editor.until("() => Object.keys(window.__app.doc.getState().doc.blocks).length === 3")
    blocks = editor.doc()["blocks"]
    (loop,) = set(blocks) - {"start", "a"}
    zoom = box_of(editor.block(loop))["width"] / blocks[loop]["size"][0]
    start, around = box_of(editor.block("start")), box_of(editor.block(loop))
    assert (around["x"] - start["x"] - start["width"]) / zoom >= 40
    way = editor.edge("start", loop).locator("path").first.get_attribute("d")
    assert way is not None and "Q" not in way, "the edge into the loop has corners"


def test_the_list_of_blocks_is_scrolled_and_explained(editor: Editor) -> None:
    editor.open(document({"b": block("set", 288)}, [("start", "b")]))
    editor.select("b")
    editor.page.get_by_role("button", name="Add a block").first.click()
    about = editor.page.locator(".listbox__about")
    expect(about).to_contain_text("Runs JavaScript or Python")
    last = editor.at("block-picker").get_by_role("option").last
    expect(last).not_to_be_in_viewport()
    editor.page.mouse.move(*middle(editor.at("block-picker")))
    editor.page.mouse.wheel(0, 5000)
    expect(last).to_be_in_viewport()
    editor.page.keyboard.type("if")
    expect(editor.at("block-picker").get_by_role("option").first).to_have_text("ConditionFlow")
    expect(about).to_have_text("Continues on the first case that matches.")
    editor.press("Enter")
    mark = editor.block("condition").locator(".card__mark")
    expect(editor.page.get_by_role("tab", name="Problems")).to_have_text(re.compile(r"\d"))
    expect(mark).to_have_count(0)  # nothing is held against what was just added
    editor.select("b")
    expect(mark).to_have_count(1)


def test_the_name_of_a_branch_is_whole_or_not_there(editor: Editor) -> None:
    near = {**block("set", 264, 160), "name": "Near"}
    cases = [{"id": "yes", "name": "Yes", "when": "true"}, {"id": "else", "name": "Else"}]
    far = {**block("set", 640, 0), "name": "Far"}
    blocks = {"which": block("condition", 0, 0, cases=cases), "near": near, "far": far}
    doc = document(blocks, [("which", "yes", "far"), ("which", "else", "near")])
    editor.open({**doc, "edges": [*doc["edges"], {"source": "start", "target": "which"}]})
    labels = editor.page.locator(".edge__label").all_text_contents()
    assert set(labels) <= {"yes", "Else"} and "yes" in labels, labels

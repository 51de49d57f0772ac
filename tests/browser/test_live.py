"""The view of a run on the canvas while it happens: values on edges, the thread of a running edge, counts of
iterations, and the view that follows what runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import Contexts
from tests.browser.editor import Editor, box_of, document


def block(type: str, x: int, y: int, **more: Any) -> dict[str, Any]:
    return {"type": type, "at": [x, y], **more}


def test_an_edge_shows_what_its_target_reads_in_the_iteration_that_is_looked_at(editor: Editor) -> None:
    blocks = {
        "each": block("loop", 352, 0, size=[640, 176], params={"mode": "for", "count": 3}),
        "stock": block("function", 48, 64, parent="each", params={"code": "return {free: 14 + <loop.index>}"}),
        "note": block("set", 384, 64, parent="each", params={"value": "<stock.result.free>"}),
        "long": block("set", 352, 240, params={"value": "a text that has more letters than an edge has room for"}),
        "read": block("set", 704, 240, params={"value": "<long>"}),
    }
    blocks["each"]["name"] = "Loop"
    edges = [("start", "each"), ("each", "body", "stock"), ("stock", "note"), ("start", "long"), ("long", "read")]
    editor.open_run(editor.api.run(document(blocks, edges), wait_s=20))
    values = editor.page.locator(".edge__value")
    expect(values.filter(has_text="free")).to_contain_text("free16")
    editor.at("iter-each-prev").click()
    expect(values.filter(has_text="free")).to_contain_text("free15")
    long = values.filter(has_text="a text")
    short = long.evaluate("(it) => [...it.childNodes].filter((each) => each.nodeType === 3)[0].textContent")
    assert len(short) <= 16 and "…" in short
    whole = long.locator(".edge__whole")
    expect(whole).to_be_hidden()
    long.hover()
    expect(whole).to_be_visible()
    expect(whole).to_have_text("a text that has more letters than an edge has room for")


def test_a_running_edge_is_a_thread_of_two_plies_that_rests_with_reduced_motion(
    editor: Editor, contexts: Contexts, tmp_path: Path
) -> None:
    slow = {"text": "on and on", "until": str(tmp_path / "never")}
    doc = document({"talk": block("speak", 288, 0, params=slow)}, [("start", "talk")])
    run = editor.api.run(doc)
    looks = []
    for motion in ("no-preference", "reduce"):
        themed = Editor(contexts(reduced_motion=motion).page(), editor.api.url)
        themed.open_run(run)
        themed.has_status("talk", "running")
        edge = themed.edge("start", "talk")
        expect(edge).to_have_attribute("data-state", "active")
        look = "(it) => [getComputedStyle(it).strokeWidth, getComputedStyle(it).animationName]"
        looks.append((edge.locator(".edge__line").evaluate(look)[0], edge.locator(".edge__flow").evaluate(look)))
    editor.api.post(f"/api/runs/{run}/cancel")
    assert looks == [("4px", ["2.4px", "flow"]), ("4px", ["2.4px", "none"])]


def test_a_container_counts_with_a_bar_for_each_iteration_and_one_bar_from_thirteen_on(editor: Editor) -> None:
    for count, bars in ((5, 5), (13, 3)):
        blocks = {
            "each": block("loop", 288, 0, size=[560, 176], params={"mode": "for", "count": count}),
            "a": block("set", 48, 64, parent="each", params={"value": 1}),
        }
        run = editor.api.run(document(blocks, [("start", "each"), ("each", "body", "a")]), wait_s=20)
        editor.open_run(run)
        expect(editor.block("each").locator(".counts i")).to_have_count(bars)
        expect(editor.block("each").locator(".counts__text")).to_have_text(f"{count} of {count}")
        expect(editor.at("iter-each-count")).to_have_text(f"#{count}")
    shared = editor.block("each").locator(".counts[data-shared] [data-tone=ok]")
    assert shared.evaluate("(it) => it.offsetWidth === it.parentElement.offsetWidth")


def test_the_view_follows_what_runs_until_it_is_moved_by_hand(editor: Editor) -> None:
    blocks = {
        "near": block("set", 288, 0, params={"value": 1}),
        "far": block("approval", 6000, 2000, params={"title": "Go on?"}),
    }
    editor.open(document(blocks, [("start", "near"), ("near", "far")]))
    editor.run()
    editor.api.until(editor.run_id(), "waiting")
    expect(editor.block("far")).not_to_be_in_viewport()
    follow = editor.at("follow")
    follow.click()
    expect(follow).to_have_attribute("aria-pressed", "true")
    expect(editor.block("far")).to_be_in_viewport()
    box = box_of(editor.at("canvas"))
    editor.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    editor.page.mouse.wheel(200, 0)
    expect(follow).to_have_attribute("aria-pressed", "false")

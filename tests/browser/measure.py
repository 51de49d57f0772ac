"""Measurements in the browser: the first visit and the first example, loading and panning a large document, opening a
large output, dragging the Tape of a run with 50,000 events and of one with 1,500 branches.

python -m tests.browser.measure [FILE]     takes each figure three times, and writes them as JSON
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import expect, sync_playwright

from benchmarks.measure import machine
from tests.browser.conftest import BLOCKS, FLAGS, WINDOW
from tests.browser.editor import Api, Editor, document
from tests.browser.get_chromium import find
from tests.support.server import SyncServerProcess

BLOCKS_COUNT = 1_000
ROWS = 20
OUTPUT_BYTES = 5 * 1024 * 1024
# What may be: milliseconds on a machine that has nothing else to do.
LOAD_MS, PAN_MS, ZOOM_MS, OPEN_MS, SCRUB_MS = 2_500, 60, 33, 500, 33
VISIT_KB, EXAMPLE_MS = 360, 1_000
ITERATIONS, BRANCHES = 12_500, 1_500  # 50,007 events, and 4,500
BOUNDS = {
    "first_visit_kb": VISIT_KB,
    "first_block_ms": EXAMPLE_MS,
    "load_ms": LOAD_MS,
    "pan_p95_ms": PAN_MS,
    "zoom_p95_ms": ZOOM_MS,
    "open_ms": OPEN_MS,
    "scrub_50000_events_p95_ms": SCRUB_MS,
    "scrub_1500_branches_p95_ms": SCRUB_MS,
}

# Noted by the page itself: how long after its start the first block, and a large output, were there.
WATCH = """() => {
  new MutationObserver(() => {
    window.firstBlock ??= document.querySelector('[data-testid^="block-"]') ? performance.now() : undefined
    if (window.clicked && !window.opened && document.querySelector('.part__bar a[download]')) {
      window.opened = performance.now() - window.clicked
    }
  }).observe(document, { subtree: true, childList: true })
  addEventListener('pointerdown', () => { window.clicked ??= performance.now() }, true)
}"""
FRAMES = """() => {
  window.frames_ms = []
  let before = performance.now()
  const next = (now) => {
    window.frames_ms.push(now - before)
    before = now
    window.watching = requestAnimationFrame(next)
  }
  window.watching = requestAnimationFrame(next)
}"""


def large(blocks: int = BLOCKS_COUNT) -> dict[str, Any]:
    """So many blocks in rows, each leading to its right-hand neighbour, and every third also one row down."""
    made: dict[str, Any] = {}
    edges: list[tuple[str, ...]] = []
    for n in range(blocks - 1):
        column, row = divmod(n, ROWS)
        made[f"b{n}"] = {
            "type": "set",
            "name": f"Block {n}",
            "at": [288 + column * 272, row * 128],
            "params": {"value": {"n": n, "from": "<start.n>"}},
        }
        edges.append((f"b{n - ROWS}" if n >= ROWS else "start", f"b{n}"))
        if n >= ROWS and n % 3 == 0 and row:
            edges.append((f"b{n - ROWS - 1}", f"b{n}"))
    return document(made, edges)


def first_visit(editor: Editor) -> tuple[float, float]:
    """The kilobytes that the front page fetches with an empty cache, and the time from the click on an example to its
    first block."""
    session = editor.page.context.new_cdp_session(editor.page)
    session.send("Network.enable")
    sizes: list[float] = []
    session.on("Network.loadingFinished", lambda found: sizes.append(found["encodedDataLength"]))
    editor.page.add_init_script(f"({WATCH})()")
    editor.page.goto("/")
    example = editor.page.get_by_role("button", name=re.compile("^Open a copy of "))
    expect(example.first).to_be_visible()
    editor.page.wait_for_timeout(1_000)  # fonts, and the examples' pictures
    visit_kb = sum(sizes) / 1_000
    example.first.click()
    expect(editor.page.locator('[data-testid^="block-"]').first).to_be_visible()
    return visit_kb, float(editor.page.evaluate("window.firstBlock - window.clicked"))


def load_ms(editor: Editor, draft: str) -> float:
    """From the start of the page to its first block."""
    editor.page.add_init_script(f"({WATCH})()")
    editor.page.goto(f"/w/{draft}")
    expect(editor.page.locator('[data-testid^="block-"]').first).to_be_visible()
    return float(editor.page.evaluate("window.firstBlock"))


def pan_ms(editor: Editor) -> float:
    """The 95th percentile of the time between two frames, while the wheel pans."""
    over_canvas(editor)
    editor.page.evaluate(FRAMES)
    for step in range(60):
        editor.page.mouse.wheel(40 if step < 40 else -20, 30 if step % 2 else -30)
    return p95(editor)


def zoom_ms(editor: Editor) -> float:
    """The same while the wheel zooms out to all of it, through every level of detail, and back."""
    over_canvas(editor)
    editor.page.keyboard.down("Control")
    editor.page.evaluate(FRAMES)
    for step in range(120):
        editor.page.mouse.wheel(0, 30 if step < 60 else -30)
    taken = p95(editor)
    editor.page.keyboard.up("Control")
    return taken


def over_canvas(editor: Editor) -> None:
    box = editor.at("canvas").bounding_box()
    assert box
    editor.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def p95(editor: Editor) -> float:
    frames: list[float] = editor.page.evaluate("(cancelAnimationFrame(window.watching), window.frames_ms)")
    assert len(frames) >= 20, f"only {len(frames)} frames"
    return sorted(frames)[int(len(frames) * 0.95)]


def open_ms(editor: Editor, run: str) -> float:
    """From pressing on the block to the beginning of its large output and the way to download it."""
    editor.page.add_init_script(f"({WATCH})()")
    editor.open_run(run)
    editor.has_status("flood", "succeeded")
    editor.page.evaluate("window.__app.ui.setState({ tab: 'output' })")
    editor.block("flood").click(position={"x": 60, "y": 14})
    expect(editor.at("inspector").get_by_role("link", name="Download")).to_be_visible()
    return float(editor.page.evaluate("window.opened"))


def rounds() -> dict[str, Any]:
    blocks = {
        "each": {
            "type": "loop",
            "at": [288, 0],
            "size": [420, 200],
            "params": {"mode": "for", "count": ITERATIONS, "max": ITERATIONS},
        },
        "note": {"type": "set", "at": [60, 60], "parent": "each", "params": {"value": "<loop.index>"}},
    }
    settings = {"max_executions": 2 * ITERATIONS}
    return document(blocks, [("start", "each"), ("each", "body", "note")], settings=settings)


def branches() -> dict[str, Any]:
    blocks = {
        "fan": {"type": "parallel", "at": [288, 0], "size": [420, 200], "params": {"items": list(range(BRANCHES))}},
        "note": {"type": "set", "at": [60, 60], "parent": "fan", "params": {"value": "<parallel.index>"}},
    }
    return document(blocks, [("start", "fan"), ("fan", "body", "note")])


def scrub_ms(editor: Editor, run: str) -> float:
    """The 95th percentile of the time between two frames, while the lanes of the Tape are dragged to and fro."""
    editor.open_run(run)
    editor.until("() => !document.querySelector('[data-testid=run-loading]') && document.querySelector('.lanes')")
    expect(editor.at("connection")).to_have_attribute("data-mode", "ended")
    box = editor.at("tape").bounding_box()
    assert box
    mouse, y = editor.page.mouse, box["y"] + box["height"] - 30
    mouse.move(box["x"] + 400, y)
    mouse.down()
    editor.page.evaluate(FRAMES)
    for step in range(120):
        mouse.move(box["x"] + 200 + (step * 53) % (box["width"] - 240), y)
    frames: list[float] = editor.page.evaluate("(cancelAnimationFrame(window.watching), window.frames_ms)")
    mouse.up()
    assert len(frames) >= 20, f"only {len(frames)} frames"
    return sorted(frames)[int(len(frames) * 0.95)]


def flood() -> dict[str, Any]:
    blocks = {"flood": {"type": "flood", "name": "Flood", "at": [288, 0], "params": {"bytes": OUTPUT_BYTES}}}
    return document(blocks, [("start", "flood")])


def main() -> None:
    found = find()
    env: dict[str, str | float | bool] = {**os.environ, **found.env}
    taken: dict[str, list[float]] = {name: [] for name in BOUNDS}
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as other,
        sync_playwright() as playwright,
    ):
        server = SyncServerProcess(Path(folder), {"PYTHONPATH": str(BLOCKS)})
        empty = SyncServerProcess(Path(other), {})
        browser = playwright.chromium.launch(executable_path=found.path, headless=True, args=list(FLAGS), env=env)
        try:
            api = Api(server.url)
            long, wide = (api.run(each, wait_s=50) for each in (rounds(), branches()))
            for _ in range(3):
                context = browser.new_context(base_url=empty.url)
                visit_kb, block_ms = first_visit(Editor(context.new_page(), empty.url))
                taken["first_visit_kb"].append(visit_kb)
                taken["first_block_ms"].append(block_ms)
                context.close()
                context = browser.new_context(
                    base_url=server.url, viewport={"width": WINDOW["width"], "height": WINDOW["height"]}
                )
                editor = Editor(context.new_page(), server.url)
                taken["load_ms"].append(load_ms(editor, editor.api.draft(large())))
                taken["pan_p95_ms"].append(pan_ms(editor))
                taken["zoom_p95_ms"].append(zoom_ms(editor))
                taken["open_ms"].append(open_ms(editor, editor.api.run(flood(), wait_s=30)))
                taken["scrub_50000_events_p95_ms"].append(scrub_ms(editor, long))
                taken["scrub_1500_branches_p95_ms"].append(scrub_ms(editor, wide))
                context.close()
        finally:
            browser.close()
            server.stop()
            empty.stop()
    figures = {
        name: {"median": round(median(each)), "all": [round(one) for one in each], "most": BOUNDS[name]}
        for name, each in taken.items()
    }
    shown = {"machine": {**machine(), "load": os.getloadavg()[0]}, "blocks": BLOCKS_COUNT, "figures": figures}
    text = json.dumps(shown, indent=2) + "\n"
    sys.stdout.write(text)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, "utf-8")


if __name__ == "__main__":
    main()

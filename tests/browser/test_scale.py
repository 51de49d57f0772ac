"""Large documents and large outputs. The bounds are for a machine that has nothing else to do: `make soak` holds the
editor to them; `make check`, which shares its machine, to twenty times as much. `tests/browser/measure.py` takes the
figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser import measure
from tests.browser.editor import Editor
from tests.support.size import size

SLACK = size(sample=20, whole=1)

pytestmark = [pytest.mark.proof, pytest.mark.soak]


def test_check_28_a_thousand_blocks(editor: Editor) -> None:
    draft = editor.api.draft(measure.large())
    assert measure.load_ms(editor, draft) < measure.LOAD_MS * SLACK
    assert editor.page.evaluate("Object.keys(window.__app.doc.getState().doc.blocks).length") == measure.BLOCKS_COUNT
    assert measure.pan_ms(editor) < measure.PAN_MS * SLACK

    assert measure.zoom_ms(editor) < measure.ZOOM_MS * SLACK

    wanted = editor.block("b777")
    expect(wanted).to_have_count(0)  # only what is on the screen is there
    editor.press("Control+f")
    editor.page.get_by_label("Find", exact=True).fill("Block 777")
    editor.page.get_by_role("dialog").get_by_role("button", name="Block 777").first.click()
    expect(wanted).to_be_in_viewport()
    expect(wanted).to_have_attribute("data-selected", "true")

    first = editor.block("start")
    expect(first).not_to_be_attached()
    minimap = editor.page.locator(".react-flow__minimap")
    box = minimap.bounding_box()
    assert box
    here = editor.page.evaluate(VIEWED)
    mouse = editor.page.mouse
    mouse.move(box["x"] + here[0] * box["width"], box["y"] + here[1] * box["height"])
    mouse.down()
    start = editor.page.evaluate(START)
    mouse.move(box["x"] + start[0] * box["width"], box["y"] + start[1] * box["height"], steps=10)
    mouse.up()
    expect(first).to_be_in_viewport()


# Where on the minimap, as parts of its width and height, the middle of what is seen lies, and where the start block is.
VIEWED = """() => {
  const map = document.querySelector('.react-flow__minimap-svg')
  const [left, top, width, height] = map.getAttribute('viewBox').split(' ').map(Number)
  const [x, y, zoom] = /translate\\((.+?)px, ?(.+?)px\\) scale\\((.+?)\\)/
    .exec(document.querySelector('.react-flow__viewport').style.transform).slice(1).map(Number)
  const pane = document.querySelector('.react-flow').getBoundingClientRect()
  return [((pane.width / 2 - x) / zoom - left) / width, ((pane.height / 2 - y) / zoom - top) / height]
}"""
START = """() => {
  const map = document.querySelector('.react-flow__minimap-svg')
  const [left, top, width, height] = map.getAttribute('viewBox').split(' ').map(Number)
  return [(104 - left) / width, (32 - top) / height]
}"""


def test_check_29_five_megabytes(editor: Editor, tmp_path: Path) -> None:
    run = editor.api.run(measure.flood(), wait_s=30)
    assert measure.open_ms(editor, run) < measure.OPEN_MS * SLACK
    inspector = editor.at("inspector")
    expect(inspector).to_contain_text("First 64 kB of 5.")
    expect(inspector.get_by_label("Output, beginning")).to_contain_text('"row":0')
    with editor.page.expect_download() as waiting:
        inspector.get_by_role("link", name="Download").click()
    file = tmp_path / "output.json"
    waiting.value.save_as(file)
    assert file.stat().st_size > measure.OUTPUT_BYTES

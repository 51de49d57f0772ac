"""The sheet of a block: values put into its fields, the block run alone, its output pinned and compared."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Contexts
from tests.browser.editor import Editor, box_of, document
from tests.browser.test_a11y import findings
from tests.support.server import SyncServerProcess

LINES = [{"sku": "TW-14", "qty": 2}, {"sku": "LN-03", "qty": 1}, {"sku": "WL-77", "qty": 5}]


def block(type: str, x: int, name: str, **params: Any) -> dict[str, Any]:
    return {"type": type, "at": [x, 0], "name": name, "params": params}


ORDER = document(
    {
        "sum": block("set", 288, "Sum up lines", value={"total": 284.5, "currency": "EUR", "lines": LINES}),
        "reserve": block("set", 576, "Reserve stock", value={"order": "", "total": "<Sum up lines.total>"}),
        "ask": block("set", 864, "Ask the buyer", value="<Reserve stock.order>"),
    },
    [("start", "sum"), ("sum", "reserve"), ("reserve", "ask")],
)
LOOP = document(
    {
        "each": {**block("loop", 288, "Order line", mode="each", items=LINES), "size": [480, 240]},
        "held": {**block("set", 48, "Hold", value={"sku": "<loop.item.sku>"}), "parent": "each", "at": [64, 80]},
    },
    [("start", "each"), ("each", "body", "held")],
)


def open_sheet(editor: Editor, name: str) -> None:
    editor.select(name)
    editor.press("Enter")
    expect(editor.at("step-sheet")).to_be_visible()


def row(editor: Editor, text: str) -> Locator:
    return editor.at("inputs").get_by_role("treeitem").filter(has_text=text).first


def test_enter_opens_the_sheet_above_which_its_block_is_seen(editor: Editor) -> None:
    editor.open(ORDER)
    run = editor.run()
    editor.has_status("ask", "succeeded")
    open_sheet(editor, "reserve")
    sheet, card, tape = box_of(editor.at("step-sheet")), box_of(editor.block("reserve")), box_of(editor.at("tape"))
    assert card["y"] + card["height"] <= sheet["y"], "the sheet covers its block"
    assert sheet["y"] + sheet["height"] <= tape["y"], "the sheet covers the Tape"
    expect(editor.page.get_by_role("tabpanel", name="Lanes")).to_have_count(
        0
    )  # the sheet has their room until it closes
    expect(editor.at("step-sheet")).to_contain_text(f"succeeded in run {run[-8:]}")
    expect(row(editor, "Sum up lines")).to_contain_text("1 step back")
    editor.at("sheet-after").click()
    expect(editor.at("step-sheet").get_by_role("heading", level=2)).to_have_text("Ask the buyer")
    editor.press("Escape")
    expect(editor.at("step-sheet")).to_have_count(0)
    assert editor.selected() == ["ask"]
    expect(editor.page.get_by_role("tabpanel", name="Lanes")).to_be_visible()
    editor.block("reserve").dblclick(position={"x": 60, "y": 14})
    expect(editor.at("step-sheet")).to_be_visible()
    editor.at("sheet-close").click()
    editor.at("open-sheet").click()
    expect(editor.at("step-sheet")).to_be_visible()


def test_the_keyboard_stays_inside_and_the_sheet_has_no_serious_finding(editor: Editor) -> None:
    editor.open(ORDER)
    editor.run()
    editor.has_status("ask", "succeeded")
    open_sheet(editor, "reserve")
    for _ in range(60):
        editor.press("Tab")
        assert editor.page.evaluate("document.activeElement.closest('[data-testid=step-sheet]') !== null")
    assert findings(editor.page) == []


def test_a_value_is_inserted_by_the_keyboard(editor: Editor) -> None:
    editor.open(ORDER)
    editor.run()
    editor.has_status("ask", "succeeded")
    open_sheet(editor, "ask")
    editor.at("field-value").fill("")
    editor.at("inputs").focus()
    editor.press("Enter")
    expect(editor.at("field-value")).to_have_value("<Reserve stock>")
    assert editor.doc()["blocks"]["ask"]["params"]["value"] == "<Reserve stock>"


def test_a_value_is_dragged_into_a_field(editor: Editor) -> None:
    editor.open(ORDER)
    editor.run()
    editor.has_status("ask", "succeeded")
    open_sheet(editor, "ask")
    editor.at("field-value").fill("")
    row(editor, "currency").drag_to(editor.at("field-value"))
    expect(editor.at("field-value")).to_have_value("<Sum up lines.currency>")


def test_the_block_runs_alone_with_recorded_then_with_edited_input(editor: Editor) -> None:
    editor.open(ORDER)
    run = editor.run()
    editor.has_status("ask", "succeeded")
    open_sheet(editor, "reserve")
    editor.at("run-step").click()
    step = editor.at("take-Step 1")
    expect(step).to_contain_text("Succeeded")
    expect(editor.at("difference")).to_contain_text("No difference")
    editor.at("input-edited").click()
    expect(editor.at("input-text")).to_contain_text('"total": 284.5')
    editor.at("input-text").fill('{"sum": {"total": 1}}')
    editor.at("run-step").click()
    expect(editor.at("take-Step 2")).to_contain_text("Succeeded")
    lines = editor.at("difference").locator("[data-mark='-'], [data-mark='+']")
    expect(lines.filter(has_text="284.5")).to_have_attribute("data-mark", "-")
    expect(lines.filter(has_text="total1")).to_have_attribute("data-mark", "+")
    editor.at("take-Step 2").press("ArrowLeft")
    expect(step).to_have_attribute("aria-checked", "true")
    runs = editor.api.get("/api/runs", draft=editor.draft_id)["runs"]
    assert [each["workflow"] for each in runs] == ["tested/reserve", "tested/reserve", "tested"]
    assert editor.run_id() == run, "the run that is shown stays the whole one"


def test_an_iteration_runs_alone_with_its_own_item(editor: Editor) -> None:
    editor.open(LOOP)
    editor.run()
    editor.has_status("held", "succeeded")
    open_sheet(editor, "held")
    expect(editor.at("sheet-iter-each")).to_have_text("Order line 3 of 3")
    editor.page.get_by_role("button", name="Previous iteration").last.click()
    expect(editor.at("sheet-iter-each")).to_have_text("Order line 2 of 3")
    editor.at("run-step").click()
    expect(editor.at("take-Step 1")).to_contain_text("Succeeded")
    (step,) = [each for each in editor.api.get("/api/runs", draft=editor.draft_id)["runs"] if "/" in each["workflow"]]
    assert editor.api.get(f"/api/runs/{step['id']}")["output"] == {"sku": "LN-03"}


def test_what_a_step_would_send_stands_above_it(editor: Editor) -> None:
    doc = document(
        {
            "sum": block("set", 288, "Sum up", value={"order": "A-20931"}),
            "send": block("http", 576, "Send", method="POST", url="http://127.0.0.1:9/v1/reserve/<Sum up.order>"),
            "calm": block("set", 864, "Calm", value=1),
        },
        [("start", "sum"), ("sum", "send"), ("send", "calm")],
    )
    editor.open(doc)
    editor.run()
    editor.has_status("sum", "succeeded")
    open_sheet(editor, "send")
    expect(editor.at("step-effect")).to_contain_text("sends POST http://127.0.0.1:9/v1/reserve/A-20931 for real")
    editor.at("sheet-after").click()
    expect(editor.at("step-sheet").get_by_role("heading", level=2)).to_have_text("Calm")
    expect(editor.at("step-effect")).to_have_count(0)


def test_an_output_is_pinned_used_by_drafts_and_left_out_of_versions(editor: Editor) -> None:
    editor.open(ORDER)
    editor.run()
    editor.has_status("ask", "succeeded")
    open_sheet(editor, "reserve")
    editor.at("pin-output").click()
    expect(editor.at("pin")).to_contain_text("Drafts only")
    editor.at("pin").get_by_role("button", name="Edit").click()
    editor.at("pin-text").fill('{"order": "pinned"}')
    editor.at("pin-keep").click()
    editor.press("Escape")
    expect(editor.block("reserve").locator("[data-testid=pin-mark]")).to_be_visible()
    editor.is_saved()
    run = editor.run()
    editor.has_status("ask", "succeeded")
    assert editor.api.get(f"/api/runs/{run}")["output"] == "pinned"
    (ended,) = [e for e in editor.api.events(run) if e["type"] == "node.succeeded" and e["block"] == "reserve"]
    assert ended["data"]["pinned"] is True
    editor.api.post(f"/api/drafts/{editor.draft_id}/versions", {"name": "tested"})
    assert "pin" not in editor.api.get("/api/workflows/tested")["document"]["blocks"]["reserve"]
    open_sheet(editor, "reserve")
    editor.at("unpin").click()
    expect(editor.at("pin")).to_have_count(0)


@pytest.mark.parametrize("width", [1024, 820])
def test_in_a_narrow_window_columns_are_tabs(contexts: Contexts, server: SyncServerProcess, width: int) -> None:
    watched = contexts(viewport={"width": width, "height": 768})
    editor = Editor(watched.page(), server.url)
    editor.open(ORDER)
    editor.block("reserve").click(position={"x": 60, "y": 14})
    editor.press("Enter")
    expect(editor.at("step-sheet")).to_be_visible()
    editor.at("column-output").click()
    expect(editor.at("step-sheet")).to_contain_text("No output yet")
    wide: Page = editor.page
    assert wide.evaluate("document.documentElement.scrollWidth") <= width

"""A workflow that is its own test: a run is kept, it is replayed with the draft while one edits, and publishing shows
which runs would have gone another way."""

from __future__ import annotations

from typing import Any

import httpx
from playwright.sync_api import expect

from tests.browser.editor import Editor, document
from tests.browser.test_a11y import findings


def orders(name: str, limit: int = 500) -> dict[str, Any]:
    cases = [{"id": "high", "title": "High", "when": f"<start.total> > {limit}"}, {"id": "low", "title": "Low"}]
    blocks = {
        "limit": {"type": "condition", "name": "Limit", "at": [288, 0], "params": {"cases": cases}},
        "ask": {"type": "set", "name": "Ask the buyer", "at": [608, 0], "params": {"value": "ask"}},
        "charge": {"type": "set", "name": "Charge", "at": [608, 160], "params": {"value": "charge <start.total>"}},
        "note": {"type": "http", "name": "Note", "at": [928, 160], "params": {"url": "http://127.0.0.1:1/a"}},
    }
    blocks["note"]["policy"] = {"on_error": "continue", "retry": {"max_attempts": 1}}
    edges = [("start", "limit"), ("limit", "high", "ask"), ("limit", "low", "charge"), ("charge", "note")]
    return {**document(blocks, edges), "name": name}


def published(editor: Editor, name: str, totals: tuple[int, ...]) -> list[str]:
    """A version with runs, and a draft of it that is open."""
    api = editor.api
    api.post("/api/workflows", {"document": orders(name)})
    path = f"/api/workflows/{name}/runs?wait=60"
    runs = [str(api.post(path, {"input": {"total": total}})["run"]) for total in totals]
    body = {"document": orders(name), "name": name, "base_version": 1}
    editor.draft_id = str(api.post("/api/drafts", body)["id"])
    return runs


def reopened(editor: Editor, doc: dict[str, Any]) -> None:
    """The draft with another document, opened again."""
    path = f"/api/drafts/{editor.draft_id}"
    headers = {"If-Match": f'"{editor.api.get(path)["rev"]}"'}
    httpx.put(editor.api.url + path, json={"document": doc}, headers=headers).raise_for_status()
    editor.page.goto(f"/w/{editor.draft_id}")
    editor.is_ready("limit")


def test_a_run_is_kept_and_the_draft_is_played_against_it(editor: Editor) -> None:
    one, two = published(editor, "kept-orders", (450, 100))
    for run in (one, two):
        editor.open_run(run)
        editor.page.get_by_role("button", name="More").last.click()
        editor.page.get_by_role("menuitem", name="Keep as test").click()
        expect(editor.page.get_by_text("Kept as a test of kept-orders.").last).to_be_visible()
    assert {each["run"] for each in editor.api.get("/api/workflows/kept-orders/kept")["kept"]} == {one, two}
    editor.page.get_by_role("button", name="More").last.click()
    expect(editor.page.get_by_role("menuitem", name="Keep no longer")).to_be_visible()
    editor.press("Escape")

    editor.page.goto(f"/w/{editor.draft_id}")
    editor.is_ready("limit")
    expect(editor.at("kept-limit")).to_have_text("2 of 2 same")
    expect(editor.at("kept-note")).to_have_text("2 of 2 same")
    expect(editor.at("kept-ask")).to_have_count(0)
    card, chip = editor.block("limit").bounding_box(), editor.at("kept-limit").bounding_box()
    assert card is not None and chip is not None
    assert chip["y"] > card["y"] + card["height"], "it is below the card"

    editor.select("charge")
    editor.at("field-value").fill("charge all of <start.total>")
    expect(editor.at("kept-charge")).to_have_attribute("data-tone", "thread")
    expect(editor.at("kept-charge")).to_contain_text("2 runs")
    expect(editor.at("kept-note")).to_have_text("2 of 2 same")

    editor.select("note")
    editor.at("field-url").fill("http://127.0.0.1:1/b")
    expect(editor.at("kept-note")).to_have_text("2 would send")
    expect(editor.at("kept-note")).to_have_attribute("data-tone", "wait")

    editor.is_saved()
    reopened(editor, orders("kept-orders", 400))
    expect(editor.at("kept-limit")).to_have_text("1 other branch")


def test_a_run_of_a_draft_is_kept_looked_at_and_dropped_in_the_editor(editor: Editor) -> None:
    editor.open(orders("tried"))
    editor.choose("Show tests")
    expect(editor.at("replay")).to_contain_text("No run is kept as a test yet")
    editor.press("Escape")
    editor.at("bar-more").click()
    keep = editor.page.get_by_role("menuitem", name="Keep this run as test")
    expect(keep).to_have_attribute("title", "Run the workflow first")
    editor.press("Escape")
    run = editor.run()
    editor.api.until(run, "succeeded")
    expect(editor.at("connection")).to_have_text("Succeeded")
    editor.choose("Keep this run as test")
    expect(editor.at("kept-limit")).to_have_text("1 of 1 same")
    expect(editor.page.get_by_text("The editor replays it after each change").first).to_be_visible()
    editor.select("charge")
    editor.at("field-value").fill("charge all of <start.total>")
    expect(editor.at("kept-charge")).to_have_attribute("data-tone", "thread")

    editor.at("publish").click()  # for the first time, and still what would differ is listed
    expect(editor.at("replay-rows")).to_contain_text("Charge")
    editor.press("Escape")

    editor.at("kept-charge").click()
    rows = editor.at("replay-rows").get_by_role("listitem")
    expect(rows).to_contain_text("has other values")
    for scheme in ("light", "dark"):
        editor.page.emulate_media(color_scheme=scheme)
        assert findings(editor.page) == []
    rows.get_by_role("button", name="Keep no longer").click()
    expect(editor.at("replay")).to_contain_text("No run is kept as a test yet")
    editor.press("Escape")
    expect(editor.at("kept-limit")).to_have_count(0)


def test_publishing_lists_the_runs_that_would_go_another_way(editor: Editor) -> None:
    runs = published(editor, "last-orders", (450, 100, 600))
    editor.api.post(f"/api/runs/{runs[1]}/keep")
    reopened(editor, orders("last-orders", 400))
    expect(editor.at("kept-limit")).to_have_text("1 of 1 same")
    editor.at("publish").click()
    expect(editor.at("replay")).to_have_attribute("aria-busy", "false")
    expect(editor.at("replay-same")).to_have_text("2 of 3 same")
    expect(editor.at("replay-kept")).to_have_text("of 1 kept as tests: 1 same")
    expect(editor.at("replay-other_way")).to_have_text("1 other branch")
    expect(editor.at("replay-would_call")).to_have_text("0 would call")
    rows = editor.at("replay-rows").locator("li")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Charge › Ask the buyer")
    expect(rows).to_contain_text("goes another way")
    expect(rows.locator("a")).to_have_attribute("href", f"/runs/{runs[0]}")
    for scheme in ("light", "dark"):
        editor.page.emulate_media(color_scheme=scheme)
        assert findings(editor.page) == []
    editor.at("replay-same").click()
    expect(rows).to_have_count(2)
    editor.at("replay-same").click()
    expect(rows).to_have_count(1)
    editor.at("replay").get_by_role("combobox").select_option(label="Kept as tests")
    expect(editor.at("replay-same")).to_have_text("1 of 1 same")
    expect(editor.at("replay-rows")).to_have_count(0)

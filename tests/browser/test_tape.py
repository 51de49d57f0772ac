"""The Tape: what it shows while a run loads, how waits are drawn, and where the server died."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Route, expect

from tests.browser.conftest import Contexts, Servers, Watched
from tests.browser.editor import Editor, box_of, document

LEASE_MS = "1000"  # what a killed process keeps its runs for
MINUTES_10_MS = 600_000


def asking() -> dict[str, Any]:
    blocks = {
        "mail": {"type": "set", "name": "Mail", "at": [288, 0]},
        "ask": {"type": "approval", "name": "Ask", "at": [576, 0], "params": {"title": "Go?"}},
        "after": {"type": "set", "name": "After", "at": [864, 0]},
    }
    return document(blocks, [("start", "mail"), ("mail", "ask"), ("ask", "approve", "after")])


def test_bug_5_a_run_that_loads_is_neither_live_nor_not_started(editor: Editor) -> None:
    run = editor.api.run(document({"a": {"type": "set", "at": [288, 0]}}, [("start", "a")]), wait_s=20)
    held: list[Route] | None = []

    def hold(route: Route) -> None:
        if held is None:
            route.continue_()
        else:
            held.append(route)

    page = editor.page
    page.route(re.compile(f"/api/runs/{run}/events"), hold)
    page.goto(f"/runs/{run}")
    drawer = page.locator(".drawer")
    page.get_by_role("tab", name="Trace").click()
    trace = page.locator("#drawer-pane")
    expect(trace).to_contain_text("Loading")
    expect(trace).not_to_contain_text("Not started")
    expect(editor.at("run-loading")).to_be_visible()
    expect(editor.at("tape-follow")).to_have_text("Loading")
    expect(drawer.get_by_role("status")).to_contain_text("Loading 0 of")
    assert held
    waiting, held = held, None
    for route in waiting:
        route.continue_()
    editor.has_status("a", "succeeded")
    expect(editor.at("tape-follow")).to_have_text("Latest")
    expect(editor.at("run-loading")).to_have_count(0)
    expect(drawer).not_to_contain_text("Loading")


def test_bug_5_live_is_what_the_stream_is(editor: Editor, watched: Watched) -> None:
    watched.allow("ERR_INTERNET_DISCONNECTED|Failed to fetch|ERR_FAILED")
    run = editor.api.run(asking(), wait_s=20)
    watched.context.route("**/events.worker*", lambda route: route.abort())
    editor.open_run(run)
    expect(editor.at("connection")).to_have_attribute("data-mode", "offline")
    expect(editor.at("tape-follow")).to_have_text("Latest")
    watched.context.unroute_all()
    expect(editor.at("connection")).to_have_attribute("data-mode", "live")
    expect(editor.at("tape-follow")).to_have_text("Live")


def test_bug_9_a_wait_that_is_cut_out_of_the_axis_has_a_break(alone: Editor) -> None:
    editor = alone
    run = editor.api.run(asking(), wait_s=20)
    page = editor.page
    editor.open_run(run)
    page.get_by_role("tab", name="Trace").click()
    waits = editor.at("trace-ask")
    expect(waits.locator(".trace__seg--thin[data-tone=wait]")).to_have_count(1)
    expect(waits.locator(".trace__break")).to_have_count(0)
    page.clock.set_fixed_time(time.time() * 1000 + MINUTES_10_MS)  # no answer yet
    expect(waits.locator(".trace__break[data-tone=wait]")).to_have_count(1)
    expect(editor.at("trace-mail").locator(".trace__break")).to_have_count(0)


def test_a_killed_server_is_in_the_journal_also_where_nothing_was_under_way(
    contexts: Contexts, servers: Servers, tmp_path: Path
) -> None:
    """One run has a block under way, the other only a timer that is too short to leave memory."""
    server = servers(WEFT_LEASE_MS=LEASE_MS)
    port = str(urlsplit(server.url).port)
    watched = contexts(server.url)
    watched.allow("ERR_CONNECTION|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED_ENCODING|Failed to fetch")
    editor = Editor(watched.page(), server.url)
    blocks = {
        "before": {"type": "set", "name": "Before", "at": [288, 0], "params": {"value": 7}},
        "talk": {
            "type": "speak",
            "name": "Talk",
            "at": [576, 0],
            "params": {"text": "on", "until": str(tmp_path / "go")},
        },
    }
    busy = editor.api.run(document(blocks, [("start", "before"), ("before", "talk")]))
    resting = document({"rest": {"type": "wait", "at": [288, 0], "params": {"seconds": 1.9}}}, [("start", "rest")])
    editor.open_run(busy)
    editor.has_status("talk", "running")
    idle = editor.api.run(resting)
    server.kill()
    servers(WEFT_PORT=port)
    (tmp_path / "go").touch()
    editor.api.until(busy, "succeeded")
    editor.api.until(idle, "succeeded")
    for run in (busy, idle):
        events = editor.api.events(run)
        assert [event["type"] for event in events].count("run.recovered") >= 1, events
    editor.has_status("talk", "succeeded")
    box = box_of(editor.page.locator(".lanes"))
    card = editor.at("tape-card").filter(has_text="Server stopped")
    for x in range(170, 1270, 4):  # the tear is somewhere above the lanes
        editor.page.mouse.move(box["x"] + x, box["y"] + 10)
        if card.count():
            break
    expect(card).to_contain_text(
        re.compile(r"Back .* s later\. 2 finished steps were taken from the log, 1 was started")
    )


def rounds(count: int = 3) -> dict[str, Any]:
    """A loop whose block puts out its item, beside a block of the main line."""
    blocks = {
        "each": {
            "type": "loop",
            "name": "Each order",
            "at": [288, 0],
            "size": [420, 200],
            "params": {"mode": "each", "items": list(range(1, count + 1))},
        },
        "note": {"type": "set", "name": "Note", "at": [60, 60], "parent": "each", "params": {"value": "<loop.item>"}},
        "end": {"type": "set", "name": "End", "at": [864, 0], "params": {"value": 1}},
    }
    return document(blocks, [("start", "each"), ("each", "body", "note"), ("each", "end")])


def lane(editor: Editor, at: int, part: float) -> tuple[float, float]:
    """A point of a lane: `part` of the way from the first event to the last."""
    box = box_of(editor.page.locator(".lanes"))
    gutter = 168 if box["width"] >= 900 else 112
    room = box["width"] - gutter - 28
    return box["x"] + gutter + 14 + room * part, box["y"] + 22 + 22 * at + 11


def test_lanes_have_a_card_with_the_change_and_drag_to_any_moment(editor: Editor) -> None:
    run = editor.api.run(rounds(), wait_s=20)
    last = len(editor.api.events(run))
    editor.open_run(run)
    editor.has_status("end", "succeeded")
    lanes = editor.page.locator(".lanes")
    expect(lanes).to_have_attribute("data-lanes", "5")  # main, the loop, its three iterations
    card = editor.at("tape-card")
    mouse = editor.page.mouse
    iterations = [e["seq"] for e in editor.api.events(run) if e["type"] == "node.started" and e["block"] == "note"]
    mouse.move(*lane(editor, 3, (iterations[1] - 0.5) / (last - 1)))
    expect(card).to_contain_text("Note")
    expect(card).to_contain_text("iteration 2 of Each order")
    expect(card.locator("[data-when=before]")).to_have_text("Before 1")
    expect(card.locator("[data-when=now]")).to_have_text("After 2")
    mouse.move(*lane(editor, 1, 0.5))
    expect(card).to_contain_text("Each order")

    x, y = lane(editor, 1, 0.5)
    mouse.move(x, y)
    mouse.down()
    mouse.move(*lane(editor, 1, 0.1), steps=4)
    mouse.up()
    seq = int(editor.at("tape").get_attribute("aria-valuenow") or 0)
    assert 0 < seq < last / 2
    editor.press("ArrowRight")
    expect(editor.at("tape")).to_have_attribute("aria-valuenow", str(seq + 1))
    mouse.click(*lane(editor, 2, (iterations[0] - 0.5) / (last - 1)))
    assert editor.selected() == ["note"]


def test_lanes_are_chosen_folded_and_gone_along_with_the_keyboard(editor: Editor) -> None:
    run = editor.api.run(rounds(), wait_s=20)
    editor.open_run(run)
    editor.has_status("end", "succeeded")
    lanes, keys = editor.page.locator(".lanes"), editor.at("lane-keys")
    expect(lanes).to_have_attribute("data-lanes", "5")
    editor.at("tape").focus()
    editor.press("Tab")
    expect(keys).to_be_focused()
    chosen = keys.locator("[aria-selected=true]")
    editor.press("ArrowDown")
    expect(chosen).to_have_attribute("aria-label", "Each order, 1 span")
    editor.press("ArrowLeft")
    expect(lanes).to_have_attribute("data-lanes", "2")
    expect(chosen).to_have_attribute("aria-expanded", "false")
    editor.press("ArrowRight")
    expect(lanes).to_have_attribute("data-lanes", "5")
    editor.press("ArrowDown")
    expect(chosen).to_have_attribute("aria-label", "#1, 1 span")
    editor.press("ArrowRight")
    expect(editor.at("tape-card")).to_contain_text("iteration 1 of Each order")
    editor.press("Enter")
    assert editor.selected() == ["note"]
    began = next(e["seq"] for e in editor.api.events(run) if e["type"] == "node.started" and e["block"] == "note")
    expect(editor.at("tape")).to_have_attribute("aria-valuenow", str(began))


def test_iterations_that_ended_well_share_a_lane(editor: Editor) -> None:
    run = editor.api.run(rounds(6), wait_s=20)
    editor.open_run(run)
    editor.has_status("end", "succeeded")
    lanes = editor.page.locator(".lanes")
    expect(lanes).to_have_attribute("data-lanes", "3")
    expect(editor.at("lane-keys").get_by_role("treeitem").last).to_have_attribute("aria-label", "6 finished, 1 span")
    box = box_of(lanes)
    editor.page.mouse.click(box["x"] + 60, box["y"] + 22 + 55)
    expect(lanes).to_have_attribute("data-lanes", "9")


def test_lanes_on_a_phone_are_opened_by_a_button_and_touched(editor: Editor, contexts: Contexts) -> None:
    phone = contexts(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).page()
    editor = Editor(phone, editor.api.url)
    run = editor.api.run(rounds(), wait_s=20)
    editor.open_run(run)
    editor.at("lanes").tap()
    lanes = phone.locator(".lanes")
    expect(lanes).to_have_attribute("data-lanes", "5")
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    box = box_of(lanes)
    phone.touchscreen.tap(box["x"] + 40, box["y"] + 22 + 33)
    expect(lanes).to_have_attribute("data-lanes", "2")
    phone.touchscreen.tap(box["x"] + 40, box["y"] + 22 + 33)
    expect(lanes).to_have_attribute("data-lanes", "5")
    before = int(editor.at("tape").get_attribute("aria-valuenow") or 0)
    phone.touchscreen.tap(box["x"] + 200, box["y"] + 22 + 77)
    editor.until("() => window.__app.run.getState().cursor !== 'live'")
    assert int(editor.at("tape").get_attribute("aria-valuenow") or 0) < before
    editor.at("lanes").tap()
    expect(lanes).to_have_count(0)


def test_a_stretch_of_time_is_chosen_and_looked_at_closely(editor: Editor) -> None:
    run = editor.api.run(rounds(), wait_s=20)
    editor.open_run(run)
    editor.has_status("end", "succeeded")
    page, lanes = editor.page, editor.page.locator(".lanes")
    expect(lanes).to_have_attribute("data-zoom", "1.00")
    page.keyboard.down("Shift")
    page.mouse.move(*lane(editor, 1, 0.25))
    page.mouse.down()
    page.mouse.move(*lane(editor, 1, 0.75), steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    expect(editor.at("connection")).to_have_attribute("data-mode", "ended")  # choosing moves nothing
    chosen = page.get_by_role("group", name="Chosen stretch")
    expect(chosen).to_contain_text("events")
    chosen.get_by_role("button", name="Zoom in").click()
    editor.until("() => Math.abs(document.querySelector('.lanes').dataset.zoom - 2) < 0.2")
    editor.at("tape").focus()
    editor.press("0")
    expect(lanes).to_have_attribute("data-zoom", "1.00")
    editor.press("+")
    editor.until("() => document.querySelector('.lanes').dataset.zoom > 1")
    page.mouse.move(*lane(editor, 1, 0.5))
    page.keyboard.down("Control")
    page.mouse.wheel(0, 900)
    for _ in range(3):
        page.mouse.wheel(0, 120)
    page.keyboard.up("Control")
    expect(lanes).to_have_attribute("data-zoom", "1.00")


def test_folded_or_beside_another_pane_the_tape_is_a_strip(editor: Editor) -> None:
    run = editor.api.run(rounds(), wait_s=20)
    editor.open_run(run)
    editor.has_status("end", "succeeded")
    expect(editor.page.locator(".lanes")).to_be_visible()
    editor.page.get_by_role("tab", name="Trace").click()
    assert box_of(editor.at("tape"))["height"] == 24
    editor.page.get_by_role("tab", name="Lanes").click()
    expect(editor.page.locator(".lanes")).to_be_visible()
    editor.page.get_by_role("button", name="Close the drawer").click()
    tape = box_of(editor.at("tape"))
    assert tape["height"] == 24
    assert tape["width"] == 1280
    editor.page.mouse.move(tape["x"] + 600, tape["y"] + 12)
    expect(editor.at("tape-card")).to_be_visible()


def refund() -> dict[str, Any]:
    cases = [{"id": "yes", "title": "yes", "when": "<amount.n> > 50"}, {"id": "no", "title": "no"}]
    blocks = {
        "amount": {"type": "set", "name": "Amount", "at": [288, 0], "params": {"value": {"n": "<start.n>"}}},
        "big": {"type": "condition", "name": "Big", "at": [560, 0], "params": {"cases": cases}},
        "ask": {"type": "set", "name": "Ask", "at": [864, 0], "params": {"value": "asked"}},
        "pay": {"type": "set", "name": "Pay", "at": [864, 160], "params": {"value": "paid"}},
    }
    return document(blocks, [("start", "amount"), ("amount", "big"), ("big", "yes", "ask"), ("big", "no", "pay")])


def test_two_runs_are_compared_on_one_tape_and_shared_by_link_and_picture(editor: Editor, tmp_path: Path) -> None:
    was = editor.api.run(refund(), {"n": 84}, wait_s=20)
    events = editor.api.events(was)
    seq = next(e["seq"] for e in events if e["type"] == "node.succeeded" and e["block"] == "amount")
    now = editor.api.post(f"/api/runs/{was}/fork", {"seq": seq, "outputs": {"amount": {"n": 20}}})["run"]
    editor.api.until(now, "succeeded")
    editor.open_run(now)
    editor.has_status("pay", "succeeded")
    editor.at("compare").click()
    editor.page.get_by_role("menuitem", name="which this one began as").click()
    futures = editor.at("futures")
    expect(futures).to_have_attribute("data-split", str(seq - 1))
    panel = editor.page.get_by_role("region", name="Two futures")
    difference = panel.get_by_role("group", name="First difference")
    expect(difference).to_contain_text("Amount.n")
    expect(difference.locator("[data-when=before]")).to_have_text("84")
    expect(difference.locator("[data-when=now]")).to_have_text("20")
    rows = panel.get_by_role("row")
    expect(rows.filter(has_text="Result")).to_contain_text('"asked""paid"')
    expect(rows.filter(has_text="Branch")).to_contain_text("Big: yesBig: no")

    with editor.page.expect_download() as waiting:
        editor.page.get_by_role("button", name="Save as a picture").click()
    file = tmp_path / "tape.png"
    waiting.value.save_as(file)
    data = file.read_bytes()
    assert data.startswith(b"\x89PNG")
    width = editor.at("tape").bounding_box()
    assert width is not None
    assert int.from_bytes(data[16:20], "big") == 2 * round(width["width"])

    editor.until(f"() => location.search.includes('with={was}')")
    editor.page.reload()  # the address is the comparison
    expect(editor.at("futures")).to_have_attribute("data-split", str(seq - 1))
    editor.at("compare").click()
    expect(editor.page.locator(".lanes")).to_be_visible()
    with editor.page.expect_download() as waiting:
        editor.page.get_by_role("button", name="Save as a picture").click()
    waiting.value.save_as(file)
    assert file.read_bytes().startswith(b"\x89PNG")


def test_a_phone_has_two_rows_of_controls_and_a_menu(editor: Editor, contexts: Contexts) -> None:
    run = editor.api.run(refund(), {"n": 84}, wait_s=20)
    phone = contexts(viewport={"width": 390, "height": 844}, has_touch=True).page()
    phone.goto(f"/runs/{run}")
    controls = phone.locator(".drawer__head").get_by_role("button")
    expect(phone.get_by_role("button", name="Next event")).to_be_visible()
    boxes = [box for each in controls.all() if (box := each.bounding_box()) is not None]
    assert len(boxes) == 7 and len({round(box["y"]) for box in boxes}) == 2
    assert all(box["height"] >= 44 and box["width"] >= 44 and box["x"] + box["width"] <= 390 for box in boxes)
    phone.get_by_role("group", name="Playback").get_by_role("button", name="More").click()
    phone.get_by_role("menuitem", name="Fork from here").click()
    expect(phone.get_by_role("dialog")).to_contain_text("Fork")

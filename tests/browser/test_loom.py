"""All runs of a workflow on one canvas."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Api, document

DOC = document(
    {
        "each": {
            "type": "loop",
            "at": [288, 0],
            "size": [448, 224],
            "params": {"mode": "each", "items": "<start.lines>"},
        },
        "line": {
            "type": "function",
            "name": "Reserve",
            "parent": "each",
            "at": [48, 48],
            "params": {"code": "if (<loop.item> < 0) throw new Error('sold out')"},
        },
        "sorry": {"type": "set", "name": "Tell the team", "at": [800, 320], "params": {"value": 1}},
        "ask": {"type": "approval", "name": "Buyer", "at": [800, 0], "params": {"title": "Buy?"}},
    },
    [("start", "each"), ("each", "body", "line"), ("each", "error", "sorry"), ("each", "ask")],
    name="orders",
)


def test_all_runs_are_threads_and_a_bundle_lists_its_runs(servers: Servers, contexts: Contexts) -> None:
    server = servers()
    api = Api(server.url)
    api.post("/api/workflows", {"document": DOC})
    for lines in ([1, 2], [1, -1], [3], [-2], [4, 5, 6]):
        api.post("/api/workflows/orders/runs?wait=20", {"input": {"lines": lines}})
    page = contexts(server.url).page()
    page.goto("/loom/orders")
    card = page.locator('[data-block="line"]')
    expect(card).to_contain_text("5 runs, 2 failed")
    expect(page.locator('[data-block="ask"]')).to_contain_text("3 open")
    expect(page.locator('.loomcell[data-state="1"]')).to_have_count(2)
    expect(page.locator(".loomcell")).to_have_count(9)
    expect(page.locator('[data-exit="each out"]')).to_contain_text("3")
    page.locator('[data-exit="each error"]').focus()
    page.keyboard.press("Enter")
    listed = page.get_by_test_id("loom-runs")
    expect(listed.get_by_role("heading")).to_have_text("2 runs left each by its error branch")
    expect(listed.get_by_role("listitem")).to_have_count(2)
    listed.get_by_role("button", name="Run 2 again").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_test_id("repeated")).to_contain_text("Reserve")
    dialog.get_by_role("button", name="Run 2 again").click()
    expect(listed.get_by_role("status")).to_have_text("2 of 2 started")
    expect(card).to_contain_text("7 runs, 4 failed")  # it is live
    listed.get_by_role("listitem").first.get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"/runs/[0-9a-f]{32}$"))


def test_a_card_lists_the_runs_that_failed_there(servers: Servers, contexts: Contexts) -> None:
    server = servers()
    api = Api(server.url)
    api.post("/api/workflows", {"document": DOC})
    for lines in ([1], [-1], [-2]):
        api.post("/api/workflows/orders/runs?wait=20", {"input": {"lines": lines}})
    page = contexts(server.url).page()
    page.goto("/loom/orders")
    page.get_by_role("button", name=re.compile("^Reserve, 3 runs, 2 failed")).click()
    listed = page.get_by_test_id("loom-runs")
    expect(listed.get_by_role("heading")).to_have_text("2 runs failed at Reserve")
    expect(listed.get_by_role("listitem")).to_have_count(2)
    expect(page.get_by_role("button", name=re.compile("^Start"))).to_have_count(1)  # only the bundle of threads


def test_a_brush_counts_the_runs_of_its_time(servers: Servers, contexts: Contexts) -> None:
    server = servers()
    api = Api(server.url)
    api.post("/api/workflows", {"document": DOC})
    for _ in range(4):
        api.post("/api/workflows/orders/runs?wait=20", {"input": {"lines": [-1]}})
    page = contexts(server.url).page()
    page.goto("/loom/orders")
    expect(page.get_by_text("The last 4 runs")).to_be_visible()
    page.get_by_role("slider", name="Runs until").press("Home")
    expect(page.locator(".loom__brushed")).to_contain_text("1 of 4")
    expect(page.locator('[data-block="line"]')).to_contain_text("1 run, 1 failed")
    page.get_by_role("button", name="Show all times").click()
    expect(page.locator('[data-block="line"]')).to_contain_text("4 runs, 4 failed")


def test_a_workflow_without_runs_says_so(servers: Servers, contexts: Contexts) -> None:
    server = servers()
    Api(server.url).post("/api/workflows", {"document": DOC})
    page = contexts(server.url).page()
    page.goto("/loom/orders")
    expect(page.get_by_text("No runs yet")).to_be_visible()


def test_switches_choose_the_time_and_one_run_or_all(servers: Servers, contexts: Contexts) -> None:
    server = servers()
    api = Api(server.url)
    api.post("/api/workflows", {"document": DOC})
    runs = [api.post("/api/workflows/orders/runs?wait=20", {"input": {"lines": [-1]}})["run"] for _ in range(2)]
    made = api.get(f"/api/runs/{runs[0]}")["created_at_ms"]
    page = contexts(server.url).page()
    page.goto("/loom/orders")
    time = page.get_by_role("group", name="Time")
    expect(page.locator(".loom__brushed")).to_have_text("The last 2 runs")
    time.get_by_role("button", name="24 h").click()
    expect(page.locator(".loom__brushed")).to_have_text("The last 24 hours, 2 runs")
    with page.expect_request(lambda request: "/loom?since=" in request.url) as asked:
        time.get_by_role("button", name="1 h", exact=True).press("Enter")
    assert 0 < made - int(asked.value.url.rpartition("since=")[2]) <= 3_600_000  # the runs were made before it
    expect(page.locator(".loom__brushed")).to_have_text("The last hour, 2 runs")
    expect(page).to_have_url(re.compile(r"time=1h"))
    shown = page.get_by_role("navigation", name="Runs shown")
    expect(shown.get_by_role("link", name="All runs")).to_have_attribute("aria-current", "page")
    time.get_by_role("button", name="1,000 runs").click()
    shown.get_by_role("link", name="One run").click()
    expect(page).to_have_url(re.compile(f"/runs/{runs[-1]}"))
    shown.get_by_role("link", name="All runs").click()
    expect(page.locator('[data-block="line"]')).to_contain_text("2 runs, 2 failed")


def test_in_a_small_window_it_begins_where_it_can_be_read(servers: Servers, contexts: Contexts) -> None:
    server = servers()
    api = Api(server.url)
    api.post("/api/workflows", {"document": DOC})
    api.post("/api/workflows/orders/runs?wait=20", {"input": {"lines": [1]}})
    page = contexts(server.url, viewport={"width": 390, "height": 844}).page()
    page.goto("/loom/orders")
    zoom = page.get_by_role("group", name="Zoom")
    expect(zoom).to_contain_text("50%")
    expect(page.locator('[data-block="start"]')).to_be_in_viewport()
    zoom.get_by_role("button", name="50%").click()  # all of it
    expect(zoom).not_to_contain_text("50%")

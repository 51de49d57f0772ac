"""The page of all runs: filter, views, times, and many runs at once."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from playwright.sync_api import Page, expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Api, document

ASKS = document(
    {"ask": {"type": "approval", "name": "Ask", "at": [272, 0], "params": {"title": "Go?"}}}, [("start", "ask")]
)
FAILS = document(
    {
        "reserve": {
            "type": "function",
            "name": "Reserve stock",
            "at": [272, 0],
            "params": {"code": "throw new Error('409 held by other')"},
        }
    },
    [("start", "reserve")],
)


def begin(servers: Servers, contexts: Contexts) -> tuple[Api, Page, list[str], list[str]]:
    """Two runs that wait, three that failed, and a page that shows them."""
    server = servers()
    api = Api(server.url)
    for name, doc in (("asks", ASKS), ("fails", FAILS)):
        api.post("/api/workflows", {"document": {**doc, "name": name}, "name": name})
    waiting = [api.post("/api/workflows/asks/runs?wait=10")["run"] for _ in range(2)]
    failed = [api.post("/api/workflows/fails/runs?wait=10")["run"] for _ in range(3)]
    page = contexts(server.url).page()
    page.goto("/runs")
    rows(page, 5)
    return api, page, waiting, failed


def rows(page: Page, count: int) -> None:
    expect(page.locator(".runs__row[data-status]")).to_have_count(count)


def test_words_become_tokens_and_narrow_the_list(servers: Servers, contexts: Contexts) -> None:
    _, page, _, failed = begin(servers, contexts)
    field = page.get_by_role("combobox", name="Filter runs")
    field.click()
    expect(page.get_by_role("option", name=re.compile("where it failed Reserve stock 3"))).to_be_visible()
    field.fill("held by")
    page.keyboard.press("Enter")
    rows(page, 3)
    expect(page.get_by_role("option")).to_have_count(0)  # nothing lies over what was found
    expect(page.locator(".runs mark").first).to_have_text("held by")
    expect(page.locator(".runs__what b").first).to_have_text("Reserve stock")
    field.fill("workflow asks")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No runs match")).to_be_visible()
    page.keyboard.press("Backspace")
    expect(field).to_have_value("held by")
    field.fill("")
    rows(page, 2)
    page.get_by_role("button", name="Clear the filter").click()
    field.fill(failed[0])
    page.keyboard.press("Enter")
    rows(page, 1)
    expect(page).to_have_url(re.compile(f"text={failed[0]}"))


def test_a_minus_leaves_out_and_names_choose_the_token(servers: Servers, contexts: Contexts) -> None:
    _, page, _, _ = begin(servers, contexts)
    field = page.get_by_role("combobox", name="Filter runs")
    field.fill("-status:waiting")
    expect(page.get_by_role("option").first).to_contain_text("not: status")
    page.keyboard.press("Enter")
    rows(page, 3)
    expect(page).to_have_url(re.compile("not_status=waiting"))
    expect(page.get_by_role("button", name="Remove: status is not Waiting")).to_be_visible()
    field.fill("-409 held")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No runs match")).to_be_visible()
    page.keyboard.press("Backspace")
    expect(field).to_have_value("-409 held")
    field.fill("status:done")
    expect(page.get_by_role("option").first).to_contain_text("Succeeded")
    page.goto("/runs?key=nothing")
    expect(page.get_by_text("No runs match")).to_be_visible()


def test_dates_are_typed(servers: Servers, contexts: Contexts) -> None:
    api, page, _, failed = begin(servers, contexts)
    page.get_by_role("button", name="Dates").press("Enter")
    dates = page.get_by_role("group", name="Dates")
    made = datetime.fromtimestamp(api.get(f"/api/runs/{failed[0]}")["created_at_ms"] / 1000, UTC)
    before, after = ((made + timedelta(days=n)).strftime("%Y-%m-%dT00:00") for n in (-1, 2))  # in any time zone
    dates.get_by_label("To").fill(before)
    expect(page.get_by_text("No runs match")).to_be_visible()
    dates.get_by_label("From").fill(before)
    dates.get_by_label("To").fill(after)
    rows(page, 5)
    expect(page).to_have_url(re.compile(r"since=\d+"))
    dates.get_by_role("button", name="Any time").press("Enter")
    expect(page).not_to_have_url(re.compile("since"))


def test_runs_of_one_person_and_of_one_step_are_seen(servers: Servers, contexts: Contexts) -> None:
    server = servers()
    api = Api(server.url)
    draft = api.draft({**FAILS, "name": "stock"})
    api.post(f"/api/drafts/{draft}/run?wait=10", {"step": {"block": "reserve"}})
    page = contexts(server.url).page()
    page.goto("/runs")
    row = page.locator(".runs__row[data-status]")
    expect(row).to_contain_text("Step Reserve stock of stock")
    expect(page.get_by_role("button", name="Mine")).to_have_count(0)  # a server without a token records no one


def test_a_view_is_kept_and_forgotten(servers: Servers, contexts: Contexts) -> None:
    _, page, _, _ = begin(servers, contexts)
    views = page.get_by_role("group", name="Views")
    expect(views.get_by_role("button", name="Failed today")).to_have_text("Failed today3")
    views.get_by_role("button", name="Waiting").click()
    rows(page, 2)
    page.goto("/runs?workflow=fails")
    rows(page, 3)
    views.get_by_role("button", name="Keep this view").click()
    page.get_by_label("Name of the view").fill("Shop")
    page.keyboard.press("Enter")
    views.get_by_role("button", name="All").click()
    rows(page, 5)
    page.reload()
    views.get_by_role("button", name="Shop", exact=True).click()
    rows(page, 3)
    views.get_by_role("button", name="Forget the view Shop").click()
    expect(views.get_by_role("button", name="Shop", exact=True)).to_have_count(0)


def test_a_brush_over_the_day_narrows_the_list(servers: Servers, contexts: Contexts) -> None:
    _, page, _, _ = begin(servers, contexts)
    bars = page.get_by_role("img", name=re.compile("5 runs from .* 3 failed"))
    box = bars.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 2, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, middle, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"since=\d+&until=\d+"))
    expect(page.get_by_text("No runs match")).to_be_visible()
    page.get_by_role("button", name="Show the whole day").click()
    rows(page, 5)


def test_many_runs_are_cancelled_and_started_again(servers: Servers, contexts: Contexts) -> None:
    api, page, waiting, failed = begin(servers, contexts)
    for run in (*waiting, failed[0]):
        page.get_by_test_id(f"run-{run}").get_by_role("checkbox").check()
    bar = page.get_by_role("toolbar", name="Chosen runs")
    expect(bar).to_contain_text("3 of 5 chosen")
    bar.get_by_role("button", name="Cancel (2)").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel 2 runs").click()
    for run in waiting:
        assert api.until(run, "cancelled") == "cancelled"
        expect(page.get_by_test_id(f"run-{run}")).to_have_attribute("data-status", "cancelled")
    expect(bar).to_have_count(0)
    page.goto("/runs?status=failed")
    rows(page, 3)
    page.get_by_role("checkbox", name="Choose all").check()
    none = bar.get_by_role("button", name="Cancel, none is open")
    expect(none).to_have_attribute("aria-disabled", "true")
    bar.get_by_role("button", name="Run again").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_test_id("repeated")).to_contain_text("Reserve stockruns in 3 of 3")
    assert len(api.get("/api/runs", workflow="fails")["runs"]) == 3, "what is listed has not started"
    dialog.get_by_role("button", name="Run 3 again").click()
    rows(page, 6)
    assert len(api.get("/api/runs", workflow="fails")["runs"]) == 6


def test_two_chosen_runs_are_compared(servers: Servers, contexts: Contexts) -> None:
    _, page, waiting, failed = begin(servers, contexts)
    bar = page.get_by_role("toolbar", name="Chosen runs")
    for run in (waiting[0], failed[0]):
        page.get_by_test_id(f"run-{run}").get_by_role("checkbox").check()
    expect(bar).to_contain_text("2 of 5 chosen")
    expect(bar.get_by_role("button", name="Compare")).to_have_count(0)  # they are of two workflows
    page.get_by_test_id(f"run-{waiting[0]}").get_by_role("checkbox").uncheck()
    page.get_by_test_id(f"run-{failed[2]}").get_by_role("checkbox").check()
    bar.get_by_role("button", name="Compare").click()
    expect(page).to_have_url(re.compile(f"/runs/{failed[2]}\\?with={failed[0]}"))
    expect(page.get_by_text("Two futures")).to_be_visible()

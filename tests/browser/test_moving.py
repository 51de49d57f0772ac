"""What is on the page while things move behind it: answers that come late, get lost, or belong to what was left."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Contexts, Servers, Watched
from tests.browser.editor import Editor, document

LISTS = re.compile(r"/api/runs\?")
WAITS = re.compile(r"/api/waits")
QUICK = document({"done": {"type": "set", "at": [288, 0], "params": {"value": 1}}}, [("start", "done")])
ASKS = document(
    {"ask": {"type": "approval", "at": [288, 0], "params": {"title": "Pay it?", "actions": ["approve", "reject"]}}},
    [("start", "ask")],
)
pytestmark = pytest.mark.proof
ROUND_MS = 5000  # how often lists are asked for


def test_answers_that_take_longer_than_a_round_are_shown(alone: Editor) -> None:
    editor, page = alone, alone.page
    run = editor.api.run(QUICK, wait_s=30)
    page.clock.install()
    held: list[Route] = []
    page.route(LISTS, hold(held))
    with page.expect_request(LISTS):
        page.goto("/runs")
    page.clock.run_for(2 * ROUND_MS)
    held[0].continue_()
    expect(editor.at(f"run-{run}")).to_be_visible()


def test_rows_far_down_change_too(contexts: Contexts, servers: Servers) -> None:
    url = servers().url  # of its own: the first row is known to be on the second page
    editor = Editor(contexts(url).page(), url)
    run = editor.api.run(ASKS, wait_s=30)
    for _ in range(50):
        editor.api.run(QUICK)
    editor.page.clock.install()
    editor.page.goto("/runs")
    expect(editor.page.get_by_role("row")).to_have_count(51)
    editor.page.get_by_role("button", name="Older runs").click()
    row = editor.at(f"run-{run}")
    expect(row).to_have_attribute("data-status", "waiting")
    editor.api.post(f"/api/resume/{token(editor, run)}", {"action": "approve"})
    editor.api.until(run, "succeeded")
    editor.page.clock.run_for(2 * ROUND_MS)
    expect(row).to_have_attribute("data-status", "succeeded")


def test_a_run_is_one_row_and_an_ended_one_needs_no_answer(editor: Editor, page: Page) -> None:
    """Lists and waits are several questions, and runs go on between them."""
    ended, waiting = editor.api.run(QUICK, wait_s=30), editor.api.run(ASKS, wait_s=30)
    (wait,) = editor.api.waits(waiting)
    lost = [{**wait, "kind": "attention"}, {**wait, "kind": "attention", "run": ended}]
    page.route(WAITS, lambda route: route.fulfill(json={"waits": lost, "counts": None, "capped": []}))
    both = editor.api.get("/api/runs", status="waiting")
    page.route(re.compile(r"/api/runs\?.*status=(waiting|running)"), lambda route: route.fulfill(json=both))
    page.goto("/runs?status=attention")
    expect(editor.at(f"run-{waiting}")).to_have_count(1)
    expect(editor.at(f"run-{waiting}")).to_contain_text("Needs attention")
    page.goto("/runs?status=succeeded")
    expect(editor.at(f"run-{ended}")).to_contain_text("Succeeded")
    expect(editor.at(f"run-{ended}")).not_to_contain_text("Needs attention")


def test_an_answer_sent_again_after_a_lost_response_is_the_same_answer(
    editor: Editor, page: Page, watched: Watched
) -> None:
    watched.allow("ERR_FAILED|409")
    run = editor.api.run(ASKS, wait_s=30)
    sent: list[Route] = []

    def lose_first(route: Route) -> None:
        answer = route.fetch()
        sent.append(route)
        if len(sent) == 1:
            route.abort()
        else:
            route.fulfill(response=answer)

    page.route("**/api/runs/*/waits/*", lose_first)
    page.route(WAITS, lambda route: route.abort() if sent else route.continue_())  # the page knows no more than it did
    card = open_card(editor, page, run)
    card.get_by_role("button", name="Approve").click()
    expect(card.get_by_role("alert")).to_contain_text("cannot be reached")
    card.get_by_role("button", name="Approve").click()
    expect(card).to_have_attribute("data-status", "answered")
    expect(card).not_to_contain_text("Recorded answer")
    assert len(sent) == 2


def test_an_answer_to_a_withdrawn_question_names_no_earlier_answer(
    editor: Editor, page: Page, watched: Watched
) -> None:
    watched.allow("ERR_FAILED|409")
    run = editor.api.run(ASKS, wait_s=30)
    card = open_card(editor, page, run)
    page.route(WAITS, lambda route: route.abort())
    editor.api.post(f"/api/runs/{run}/cancel")
    editor.api.until(run, "cancelled")
    card.get_by_role("button", name="Approve").click()
    expect(card).to_have_attribute("data-status", "cancelled")
    expect(card).to_contain_text("This question is closed")
    expect(card).not_to_contain_text("already answered")


def test_what_ended_while_the_tab_was_hidden_is_not_announced(editor: Editor, page: Page) -> None:
    editor.api.post("/api/workflows", {"document": {**ASKS, "name": "asked-below"}})
    calls = {"type": "run_workflow", "at": [288, 0], "params": {"workflow": "asked-below"}}
    run = editor.api.run(document({"call": calls}, [("start", "call")]), wait_s=30)
    editor.open_run(run)
    note = page.locator("[data-testid^=childwait-]")
    expect(note).to_have_count(1)
    (child,) = editor.api.get(f"/api/runs/{run}")["children"]
    hide(page, True)
    editor.api.post(f"/api/resume/{token(editor, child['run'])}", {"action": "approve"})
    expect(editor.at("connection")).to_have_attribute("data-mode", "ended")
    hide(page, False)
    expect(note).to_have_count(0)


def test_values_that_could_not_be_had_are_asked_for_again(editor: Editor, page: Page, watched: Watched) -> None:
    watched.allow("ERR_FAILED")
    run = editor.api.run(QUICK, wait_s=30)
    asked: list[Route] = []

    def lose_first(route: Route) -> None:
        asked.append(route)
        if len(asked) == 1:
            route.abort()
        else:
            route.continue_()

    page.route("**/nodes/**", lose_first)
    editor.open_run(run)
    editor.select("done")
    editor.at("tab-input").click()
    expect(page.get_by_text("Resolved input")).to_be_visible()
    assert len(asked) == 2


def test_a_version_that_comes_late_is_not_used_by_another_draft(editor: Editor, page: Page) -> None:
    other = editor.api.draft({**QUICK, "name": "another"})
    first = editor.api.draft({**ASKS, "name": "late"})
    editor.api.post("/api/workflows", {"document": {**ASKS, "name": "late"}})
    page.goto(f"/w/{first}")
    editor.is_ready("ask")
    press_save(editor)
    held: list[Route] = []
    page.route("**/api/workflows/late?version=1", hold(held))
    editor.at("versions").click()
    with page.expect_request("**/api/workflows/late?version=1"):
        page.get_by_role("menuitem", name="Put version 1").click()
    page.evaluate("to => (history.pushState(null, '', to), dispatchEvent(new Event('weft:navigate')))", f"/w/{other}")
    editor.is_ready("done")
    with page.expect_response("**/api/workflows/late?version=1") as answer:
        held[0].continue_()
    answer.value.finished()
    page.evaluate("() => new Promise((done) => setTimeout(done, 100))")
    assert set(editor.doc()["blocks"]) == {"start", "done"}


def test_a_button_that_makes_a_draft_pressed_twice_makes_one(editor: Editor, page: Page) -> None:
    before = {draft["id"] for draft in editor.api.get("/api/drafts")["drafts"]}
    page.goto("/")
    page.get_by_role("banner").get_by_role("button", name="New workflow").dblclick()
    editor.is_ready("start")
    made = [draft["id"] for draft in editor.api.get("/api/drafts")["drafts"] if draft["id"] not in before]
    assert len(made) == 1


def test_a_clock_that_is_hours_ahead_makes_nothing_older(alone: Editor) -> None:
    editor, page = alone, alone.page
    run = editor.api.run(ASKS, wait_s=30)
    page.clock.install(time=datetime.now() + timedelta(hours=3))
    page.goto("/runs")
    expect(editor.at(f"run-{run}")).to_be_visible()
    expect(editor.at(f"run-{run}")).not_to_contain_text("h ago")
    editor.open_run(run)
    expect(editor.at("duration")).to_be_visible()
    expect(editor.at("duration")).not_to_have_text(re.compile(r"\d h"))


def hold(held: list[Route]) -> Callable[[Route], None]:
    """Requests get no answer until the test says so."""

    def take(route: Route) -> None:
        held.append(route)

    return take


def token(editor: Editor, run: str) -> str:
    (wait,) = editor.api.waits(run)
    return str(wait["link"]).rpartition("/")[2]


def open_card(editor: Editor, page: Page, run: str) -> Any:
    """The card of a run's question in the inbox, opened by its address."""
    (wait,) = editor.api.waits(run)
    page.goto(f"/approvals?wait={run} {wait['id']}")
    card = page.locator(f".waits__card:has(a[href^='/runs/{run}'])")  # other tests may have left questions open
    expect(card.get_by_role("button", name="Approve")).to_be_visible()
    return card


def press_save(editor: Editor) -> None:
    """Publish a version, so that the draft knows which there are."""
    editor.at("versions").click()
    editor.page.get_by_role("menuitem", name="Publish version").click()
    editor.at("save-version").click()
    expect(editor.at("versions")).to_contain_text("v1")


def hide(page: Page, hidden: bool) -> None:
    page.evaluate(
        """hidden => {
          Object.defineProperty(document, 'hidden', { value: hidden, configurable: true })
          document.dispatchEvent(new Event('visibilitychange'))
        }""",
        hidden,
    )

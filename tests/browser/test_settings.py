"""Schedules and webhooks that are made in the settings, and a run that is asked for twice."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Contexts, Watched
from tests.browser.editor import Editor, document
from tests.support.server import SyncServerProcess

REFUSED = r"status of 422"
INPUT = {"type": "object", "required": ["amount"], "properties": {"amount": {"type": "integer"}}}

WITH_WEBHOOK = {
    "format": "weft/1",
    "name": "hooked",
    "blocks": {"in": {"type": "webhook"}, "done": {"type": "set", "params": {"value": 1}}},
    "edges": [{"source": "in", "target": "done"}],
}


def stored(editor: Editor, name: str, **more: Any) -> None:
    blocks = {"done": {"type": "set", "name": "Done", "params": {"value": 1}}}
    doc = {**document(blocks, [("start", "done")], **more), "name": name}
    editor.api.post("/api/workflows", {"document": doc, "name": name})


def row(page: Page, id: str) -> Locator:
    return page.get_by_test_id(f"trigger-{id}")


def test_a_schedule_is_made_changed_and_deleted(editor: Editor, page: Page, watched: Watched) -> None:
    """What the server refuses stands at the field it is about, and nothing is made."""
    watched.allow(REFUSED)
    stored(editor, "nightly", input=INPUT)
    page.goto("/settings?page=schedules")
    page.get_by_role("button", name="New schedule").click()
    form = editor.at("schedule-form")
    send = editor.at("schedule-form-send")
    send.click()
    expect(page.get_by_text("Choose a workflow").first).to_be_visible()
    editor.at("trigger-workflow").select_option("nightly")
    editor.at("schedule-tz").fill("Europe/Berlin")
    editor.at("schedule-cron-kind").select_option("custom")
    editor.at("schedule-cron").fill("0 25 * * *")
    expect(editor.at("schedule-next")).to_contain_text("cannot be read")
    editor.at("schedule-cron").fill("30 2 * * *")
    expect(editor.at("schedule-next")).to_contain_text("At 02:30 (Europe/Berlin)")
    expect(editor.at("schedule-next").locator("li")).to_have_count(3)
    send.click()
    expect(form).to_contain_text("'amount' is a required property")
    expect(editor.at("schedule-input")).to_have_attribute("aria-invalid", "true")
    editor.at("schedule-input").fill('{"amount": 7}')
    send.click()
    expect(form).to_have_count(0)
    expect(row(page, "nightly")).to_contain_text("At 02:30")
    made = editor.api.get("/api/schedules/nightly")
    assert (made["input"], made["tz"], made["origin"], made["version"]) == ({"amount": 7}, "Europe/Berlin", "api", None)

    page.get_by_role("button", name="Edit nightly").click()
    expect(editor.at("schedule-cron-kind")).to_have_value("daily")
    expect(editor.at("schedule-cron-time")).to_have_value("02:30")
    editor.at("schedule-cron-time").fill("04:00")
    editor.at("schedule-form-send").click()
    expect(row(page, "nightly")).to_contain_text("At 04:00")
    assert editor.api.get("/api/schedules/nightly")["input"] == {"amount": 7}

    page.get_by_role("button", name="New schedule").click()
    editor.at("trigger-workflow").select_option("nightly")
    expect(editor.at("schedule-id")).to_have_value("nightly-2")
    page.get_by_role("button", name="Cancel").click()

    page.get_by_role("button", name="Delete nightly").click()
    editor.at("trigger-delete").click()
    expect(row(page, "nightly")).to_have_count(0)
    assert "nightly" not in [each["id"] for each in editor.api.get("/api/schedules")["schedules"]]


def test_a_webhook_is_made_and_deleted(editor: Editor, page: Page) -> None:
    stored(editor, "incoming")
    page.goto("/settings?page=webhooks")
    page.get_by_role("button", name="New webhook").click()
    editor.at("trigger-workflow").select_option("incoming")
    page.get_by_label("Authentication").select_option("token")
    page.get_by_label("Respond").select_option("run")
    editor.at("field-timeout_s").fill("2")
    editor.at("unit-timeout_s").select_option(label="minutes")
    editor.at("webhook-form-send").click()
    expect(page.get_by_text("Enter a time of up to 60 seconds.").first).to_be_visible()
    editor.at("unit-timeout_s").select_option(label="seconds")
    editor.at("field-timeout_s").fill("5")
    editor.at("webhook-form-send").click()
    expect(row(page, "incoming")).to_contain_text("/hooks/incoming")
    made = editor.api.get("/api/webhooks/incoming")
    assert (made["auth"], made["respond"], made["timeout_s"]) == ("token", "run", 5)
    page.get_by_role("button", name="Details of incoming").click()
    page.get_by_role("button", name="Show", exact=True).click()
    expect(editor.at("secret")).to_have_text(made["secret"])
    page.get_by_role("button", name="Delete incoming").click()
    editor.at("trigger-delete").click()
    expect(row(page, "incoming")).to_have_count(0)


def test_run_again_sent_twice_is_one_run(editor: Editor, page: Page, watched: Watched) -> None:
    """The answer to the first request is lost: pressing the button again gets the run that it made."""
    watched.allow(r"ERR_FAILED")
    run = editor.api.run(document({"done": {"type": "set", "params": {"value": 1}}}, [("start", "done")]), wait_s=30)
    keys: list[str] = []

    def lose_first(route: Any) -> None:
        keys.append(route.request.headers["idempotency-key"])
        answer = route.fetch()
        if len(keys) == 1:
            route.abort()
        else:
            route.fulfill(response=answer)

    page.route("**/rerun", lambda route: lose_first(route) if route.request.method == "POST" else route.continue_())
    editor.open_run(run)
    page.get_by_role("button", name="Run again").click()
    go = page.get_by_role("button", name="Run", exact=True)
    go.click()
    expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
    before = editor.api.get("/api/runs", limit=1)["runs"][0]["id"]
    assert before != run
    go.click()
    page.wait_for_url(f"**/runs/{before}**")
    assert len(keys) == 2 and keys[0] == keys[1]
    assert editor.api.get("/api/runs", limit=1)["runs"][0]["id"] == before


def test_settings_are_pages_with_a_list_that_is_searched(editor: Editor, page: Page) -> None:
    stored(editor, "listed")
    editor.api.post("/api/workflows", {"document": WITH_WEBHOOK, "name": "hooked"})
    page.goto("/settings")
    side = page.get_by_role("navigation", name="Settings")
    expect(side.get_by_role("link", name=re.compile(r"^Webhooks [1-9]"))).to_be_visible()
    side.get_by_label("Find a setting").fill("openapi")
    expect(side.get_by_role("link")).to_have_text(["Connectors", "About"])
    side.get_by_role("link", name="About").click()
    expect(page.get_by_test_id("weft-version")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/settings\?page=about"))
    expect(side.get_by_role("link", name="About")).to_have_attribute("aria-current", "page")
    page.goto("/settings#webhooks")  # as the inspector links to it
    expect(row(page, "hooked:in")).to_be_visible()


def test_on_a_phone_the_list_of_settings_is_a_page(contexts: Contexts, server: SyncServerProcess) -> None:
    page = contexts(server.url, viewport={"width": 390, "height": 844}).page()
    page.goto("/settings")
    link = page.get_by_role("link", name="About")
    expect(link).to_be_visible()
    expect(page.locator(".sets__page")).to_be_hidden()
    link.click()
    expect(page.get_by_test_id("weft-version")).to_be_visible()
    expect(link).to_be_hidden()
    page.get_by_role("main").get_by_role("link", name="Settings", exact=True).click()
    expect(link).to_be_visible()

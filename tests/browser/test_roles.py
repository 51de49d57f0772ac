"""In a browser: people are offered what their role permits, and nothing that the server would refuse."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.test_sign_in import sign_in, start
from tests.support.documents import document

ASKS: dict[str, Any] = {"type": "approval", "params": {"title": "Pay?"}}


class Admin:
    """What there is for people to look at, made with the server's token."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._bearer = {"Authorization": f"Bearer {token}"}

    def does(self, method: str, path: str, **body: Any) -> Any:
        answer = httpx.request(
            method, f"{self._url}{path}", json=body, headers=self._bearer, trust_env=False, timeout=60
        )
        return answer.raise_for_status().json()

    def prepare(self) -> tuple[str, str]:
        """A workflow with a schedule and a webhook, a draft, and a run that waits. The ids of the draft and the run."""
        doc = document("pay", "start ask", blocks={"start": {"type": "start"}, "ask": ASKS})
        self.does("POST", "/api/workflows", document=doc)
        self.does("PUT", "/api/schedules/daily", workflow="pay", cron="0 6 * * *", tz="UTC")
        self.does("PUT", "/api/webhooks/order", workflow="pay", auth="token")
        draft = self.does("POST", "/api/drafts", document=doc, name="pay")["id"]
        return draft, self.does("POST", "/api/runs", document=doc)["run"]


def disabled(button: Locator) -> None:
    expect(button).to_have_attribute("aria-disabled", "true")
    expect(button).to_have_attribute("title", re.compile("^Your role is (viewer|approver|editor). This needs the role"))


@pytest.mark.parametrize("role", ["viewer", "approver"])
def test_who_may_not_edit_is_not_offered_to(servers: Servers, contexts: Contexts, role: str) -> None:
    server, watched, page, token = start(servers, contexts)
    admin = Admin(server.url, token)
    draft, run = admin.prepare()
    sign_in(page, admin.does("POST", "/api/users", id="ada", role=role)["url"])

    row = page.get_by_test_id("card-pay").filter(has_not_text="Draft")
    row.get_by_role("button", name="More for pay").click()
    for name in ("Make a copy", "Delete"):
        disabled(page.get_by_role("menuitem", name=name))
    page.keyboard.press("Escape")

    settings(page)
    for name in ("Connections", "Secrets", "Environment", "People and tokens", "Audit"):
        expect(side(page).get_by_role("link", name=name)).to_have_count(0)
    none_of(page, "connectors", "Import OpenAPI")
    none_of(page, "schedules", "New schedule", "Run now", "Edit daily", "Delete daily")
    disabled(page.get_by_test_id("trigger-daily").get_by_role("switch"))
    none_of(page, "webhooks", "New webhook")
    webhook = page.get_by_test_id("trigger-order")
    disabled(webhook.get_by_role("switch"))
    secret_is_closed(page, webhook)

    page.goto(f"/w/{draft}")
    expect(page.get_by_text("Changing or running this workflow needs the role editor.")).to_be_visible()
    for button in ("run", "publish"):
        disabled(page.get_by_test_id(button))
    page.get_by_test_id("versions").click()
    disabled(page.get_by_role("menuitem", name="Publish version"))
    page.keyboard.press("Escape")
    page.locator(".card").last.click()
    expect(page.get_by_test_id("field-title")).to_be_visible()  # names of the environment are not asked for
    page.keyboard.press("Delete")
    expect(page.locator(".card")).to_have_count(2)

    page.goto(f"/runs/{run}")
    note = page.get_by_test_id("runwait-ask")
    expect(note).to_be_visible()
    for button in ("cancel", "rerun"):
        disabled(page.get_by_test_id(button))
    disabled(page.get_by_role("button", name=re.compile("^Edit")))
    page.get_by_test_id("run-more").click()
    disabled(page.get_by_role("menuitem", name=re.compile("^Fork")))
    page.keyboard.press("Escape")
    answer = note.get_by_role("button", name="Answer")
    if role == "viewer":
        expect(answer).to_have_count(0)
        page.goto("/approvals")
        expect(page.get_by_text("Your role is viewer. This needs the role approver.")).to_be_visible()
        assert admin.does("GET", f"/api/runs/{run}")["status"] == "waiting"
    else:
        answer.click()
        page.get_by_role("button", name="Approve", exact=True).click()
        expect(page.locator(".runhead")).to_have_attribute("data-status", "succeeded")
    watched.check()  # nothing was tried that the server refused


def test_an_editor_is_offered_all_but_what_admins_do(servers: Servers, contexts: Contexts) -> None:
    server, _, page, token = start(servers, contexts)
    admin = Admin(server.url, token)
    draft, run = admin.prepare()
    sign_in(page, admin.does("POST", "/api/users", id="ada", role="editor")["url"])
    settings(page)
    for name in ("Secrets", "People and tokens", "Audit"):
        expect(side(page).get_by_role("link", name=name)).to_have_count(0)
    none_of(page, "connections", "New connection")
    none_of(page, "connectors", "Import OpenAPI")
    none_of(page, "schedules")
    for name in ("New schedule", "Run now", "Edit daily", "Delete daily"):
        expect(page.get_by_role("button", name=name)).to_be_enabled()
    none_of(page, "environment")
    none_of(page, "webhooks", "New webhook", "Edit order", "Delete order")
    webhook = page.get_by_test_id("trigger-order")
    webhook.get_by_role("switch").click()
    expect(webhook).to_have_attribute("data-enabled", "false")
    secret_is_closed(page, webhook)

    page.goto(f"/w/{draft}")
    expect(page.get_by_test_id("run")).not_to_have_attribute("aria-disabled", "true")
    page.goto(f"/runs/{run}")
    page.get_by_test_id("cancel").click()
    expect(page.locator(".runhead")).to_have_attribute("data-status", "cancelled")


def settings(page: Page) -> None:
    page.goto("/settings?page=session")
    expect(page.get_by_text("You are ada")).to_be_visible()


def side(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Settings")


HEADINGS = {
    "connections": "Connections",
    "connectors": "Connectors",
    "schedules": "Schedules",
    "environment": "Environment",
    "webhooks": "Webhooks",
}


def none_of(page: Page, one: str, *buttons: str) -> None:
    """A page of the settings, as it is once loaded, has no such button."""
    page.goto(f"/settings?page={one}")
    expect(page.get_by_role("heading", name=HEADINGS[one])).to_be_visible()
    if one in ("schedules", "webhooks"):
        expect(page.get_by_test_id("trigger-daily" if one == "schedules" else "trigger-order")).to_be_visible()
    for name in buttons:
        expect(page.get_by_role("button", name=name)).to_have_count(0)


def secret_is_closed(page: Page, webhook: Locator) -> None:
    """To all but admins, with what came in."""
    webhook.get_by_role("button", name="Details of order").click()
    access = page.get_by_test_id("access-order")
    for name in ("Show", "Copy secret", "Replace"):
        disabled(access.get_by_role("button", name=name))
    expect(page.get_by_test_id("deliveries")).to_have_count(0)

"""In a browser: an admin invites a user, who signs in by the link and may do what their role says."""

from __future__ import annotations

import re

import httpx
from playwright.sync_api import Route, expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.test_sign_in import REFUSED, sign_in, start


def test_an_admin_invites_a_user_and_makes_a_token(servers: Servers, contexts: Contexts) -> None:
    server, _, page, _ = start(servers, contexts)
    sign_in(page, server.sign_in_link())
    page.goto("/settings?page=people")
    people = page.get_by_test_id("people")
    people.get_by_label("User", exact=True).fill("ada")
    people.get_by_role("button", name="Invite").click()
    made = people.get_by_test_id("made")
    expect(made).to_contain_text("/sign-in#")
    link = made.inner_text()
    people.get_by_label("Role of ada").select_option("viewer")

    second = contexts(server.url)
    second.allow(REFUSED)
    ada = second.page()
    sign_in(ada, link)
    ada.goto("/settings?page=session")
    expect(ada.get_by_text("You are ada, viewer.")).to_be_visible()
    expect(ada.get_by_role("link", name="People and tokens")).to_have_count(0)

    asked: list[Route] = []

    def hold(route: Route) -> None:
        asked.append(route)

    ada.route("**/api/me", hold)
    ada.goto("/")
    expect(ada.get_by_role("button", name=re.compile("^Open a copy")).first).to_be_visible()
    for route in asked:  # known late: nothing was started for her meanwhile
        route.continue_()
    ada.unroute("**/api/me")
    refused = ada.get_by_role("button", name=re.compile("^New workflow|^Import|^Open a copy|^Run it"))
    expect(refused.first).to_have_attribute("title", "Your role is viewer. This needs the role editor.")
    for button in refused.all():
        expect(button).to_have_attribute("aria-disabled", "true")

    people.get_by_label("Program", exact=True).fill("ci")
    people.get_by_role("button", name="Create token").click()
    expect(made).to_have_text(re.compile("^weft_[a-z2-7]{8}_[0-9a-f]{48}$"))
    people.get_by_role("button", name="Revoke").click()
    expect(people.get_by_role("button", name="Revoke")).to_have_count(0)
    people.get_by_role("row", name="ada").get_by_role("button", name="Remove").click()
    expect(people.get_by_role("row", name="ada")).to_have_count(0)  # the server has removed her
    ada.reload()
    expect(ada.get_by_role("heading", name="Sign in")).to_be_visible()


def test_an_answer_has_the_name_of_the_user(servers: Servers, contexts: Contexts) -> None:
    server, _, page, token = start(servers, contexts)
    sign_in(page, server.sign_in_link())
    blocks = {"start": {"type": "start"}, "ask": {"type": "approval", "params": {"title": "Pay?"}}}
    document = {"format": "weft/1", "name": "pay", "blocks": blocks, "edges": [{"source": "start", "target": "ask"}]}
    bearer = {"Authorization": f"Bearer {token}"}
    httpx.post(
        f"{server.url}/api/runs", json={"document": document}, headers=bearer, trust_env=False
    ).raise_for_status()
    page.goto("/approvals")
    expect(page.get_by_label("Your name")).to_have_value("Admin")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("by Admin").first).to_be_visible()


def test_an_admin_looks_at_the_audit_and_ends_a_session(servers: Servers, contexts: Contexts) -> None:
    server, _, page, token = start(servers, contexts)
    sign_in(page, server.sign_in_link())
    second = contexts(server.url)
    second.allow(REFUSED)
    other = second.page()
    bearer = {"Authorization": f"Bearer {token}"}
    made = httpx.post(f"{server.url}/api/sign-in-links", headers=bearer, trust_env=False)
    sign_in(other, made.json()["url"])
    page.goto("/settings?page=session")
    sessions = page.get_by_role("table", name="Sessions")
    expect(sessions.get_by_role("row", name="Chrome")).to_have_count(2)
    mine = sessions.get_by_role("row", name="this one")
    expect(mine).to_have_count(1)
    sessions.get_by_role("row").filter(has_not_text="this one").get_by_role("button", name="End").click()
    expect(sessions.get_by_role("row", name="Chrome")).to_have_count(1)
    other.reload()
    expect(other.get_by_role("heading", name="Sign in")).to_be_visible()

    for number in range(60):
        body = {"name": f"ci {number}", "role": "viewer"}
        httpx.post(f"{server.url}/api/tokens", json=body, headers=bearer, trust_env=False).raise_for_status()
    page.goto("/settings?page=audit")
    audit = page.get_by_test_id("audit")
    rows = audit.get_by_role("table", name="Audit").get_by_role("row")
    expect(rows).to_have_count(51)
    audit.get_by_role("button", name="Show older").click()
    expect(audit.get_by_role("button", name="Show older")).to_have_count(0)
    audit.get_by_label("Action").fill("/api/sessions/")
    audit.get_by_label("Time").select_option("1")
    audit.get_by_role("button", name="Filter").click()
    expect(rows).to_have_count(2)
    expect(rows.last).to_contain_text("user:admin")
    audit.get_by_label("Person or token").fill("user:eve")
    audit.get_by_role("button", name="Filter").click()
    expect(audit.get_by_text("No row matches")).to_be_visible()
    audit.get_by_role("button", name="Check all rows").click()
    expect(audit.get_by_text("rows, as they were written")).to_be_visible()

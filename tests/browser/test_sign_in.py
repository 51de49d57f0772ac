"""In a browser, from the link that `weft serve` prints to signing out, on a server started without settings."""

from __future__ import annotations

import re

import httpx
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Contexts, Servers, Watched
from tests.support.server import SyncServerProcess

REFUSED = r"status of 401|status of 409"
COPY = re.compile("^Open a copy of ")
USED = re.compile("already been used, or is more than 10 minutes old")


def start(servers: Servers, contexts: Contexts) -> tuple[SyncServerProcess, Watched, Page, str]:
    """The fourth value is the server's token."""
    server = servers(WEFT_TOKEN="")
    watched = contexts(server.url)
    watched.allow(REFUSED)
    token = (server.folder / "weft.token").read_text().strip()
    return server, watched, watched.page(), token


def sign_in(page: Page, link: str) -> None:
    """Until the front page is there."""
    page.goto(link)
    expect(page.get_by_role("button", name=COPY).first).to_be_visible()


def test_b09_the_printed_link_signs_in_and_everything_works(servers: Servers, contexts: Contexts) -> None:
    server, _, page, token = start(servers, contexts)
    page.goto("/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.locator("main")).to_contain_text("weft serve")
    expect(page.locator("main")).to_contain_text("weft token")

    link = server.sign_in_link()
    assert link.startswith(f"{server.url}/sign-in#") and token not in link
    sign_in(page, link)
    assert "#" not in page.url, "the code is not kept in the address"
    cookie = next(cookie for cookie in page.context.cookies() if cookie["name"].startswith("weft_"))
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict" and cookie["value"] not in (token, "")
    page.get_by_role("button", name=re.compile("^Run it: ")).first.click()
    page.wait_for_url("**/runs/*")
    expect(page.locator(".card").first).to_be_visible()

    second = contexts(server.url)
    second.allow(REFUSED)
    again = second.page()
    again.goto(link)
    expect(again.get_by_role("alert")).to_contain_text(USED)
    again.get_by_label("Token").fill(token)
    again.get_by_role("button", name="Sign in").click()
    expect(again.get_by_role("button", name=COPY).first).to_be_visible()


def test_b10_signing_out_in_the_settings(servers: Servers, contexts: Contexts) -> None:
    server, _, page, _ = start(servers, contexts)
    sign_in(page, server.sign_in_link())
    page.goto("/settings?page=session")
    page.get_by_role("button", name="Sign out", exact=True).click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert not [cookie for cookie in page.context.cookies() if cookie["name"].startswith("weft_")]
    page.goto("/runs")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_b10_a_session_that_ends_under_an_open_draft_loses_nothing(servers: Servers, contexts: Contexts) -> None:
    server, _, page, token = start(servers, contexts)
    sign_in(page, server.sign_in_link())
    page.get_by_role("button", name=COPY).first.click()
    expect(page.get_by_test_id("canvas")).to_be_visible()
    draft = page.url.split("/w/")[1].split("?")[0]

    bearer = {"authorization": f"Bearer {token}"}
    ended: list[int] = []

    def end_sessions(route: Route) -> None:
        """The edit is on its way to a server that has ended the session meanwhile."""
        if route.request.method == "PUT" and not ended:
            ended.append(httpx.delete(f"{server.url}/api/sessions", headers=bearer, timeout=90).json()["ended"])
        route.continue_()

    page.route("**/api/drafts/*", end_sessions)
    page.get_by_test_id("canvas").click(position={"x": 5, "y": 5})
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    dialog = page.get_by_test_id("sign-in")
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text("You are signed out")
    dialog.get_by_label("Token").fill("not the token")
    dialog.get_by_role("button", name="Sign in").click()
    expect(dialog.get_by_role("alert")).to_contain_text("The token is not valid")
    dialog.get_by_label("Token").fill(token)
    with page.expect_navigation():
        dialog.get_by_role("button", name="Sign in").click()
    assert ended == [1]
    expect(page.get_by_test_id("canvas")).to_be_visible()
    stored = httpx.get(f"{server.url}/api/drafts/{draft}", headers=bearer, timeout=90).json()["document"]
    assert len(stored["blocks"]) <= 1, "the edit was saved before the page was loaded again"

"""In a browser: a new connection begins with a well-known provider."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.test_sign_in import sign_in, start


def test_a_provider_fills_in_the_form(servers: Servers, contexts: Contexts) -> None:
    server, _, page, _ = start(servers, contexts)
    sign_in(page, server.sign_in_link())
    page.goto("/settings?page=connections")
    section = page.get_by_test_id("connections")
    section.get_by_role("button", name="New connection").click()
    form = page.get_by_test_id("connection-form")
    form.get_by_test_id("connection-provider").select_option(label="Google")
    expect(form.get_by_test_id("connection-id")).to_have_value("google")
    expect(form.get_by_test_id("connection-parameters")).to_have_value("access_type=offline\nprompt=consent")
    form.get_by_test_id("connection-provider").select_option(label="Notion")
    expect(form.get_by_test_id("connection-id")).to_have_value("notion")
    expect(form.get_by_test_id("connection-hosts")).to_have_value("api.notion.com")
    expect(form.get_by_test_id("connection-client_auth")).to_have_value("header")
    expect(form.get_by_test_id("connection-pkce")).to_have_value("no")
    expect(form.get_by_test_id("connection-scopes")).to_have_value("")
    docs = form.get_by_role("link", name="How to register a client at Notion")
    expect(docs).to_have_attribute("rel", "noreferrer")
    form.get_by_test_id("connection-client_id").fill("1234")
    page.get_by_test_id("connection-form-send").click()
    expect(page.get_by_text("Enter: Client secret.").first).to_be_visible()  # there is no PKCE in its place
    form.get_by_test_id("connection-secret").fill("the secret of the client")
    page.get_by_test_id("connection-form-send").click()
    row = section.get_by_test_id("connection-notion")
    expect(row).to_contain_text("Not signed in")
    expect(row).to_contain_text("api.notion.com")
    expect(page.locator("body")).not_to_contain_text("the secret of the client")

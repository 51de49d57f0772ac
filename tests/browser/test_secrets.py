"""In a browser: an admin stores a secret, replaces it and deletes it; no value comes back."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.test_sign_in import sign_in, start


def test_an_admin_stores_replaces_and_deletes_a_secret(servers: Servers, contexts: Contexts) -> None:
    server, watched, page, _ = start(servers, contexts)
    watched.allow("status of 400")
    sign_in(page, server.sign_in_link())
    page.goto("/settings?page=secrets")
    section = page.get_by_test_id("secrets")
    expect(section).to_contain_text("No secret is stored")
    section.get_by_role("button", name="New secret").click()
    form = page.get_by_test_id("secret-form")
    form.get_by_test_id("secret-name").fill("API_KEY")
    form.get_by_test_id("secret-value").fill("canary-one-4711")
    form.get_by_test_id("secret-hosts").fill("api.example.com\nnot a/host")
    page.get_by_test_id("secret-form-send").click()
    expect(form).to_contain_text("is not a host")
    form.get_by_test_id("secret-hosts").fill("api.example.com\n*.example.org")
    form.get_by_test_id("secret-places").fill("cookie:key")
    page.get_by_test_id("secret-form-send").click()
    expect(form).to_contain_text("is not a place in a request")
    expect(form.get_by_test_id("secret-places")).to_have_attribute("aria-invalid", "true")
    form.get_by_test_id("secret-places").fill("header:Authorization\nquery:key")
    page.get_by_test_id("secret-form-send").click()
    row = section.get_by_role("row", name=re.compile("API_KEY"))
    expect(row).to_contain_text("v1")
    expect(row).to_contain_text("*.example.org")
    expect(row).to_contain_text("header:Authorization")
    expect(row).to_contain_text("Never")
    expect(page.locator("body")).not_to_contain_text("canary-one-4711")

    row.get_by_role("button", name="Replace API_KEY").click()
    expect(form.get_by_test_id("secret-value")).to_have_value("")
    expect(form.get_by_test_id("secret-hosts")).to_have_value("api.example.com\n*.example.org")
    expect(form.get_by_test_id("secret-places")).to_have_value("header:Authorization\nquery:key")
    form.get_by_test_id("secret-places").fill("")
    form.get_by_test_id("secret-value").fill("canary-two-4711")
    page.get_by_test_id("secret-form-send").click()
    expect(row).to_contain_text("v2")
    expect(row).to_contain_text("Anywhere in a request")

    row.get_by_role("button", name="Delete API_KEY").click()
    page.get_by_test_id("delete").click()
    expect(row).to_have_count(0)
    expect(section).to_contain_text("No secret is stored")

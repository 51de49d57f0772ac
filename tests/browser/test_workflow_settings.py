"""Alerts, the error workflow and retention of one workflow, set in the panel of the workflow."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import expect

from tests.browser.editor import Editor, document

DONE: dict[str, Any] = {"done": {"type": "set", "name": "Done", "at": [272, 0], "params": {"value": 1}}}
DOC = document(DONE, [("start", "done")])


def test_who_hears_of_failures_and_what_is_kept(editor: Editor) -> None:
    editor.api.post("/api/workflows", {"document": {**DOC, "name": "tell-the-team"}, "name": "tell-the-team"})
    editor.open(DOC)
    editor.page.get_by_text("Settings", exact=True).last.click()
    editor.at("add-settings.alerts").click()
    editor.at("add-settings.alerts.email").click()
    address = editor.at("field-settings.alerts.email.0")
    address.fill("ops")
    editor.at("field-settings.alerts.waiting_s").focus()  # red comes once the list was left
    alerts = editor.page.get_by_role("group", name="Email")
    expect(alerts).to_contain_text("must be an email address.")
    address.fill("ops@example.org")
    expect(alerts).not_to_contain_text("must be an email")
    editor.at("field-settings.alerts.waiting_s").fill("3600")
    editor.at("field-settings.error_workflow").select_option("tell-the-team")
    editor.at("add-settings.retention").click()
    editor.at("field-settings.retention.days").fill("30")
    editor.at("field-settings.retention.keep").fill("100")
    editor.at("field-settings.retention.keep").press("Tab")
    editor.is_saved()
    assert editor.stored()["settings"] == {
        "alerts": {"email": ["ops@example.org"], "waiting_s": 3600},
        "error_workflow": "tell-the-team",
        "retention": {"days": 30, "keep": 100},
    }

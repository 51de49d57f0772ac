"""Issue 9, section 2, as seen in the editor: logs after the run, older versions, last runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.browser.editor import Editor, document


def block(type: str, x: int, **params: Any) -> dict[str, Any]:
    return {"type": type, "at": [x, 0], "params": params}


def test_logs_and_live_text_are_shown_after_the_run(editor: Editor, tmp_path: Path) -> None:
    go = tmp_path / "go"
    blocks = {
        "code": block("function", 288, code="console.log('first line'); console.log('second line'); return 1"),
        "talk": block("speak", 576, text="one two three", until=str(go)),
    }
    doc = document(blocks, [("start", "code"), ("code", "talk")])
    run = editor.api.run(doc)
    while not any(event["block"] == "talk" for event in editor.api.events(run)):
        editor.page.wait_for_timeout(50)
    editor.page.wait_for_timeout(200)  # some words are said
    go.touch()
    editor.api.until(run, "succeeded")
    editor.open_run(run)
    editor.select("code")
    editor.at("tab-output").click()
    expect(editor.page.get_by_label("Log", exact=True)).to_have_text("first line\nsecond line")
    editor.select("talk")
    expect(editor.page.get_by_label("Live text", exact=True)).to_contain_text("one two three")


def test_saving_an_older_document_makes_it_active(editor: Editor) -> None:
    doc = {**document({"a": block("set", 288, value="one")}, [("start", "a")]), "name": "versions"}
    draft = editor.open(doc)
    editor.api.post(f"/api/drafts/{draft}/versions", {"name": "versions"})
    newer = {**doc, "blocks": {**doc["blocks"], "a": block("set", 288, value="two")}}
    editor.api.post("/api/workflows", newer)
    editor.page.goto(f"/w/{draft}")
    editor.is_ready("a")
    editor.at("versions").click()
    expect(editor.page.get_by_role("menuitem", name="version 2 (active)")).to_be_visible()
    editor.page.get_by_role("menuitem", name="version 1").click()
    editor.at("versions").click()
    editor.page.get_by_role("menuitem", name="Publish version").click()
    expect(editor.at("stops-version")).to_contain_text("this draft was made from version 1")
    editor.at("stops-version").click()
    editor.at("save-version").click()
    said = editor.page.get_by_text("Version 1 of versions is active again instead of version 2.")
    expect(said.first).to_be_visible()  # screen readers have it as well
    assert editor.api.get("/api/workflows/versions")["version"] == 1


def of_sim(kind: str, name: str, settings: dict[str, str], trigger: bool = False) -> dict[str, Any]:
    """A block as Sim exports it."""
    values = {id: {"id": id, "type": "short-input", "value": value} for id, value in settings.items()}
    return {"type": kind, "name": name, "position": {"x": 0, "y": 0}, "triggerMode": trigger, "subBlocks": values}


def test_an_incomplete_import_is_published_with_its_triggers_on(editor: Editor) -> None:
    """Only if that is asked for; while all blocks are there, nothing is asked."""
    blocks = {
        "nightly": of_sim("schedule", "nightly", {"scheduleType": "daily", "dailyTime": "03:00"}, trigger=True),
        "rows": of_sim("airtable", "Rows", {"operation": "list", "tableId": "t1"}),
    }
    edge = {"id": "e", "source": "nightly", "target": "rows", "sourceHandle": "source", "targetHandle": "target"}
    state = {"blocks": blocks, "edges": [edge], "loops": {}, "parallels": {}, "metadata": {"name": "airy"}}
    draft = editor.api.draft({"version": "1.0", "state": state, "name": "airy"})

    def is_on() -> bool:
        (schedule,) = editor.api.get("/api/schedules", workflow="airy")["schedules"]
        return bool(schedule["enabled"])

    def ask() -> None:
        editor.at("versions").click()
        editor.page.get_by_role("menuitem", name="Publish version").click()

    editor.page.goto(f"/w/{draft}")
    editor.is_ready("rows")
    ask()
    expect(editor.at("triggers-off")).to_contain_text("Not all blocks and tools were imported")
    expect(editor.at("activate-triggers")).not_to_be_checked()
    editor.at("save-version").click()
    expect(editor.page.get_by_text("These triggers are off").first).to_be_visible()
    assert not is_on()

    ask()
    editor.at("activate-triggers").check()
    expect(editor.at("triggers-off")).to_contain_text("fail when they reach a block that was not imported")
    editor.at("save-version").click()
    expect(editor.at("triggers-off")).to_have_count(0)
    assert is_on()

    editor.open({**document({"a": block("set", 288, value="one")}, [("start", "a")]), "name": "whole"})
    ask()
    expect(editor.at("save-version")).to_be_visible()
    expect(editor.at("triggers-off")).to_have_count(0)


def test_home_shows_the_last_run_of_a_workflow_that_ran_long_ago(editor: Editor) -> None:
    doc = {**document({"a": block("set", 288, value="one")}, [("start", "a")]), "name": "ran-long-ago"}
    editor.api.post("/api/workflows", doc)
    last = editor.api.post("/api/workflows/ran-long-ago/runs?wait=60")["run"]
    for _ in range(51):
        editor.api.run({**doc, "name": "often"})
    editor.page.goto("/")
    row = editor.page.locator(".tile", has_text="ran-long-ago")
    expect(row.locator(f"a[href='/runs/{last}']")).to_be_visible()

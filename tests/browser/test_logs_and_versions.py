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
    expect(editor.page.get_by_role("menuitem", name="version 2 (live)")).to_be_visible()
    editor.page.get_by_role("menuitem", name="Put version 1 into the draft").click()
    said = editor.page.get_by_text("The draft is identical to version 1.")
    expect(said.first).to_be_visible()
    editor.at("versions").click()
    editor.page.get_by_role("menuitem", name="Publish version").click()
    expect(editor.at("stops-version")).to_contain_text("This draft was made from version 1")
    editor.at("stops-version").click()
    expect(editor.at("save-version")).to_have_text("Publish version 1 again")
    editor.at("save-version").click()
    said = editor.page.get_by_text("Version 1 of versions is live again instead of version 2.")
    expect(said.first).to_be_visible()  # screen readers have it as well
    assert editor.api.get("/api/workflows/versions")["version"] == 1


def test_an_older_version_in_the_draft_does_not_become_live_by_that(editor: Editor) -> None:
    doc = {**document({"a": block("set", 288, value="one")}, [("start", "a")]), "name": "taken-back"}
    draft = editor.open(doc)
    editor.at("publish").click()
    editor.at("save-version").click()
    editor.select("a")
    editor.at("field-value").fill("two")
    editor.is_saved()
    expect(editor.at("versions")).to_have_text("Draft · v1, edited")
    editor.at("publish").click()
    editor.at("save-version").click()
    expect(editor.at("versions")).to_have_text("Draft · v2")
    editor.at("versions").click()
    editor.page.get_by_role("menuitem", name="Compare versions").click()
    expect(editor.at("diff").get_by_role("definition")).to_have_text("onetwo")  # what version 2 changed
    expect(editor.at("diff").get_by_role("term")).to_have_text("Value")
    editor.press("Escape")
    editor.at("versions").click()
    editor.page.get_by_role("menuitem", name="Put version 1 into the draft").click()
    said = "The draft is version 1 again. Version 2 stays live until you publish."
    expect(editor.page.get_by_text(said).first).to_be_visible()
    assert editor.api.get("/api/workflows/taken-back")["version"] == 2
    assert editor.api.get(f"/api/drafts/{draft}")["base_version"] == 2


def of_sim(kind: str, name: str, settings: dict[str, str], trigger: bool = False) -> dict[str, Any]:
    """A block as Sim exports it."""
    values = {id: {"id": id, "type": "short-input", "value": value} for id, value in settings.items()}
    return {"type": kind, "name": name, "position": {"x": 0, "y": 0}, "triggerMode": trigger, "subBlocks": values}


def test_an_incomplete_import_is_published_with_its_triggers_on(editor: Editor) -> None:
    """Only if that is asked for; while all blocks are there, nothing is asked."""
    blocks = {
        "nightly": of_sim("schedule", "nightly", {"scheduleType": "daily", "dailyTime": "03:00"}, trigger=True),
        "rows": of_sim("browser_use", "Rows", {"task": "List the rows."}),
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
